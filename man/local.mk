# Manual pages.

dist_man_MANS += \
	man/man3/dat_async_reason_name.3 \
	man/man3/dat_cno_create.3 \
	man/man3/dat_cno_fd_create.3 \
	man/man3/dat_cno_free.3 \
	man/man3/dat_cno_modify_agent.3 \
	man/man3/dat_cno_query.3 \
	man/man3/dat_cno_trigger.3 \
	man/man3/dat_cno_wait.3 \
	man/man3/dat_cr_accept.3 \
	man/man3/dat_cr_handoff.3 \
	man/man3/dat_cr_query.3 \
	man/man3/dat_cr_reject.3 \
	man/man3/dat_csp_create.3 \
	man/man3/dat_csp_free.3 \
	man/man3/dat_csp_query.3 \
	man/man3/dat_dto_name.3 \
	man/man3/dat_dto_status_name.3 \
	man/man3/dat_ep_common_connect.3 \
	man/man3/dat_ep_connect.3 \
	man/man3/dat_ep_create.3 \
	man/man3/dat_ep_create_with_srq.3 \
	man/man3/dat_ep_disconnect.3 \
	man/man3/dat_ep_dup_connect.3 \
	man/man3/dat_ep_free.3 \
	man/man3/dat_ep_get_status.3 \
	man/man3/dat_ep_modify.3 \
	man/man3/dat_ep_post_rdma_read.3 \
	man/man3/dat_ep_post_rdma_read_to_rmr.3 \
	man/man3/dat_ep_post_rdma_write.3 \
	man/man3/dat_ep_post_recv.3 \
	man/man3/dat_ep_post_send.3 \
	man/man3/dat_ep_post_send_with_invalidate.3 \
	man/man3/dat_ep_query.3 \
	man/man3/dat_ep_recv_query.3 \
	man/man3/dat_ep_reset.3 \
	man/man3/dat_ep_set_watermark.3 \
	man/man3/dat_ep_state_name.3 \
	man/man3/dat_evd_clear_unwaitable.3 \
	man/man3/dat_evd_create.3 \
	man/man3/dat_evd_dequeue.3 \
	man/man3/dat_evd_disable.3 \
	man/man3/dat_evd_enable.3 \
	man/man3/dat_evd_free.3 \
	man/man3/dat_evd_modify_cno.3 \
	man/man3/dat_evd_post_se.3 \
	man/man3/dat_evd_query.3 \
	man/man3/dat_evd_resize.3 \
	man/man3/dat_evd_set_unwaitable.3 \
	man/man3/dat_evd_wait.3 \
	man/man3/dat_event_name.3 \
	man/man3/dat_extension_op.3 \
	man/man3/dat_get_consumer_context.3 \
	man/man3/dat_get_handle_type.3 \
	man/man3/dat_ia_close.3 \
	man/man3/dat_ia_open.3 \
	man/man3/dat_ia_openv.3 \
	man/man3/dat_ia_query.3 \
	man/man3/dat_lmr_create.3 \
	man/man3/dat_lmr_free.3 \
	man/man3/dat_lmr_query.3 \
	man/man3/dat_lmr_sync_rdma_read.3 \
	man/man3/dat_lmr_sync_rdma_write.3 \
	man/man3/dat_names.3 \
	man/man3/dat_provider_fini.3 \
	man/man3/dat_provider_init.3 \
	man/man3/dat_psp_create.3 \
	man/man3/dat_psp_create_any.3 \
	man/man3/dat_psp_free.3 \
	man/man3/dat_psp_query.3 \
	man/man3/dat_pz_create.3 \
	man/man3/dat_pz_free.3 \
	man/man3/dat_pz_query.3 \
	man/man3/dat_registry_add_provider.3 \
	man/man3/dat_registry_list_providers.3 \
	man/man3/dat_registry_providers_related.3 \
	man/man3/dat_registry_remove_provider.3 \
	man/man3/dat_rmr_bind.3 \
	man/man3/dat_rmr_create.3 \
	man/man3/dat_rmr_create_for_ep.3 \
	man/man3/dat_rmr_free.3 \
	man/man3/dat_rmr_query.3 \
	man/man3/dat_rsp_create.3 \
	man/man3/dat_rsp_free.3 \
	man/man3/dat_rsp_query.3 \
	man/man3/dat_set_consumer_context.3 \
	man/man3/dat_srq_create.3 \
	man/man3/dat_srq_free.3 \
	man/man3/dat_srq_post_recv.3 \
	man/man3/dat_srq_query.3 \
	man/man3/dat_srq_resize.3 \
	man/man3/dat_srq_set_lw.3 \
	man/man3/dat_srq_state_name.3 \
	man/man3/dat_strerror.3 \
	man/man3/dats_get_ia_handle.3 \
	man/man5/dat.conf.5 \
	man/man7/dat.7 \
	man/man7/dat2.7 \
	man/man7/dat_event.7 \
	man/man7/dat_ofi.7 \
	man/man7/dat_return.7 \
	man/man7/udat.7

# All pages in HTML, with an index, in html/ of the build directory. "make html" calls it.
EXTRA_DIST += man/make-html man/style.css test/html.sh
ABI_TESTS += test/html.sh

html-local: html/index.html

html/index.html: $(dist_man_MANS) man/make-html man/style.css
	$(AM_V_GEN)cd $(srcdir) && MANDOC='$(MANDOC)' \
		$(SHELL) man/make-html '$(abs_top_builddir)/html' $(dist_man_MANS)

.PHONY: clean-html
clean-local: clean-html
clean-html:
	rm -rf html
