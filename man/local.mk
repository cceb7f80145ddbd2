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
	man/man3/dat_psp_create.3 \
	man/man3/dat_psp_create_any.3 \
	man/man3/dat_psp_free.3 \
	man/man3/dat_psp_query.3
