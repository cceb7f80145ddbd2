/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dat_ep_modify: which parameters may change in which state, to which values, and all or nothing.
 */

#include "number.h"
#include "stage.h"

#include <stddef.h>
#include <stdio.h>

CHAPTER("modify");

/* Kinds of parameters, which determine their good and bad values. */
enum kind {
	FIXED,			/* never modified */
	PZ,
	COMPLETION_EVD,
	CONNECTION_EVD,
	SERVICE,
	QOS,
	RECV_FLAGS,
	REQUEST_FLAGS,
	SIZE,			/* used exactly as requested */
	NUMBER,			/* at least as much as requested */
	SRQ_MARK,
	NO_ATTRS,		/* number of named attributes, none of which the suite knows */
	NO_ATTR_LIST,
};

struct field {
	const char *name;
	DAT_EP_PARAM_MASK bit;
	unsigned states;		/* mask of the states in which it may be modified */
	enum kind kind;
	size_t offset, size;		/* in DAT_EP_PARAM */
	size_t limit, limit_size;	/* its limit, in DAT_IA_ATTR */
};

#define BIT(state) (1u << DAT_EP_STATE_##state)
#define S1 BIT(UNCONNECTED)
#define S2 (S1 | BIT(TENTATIVE_CONNECTION_PENDING))
#define S4 (S2 | BIT(RESERVED) | BIT(PASSIVE_CONNECTION_PENDING))

#define SIZE_OF(type, member) sizeof(((type *)0)->member)
#define MEMBER(member) offsetof(DAT_EP_PARAM, member), SIZE_OF(DAT_EP_PARAM, member)
#define PARAM(NAME, member, states, kind) \
	{ #NAME, DAT_EP_FIELD_##NAME, states, kind, MEMBER(member), 0, 0 }
#define ATTR(NAME, member, states, kind) \
	{ #NAME, DAT_EP_FIELD_EP_ATTR_##NAME, states, kind, MEMBER(ep_attr.member), 0, 0 }
#define BOUND(NAME, member, states, kind, ia_member) \
	{ #NAME, DAT_EP_FIELD_EP_ATTR_##NAME, states, kind, MEMBER(ep_attr.member), \
	  offsetof(DAT_IA_ATTR, ia_member), SIZE_OF(DAT_IA_ATTR, ia_member) }

/* Fields that an attribute of the IA limits come first, fields without bad values last. */
static const struct field fields[] = {
	BOUND(MAX_MESSAGE_SIZE, max_message_size, S4, SIZE, max_message_size),
	BOUND(MAX_RDMA_SIZE, max_rdma_size, S4, SIZE, max_rdma_size),
	BOUND(MAX_RECV_DTOS, max_recv_dtos, S4, NUMBER, max_dto_per_ep),
	BOUND(MAX_REQUEST_DTOS, max_request_dtos, S4, NUMBER, max_dto_per_ep),
	BOUND(MAX_RECV_IOV, max_recv_iov, S4, NUMBER, max_iov_segments_per_dto),
	BOUND(MAX_REQUEST_IOV, max_request_iov, S4, NUMBER, max_iov_segments_per_dto),
	BOUND(MAX_RDMA_READ_IN, max_rdma_read_in, S4, NUMBER, max_rdma_read_per_ep_in),
	BOUND(MAX_RDMA_READ_OUT, max_rdma_read_out, S4, NUMBER, max_rdma_read_per_ep_out),
	BOUND(MAX_RDMA_READ_IOV, max_rdma_read_iov, S4, NUMBER, max_iov_segments_per_rdma_read),
	BOUND(MAX_RDMA_WRITE_IOV, max_rdma_write_iov, S4, NUMBER, max_iov_segments_per_rdma_write),
	PARAM(PZ_HANDLE, pz_handle, S2, PZ),
	PARAM(RECV_EVD_HANDLE, recv_evd_handle, S4, COMPLETION_EVD),
	PARAM(REQUEST_EVD_HANDLE, request_evd_handle, S4, COMPLETION_EVD),
	PARAM(CONNECT_EVD_HANDLE, connect_evd_handle, S4, CONNECTION_EVD),
	ATTR(SERVICE_TYPE, service_type, S4, SERVICE),
	ATTR(QOS, qos, S4, QOS),
	ATTR(RECV_COMPLETION_FLAGS, recv_completion_flags, S4, RECV_FLAGS),
	ATTR(REQUEST_COMPLETION_FLAGS, request_completion_flags, S4, REQUEST_FLAGS),
	ATTR(SRQ_SOFT_HW, srq_soft_hw, S4, SRQ_MARK),
	ATTR(NUM_TRANSPORT_ATTR, ep_transport_specific_count, S1, NO_ATTRS),
	ATTR(NUM_PROVIDER_ATTR, ep_provider_specific_count, S1, NO_ATTRS),
	PARAM(IA_HANDLE, ia_handle, 0, FIXED),
	PARAM(EP_STATE, ep_state, 0, FIXED),
#if DAT_VERSION_MAJOR >= 2
	PARAM(COMM, comm, 0, FIXED),
#endif
	PARAM(LOCAL_IA_ADDRESS_PTR, local_ia_address_ptr, 0, FIXED),
	PARAM(LOCAL_PORT_QUAL, local_port_qual, 0, FIXED),
	PARAM(REMOTE_IA_ADDRESS_PTR, remote_ia_address_ptr, 0, FIXED),
	PARAM(REMOTE_PORT_QUAL, remote_port_qual, 0, FIXED),
	PARAM(SRQ_HANDLE, srq_handle, 0, FIXED),
	ATTR(TRANSPORT_SPECIFIC_ATTR, ep_transport_specific, S1, NO_ATTR_LIST),
	ATTR(PROVIDER_SPECIFIC_ATTR, ep_provider_specific, S1, NO_ATTR_LIST),
};

#define N_BOUNDED 10
#define N_WITHOUT_BAD 2

/* Values */

static uint64_t value_of(const DAT_EP_PARAM *param, const struct field *f)
{
	return number_get(param, f->offset, f->size);
}

static uint64_t handle_value(DAT_HANDLE handle)
{
	return (uintptr_t)handle;
}

static DAT_PZ_HANDLE new_pz(struct node *n)
{
	DAT_PZ_HANDLE pz;

	OK(dat_pz_create(n->ia, &pz));
	return pz;
}

/* Creates an object to replace an object that the EP was created with. */
static DAT_HANDLE new_object(struct node *n, const struct field *f)
{
	switch (f->kind) {
	case PZ:
		return new_pz(n);
	case COMPLETION_EVD:
		return node_evd(n, 8, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	case CONNECTION_EVD:
		return node_evd(n, 8, DAT_EVD_CONNECTION_FLAG);
	default:
		return DAT_HANDLE_NULL;
	}
}

/* A value different from that in @param, if there is one. */
static uint64_t good_value(const struct field *f, const DAT_EP_PARAM *param, DAT_HANDLE object)
{
	uint64_t now = value_of(param, f);

	switch (f->kind) {
	case PZ:
	case COMPLETION_EVD:
	case CONNECTION_EVD:
		return handle_value(object);
	case RECV_FLAGS:
	case REQUEST_FLAGS:
		return DAT_COMPLETION_UNSIGNALLED_FLAG;
	case SIZE:
	case NUMBER:
		return now > 1 ? now - 1 : now;
	case NO_ATTRS:
	case NO_ATTR_LIST:
		return 0;
	default:
		return now;
	}
}

static uint64_t beyond_limit(struct node *n, const struct field *f)
{
	uint64_t limit = number_get(&n->attr, f->limit, f->limit_size);
	uint64_t largest = f->kind == NUMBER ? INT32_MAX :
					       UINT64_MAX >> (64 - 8 * f->size);

	if (limit >= largest)
		skip("the IA's limit is %#llx", (unsigned long long)limit);
	return limit + 1;
}

static uint64_t bad_value(struct node *n, const struct field *f)
{
	switch (f->kind) {
	case PZ:
	case COMPLETION_EVD:
		return handle_value(n->conn);	/* an EVD of another stream */
	case CONNECTION_EVD:
		return handle_value(n->recv);
	case SERVICE:
		return 77;
	case QOS:
		return 0x1000;
	case RECV_FLAGS:
		return DAT_COMPLETION_SUPPRESS_FLAG;
	case REQUEST_FLAGS:
		return 0x1000;
	case SIZE:
	case NUMBER:
		return beyond_limit(n, f);
	case SRQ_MARK:
	case NO_ATTRS:
		return 1;
	default:
		return 0;
	}
}

static void query(DAT_EP_HANDLE ep, DAT_EP_PARAM *param)
{
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, param));
}

static void check_field(const struct field *f, const DAT_EP_PARAM *wanted, const DAT_EP_PARAM *got)
{
	uint64_t asked = value_of(wanted, f), is = value_of(got, f);

	if (f->kind == NUMBER)
		CHECK(is >= asked, "%s: %llu, less than %llu", f->name, (unsigned long long)is,
		      (unsigned long long)asked);
	else
		CHECK(is == asked, "%s: %#llx, not %#llx", f->name, (unsigned long long)is,
		      (unsigned long long)asked);
}

/* No parameter has changed except the state. */
static void check_unchanged(const DAT_EP_PARAM *before, const DAT_EP_PARAM *after)
{
	size_t i;

	for (i = 0; i < COUNT(fields); i++)
		if (fields[i].kind != FIXED)
			CHECK(value_of(before, &fields[i]) == value_of(after, &fields[i]),
			      "%s has changed", fields[i].name);
}

/* Each parameter in each state */

/* Only EPs with an SRQ have watermarks, which these EPs lack. */
static DAT_RETURN expected(const struct field *f, const struct stage_row *row)
{
	if (f->kind == FIXED)
		return DAT_INVALID_PARAMETER;
	if (!(f->states & (1u << row->state)))
		return DAT_INVALID_STATE;
	return f->kind == SRQ_MARK ? DAT_INVALID_PARAMETER : DAT_SUCCESS;
}

static const char *return_name(DAT_RETURN type)
{
	return type == DAT_SUCCESS ? "SUCCESS" :
	       type == DAT_INVALID_STATE ? "INVALID_STATE" : "INVALID_PARAMETER";
}

static void name_cell(unsigned i, char *name, size_t size)
{
	const struct field *f = &fields[i / N_STAGES];
	const struct stage_row *row = &stage_rows[i % N_STAGES];

	snprintf(name, size, "dat_ep_modify/%s/%s/%s", return_name(expected(f, row)), f->name,
		 row->name);
}

/* Returns false if the state ended before the call. */
static bool cell(struct stage *s, const struct field *f, DAT_HANDLE object)
{
	DAT_RETURN type = expected(f, s->row), ret;
	DAT_EP_PARAM before, wanted, after;

	query(s->e.ep, &before);
	wanted = before;
	number_set(&wanted, f->offset, f->size, good_value(f, &before, object));
	ret = dat_ep_modify(s->e.ep, f->bit, &wanted);
	query(s->e.ep, &after);
	if (s->row->transient && after.ep_state != s->row->state)
		return false;
	conform_ret(__FILE__, __LINE__, "dat_ep_modify(", ret, type);
	if (type == DAT_INVALID_STATE)
		SAME(DAT_GET_SUBTYPE(ret), s->row->subtype);
	if (type == DAT_SUCCESS)
		check_field(f, &wanted, &after);
	else
		check_unchanged(&before, &after);
	SAME(after.ep_state, s->row->state);
	return true;
}

#define TRIES 20

FAMILY(COUNT(fields) * N_STAGES, name_cell)
{
	const struct stage_row *row = &stage_rows[i % N_STAGES];
	const struct field *f = &fields[i / N_STAGES];
	DAT_HANDLE object = new_object(n, f);
	unsigned tries;
	struct stage s;

	if (f->kind == SRQ_MARK && expected(f, row) == DAT_INVALID_PARAMETER)
		needs_strict(n, true);
	for (tries = 0; tries < TRIES; tries++) {
		stage_set(n, row, &s);
		if (cell(&s, f, object))
			return;
	}
	skip("%s ends too soon", row->name);
}

/* Values */

static void name_bad(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_modify/INVALID_PARAMETER/value of %s", fields[i].name);
}

FAMILY(COUNT(fields) - N_WITHOUT_BAD, name_bad)
{
	const struct field *f = &fields[i];
	DAT_EP_PARAM before, wanted, after;
	struct end e;

	if (f->kind == SRQ_MARK)
		needs_strict(n, true);
	end_open(n, &e, NULL);
	query(e.ep, &before);
	wanted = before;
	number_set(&wanted, f->offset, f->size, bad_value(n, f));
	FAILS(dat_ep_modify(e.ep, f->bit, &wanted), DAT_INVALID_PARAMETER);
	query(e.ep, &after);
	check_unchanged(&before, &after);
}

static void name_limit(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_ep_modify/SUCCESS/limit of %s", fields[i].name);
}

FAMILY(N_BOUNDED, name_limit)
{
	const struct field *f = &fields[i];
	DAT_EP_PARAM wanted, after;
	struct end e;

	end_open(n, &e, NULL);
	query(e.ep, &wanted);
	number_set(&wanted, f->offset, f->size,
		   number_get(&n->attr, f->limit, f->limit_size));
	OK(dat_ep_modify(e.ep, f->bit, &wanted));
	query(e.ep, &after);
	check_field(f, &wanted, &after);
}

/* The call itself */

CLAUSE("dat_ep_modify/SUCCESS/nothing")
{
	DAT_EP_PARAM before, after;
	struct end e;

	end_open(n, &e, NULL);
	query(e.ep, &before);
	OK(dat_ep_modify(e.ep, 0, &before));
	query(e.ep, &after);
	check_unchanged(&before, &after);
}

CLAUSE("dat_ep_modify/SUCCESS/several at once")
{
	DAT_EP_PARAM wanted, after;
	struct end e, other;

	end_open(n, &e, NULL);
	end_open(n, &other, NULL);
	query(e.ep, &wanted);
	wanted.pz_handle = new_pz(n);
	wanted.recv_evd_handle = other.recv;
	wanted.connect_evd_handle = other.conn;
	wanted.ep_attr.max_recv_dtos = 7;
	OK(dat_ep_modify(e.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
			 &wanted));
	query(e.ep, &after);
	CHECK(after.pz_handle == wanted.pz_handle && after.recv_evd_handle == other.recv &&
		      after.connect_evd_handle == other.conn && after.request_evd_handle == e.req,
	      "not the requested values");
	/* the EVDs that it was created with are free */
	OK(dat_evd_free(e.recv));
	OK(dat_evd_free(e.conn));
	FAILS(dat_evd_free(e.req), DAT_INVALID_STATE);
}

CLAUSE("dat_ep_modify/SUCCESS/no EVDs")
{
	DAT_EP_PARAM wanted;
	struct end e;

	end_open(n, &e, NULL);
	query(e.ep, &wanted);
	wanted.recv_evd_handle = wanted.request_evd_handle = wanted.connect_evd_handle =
		DAT_HANDLE_NULL;
	OK(dat_ep_modify(e.ep, DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
			 DAT_EP_FIELD_CONNECT_EVD_HANDLE, &wanted));
	OK(dat_evd_free(e.recv));
	OK(dat_evd_free(e.req));
	OK(dat_evd_free(e.conn));
}

CLAUSE("dat_ep_modify/INVALID_PARAMETER/all or nothing")
{
	DAT_EP_PARAM before, wanted, after;
	struct end e;

	end_open(n, &e, NULL);
	query(e.ep, &before);
	wanted = before;
	wanted.pz_handle = new_pz(n);
	wanted.ep_attr.max_request_dtos = 3;
	wanted.ep_attr.max_rdma_write_iov = INT32_MAX;
	FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
			    DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &wanted),
	      DAT_INVALID_PARAMETER);
	query(e.ep, &after);
	check_unchanged(&before, &after);
	OK(dat_pz_free(wanted.pz_handle));
}

/* Of two parameters the state forbids one, so neither changes. */
CLAUSE("dat_ep_modify/INVALID_STATE/all or nothing")
{
	DAT_EP_PARAM before, wanted, after;
	struct stage s;

	stage_set(n, &stage_rows[1], &s);
	SAME(ep_state(s.e.ep), DAT_EP_STATE_RESERVED);
	query(s.e.ep, &before);
	wanted = before;
	wanted.ep_attr.max_recv_dtos = 3;
	FAILS(dat_ep_modify(s.e.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_PZ_HANDLE,
			    &wanted), DAT_INVALID_STATE);
	query(s.e.ep, &after);
	check_unchanged(&before, &after);
}

CLAUSE("dat_ep_modify/INVALID_PARAMETER/mask")
{
	const DAT_EP_PARAM_MASK assigned = DAT_EP_FIELD_ALL;
	DAT_EP_PARAM param;
	struct end e;
	unsigned bit;

	end_open(n, &e, NULL);
	query(e.ep, &param);
	for (bit = 0; bit < 8 * sizeof(DAT_EP_PARAM_MASK); bit++) {
		DAT_EP_PARAM_MASK mask = (DAT_EP_PARAM_MASK)(UINT64_C(1) << bit);

		if (!(mask & assigned))
			FAILS(dat_ep_modify(e.ep, mask, &param), DAT_INVALID_PARAMETER);
	}
}

CLAUSE("dat_ep_modify/INVALID_PARAMETER/no values")
{
	struct end e;

	end_open(n, &e, NULL);
	FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_ep_modify/INVALID_PARAMETER/freed objects and objects of another IA")
{
	DAT_EVD_HANDLE evd = node_evd(n, 8, DAT_EVD_DTO_FLAG);
	DAT_EP_PARAM param;
	struct node other;
	struct end e;

	end_open(n, &e, NULL);
	query(e.ep, &param);
	param.pz_handle = new_pz(n);
	OK(dat_pz_free(param.pz_handle));
	FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_PARAMETER);
	param.recv_evd_handle = evd;
	OK(dat_evd_free(evd));
	FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_INVALID_PARAMETER);
	node_open(&other);
	param.pz_handle = other.pz;
	FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_PARAMETER);
	param.recv_evd_handle = other.recv;
	if (node_is_strict(n))
		FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param),
		      DAT_INVALID_PARAMETER);
	node_close(&other);
}

CLAUSE("dat_ep_modify/INVALID_HANDLE")
{
	DAT_EP_PARAM param;
	struct end e;

	end_open(n, &e, NULL);
	query(e.ep, &param);
	OK(dat_ep_free(e.ep));
	FAILS(dat_ep_modify(e.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_HANDLE);
	FAILS(dat_ep_modify(DAT_HANDLE_NULL, 0, &param), DAT_INVALID_HANDLE);
	FAILS(dat_ep_modify(n->pz, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param), DAT_INVALID_HANDLE);
}

/* With posted receives */

CLAUSE("dat_ep_modify/INVALID_STATE/RECV_COMPLETION_FLAGS/receives posted")
{
	DAT_EP_PARAM param;
	struct stage s;

	stage_set(n, &stage_rows[0], &s);
	post_recv(s.e.ep, &s.m, 0, 8, 1);
	query(s.e.ep, &param);
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	FAILS(dat_ep_modify(s.e.ep, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &param),
	      DAT_INVALID_STATE);
}

CLAUSE("dat_ep_modify/INVALID_PARAMETER/MAX_RECV_DTOS/fewer than are posted")
{
	DAT_EP_PARAM param;
	struct stage s;

	stage_set(n, &stage_rows[0], &s);
	post_recv(s.e.ep, &s.m, 0, 8, 1);
	post_recv(s.e.ep, &s.m, 0, 8, 2);
	query(s.e.ep, &param);
	param.ep_attr.max_recv_dtos = 1;
	FAILS(dat_ep_modify(s.e.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param),
	      DAT_INVALID_PARAMETER);
	param.ep_attr.max_recv_dtos = 2;
	OK(dat_ep_modify(s.e.ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
}
