/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations of one connected endpoint. */

#include "obj/ops.h"

#include <pthread.h>

DAT_EP_HANDLE ep;
static pthread_t poster[POSTERS];
static int path;		/* a flag that each operation has */

void ops_init_unconnected(void)
{
	objects_init();
	ep = ep_make();
}

void ops_init(void)
{
	ops_init_unconnected();
	make_connected(ep);
}

void ops_init_serial(void)
{
	objects_init_serial();
	ep = ep_make();
	make_connected(ep);
}

void ops_init_general(void)
{
	ops_init();
	path = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
}

DAT_COMPLETION_FLAGS path_flags(void)
{
	return CONSUMER_FLAGS(path);
}

void expect_plain(unsigned n)
{
	cr_expect_eq(transport.plain, path ? 0 : n, "%u", transport.plain);
}

struct dofi_ep *inside(void)
{
	return ep;
}

DAT_RETURN send_flags(uint64_t n, int flags)
{
	DAT_LMR_TRIPLET s = segment(0, 8);

	return dofi_ep_post_send(ep, 1, &s, cookie_of(n), CONSUMER_FLAGS(flags | path));
}

DAT_RETURN post_send(uint64_t n)
{
	return send_flags(n, 0);
}

DAT_RETURN post_recv(uint64_t n)
{
	DAT_LMR_TRIPLET s = segment(0, 64);

	return dofi_ep_post_recv(ep, 1, &s, cookie_of(n), path_flags());
}

DAT_RETURN post_read(uint64_t n, size_t local, size_t remote, int flags)
{
	DAT_LMR_TRIPLET s = segment(0, local);
	DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_read(ep, 1, &s, cookie_of(n), &r, CONSUMER_FLAGS(flags | path));
}

DAT_RETURN post_write(uint64_t n, size_t local, size_t remote)
{
	DAT_LMR_TRIPLET s = segment(0, local);
	DAT_RMR_TRIPLET r = remote_segment(remote);

	return dofi_ep_post_rdma_write(ep, 1, &s, cookie_of(n), &r, path_flags());
}

DAT_RETURN send_segment(DAT_LMR_TRIPLET s)
{
	return dofi_ep_post_send(ep, 1, &s, cookie_of(1), path_flags());
}

static DAT_RETURN write_op(uint64_t n)
{
	return post_write(n, 8, 16);
}

static DAT_RETURN read_op(uint64_t n)
{
	return post_read(n, 16, 12, 0);
}

#if DAT_VERSION_MAJOR >= 2
#define OPERATION(name) DAT_DTO_##name
#else
#define OPERATION(name) 0
#endif

const struct op ops[N_OPS] = {
	{ post_send, DOFI_DTO_SEND, false, 8, 8, OPERATION(SEND) },
	{ write_op, DOFI_DTO_WRITE, true, 8, 8, OPERATION(RDMA_WRITE) },
	{ read_op, DOFI_DTO_READ, true, 12, 12, OPERATION(RDMA_READ) },
	{ post_recv, DOFI_DTO_RECV, false, 64, 5, OPERATION(RECEIVE) },
};

void take_op(const struct op *op, uint64_t n)
{
	const DAT_DTO_COMPLETION_EVENT_DATA d = take(n, DAT_DTO_SUCCESS);

	cr_expect_eq(d.transfered_length, op->moved);
#if DAT_VERSION_MAJOR >= 2
	cr_expect_eq((int)d.operation, op->operation);
	cr_expect_eq(d.rmr_context, 0);
#endif
}

DAT_DTO_COMPLETION_EVENT_DATA take(uint64_t n, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = event_take(evd, DAT_DTO_COMPLETION_EVENT);
	DAT_DTO_COMPLETION_EVENT_DATA data = event.event_data.dto_completion_event_data;

	cr_expect_eq(data.user_cookie.as_64, n, "%llu", (unsigned long long)data.user_cookie.as_64);
	cr_expect_eq(data.status, status, "%d", data.status);
	cr_expect_eq(data.ep_handle, ep);
	return data;
}

void make_with(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, const DAT_EP_ATTR *attr)
{
	succeed(dofi_ep_create(ia, pz, recv, request, evd, attr, &ep));
	make_connected(ep);
}

DAT_EP_ATTR attr_of_depth(DAT_COUNT depth)
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC };

	attr.max_recv_dtos = attr.max_request_dtos = depth;
	return attr;
}

void make_roomy(void)
{
	DAT_EVD_HANDLE big = evd_make(2 * POSTERS * POSTS, EVD_ALL_FLAGS);
	DAT_EP_PARAM param;

	succeed(dofi_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_request_dtos = POSTERS * POSTS;
	succeed(dofi_ep_create(ia, pz, big, big, big, &param.ep_attr, &ep));
	evd = big;
	make_connected(ep);
}

/* Posts fast-path and slow-path sends: an operation with a flag takes the slow path. */
static void *posts(void *arg)
{
	unsigned i;

	for (i = 0; i < POSTS; i++)
		succeed(send_flags((uintptr_t)arg * POSTS + i,
				   i % 4 ? 0 : DAT_COMPLETION_BARRIER_FENCE_FLAG));
	return NULL;
}

void posters_start(void)
{
	uintptr_t t;

	for (t = 0; t < POSTERS; t++)
		cr_assert(!pthread_create(&poster[t], NULL, posts, (void *)t));
}

void posters_join(void)
{
	unsigned t;

	for (t = 0; t < POSTERS; t++)
		pthread_join(poster[t], NULL);
}

void *submitted(unsigned i)
{
	void *context;

	dofi_mutex_lock(&inside()->lock);
	context = i < transport.n ? transport.context[i] : NULL;
	dofi_mutex_unlock(&inside()->lock);
	return context;
}
