/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clauses that must pass, be skipped or fail, as their names say: sanity.sh tests the runner with
 * them.
 */

#include "conform.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

CHAPTER("self");

const char *const conform_pending[] = {
	"dat_cno_trigger", "dat_srq_create", "skip/pend*", NULL
};

CLAUSE("good/first")
{
	NEEDS(max_pzs);
}

CLAUSE("bad/value")
{
	SAME(1, 2);
}

CLAUSE("bad/success")
{
	OK(dat_pz_free(n->cr));
}

CLAUSE("bad/error")
{
	FAILS(dat_pz_free(n->pz), DAT_INVALID_STATE);
}

CLAUSE("bad/crash")
{
	raise(SIGABRT);
}

CLAUSE("bad/hang")
{
	alarm(1);	/* earlier than the runner's limit */
	for (;;)
		pause();
}

/* The attempt has no listener, and its event does not fit into the EVD. */
CLAUSE("bad/asynchronous event")
{
	DAT_EVD_HANDLE evd = node_evd(n, 1, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CONNECTION_FLAG);
	const int64_t limit = pair_deadline(PAIR_LIMIT);
	struct listener listener = { .address = n->address };
	DAT_PSP_HANDLE psp = node_listen(n, &listener.qual);
	DAT_EP_HANDLE ep;

	OK(dat_psp_free(psp));
	OK(post_se(evd, 1));
	OK(dat_ep_create(n->ia, n->pz, n->recv, n->req, evd, NULL, &ep));
	ep_connect(ep, &listener);
	while (ep_state(ep) != DAT_EP_STATE_DISCONNECTED)
		CHECK(pair_now() < limit, "the attempt does not end");
}

CLAUSE("bad/unexpected DAT_NOT_IMPLEMENTED")
{
	conform_ret(__FILE__, __LINE__, "dat_pz_create(", DAT_NOT_IMPLEMENTED, DAT_SUCCESS);
}

CLAUSE("skip/attribute")
{
	n->attr.max_pzs = 0;
	NEEDS(max_pzs);
}

CLAUSE("skip/call not implemented yet")
{
	conform_ret(__FILE__, __LINE__, "dat_cno_trigger(", DAT_NOT_IMPLEMENTED, DAT_SUCCESS);
}

CLAUSE("skip/pending")
{
	SAME(1, 2);
}

CLAUSE("dat_srq_create/skip")
{
	conform_ret(__FILE__, __LINE__, "wrapper(", DAT_NOT_IMPLEMENTED, DAT_SUCCESS);
}

static void name_good(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "good/family %u", i);
}

FAMILY(3, name_good)
{
	CHECK(i < 3, "%u", i);
}

CLAUSE("good/last")
{
	struct couple c;

	couple_open(n, &c);
	couple_disconnect(&c, &c.b);
}
