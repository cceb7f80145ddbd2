/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service point: what all kinds of them have, which listen for connection requests. */
#ifndef DOFI_OBJ_SP_H
#define DOFI_OBJ_SP_H

#include "obj/ep.h"
#include "obj/xport.h"

/* What distinguishes the kinds of service points. */
struct dofi_sp_kind {
	struct dofi_pool *pool;
	DAT_HANDLE_TYPE type;
	DAT_RETURN evd_taken;		/* what its call says when its EVD may not take requests */
	bool once;			/* it takes one request */
	/* Fills in what the kind has in addition, before the object is published; or NULL. */
	void (*describe)(struct dofi_sp *sp);
};

struct dofi_sp {
	struct dofi_obj obj;
	const struct dofi_sp_kind *kind;
	DAT_CONN_QUAL conn_qual;
	struct dofi_evd *evd;
	bool makes_eps;			/* each request comes with an EP of the provider's */
	struct dofi_ep *reserved;	/* the consumer's EP for it; under the IA's lock */

	/* progress thread */
	bool listening;
	bool spent;			/* had the one request that its kind takes */

	/* the transport's, on the progress thread */
	void *listener;
	void *local_listener;		/* for peers on this host, where the IA has a local fabric */
	TAILQ_ENTRY(dofi_sp) link;
};

/* What a service point is to be, checked. */
struct dofi_sp_plan {
	const struct dofi_sp_kind *kind;
	struct dofi_ia *ia;
	DAT_CONN_QUAL conn_qual;	/* 0 lets the transport choose */
	struct dofi_evd *evd;
	bool makes_eps;
	struct dofi_ep *reserve;	/* an EP that is to be reserved, or NULL */
};

/* Listens on return. */
DAT_RETURN dofi_sp_new(const struct dofi_sp_plan *plan, struct dofi_sp **sp);
/* Requests whose event was queued stay answerable. */
void dofi_sp_destroy(struct dofi_obj *obj);

/* The one of @ia that takes requests for @conn_qual, or NULL. Progress thread. */
struct dofi_sp *dofi_sp_find(struct dofi_ia *ia, DAT_CONN_QUAL conn_qual);

#endif
