/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The common DAT calls of two-process tests: open, connect, register, post, wait for
 * events.
 */

#include "pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool pair_may_repeat(DAT_RETURN ret)
{
	return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES && getenv("DAT_CHAOS");
}

void pair_ret(const char *file, int line, const char *call, DAT_RETURN ret, DAT_RETURN type)
{
	const char *major = "?", *minor = "?";

	/* a return may lack the class bits of @type: DAT_QUEUE_EMPTY has none */
	if (DAT_GET_TYPE(ret) == DAT_GET_TYPE(type))
		return;
	dat_strerror(ret, &major, &minor);
	pair_fail(file, line, "%s: %s %s (%#x), not of type %#x", call, major, minor, ret, type);
}

/* The node */

static void copy_address(struct sockaddr_storage *to, const DAT_SOCK_ADDR *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						      sizeof(struct sockaddr_in));
}

DAT_EVD_HANDLE node_evd(struct node *n, DAT_COUNT qlen, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	OPENS(dat_evd_create(n->ia, qlen, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

void node_open(struct node *n)
{
	DAT_EVD_HANDLE async;

	memset(n, 0, sizeof(*n));
	n->async = DAT_HANDLE_NULL;
	OPENS(dat_ia_open((DAT_NAME_PTR)pair_ia_name(), 8, &n->async, &n->ia));
	OK(dat_ia_query(n->ia, &async, DAT_IA_FIELD_ALL, &n->attr, DAT_PROVIDER_FIELD_ALL,
			&n->prov));
	CHECK(async == n->async, "wrong asynchronous EVD");
	copy_address(&n->address, n->attr.ia_address_ptr);
	OPENS(dat_pz_create(n->ia, &n->pz));
	n->cr = node_evd(n, NODE_QLEN, DAT_EVD_CR_FLAG);
	n->conn = node_evd(n, NODE_QLEN, DAT_EVD_CONNECTION_FLAG);
	n->req = node_evd(n, NODE_QLEN, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	n->recv = node_evd(n, NODE_QLEN, DAT_EVD_DTO_FLAG);
}

void node_close(struct node *n)
{
	DAT_EVENT event;

	FAILS(dat_evd_dequeue(n->async, &event), DAT_QUEUE_EMPTY);
	OK(dat_evd_free(n->cr));
	OK(dat_evd_free(n->conn));
	OK(dat_evd_free(n->req));
	OK(dat_evd_free(n->recv));
	OK(dat_pz_free(n->pz));
	OK(dat_ia_close(n->ia, DAT_CLOSE_GRACEFUL_FLAG));
	memset(n, 0, sizeof(*n));
}

DAT_EP_HANDLE node_ep(struct node *n, const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep;

	OPENS(dat_ep_create(n->ia, n->pz, n->recv, n->req, n->conn, attr, &ep));
	return ep;
}

void node_begin(struct node *n, size_t size)
{
	node_open(n);
	if (size)
		mem_get(n, &n->m, size);
	n->ep = node_ep(n, NULL);
}

void node_end(struct node *n)
{
	if (n->ep)
		OK(dat_ep_free(n->ep));
	if (n->m.base)
		mem_put(&n->m);
	node_close(n);
}

void node_ep_attr(struct node *n, DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep = node_ep(n, NULL);
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	*attr = param.ep_attr;
	OK(dat_ep_free(ep));
}

bool node_is_on_verbs(const struct node *n)
{
	return strstr(n->attr.vendor_name, "verbs");
}

void node_needs_tcp(const struct node *n)
{
	if (node_is_on_verbs(n))
		pair_skip("verbs does not connect by TCP");
	if (strstr(n->attr.vendor_name, "rings"))
		pair_skip("shared memory alone has no ports");
}

const char *named_attr(const struct node *n, const char *name)
{
	DAT_COUNT i;

	for (i = 0; i < n->prov.num_provider_specific_attr; i++)
		if (!strcmp(n->prov.provider_specific_attr[i].name, name))
			return n->prov.provider_specific_attr[i].value;
	return NULL;
}

bool node_is_strict(const struct node *n)
{
	const char *strict = named_attr(n, "OFI_STRICT");

	return !strict || strcmp(strict, "FALSE");
}

bool node_reports_broken(const struct node *n)
{
	const char *goodbye = named_attr(n, "OFI_GOODBYE");

	return goodbye && !strcmp(goodbye, "TRUE");
}

DAT_EVENT_NUMBER end_by_death(const struct node *n)
{
	return node_reports_broken(n) ? DAT_CONNECTION_EVENT_BROKEN :
					DAT_CONNECTION_EVENT_DISCONNECTED;
}

DAT_COUNT node_least_data(const struct node *n)
{
	return node_is_on_verbs(n) ? 48 : 64;
}

/* Connections */

DAT_PSP_HANDLE node_listen(struct node *n, DAT_CONN_QUAL *qual)
{
	DAT_PSP_HANDLE psp;

	OPENS(dat_psp_create_any(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

void pair_send_listener(struct pair *p, struct node *n, DAT_CONN_QUAL qual)
{
	struct listener listener;

	memset(&listener, 0, sizeof(listener));
	listener.address = n->address;
	listener.qual = qual;
	pair_send(p, &listener, sizeof(listener));
}

void pair_recv_listener(struct pair *p, struct listener *listener)
{
	pair_recv(p, listener, sizeof(*listener));
}

void ep_connect(DAT_EP_HANDLE ep, const struct listener *listener)
{
	DAT_TIMEOUT timeout = pair_scaled(PAIR_LIMIT) * 1000;

	OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&listener->address, listener->qual, timeout, 0,
			  NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

DAT_CR_HANDLE node_request(struct node *n)
{
	DAT_EVENT event;

	expect_event(n->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

void pair_link(struct pair *p, struct node *n, DAT_EP_HANDLE ep)
{
	struct listener listener;

	if (p->server) {
		DAT_PSP_HANDLE psp = node_listen(n, &listener.qual);

		pair_send_listener(p, n, listener.qual);
		OK(dat_cr_accept(node_request(n), ep, 0, NULL));
		expect_conn(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
		OK(dat_psp_free(psp));
	} else {
		pair_recv_listener(p, &listener);
		ep_connect(ep, &listener);
		expect_conn(n->conn, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
	}
}

void pair_unlink(struct pair *p, struct node *n, DAT_EP_HANDLE ep)
{
	pair_sync(p);
	OK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(n->conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
}

DAT_EP_STATE ep_state(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	OK(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
	return state;
}

DAT_RETURN cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const void *data)
{
#if DAT_VERSION_MAJOR >= 2
	return dat_cr_reject(cr, size, (const DAT_PVOID)data);
#else
	return dat_cr_reject(cr);
#endif
}

/* Attempts */

void connect_with(DAT_EP_HANDLE ep, const struct listener *listener, unsigned timeout_ms,
		  DAT_COUNT size, const void *data)
{
	OPENS(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&listener->address, listener->qual,
			     timeout_ms * 1000, size, (const DAT_PVOID)data, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG));
}

void connect_fails(struct node *n, DAT_EP_HANDLE ep, const struct listener *listener,
		   DAT_EVENT_NUMBER number)
{
	ep_connect(ep, listener);
	expect_conn(n->conn, number, ep);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n->conn);
}

static void expect_gone(struct node *n, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(n->conn, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "wrong EP");
	/* the requester had gone before: fabrics that watch its socket notice that */
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED && !pair_fabric_is("tcp"))
		expect_end(n->conn, ep);
	else
		SAME(event.event_number, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(n->conn);
}

void accept_gone(struct node *n, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	OK(dat_cr_accept(cr, ep, 0, NULL));
	expect_gone(n, ep);
}

void accept_own_gone(struct node *n, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect_gone(n, ep);
}

void check_data(DAT_COUNT size, const void *data, DAT_COUNT wanted, unsigned seed)
{
	SAME(size, wanted);
	CHECK(!size || data, "no private data");
	verify(data, size, seed);
}

void check_cr(struct node *n, const DAT_EVENT *event, DAT_PSP_HANDLE psp, DAT_CONN_QUAL qual,
		     DAT_COUNT size, unsigned seed)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *a = &event->event_data.cr_arrival_event_data;
	DAT_CR_PARAM param;

	CHECK(a->sp_handle.psp_handle == psp, "wrong service point");
	SAME(a->conn_qual, qual);
	CHECK(!memcmp(a->local_ia_address_ptr, &n->address, sizeof(struct sockaddr_in)),
	      "wrong local address");
	OK(dat_cr_query(a->cr_handle, DAT_CR_FIELD_ALL, &param));
	check_data(param.private_data_size, param.private_data, size, seed);
	CHECK(!param.local_ep_handle, "there is an EP");
	CHECK(param.remote_port_qual, "no port");
	SAME(((struct sockaddr *)param.remote_ia_address_ptr)->sa_family, n->address.ss_family);
	if (size) /* programs may write to private data */
		memset(param.private_data, 0, size);
}

void check_peer(struct node *n, DAT_EP_HANDLE ep, const struct listener *listener)
{
	DAT_EP_PARAM param;

	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	SAME(param.remote_port_qual, listener->qual);
	SAME(param.ep_state, DAT_EP_STATE_CONNECTED);
	CHECK(param.ia_handle == n->ia && param.pz_handle == n->pz, "wrong IA or PZ");
	CHECK(!memcmp(param.remote_ia_address_ptr, &listener->address, sizeof(struct sockaddr_in)),
	      "wrong remote address");
}

/* Events */

const char *event_name(DAT_EVENT_NUMBER number)
{
	static const struct {
		DAT_EVENT_NUMBER number;
		const char *name;
	} names[] = {
#define NAME(n) { DAT_##n, #n }
		NAME(DTO_COMPLETION_EVENT),
		NAME(RMR_BIND_COMPLETION_EVENT),
		NAME(CONNECTION_REQUEST_EVENT),
		NAME(CONNECTION_EVENT_ESTABLISHED),
		NAME(CONNECTION_EVENT_PEER_REJECTED),
		NAME(CONNECTION_EVENT_NON_PEER_REJECTED),
		NAME(CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR),
		NAME(CONNECTION_EVENT_DISCONNECTED),
		NAME(CONNECTION_EVENT_BROKEN),
		NAME(CONNECTION_EVENT_TIMED_OUT),
		NAME(CONNECTION_EVENT_UNREACHABLE),
		NAME(ASYNC_ERROR_EVD_OVERFLOW),
		NAME(ASYNC_ERROR_IA_CATASTROPHIC),
		NAME(ASYNC_ERROR_EP_BROKEN),
		NAME(ASYNC_ERROR_TIMED_OUT),
		NAME(ASYNC_ERROR_PROVIDER_INTERNAL_ERROR),
		NAME(SOFTWARE_EVENT),
#undef NAME
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == number)
			return names[i].name;
	return "an unknown event";
}

void pair_event(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
		unsigned ms, DAT_EVENT *event)
{
	DAT_COUNT more;
	DAT_RETURN ret = dat_evd_wait(evd, pair_scaled(ms) * 1000, 1, event, &more);

	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		pair_fail(file, line, "no %s within %u ms", event_name(number), pair_scaled(ms));
	pair_ret(file, line, "dat_evd_wait", ret, DAT_SUCCESS);
	if (event->event_number == number && event->evd_handle == evd)
		return;
	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		pair_fail(file, line, "a DTO completion (cookie %llu, status %d), not %s",
			  (unsigned long long)
			  event->event_data.dto_completion_event_data.user_cookie.as_64,
			  event->event_data.dto_completion_event_data.status, event_name(number));
	pair_fail(file, line, "%s (%#x) of EVD %p, not %s of EVD %p",
		  event_name(event->event_number), event->event_number, event->evd_handle,
		  event_name(number), evd);
}

void pair_conn(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
	       DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	pair_event(file, line, evd, number, PAIR_LIMIT, &event);
	if (event.event_data.connect_event_data.ep_handle != ep)
		pair_fail(file, line, "%s: wrong EP", event_name(number));
}

void pair_dto(const char *file, int line, DAT_EVD_HANDLE evd, uint64_t cookie,
	      DAT_DTO_COMPLETION_STATUS status, uint64_t length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	pair_event(file, line, evd, DAT_DTO_COMPLETION_EVENT, PAIR_LIMIT, &event);
	d = &event.event_data.dto_completion_event_data;
	if (d->user_cookie.as_64 != cookie)
		pair_fail(file, line, "completion of cookie %llu (status %d), not %llu",
			  (unsigned long long)d->user_cookie.as_64, d->status,
			  (unsigned long long)cookie);
	if (d->status != status)
		pair_fail(file, line, "cookie %llu: status %d, not %d",
			  (unsigned long long)cookie, d->status, status);
	if (status == DAT_DTO_SUCCESS && d->transfered_length != length)
		pair_fail(file, line, "cookie %llu: length %llu, not %llu",
			  (unsigned long long)cookie, (unsigned long long)d->transfered_length,
			  (unsigned long long)length);
}

void pair_quiet(const char *file, int line, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN ret = dat_evd_wait(evd, PAIR_QUIET * 1000, 1, &event, &more);

	if (ret == DAT_SUCCESS)
		pair_fail(file, line, "unexpected %s", event_name(event.event_number));
	pair_ret(file, line, "dat_evd_wait", ret, DAT_TIMEOUT_EXPIRED);
}

DAT_EVENT_NUMBER expect_end(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(evd, pair_scaled(PAIR_LIMIT) * 1000, 1, &event, &more));
	CHECK(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	      event.event_number == DAT_CONNECTION_EVENT_BROKEN,
	      "%s does not end a connection", event_name(event.event_number));
	CHECK(event.event_data.connect_event_data.ep_handle == ep, "wrong EP");
	SAME(ep_state(ep), DAT_EP_STATE_DISCONNECTED);
	expect_quiet(evd);
	return event.event_number;
}

void expect_software(DAT_EVD_HANDLE evd, uintptr_t pointer)
{
	DAT_EVENT event;

	expect_event(evd, DAT_SOFTWARE_EVENT, &event);
	SAME((uintptr_t)event.event_data.software_event_data.pointer, pointer);
}

DAT_RETURN post_se(DAT_EVD_HANDLE evd, uintptr_t pointer)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = (DAT_PVOID)pointer;
	return dat_evd_post_se(evd, &event);
}

/* Memory */

DAT_RETURN lmr_create(DAT_IA_HANDLE ia, void *base, DAT_VLEN length, DAT_PZ_HANDLE pz,
		      DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr,
		      DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context)
{
	DAT_REGION_DESCRIPTION region = { .for_va = base };
	DAT_VADDR address;
	DAT_VLEN size;

#if DAT_VERSION_MAJOR >= 2
	return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, privileges,
			      DAT_VA_TYPE_VA, lmr, lmr_context, rmr_context, &size, &address);
#else
	return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, privileges,
			      lmr, lmr_context, rmr_context, &size, &address);
#endif
}

static void mem_map(struct mem *m, size_t size)
{
	m->size = size;
	m->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m->base != MAP_FAILED, "%s", strerror(errno));
}

void mem_get_with(struct node *n, DAT_PZ_HANDLE pz, struct mem *m, size_t size,
		  DAT_MEM_PRIV_FLAGS privileges)
{
	mem_map(m, size);
	OPENS(lmr_create(n->ia, m->base, size, pz, privileges, &m->lmr, &m->lmr_context,
			 &m->rmr_context));
}

void mem_get(struct node *n, struct mem *m, size_t size)
{
	mem_get_with(n, n->pz, m, size, DAT_MEM_PRIV_ALL_FLAG);
}

void mem_put(struct mem *m)
{
	OK(dat_lmr_free(m->lmr));
	munmap(m->base, m->size);
	memset(m, 0, sizeof(*m));
}

DAT_LMR_TRIPLET mem_segment(const struct mem *m, size_t offset, size_t length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (uintptr_t)m->base + offset,
		.segment_length = length,
		.lmr_context = m->lmr_context,
	};
}

static unsigned char pattern(size_t i, unsigned seed)
{
	uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u;

	return x >> 24 ^ x >> 9;
}

void fill(void *at, size_t size, unsigned seed)
{
	unsigned char *byte = at;
	size_t i;

	for (i = 0; i < size; i++)
		byte[i] = pattern(i, seed);
}

/* Whether up to 16 bytes continue the pattern from offset @at. */
static bool matches(const unsigned char *byte, size_t size, size_t at, unsigned seed)
{
	size_t i, n = size < 16 ? size : 16;

	if (n < 4)	/* too few to be significant */
		return false;
	for (i = 0; i < n && byte[i] == pattern(at + i, seed); i++)
		;
	return i == n;
}

void verify(const void *from, size_t size, unsigned seed)
{
	const unsigned char *byte = from;
	unsigned other;
	size_t i, at;

	for (i = 0; i < size && byte[i] == pattern(i, seed); i++)
		;
	if (i == size)
		return;
	pair_note("byte %zu of %zu is %#x, not %#x", i, size, byte[i], pattern(i, seed));
	/* report which seed or offset the wrong bytes belong to */
	for (other = 0; other < 256; other++)
		if (matches(byte + i, size - i, i, other))
			pair_note("the bytes are those of seed %u at this offset", other);
	for (at = 0; at < size; at++)
		if (matches(byte + i, size - i, at, seed))
			pair_note("the bytes belong at offset %zu", at);
	for (at = size; at && byte[at - 1] == pattern(at - 1, seed); at--)
		;
	pair_fail(__FILE__, __LINE__, "bytes %zu to %zu of %zu are wrong", i, at, size);
}

void pair_grant(struct pair *p, const struct mem *m)
{
	struct grant g;

	memset(&g, 0, sizeof(g));
	g.address = (uintptr_t)m->base;
	g.size = m->size;
	g.rmr_context = m->rmr_context;
	pair_send(p, &g, sizeof(g));
}

void pair_granted(struct pair *p, struct grant *g)
{
	pair_recv(p, g, sizeof(*g));
}

DAT_RMR_TRIPLET remote_segment(const struct grant *g, size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){
#if DAT_VERSION_MAJOR >= 2
		.virtual_address = g->address + offset,
#else
		.target_address = g->address + offset,
#endif
		.segment_length = length,
		.rmr_context = g->rmr_context,
	};
}

/* Operations */

static DAT_DTO_COOKIE cookie_of(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

void post_recv(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, offset, length);

	OK(dat_ep_post_recv(ep, 1, &iov, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

void post_send(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, offset, length);

	OK(dat_ep_post_send(ep, 1, &iov, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}

void post_write(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length,
		uint64_t cookie, const struct grant *g, size_t remote_offset)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, offset, length);
	DAT_RMR_TRIPLET remote = remote_segment(g, remote_offset, length);

	OK(dat_ep_post_rdma_write(ep, 1, &iov, cookie_of(cookie), &remote,
				  DAT_COMPLETION_DEFAULT_FLAG));
}

void post_read(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length,
	       uint64_t cookie, const struct grant *g, size_t remote_offset)
{
	DAT_LMR_TRIPLET iov = mem_segment(m, offset, length);
	DAT_RMR_TRIPLET remote = remote_segment(g, remote_offset, length);

	OK(dat_ep_post_rdma_read(ep, 1, &iov, cookie_of(cookie), &remote,
				 DAT_COMPLETION_DEFAULT_FLAG));
}

void expect_refused(struct node *n, DAT_EP_HANDLE ep, uint64_t cookie, const char *why)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(n->req, DAT_DTO_COMPLETION_EVENT, &event);
	d = &event.event_data.dto_completion_event_data;
	SAME(d->user_cookie.as_64, cookie);
	CHECK(d->status != DAT_DTO_SUCCESS, "%s", why);
	expect_quiet(n->req);
	expect_end(n->conn, ep);
}

/* RMRs */

DAT_RETURN bind_flags(DAT_RMR_HANDLE rmr, const struct mem *m, DAT_LMR_TRIPLET part,
		      DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie, int flags,
		      DAT_RMR_CONTEXT *context)
{
	const DAT_RMR_COOKIE c = { .as_64 = cookie };

#if DAT_VERSION_MAJOR >= 2
	return dat_rmr_bind(rmr, m->lmr, &part, priv, DAT_VA_TYPE_VA, ep, c,
			    (DAT_COMPLETION_FLAGS)flags, context);
#else
	return dat_rmr_bind(rmr, &part, priv, ep, c, (DAT_COMPLETION_FLAGS)flags, context);
#endif
}

DAT_RETURN bind_part(DAT_RMR_HANDLE rmr, const struct mem *m, size_t offset, size_t length,
		     DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie,
		     DAT_RMR_CONTEXT *context)
{
	return bind_flags(rmr, m, mem_segment(m, offset, length), priv, ep, cookie,
			  DAT_COMPLETION_DEFAULT_FLAG, context);
}

DAT_RETURN unbind(DAT_RMR_HANDLE rmr, const struct mem *m, DAT_EP_HANDLE ep, uint64_t cookie)
{
	DAT_RMR_CONTEXT none;

	return bind_part(rmr, m, 0, 0, DAT_MEM_PRIV_NONE_FLAG, ep, cookie, &none);
}

void expect_bind(DAT_EVD_HANDLE evd, DAT_RMR_HANDLE rmr, uint64_t cookie,
		 DAT_RMR_BIND_COMPLETION_STATUS status)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *d;
	DAT_EVENT event;

	expect_event(evd, DAT_RMR_BIND_COMPLETION_EVENT, &event);
	d = &event.event_data.rmr_completion_event_data;
	SAME(d->user_cookie.as_64, cookie);
	SAME(d->status, status);
	CHECK(d->rmr_handle == rmr, "wrong RMR");
}

/* Links */

DAT_EP_HANDLE link_in(struct pair *p, struct node *n, DAT_PZ_HANDLE pz)
{
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(n->ia, pz, n->recv, n->req, n->conn, NULL, &ep));
	pair_link(p, n, ep);
	return ep;
}

void link_open_with(struct pair *p, struct link *l, size_t size, const DAT_EP_ATTR *attr)
{
	node_open(&l->n);
	mem_get(&l->n, &l->m, size);
	l->ep = node_ep(&l->n, attr);
	pair_link(p, &l->n, l->ep);
	pair_grant(p, &l->m);
	pair_granted(p, &l->theirs);
}

void link_open(struct pair *p, struct link *l, size_t size)
{
	link_open_with(p, l, size, NULL);
}

void link_free(struct link *l)
{
	OK(dat_ep_free(l->ep));
	mem_put(&l->m);
	node_close(&l->n);
}

void link_close(struct pair *p, struct link *l)
{
	pair_unlink(p, &l->n, l->ep);
	expect_quiet(l->n.req);
	expect_quiet(l->n.recv);
	expect_quiet(l->n.conn);
	link_free(l);
}

void link_open_depth(struct pair *p, struct link *l, size_t size, DAT_COUNT depth)
{
	DAT_EP_ATTR attr;
	struct node n;

	node_open(&n);
	node_ep_attr(&n, &attr);
	node_close(&n);
	attr.max_recv_dtos = attr.max_request_dtos = depth;
	link_open_with(p, l, size, &attr);
}
