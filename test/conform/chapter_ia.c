/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interface adapters: opening, querying, closing. */

#include "conform.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

CHAPTER("ia");

#define NAME ((DAT_NAME_PTR)pair_ia_name())

static DAT_IA_HANDLE open_with(DAT_EVD_HANDLE *async)
{
	DAT_IA_HANDLE ia;

	OK(dat_ia_open(NAME, 8, async, &ia));
	return ia;
}

/* dat_ia_open */

CLAUSE("dat_ia_open/SUCCESS/each call opens a new instance")
{
	DAT_EVD_HANDLE async[2] = { DAT_HANDLE_NULL, DAT_HANDLE_NULL };
	DAT_IA_HANDLE ia[2] = { open_with(&async[0]), open_with(&async[1]) };
	DAT_PZ_HANDLE pz;

	CHECK(ia[0] != ia[1] && ia[0] != n->ia && async[0] != async[1],
	      "two calls returned one handle");
	OK(dat_ia_close(ia[0], DAT_CLOSE_GRACEFUL_FLAG));
	/* the other instance remains usable */
	OK(dat_pz_create(ia[1], &pz));
	OK(dat_pz_free(pz));
	OK(dat_ia_close(ia[1], DAT_CLOSE_GRACEFUL_FLAG));
}

CLAUSE("dat_ia_open/SUCCESS/an asynchronous EVD is created")
{
	DAT_EVD_PARAM param;
	DAT_EVENT event;

	OK(dat_evd_query(n->async, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.evd_flags & DAT_EVD_ASYNC_FLAG, "%#x", param.evd_flags);
	CHECK(param.evd_qlen >= 8, "%d", (int)param.evd_qlen);
	CHECK(!param.cno_handle, "a CNO");
	CHECK(param.ia_handle == n->ia, "wrong IA");
	FAILS(dat_evd_dequeue(n->async, &event), DAT_QUEUE_EMPTY);
}

CLAUSE("dat_ia_open/SUCCESS/asynchronous EVD of another instance")
{
	DAT_EVD_HANDLE async = n->async, reported;
	DAT_IA_HANDLE ia = open_with(&async);

	CHECK(async == n->async, "the caller's handle has changed");
	OK(dat_ia_query(ia, &reported, 0, NULL, 0, NULL));
	CHECK(reported == n->async, "dat_ia_query() reports another EVD");
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

CLAUSE("dat_ia_open/SUCCESS/DAT_EVD_ASYNC_EXISTS")
{
	DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS, reported;
	DAT_IA_HANDLE ia = open_with(&async);

	OK(dat_ia_query(ia, &reported, 0, NULL, 0, NULL));
	CHECK(reported == DAT_EVD_OUT_OF_SCOPE, "dat_ia_query() reports the EVD");
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

CLAUSE("dat_ia_open/INVALID_PARAMETER/name NULL")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	FAILS(dat_ia_open(NULL, 8, &async, &ia), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ia_open/INVALID_PARAMETER/name too long")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH + 2];
	DAT_IA_HANDLE ia;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	FAILS(dat_ia_open(name, 8, &async, &ia), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ia_open/INVALID_PARAMETER/async_evd_min_qlen")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	FAILS(dat_ia_open(NAME, 0, &async, &ia), DAT_INVALID_PARAMETER);
	FAILS(dat_ia_open(NAME, -1, &async, &ia), DAT_INVALID_PARAMETER);
	CHECK(!async, "an EVD was returned without an IA");
}

CLAUSE("dat_ia_open/INSUFFICIENT_RESOURCES/async_evd_min_qlen")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	if (n->attr.max_evd_qlen == INT32_MAX)
		skip("max_evd_qlen is %d", INT32_MAX);
	FAILS(dat_ia_open(NAME, n->attr.max_evd_qlen + 1, &async, &ia), DAT_INSUFFICIENT_RESOURCES);
}

CLAUSE("dat_ia_open/INVALID_HANDLE/ia_handle NULL")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	FAILS(dat_ia_open(NAME, 8, &async, NULL), DAT_INVALID_HANDLE);
}

CLAUSE("dat_ia_open/INVALID_HANDLE/EVD of another stream")
{
	DAT_EVD_HANDLE async = n->recv;
	DAT_IA_HANDLE ia;

	FAILS(dat_ia_open(NAME, 8, &async, &ia), DAT_INVALID_HANDLE);
	CHECK(async == n->recv, "changed");
}

CLAUSE("dat_ia_open/INVALID_HANDLE/freed EVD")
{
	DAT_EVD_HANDLE async = node_evd(n, 4, DAT_EVD_ASYNC_FLAG), freed = async;
	DAT_IA_HANDLE ia;

	OK(dat_evd_free(async));
	FAILS(dat_ia_open(NAME, 8, &async, &ia), DAT_INVALID_HANDLE);
	CHECK(async == freed, "changed");
}

CLAUSE("dat_ia_open/PROVIDER_NOT_FOUND/unknown name")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	FAILS(dat_ia_open((DAT_NAME_PTR)"no-such-ia", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND);
	FAILS(dat_ia_open((DAT_NAME_PTR)"", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND);
}

CLAUSE("dat_ia_openv/PROVIDER_NOT_FOUND/version")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	FAILS(dat_ia_openv(NAME, 8, &async, &ia, DAT_VERSION_MAJOR + 5, 0, DAT_FALSE),
	      DAT_PROVIDER_NOT_FOUND);
	FAILS(dat_ia_openv(NAME, 8, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR + 70,
			   DAT_FALSE),
	      DAT_PROVIDER_NOT_FOUND);
}

/* dat_ia_query */

CLAUSE("dat_ia_query/SUCCESS/no field")
{
	OK(dat_ia_query(n->ia, NULL, 0, NULL, 0, NULL));
}

CLAUSE("dat_ia_query/SUCCESS/identical results of two calls")
{
	DAT_PROVIDER_ATTR prov;
	DAT_IA_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	memset(&prov, 0, sizeof(prov));
	OK(dat_ia_query(n->ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &prov));
	SAME(strcmp(attr.adapter_name, n->attr.adapter_name), 0);
	SAME(attr.max_eps, n->attr.max_eps);
	SAME(attr.max_message_size, n->attr.max_message_size);
	SAME(prov.max_private_data_size, n->prov.max_private_data_size);
	CHECK(attr.ia_address_ptr == n->attr.ia_address_ptr, "wrong address");
}

CLAUSE("dat_ia_query/SUCCESS/adapter_name")
{
	CHECK(*n->attr.adapter_name, "adapter_name is empty");
	CHECK(memchr(n->attr.adapter_name, 0, sizeof(n->attr.adapter_name)),
	      "adapter_name is not terminated");
	CHECK(memchr(n->attr.vendor_name, 0, sizeof(n->attr.vendor_name)),
	      "vendor_name is not terminated");
}

CLAUSE("dat_ia_query/SUCCESS/ia_address_ptr is a socket address")
{
	const struct sockaddr *address = (const struct sockaddr *)n->attr.ia_address_ptr;

	CHECK(address, "no address");
	CHECK(address->sa_family == AF_INET || address->sa_family == AF_INET6, "family %d",
	      address->sa_family);
}

CLAUSE("dat_ia_query/SUCCESS/limits are sane")
{
	const DAT_IA_ATTR *a = &n->attr;

	CHECK(a->max_eps > 0 && a->max_dto_per_ep > 0, "no EP or no operation");
	CHECK(a->max_evds > 4 && a->max_evd_qlen > 0, "too few or too short EVDs");
	CHECK(a->max_iov_segments_per_dto > 0, "no segment of a DTO");
	CHECK(a->max_iov_segments_per_rdma_read > 0 && a->max_iov_segments_per_rdma_write > 0,
	      "no segment of RDMA");
	CHECK(a->max_lmrs > 0 && a->max_lmr_block_size > 0 && a->max_pzs > 0, "no LMR or PZ");
	CHECK(a->max_message_size > 0 && a->max_rdma_size > 0, "no message or RDMA size");
	/* some headers declare the guaranteed members as DAT_BOOLEAN */
	CHECK(a->max_rdma_read_per_ep_in >= (DAT_COUNT)a->max_rdma_read_per_ep_in_guaranteed,
	      "the incoming RDMA reads of an EP");
	CHECK(a->max_rdma_read_per_ep_out >= (DAT_COUNT)a->max_rdma_read_per_ep_out_guaranteed,
	      "the outgoing RDMA reads of an EP");
	CHECK(a->max_rdma_read_in >= a->max_rdma_read_per_ep_in,
	      "the incoming RDMA reads of the IA");
	CHECK(a->max_rdma_read_out >= a->max_rdma_read_per_ep_out,
	      "the outgoing RDMA reads of the IA");
	CHECK(!a->max_srqs == !a->max_recv_per_srq, "an SRQ without receives");
}

CLAUSE("dat_ia_query/SUCCESS/attribute arrays")
{
	const DAT_IA_ATTR *a = &n->attr;
	DAT_COUNT k;

	CHECK(!a->num_transport_attr || a->transport_attr, "no transport attributes");
	CHECK(!a->num_vendor_attr || a->vendor_attr, "no vendor attributes");
	CHECK(!n->prov.num_provider_specific_attr || n->prov.provider_specific_attr,
	      "no provider attributes");
	for (k = 0; k < a->num_transport_attr; k++)
		CHECK(a->transport_attr[k].name && a->transport_attr[k].value, "%d", (int)k);
	for (k = 0; k < a->num_vendor_attr; k++)
		CHECK(a->vendor_attr[k].name && a->vendor_attr[k].value, "%d", (int)k);
	for (k = 0; k < n->prov.num_provider_specific_attr; k++)
		CHECK(n->prov.provider_specific_attr[k].name &&
		      n->prov.provider_specific_attr[k].value, "%d", (int)k);
}

CLAUSE("dat_ia_query/SUCCESS/provider attributes")
{
	const DAT_PROVIDER_ATTR *p = &n->prov;

	SAME(p->dapl_version_major, DAT_VERSION_MAJOR);
	CHECK(*p->provider_name, "provider_name is empty");
	CHECK(p->iov_ownership_on_return == DAT_IOV_CONSUMER ||
	      p->iov_ownership_on_return == DAT_IOV_PROVIDER_NOMOD ||
	      p->iov_ownership_on_return == DAT_IOV_PROVIDER_MOD, "%d", p->iov_ownership_on_return);
	CHECK(p->max_private_data_size >= node_least_data(n), "%d bytes of private data",
	      (int)p->max_private_data_size);
	CHECK(p->optimal_buffer_alignment > 0 &&
	      !(p->optimal_buffer_alignment & (p->optimal_buffer_alignment - 1)), "%d",
	      (int)p->optimal_buffer_alignment);
}

CLAUSE("dat_ia_query/SUCCESS/streams merge with themselves")
{
	int stream;

	for (stream = 0; stream < 6; stream++)
		CHECK(n->prov.evd_stream_merging_supported[stream][stream], "stream %d", stream);
}

CLAUSE("dat_ia_query/SUCCESS/merging is symmetric")
{
	int a, b;

	for (a = 0; a < 6; a++)
		for (b = 0; b < a; b++)
			CHECK(n->prov.evd_stream_merging_supported[a][b] ==
			      n->prov.evd_stream_merging_supported[b][a], "%d with %d", a, b);
}

CLAUSE("dat_ia_query/INVALID_PARAMETER/ia_attr NULL")
{
	FAILS(dat_ia_query(n->ia, NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ia_query/INVALID_PARAMETER/provider_attr NULL")
{
	FAILS(dat_ia_query(n->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ia_query/INVALID_PARAMETER/ia_attr_mask")
{
	DAT_IA_ATTR attr;

	FAILS(dat_ia_query(n->ia, NULL, UINT64_C(1) << 62, &attr, 0, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_ia_query(n->ia, NULL, DAT_IA_FIELD_ALL + 1, &attr, 0, NULL),
	      DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ia_query/INVALID_PARAMETER/provider_attr_mask")
{
	DAT_PROVIDER_ATTR attr;

	FAILS(dat_ia_query(n->ia, NULL, 0, NULL, UINT64_C(1) << 62, &attr), DAT_INVALID_PARAMETER);
}

/* dat_ia_close */

CLAUSE("dat_ia_close/SUCCESS/gracefully without open objects")
{
	OK(dat_evd_free(n->cr));
	OK(dat_evd_free(n->conn));
	OK(dat_evd_free(n->req));
	OK(dat_evd_free(n->recv));
	OK(dat_pz_free(n->pz));
	OK(dat_ia_close(n->ia, DAT_CLOSE_GRACEFUL_FLAG));
	FAILS(dat_ia_close(n->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
	FAILS(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	n->ia = DAT_HANDLE_NULL;
}

CLAUSE("dat_ia_close/SUCCESS/abruptly with objects of every type")
{
	struct couple c;
	unsigned type;

	for (type = 0; type < N_TYPES; type++)
		if (type != DAT_HANDLE_TYPE_IA && type_is_supported(n, (DAT_HANDLE_TYPE)type))
			object(n, (DAT_HANDLE_TYPE)type);
	couple_open(n, &c);
	post_recv(c.b.ep, &c.m, 0, 64, 1);
	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	n->ia = DAT_HANDLE_NULL;
}

CLAUSE("dat_ia_close/SUCCESS/the consumer's asynchronous EVD remains")
{
	DAT_EVD_HANDLE async = node_evd(n, 4, DAT_EVD_ASYNC_FLAG);
	DAT_IA_HANDLE ia = open_with(&async);

	FAILS(dat_evd_free(async), DAT_INVALID_STATE);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_evd_free(async));
}

CLAUSE("dat_ia_close/SUCCESS/abruptly, with the asynchronous EVD of another instance")
{
	DAT_IA_HANDLE ia = open_with(&n->async);
	DAT_PZ_HANDLE pz;

	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	n->ia = DAT_HANDLE_NULL;
	/* the IA without its asynchronous EVD remains usable */
	OK(dat_pz_create(ia, &pz));
	OK(dat_pz_free(pz));
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

CLAUSE("dat_ia_close/INVALID_PARAMETER/flags")
{
	FAILS(dat_ia_close(n->ia, (DAT_CLOSE_FLAGS)5), DAT_INVALID_PARAMETER);
	FAILS(dat_ia_close(n->ia, (DAT_CLOSE_FLAGS)2), DAT_INVALID_PARAMETER);
	OK(dat_ia_query(n->ia, NULL, 0, NULL, 0, NULL));
}

static bool keeps_open(unsigned type)
{
	/* no one answers a connection request: closing rejects it */
	return type != DAT_HANDLE_TYPE_IA && type != DAT_HANDLE_TYPE_CR;
}

static void name_open_object(unsigned i, char *name, size_t size)
{
	if (keeps_open(i))
		snprintf(name, size, "dat_ia_close/INVALID_STATE/gracefully with an open %s",
			 type_name((DAT_HANDLE_TYPE)i));
}

FAMILY(N_TYPES, name_open_object)
{
	struct node other;

	node_open(&other);
	object_make(&other, (DAT_HANDLE_TYPE)i);
	if (i != DAT_HANDLE_TYPE_EVD) {
		dat_evd_free(other.cr);
		dat_evd_free(other.conn);
		dat_evd_free(other.req);
		dat_evd_free(other.recv);
	}
	if (i != DAT_HANDLE_TYPE_PZ)
		dat_pz_free(other.pz);
	FAILS(dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
}

CLAUSE("dat_ia_close/INVALID_STATE/gracefully with an EP whose request is pending")
{
	struct node other;

	node_open(&other);
	object_make(&other, DAT_HANDLE_TYPE_CR);
	FAILS(dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Threads that are waiting when their IA is closed. */

CLAUSE("dat_ia_close/SUCCESS/a waiter on an EVD gets DAT_ABORT")
{
	struct waiter w;

	evd_waiter_start(&w, n->recv, 1);
	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	n->ia = DAT_HANDLE_NULL;
	waiter_expect(&w, DAT_ABORT);
}

CLAUSE("dat_ia_close/SUCCESS/a waiter on a CNO gets no EVD")
{
	struct waiter w;

	cno_waiter_start(&w, object(n, DAT_HANDLE_TYPE_CNO));
	OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
	n->ia = DAT_HANDLE_NULL;
	waiter_join(&w);	/* the text does not specify the return code */
	CHECK(!w.evd, "EVD %p", w.evd);
}
