/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work completion statuses of verbs. */

#include "fab/wc.h"

#include <rdma/fi_errno.h>
#include <stddef.h>

/*
 * By enum ibv_wc_status. Its values are those of the kernel's interface; nothing else here needs
 * its header.
 */
static const int errno_of[] = {
	[1] = EMSGSIZE,			/* LOC_LEN_ERR */
	[2] = EBADFD,			/* LOC_QP_OP_ERR */
	[3] = EBADFD,			/* LOC_EEC_OP_ERR */
	[4] = EFAULT,			/* LOC_PROT_ERR */
	[5] = FI_ECANCELED,		/* WR_FLUSH_ERR */
	[7] = EBADMSG,			/* BAD_RESP_ERR */
	[8] = EFAULT,			/* LOC_ACCESS_ERR */
	[9] = EREMOTEIO,		/* REM_INV_REQ_ERR */
	[10] = FI_EKEYREJECTED,		/* REM_ACCESS_ERR */
	[11] = EREMOTEIO,		/* REM_OP_ERR */
	[12] = FI_ETIMEDOUT,		/* RETRY_EXC_ERR */
	[13] = FI_ETIMEDOUT,		/* RNR_RETRY_EXC_ERR */
};

int dofi_wc_errno(int status, int err)
{
	const size_t n = sizeof(errno_of) / sizeof(errno_of[0]);

	return status > 0 && (size_t)status < n && errno_of[status] ? errno_of[status] : err;
}
