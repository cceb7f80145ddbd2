/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is not there yet and so is skipped; what is there leaves this list. */

#include "conform.h"

const char *const conform_pending[] = {
	/* tcp and net: the end is behind the data, and nobody reads that */
	"dat_ep_disconnect/DISCONNECTED/the peer receives nothing of much",
	"dat_ep_create_with_srq",
	"dat_lmr_create",	/* of an LMR, and of shared memory */
	"dat_srq_create",
	"dat_srq_free",
	"dat_srq_post_recv",
	"dat_srq_query",
	"dat_srq_resize",
	"dat_srq_set_lw",
#if DAT_VERSION_MAJOR >= 2
	"dat_cno_fd_create",
	"dat_cno_trigger",
	"dat_csp_create",
	"dat_csp_free",
	"dat_csp_query",
	"dat_ep_common_connect",
	"dat_ep_post_rdma_read_to_rmr",
	"dat_ep_post_send_with_invalidate",
	"dat_extension_op",
	"dat_registry_providers_related",
#endif
	"dat_evd_wait/INVALID_STATE/threshold 2 with *",
	"dat_ep_create/INVALID_PARAMETER/an EVD for *",
	"dat_ep_modify/INVALID_PARAMETER/an EVD for *",
	"dat_cno_wait/SUCCESS/no EVD when all are freed",
	NULL
};
