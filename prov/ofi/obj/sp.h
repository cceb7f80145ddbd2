/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service point: what all kinds of them have, which listen for connection requests. */
#ifndef DOFI_OBJ_SP_H
#define DOFI_OBJ_SP_H

#include "obj/evd.h"
#include "obj/xport.h"

/* What tells the kinds apart. */
struct dofi_sp_kind {
	struct dofi_pool *pool;
	DAT_HANDLE_TYPE type;
};

struct dofi_sp {
	struct dofi_obj obj;
	const struct dofi_sp_kind *kind;
	DAT_CONN_QUAL conn_qual;
	struct dofi_evd *evd;

	/* the transport's, on the progress thread */
	void *listener;
	TAILQ_ENTRY(dofi_sp) link;
};

/* Listens on return. @conn_qual 0 lets the transport choose. */
DAT_RETURN dofi_sp_new(struct dofi_ia *ia, const struct dofi_sp_kind *kind, DAT_CONN_QUAL conn_qual,
		       struct dofi_evd *evd, struct dofi_sp **sp);
/* Requests that were announced stay answerable. */
void dofi_sp_destroy(struct dofi_obj *obj);

#endif
