/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Service points, public and reserved, without a peer. */

#include "conform.h"

#include <string.h>

CHAPTER("sp");

static DAT_PSP_HANDLE out;

/* dat_psp_create */

CLAUSE("dat_psp_query/SUCCESS/the arguments of dat_psp_create()")
{
	DAT_CONN_QUAL qual = free_qualifier(n);
	DAT_PSP_HANDLE psp;
	DAT_PSP_PARAM param;

	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	memset(&param, 0xff, sizeof(param));
	OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia && param.evd_handle == n->cr, "wrong IA or EVD");
	SAME(param.conn_qual, qual);
	SAME(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	OK(dat_psp_free(psp));
}

CLAUSE("dat_psp_create/MODEL_NOT_SUPPORTED")
{
	if (n->prov.ep_creator != DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is %d", n->prov.ep_creator);
	FAILS(dat_psp_create(n->ia, free_qualifier(n), n->cr, DAT_PSP_PROVIDER_FLAG, &out),
	      DAT_MODEL_NOT_SUPPORTED);
}

CLAUSE("dat_psp_create/SUCCESS/the provider's EPs")
{
	DAT_CONN_QUAL qual = free_qualifier(n);
	DAT_PSP_HANDLE psp;
	DAT_PSP_PARAM param;

	if (n->prov.ep_creator == DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is %d", n->prov.ep_creator);
	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_PROVIDER_FLAG, &psp));
	OK(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	SAME(param.psp_flags, DAT_PSP_PROVIDER_FLAG);
	OK(dat_psp_free(psp));
}

CLAUSE("dat_psp_free/SUCCESS/the qualifier can be used again")
{
	DAT_CONN_QUAL qual = free_qualifier(n);
	DAT_PSP_HANDLE psp;
	int k;

	for (k = 0; k < 3; k++) {
		OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
		OK(dat_psp_free(psp));
	}
}

CLAUSE("dat_psp_create/CONN_QUAL_IN_USE")
{
	DAT_CONN_QUAL qual;

	node_listen(n, &qual);
	FAILS(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_CONN_QUAL_IN_USE);
}

CLAUSE("dat_psp_create/CONN_QUAL_IN_USE/by an RSP")
{
	DAT_CONN_QUAL qual = free_qualifier(n);
	DAT_RSP_HANDLE rsp;

	OK(dat_rsp_create(n->ia, qual, object(n, DAT_HANDLE_TYPE_EP), n->cr, &rsp));
	FAILS(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_CONN_QUAL_IN_USE);
	OK(dat_rsp_free(rsp));
}

CLAUSE("dat_psp_create/INVALID_PARAMETER/conn_qual 0")
{
	FAILS(dat_psp_create(n->ia, 0, n->cr, DAT_PSP_CONSUMER_FLAG, &out), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create/INVALID_PARAMETER/psp_flags")
{
	FAILS(dat_psp_create(n->ia, 4711, n->cr, (DAT_PSP_FLAGS)9, &out), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create/INVALID_PARAMETER/psp_handle NULL")
{
	FAILS(dat_psp_create(n->ia, 4711, n->cr, DAT_PSP_CONSUMER_FLAG, NULL),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create/INVALID_HANDLE/an EVD of another stream")
{
	FAILS(dat_psp_create(n->ia, 4711, n->recv, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_INVALID_HANDLE);
}

/* The EVD is valid except for its IA. */
CLAUSE("dat_psp_create/INVALID_HANDLE/a connection request EVD of another IA")
{
	struct node other;

	node_open(&other);
	FAILS(dat_psp_create(n->ia, 4711, other.cr, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_INVALID_HANDLE);
	node_close(&other);
}

/* dat_psp_create_any */

CLAUSE("dat_psp_create_any/MODEL_NOT_SUPPORTED")
{
	DAT_CONN_QUAL qual;

	if (n->prov.ep_creator != DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is %d", n->prov.ep_creator);
	FAILS(dat_psp_create_any(n->ia, &qual, n->cr, DAT_PSP_PROVIDER_FLAG, &out),
	      DAT_MODEL_NOT_SUPPORTED);
}

CLAUSE("dat_psp_create_any/SUCCESS/each has its own qualifier")
{
	DAT_CONN_QUAL a, b;
	DAT_PSP_HANDLE psp[2] = { node_listen(n, &a), node_listen(n, &b) };

	CHECK(a && b && a != b, "%llu and %llu", (unsigned long long)a, (unsigned long long)b);
	OK(dat_psp_free(psp[0]));
	OK(dat_psp_free(psp[1]));
}

CLAUSE("dat_psp_create_any/SUCCESS/the provider's EPs")
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;

	if (n->prov.ep_creator == DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is %d", n->prov.ep_creator);
	OK(dat_psp_create_any(n->ia, &qual, n->cr, DAT_PSP_PROVIDER_FLAG, &psp));
	OK(dat_psp_free(psp));
}

CLAUSE("dat_psp_create_any/INVALID_PARAMETER/conn_qual NULL")
{
	FAILS(dat_psp_create_any(n->ia, NULL, n->cr, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create_any/INVALID_PARAMETER/psp_flags")
{
	DAT_CONN_QUAL qual;

	FAILS(dat_psp_create_any(n->ia, &qual, n->cr, (DAT_PSP_FLAGS)9, &out),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create_any/INVALID_PARAMETER/psp_handle NULL")
{
	DAT_CONN_QUAL qual;

	FAILS(dat_psp_create_any(n->ia, &qual, n->cr, DAT_PSP_CONSUMER_FLAG, NULL),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_psp_create_any/INVALID_HANDLE/an EVD of another stream")
{
	DAT_CONN_QUAL qual;

	FAILS(dat_psp_create_any(n->ia, &qual, n->recv, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_INVALID_HANDLE);
}

CLAUSE("dat_psp_create_any/INVALID_HANDLE/a connection request EVD of another IA")
{
	DAT_CONN_QUAL qual;
	struct node other;

	node_open(&other);
	FAILS(dat_psp_create_any(n->ia, &qual, other.cr, DAT_PSP_CONSUMER_FLAG, &out),
	      DAT_INVALID_HANDLE);
	node_close(&other);
}

/* dat_rsp_create */

CLAUSE("dat_rsp_query/SUCCESS/the arguments of dat_rsp_create()")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);
	DAT_CONN_QUAL qual = free_qualifier(n);
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE rsp;

	OK(dat_rsp_create(n->ia, qual, ep, n->cr, &rsp));
	memset(&param, 0xff, sizeof(param));
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia && param.evd_handle == n->cr, "wrong IA or EVD");
	CHECK(param.ep_handle == ep, "wrong EP");
	SAME(param.conn_qual, qual);
	OK(dat_rsp_free(rsp));
}

CLAUSE("dat_rsp_create/SUCCESS/the EP is reserved")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);
	DAT_RSP_HANDLE rsp;

	OK(dat_rsp_create(n->ia, free_qualifier(n), ep, n->cr, &rsp));
	SAME(ep_state(ep), DAT_EP_STATE_RESERVED);
	FAILS(dat_ep_free(ep), DAT_INVALID_STATE);
}

CLAUSE("dat_rsp_free/SUCCESS/the EP is unconnected again")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);
	DAT_RSP_HANDLE rsp;

	OK(dat_rsp_create(n->ia, free_qualifier(n), ep, n->cr, &rsp));
	OK(dat_rsp_free(rsp));
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_free(ep));
}

CLAUSE("dat_rsp_create/SUCCESS/without an EP")
{
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE rsp;

	if (n->prov.ep_creator == DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is %d", n->prov.ep_creator);
	OK(dat_rsp_create(n->ia, free_qualifier(n), DAT_HANDLE_NULL, n->cr, &rsp));
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	CHECK(!param.ep_handle, "there is an EP");
	OK(dat_rsp_free(rsp));
}

CLAUSE("dat_rsp_create/CONN_QUAL_IN_USE")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);
	DAT_CONN_QUAL qual;

	node_listen(n, &qual);
	FAILS(dat_rsp_create(n->ia, qual, ep, n->cr, &out), DAT_CONN_QUAL_IN_USE);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_rsp_create/INVALID_STATE/the EP is already reserved")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);
	DAT_RSP_HANDLE rsp;

	OK(dat_rsp_create(n->ia, free_qualifier(n), ep, n->cr, &rsp));
	FAILS(dat_rsp_create(n->ia, free_qualifier(n), ep, n->cr, &out), DAT_INVALID_STATE);
	OK(dat_rsp_free(rsp));
}

COUPLED("dat_rsp_create/INVALID_STATE/the EP is connected")
{
	FAILS(dat_rsp_create(n->ia, free_qualifier(n), c->a.ep, n->cr, &out), DAT_INVALID_STATE);
	SAME(ep_state(c->a.ep), DAT_EP_STATE_CONNECTED);
}

CLAUSE("dat_rsp_create/INVALID_PARAMETER/conn_qual 0")
{
	FAILS(dat_rsp_create(n->ia, 0, object(n, DAT_HANDLE_TYPE_EP), n->cr, &out),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_rsp_create/INVALID_PARAMETER/rsp_handle NULL")
{
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);

	FAILS(dat_rsp_create(n->ia, 4711, ep, n->cr, NULL), DAT_INVALID_PARAMETER);
	SAME(ep_state(ep), DAT_EP_STATE_UNCONNECTED);
}

CLAUSE("dat_rsp_create/INVALID_HANDLE/an EVD of another stream")
{
	FAILS(dat_rsp_create(n->ia, 4711, object(n, DAT_HANDLE_TYPE_EP), n->recv, &out),
	      DAT_INVALID_HANDLE);
}
