/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connection requests: calls that must fail. Other chapters have successful connections. */

#include "conform.h"

#include <netinet/in.h>
#include <string.h>

CHAPTER("cr");

static char data[4096];

CLAUSE("dat_cr_query/SUCCESS")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);
	const struct sockaddr *address;
	DAT_CR_PARAM param;

	memset(&param, 0xff, sizeof(param));
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	SAME(param.private_data_size, 0);
	CHECK(!param.local_ep_handle, "there is an EP");
	CHECK(param.remote_port_qual, "no port");
	address = (const struct sockaddr *)param.remote_ia_address_ptr;
	CHECK(address && address->sa_family == n->address.ss_family, "wrong address");
}

/* Checks that a call which did not answer the request left it pending. */
static void cr_is_pending(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
}

CLAUSE("dat_cr_accept/INVALID_PARAMETER/private data NULL")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);

	FAILS(dat_cr_accept(cr, object(n, DAT_HANDLE_TYPE_EP), 8, NULL), DAT_INVALID_PARAMETER);
	cr_is_pending(cr);
}

CLAUSE("dat_cr_accept/INVALID_PARAMETER/private_data_size")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);

	FAILS(dat_cr_accept(cr, ep, -1, data), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_accept(cr, ep, n->prov.max_private_data_size + 1, data),
	      DAT_INVALID_PARAMETER);
	cr_is_pending(cr);
}

CLAUSE("dat_cr_accept/INVALID_HANDLE/no EP for a request without one")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);

	FAILS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), DAT_INVALID_HANDLE);
	cr_is_pending(cr);
}

CLAUSE("dat_cr_accept/INVALID_STATE/the EP has no PZ")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(n->ia, DAT_HANDLE_NULL, n->recv, n->req, n->conn, NULL, &ep));
	FAILS(dat_cr_accept(cr, ep, 0, NULL), DAT_INVALID_STATE);
	cr_is_pending(cr);
}

CLAUSE("dat_cr_accept/INVALID_STATE/the EP has no connect EVD")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(n->ia, n->pz, n->recv, n->req, DAT_HANDLE_NULL, NULL, &ep));
	FAILS(dat_cr_accept(cr, ep, 0, NULL), DAT_INVALID_STATE);
	cr_is_pending(cr);
}

CLAUSE("dat_cr_accept/INVALID_HANDLE/already answered")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);
	DAT_EP_HANDLE ep = object(n, DAT_HANDLE_TYPE_EP);

	OK(dat_cr_accept(cr, ep, 0, NULL));
	FAILS(dat_cr_accept(cr, ep, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE);
}

#if DAT_VERSION_MAJOR >= 2
CLAUSE("dat_cr_reject/INVALID_PARAMETER/private data NULL")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);

	FAILS(cr_reject(cr, 8, NULL), DAT_INVALID_PARAMETER);
	cr_is_pending(cr);
}

CLAUSE("dat_cr_reject/INVALID_PARAMETER/private_data_size")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);

	FAILS(cr_reject(cr, n->prov.max_private_data_size + 1, data), DAT_INVALID_PARAMETER);
	FAILS(cr_reject(cr, -1, data), DAT_INVALID_PARAMETER);
	cr_is_pending(cr);
}
#endif

CLAUSE("dat_cr_handoff/INVALID_PARAMETER/no listener")
{
	DAT_CR_HANDLE cr = object(n, DAT_HANDLE_TYPE_CR);

	FAILS(dat_cr_handoff(cr, free_qualifier(n)), DAT_INVALID_PARAMETER);
	FAILS(dat_cr_handoff(cr, 0), DAT_INVALID_PARAMETER);
	cr_is_pending(cr);
}
