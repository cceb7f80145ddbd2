/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Protection Zone: one fi_domain, so that the fabric itself refuses the keys of another PZ. */
#ifndef DOFI_OBJ_MEM_PZ_H
#define DOFI_OBJ_MEM_PZ_H

#include "base/mutex.h"
#include "fab/domain.h"
#include "obj/ia.h"

#include <stdatomic.h>
#include <sys/queue.h>

struct dofi_bind;
struct dofi_lmr;

#define DOFI_PZ_GRANTS 64		/* a power of two */

struct dofi_pz {
	struct dofi_obj obj;
	uint64_t id;			/* no other PZ ever has it */
	struct dofi_domain domain;
	struct dofi_domain local;	/* of the IA's local fabric, after a connection needed it */
	void *xport_pz;			/* the transport's state of this PZ; NULL at first */
	void *datagrams_pz;		/* the datagram service's state; NULL at first */
	struct dofi_domain datagram;	/* of the IA's datagram fabric, if that is a separate one */
	struct dofi_mutex atomic_lock;	/* targets of atomics; held during an atomic; a leaf */
	LIST_HEAD(, dofi_lmr) atomic_lmrs;
	struct dofi_mutex rmr_lock;	/* its RMRs and their binds; taken under an EP's lock */
	LIST_HEAD(, dofi_bind) grants[DOFI_PZ_GRANTS]; /* by context; under rmr_lock */
};

DOFI_OBJ_HANDLES(pz, PZ, struct dofi_pz);

DAT_RETURN dofi_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);
DAT_RETURN dofi_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param);
DAT_RETURN dofi_pz_free(DAT_PZ_HANDLE pz_handle);

#endif
