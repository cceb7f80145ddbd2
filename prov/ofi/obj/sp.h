/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service point: what all kinds have in common. They listen for connection requests. */
#ifndef DOFI_OBJ_SP_H
#define DOFI_OBJ_SP_H

#include "obj/ep.h"
#include "obj/xport.h"

/* What distinguishes the kinds of service points. */
struct dofi_sp_kind {
	struct dofi_pool *pool;
	DAT_HANDLE_TYPE type;
	/* what the call returns when the EVD may not take requests */
	DAT_RETURN evd_taken;
	bool once;			/* takes one request */
	/* Fills in what the kind has in addition, before the object is published; or NULL. */
	void (*describe)(struct dofi_sp *sp);
};

struct dofi_sp {
	struct dofi_obj obj;
	const struct dofi_sp_kind *kind;
	DAT_CONN_QUAL conn_qual;
	struct dofi_evd *evd;
	bool makes_eps;			/* each request comes with an EP that the provider made */
	struct dofi_ep *reserved;	/* the consumer's EP for the request; under the IA's lock */

	/* progress thread */
	bool listening;
	bool spent;			/* got the one request that its kind takes */

	/* the transport's, on the progress thread */
	void *listener;
	/* the listener for peers on this host, if the IA has a local fabric */
	void *local_listener;
	TAILQ_ENTRY(dofi_sp) link;
};

/* The checked arguments of a service point. */
struct dofi_sp_plan {
	const struct dofi_sp_kind *kind;
	struct dofi_ia *ia;
	DAT_CONN_QUAL conn_qual;	/* 0: the transport chooses */
	struct dofi_evd *evd;
	bool makes_eps;
	struct dofi_ep *reserve;	/* the EP to reserve, or NULL */
};

/* Makes a service point, which listens on return. */
DAT_RETURN dofi_sp_new(const struct dofi_sp_plan *plan, struct dofi_sp **sp);
/* Requests stay answerable if their events were queued. */
void dofi_sp_destroy(struct dofi_obj *obj);

/* The service point of @ia for requests with @conn_qual, or NULL. Progress thread. */
struct dofi_sp *dofi_sp_find(struct dofi_ia *ia, DAT_CONN_QUAL conn_qual);
/* Calls @fn for each service point of @ia that listens. Progress thread. */
void dofi_sps_each(struct dofi_ia *ia, void (*fn)(struct dofi_sp *sp));

#endif
