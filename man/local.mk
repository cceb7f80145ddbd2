# Manual pages.

dist_man_MANS += \
	man/man3/dat_cr_accept.3 \
	man/man3/dat_cr_query.3 \
	man/man3/dat_cr_reject.3 \
	man/man3/dat_ep_connect.3 \
	man/man3/dat_ep_create.3 \
	man/man3/dat_ep_disconnect.3 \
	man/man3/dat_ep_free.3 \
	man/man3/dat_ep_get_status.3 \
	man/man3/dat_ep_post_rdma_read.3 \
	man/man3/dat_ep_post_rdma_write.3 \
	man/man3/dat_ep_post_recv.3 \
	man/man3/dat_ep_post_send.3 \
	man/man3/dat_ep_query.3 \
	man/man3/dat_ep_reset.3 \
	man/man3/dat_extension_op.3 \
	man/man3/dat_get_consumer_context.3 \
	man/man3/dat_get_handle_type.3 \
	man/man3/dat_provider_fini.3 \
	man/man3/dat_provider_init.3 \
	man/man3/dat_psp_create.3 \
	man/man3/dat_psp_create_any.3 \
	man/man3/dat_psp_free.3 \
	man/man3/dat_psp_query.3 \
	man/man3/dat_registry_add_provider.3 \
	man/man3/dat_registry_list_providers.3 \
	man/man3/dat_registry_providers_related.3 \
	man/man3/dat_registry_remove_provider.3 \
	man/man3/dat_set_consumer_context.3 \
	man/man3/dat_strerror.3 \
	man/man3/dats_get_ia_handle.3 \
	man/man7/dat_ofi.7
