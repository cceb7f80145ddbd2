/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA with the datagram service on a real fabric. */

#include "xport/ud/parts.h"

#include "xport/local_or_net.h"
#include "xport/msg/msg.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct ud_side ud_near, ud_far, ud_third;
struct ud_fault ud_fault;

/* The IA and the sides */

static void ia_open_on(const char *provider, const char *endpoint)
{
	static const struct dofi_xports xports = {
		.connected = &dofi_msg_xport, .connectionless = &dofi_rdm_xport,
		.add_local = dofi_local_or_net_add, .datagrams = &dofi_ud_datagrams,
	};
	struct dofi_params params = { .provider = "" };

	snprintf(params.provider, sizeof(params.provider), "%s", provider);
	snprintf(params.endpoint, sizeof(params.endpoint), "%s", endpoint);
	snprintf(params.address, sizeof(params.address), "%s",
		 strcmp(provider, "tcp") ? "" : "127.0.0.1");
	ia_open_real(&xports, &params);
	cr_assert(ia->datagrams, "the IA has no datagrams");
}

DAT_EP_ATTR ud_attr(void)
{
	DAT_EP_ATTR attr;

	cr_assert_eq(dofi_caps_ep_attr(ia, NULL, &attr), 0);
	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_message_size = ia->datagram_size;
	attr.max_recv_dtos = attr.max_request_dtos = 512;
	return attr;
}

DAT_RETURN ud_ep_try(DAT_PZ_HANDLE in, DAT_EVD_HANDLE with, DAT_EP_HANDLE *out)
{
	const DAT_EP_ATTR attr = ud_attr();

	return dofi_ep_create(ia, in, with, with, with, &attr, out);
}

DAT_EP_HANDLE ud_ep_make(struct ud_side *s)
{
	DAT_EP_HANDLE handle;

	succeed(ud_ep_try(s->pz, s->evd, &handle));
	return handle;
}

void ud_side_open(struct ud_side *s)
{
	DAT_RMR_CONTEXT unused;

	succeed(dofi_pz_create(ia, &s->pz));
	s->evd = evd_make(1024, EVD_ALL_FLAGS);
	s->memory = calloc(1, UD_MEMORY);
	succeed(lmr_make(s->pz, s->memory, UD_MEMORY, DAT_MEM_PRIV_ALL_FLAG, &s->lmr, &s->context,
			 &unused));
	s->ep = ud_ep_make(s);
}

void ud_side_close(struct ud_side *s)
{
	succeed(dofi_ep_free(s->ep));
	if (s->lmr)
		succeed(dofi_lmr_free(s->lmr));
	succeed(dofi_pz_free(s->pz));
	succeed(dofi_evd_free(s->evd));
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

void ud_init_alone(void)
{
	ia_open_on("shm", "rdm");
}

static void sides_open(void)
{
	unsigned i;

	ud_side_open(&ud_near);
	ud_side_open(&ud_far);
	for (i = 0; i < UD_MEMORY; i++)
		ud_near.memory[i] = (unsigned char)(i * 7 + i / 251);
}

void ud_init(void)
{
	ud_init_alone();
	sides_open();
}

void ud_init_tcp(void)
{
	ia_open_on("tcp", "msg");
	sides_open();
}

void ud_init_both(void)
{
	ia_open_on("", "");
	sides_open();
}

void ud_fini(void)
{
	ia_fini();
	free(ud_near.memory);
	free(ud_far.memory);
	free(ud_third.memory);
}

/* The service's parts */

struct ud_pz *ud_part(const struct ud_side *s)
{
	return ((const struct dofi_pz *)s->pz)->datagrams_pz;
}

uint32_t ud_number(DAT_EP_HANDLE ep)
{
	return ud_ep_of(ep)->number;
}

struct ud_intro ud_intro_of(const struct ud_side *s)
{
	struct dofi_cm_msg msg = { .kind = DOFI_CM_DATAGRAM_REQUEST };
	struct ud_intro intro;

	ud_introduce(ud_ep_of(s->ep), NULL, &msg);
	cr_assert(ud_intro_take(&intro, &msg, false));
	return intro;
}

struct get_call {
	const struct ud_side *s;
	struct ud_intro *intro;
	struct ud_peer *peer;
	int ret;
};

static void get_on_thread(void *arg)
{
	struct get_call *c = arg;

	c->ret = ud_peer_get(ud_part(c->s), c->intro, &c->peer);
}

int ud_get(const struct ud_side *s, struct ud_intro *intro, struct ud_peer **peer)
{
	struct get_call call = { .s = s, .intro = intro };

	dofi_progress_call(&ia->progress, get_on_thread, &call);
	*peer = call.peer;
	return call.ret;
}

static void put_on_thread(void *arg)
{
	ud_peer_put(arg);
}

void ud_put(struct ud_peer *peer)
{
	dofi_progress_call(&ia->progress, put_on_thread, peer);
}

struct table_call {
	const struct ud_side *side;
	unsigned n;
};

static void count_on_thread(void *arg)
{
	struct table_call *call = arg;

	call->n = ud_part(call->side)->table.n;
}

unsigned ud_in_table(const struct ud_side *s)
{
	struct table_call call = { .side = s };

	dofi_progress_call(&ia->progress, count_on_thread, &call);
	return call.n;
}

struct ud_peer *ud_meet(const struct ud_side *from, const struct ud_side *to)
{
	struct ud_intro intro = ud_intro_of(to);
	struct ud_peer *peer;

	cr_assert_eq(ud_get(from, &intro, &peer), 0);
	return peer;
}

/* Posts */

DAT_LMR_TRIPLET ud_segment(const struct ud_side *s, size_t offset, size_t length)
{
	return segment_of(s->context, s->memory + offset, length);
}

void ud_recv(const struct ud_side *s, size_t offset, size_t length, uint64_t cookie)
{
	DAT_LMR_TRIPLET iov = ud_segment(s, offset, length);

	succeed(dofi_ep_post_recv(s->ep, 1, &iov, cookie_of(cookie),
				  DAT_COMPLETION_DEFAULT_FLAG));
}

struct dofi_post ud_post(const struct ud_side *from, struct ud_peer *ah, DAT_EP_HANDLE to,
			 const DAT_LMR_TRIPLET *iov)
{
	static DAT_IB_ADDR_HANDLE handle;

	handle = (DAT_IB_ADDR_HANDLE){ .ah = (void *)ah, .qpn = ud_number(to) };
	return (struct dofi_post){ .n = 1, .iov = iov, .ah = &handle };
}

void ud_send(const struct ud_side *from, struct ud_peer *ah, const struct ud_side *to,
	     size_t offset, size_t length, uint64_t cookie)
{
	const DAT_LMR_TRIPLET iov = ud_segment(from, offset, length);
	struct dofi_post p = ud_post(from, ah, to->ep, &iov);

	p.cookie.as_64 = cookie;
	succeed(dofi_ep_post_send_ud(from->ep, &p));
}

/* On shm a send does not wake the peer. */
void ud_send_bytes(const struct ud_side *from, const struct ud_peer *ah, const void *bytes,
		   size_t len)
{
	struct ud_pz *upz = ud_part(from);
	ssize_t ret = -FI_EAGAIN;

	while (ret == -FI_EAGAIN) {
		dofi_mutex_lock(&upz->lock);
		ret = fi_inject(upz->rdm.fid, bytes, len, ah->to);
		dofi_mutex_unlock(&upz->lock);
		dofi_progress_wake(&ia->progress);
		if (ret == -FI_EAGAIN)
			ud_sweep(from);
	}
	cr_assert_eq(ret, 0);
}

/* Completions */

const DAT_IB_EXTENSION_EVENT_DATA *ud_extension(const DAT_EVENT *event)
{
	return (const void *)event->event_extension_data;
}

DAT_EVENT ud_done(const struct ud_side *s, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status,
		  DAT_IB_DTOS operation)
{
	const DAT_EVENT event = event_await(s->evd, DAT_IB_DTO_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect(d->ep_handle == s->ep);
	cr_assert_eq(d->user_cookie.as_64, cookie, "%llu",
		     (unsigned long long)d->user_cookie.as_64);
	cr_assert_eq(d->status, status, "%d", d->status);
	cr_expect_eq((int)d->operation, (int)operation, "%d", (int)d->operation);
	cr_expect_eq(ud_extension(&event)->type,
		     operation == DAT_IB_DTO_SEND_UD ? DAT_IB_UD_SEND : DAT_IB_UD_RECV);
	return event;
}

void ud_flushed(const struct ud_side *s, DAT_EP_HANDLE ep, uint64_t cookie)
{
	const DAT_EVENT event = event_await(s->evd, DAT_IB_DTO_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->ep_handle, ep);
	cr_expect_eq(d->user_cookie.as_64, cookie);
	cr_expect_eq(d->status, DAT_DTO_ERR_FLUSHED);
}

void ud_received(const struct ud_side *s, uint64_t cookie, size_t length)
{
	const DAT_EVENT event = ud_done(s, cookie, DAT_DTO_SUCCESS, DAT_IB_DTO_RECV_UD);

	cr_expect_eq(event.event_data.dto_completion_event_data.transfered_length, UD_GRH + length);
}

void ud_sent_one(const struct ud_side *s, uint64_t cookie)
{
	ud_done(s, cookie, DAT_DTO_SUCCESS, DAT_IB_DTO_SEND_UD);
}

void ud_works(const struct ud_side *from, struct ud_peer *ah, const struct ud_side *to,
	      size_t length)
{
	const size_t at = length % 100;

	memset(to->memory + UD_HALF, 0xee, UD_GRH + length);
	ud_recv(to, UD_HALF, UD_GRH + length, length);
	ud_send(from, ah, to, at, length, length + 1);
	ud_sent_one(from, length + 1);
	ud_received(to, length, length);
	cr_expect(!memcmp(to->memory + UD_HALF + UD_GRH, from->memory + at, length));
}

static void drain(void *arg)
{
	dofi_cq_drain(arg);
}

void ud_sweep(const struct ud_side *s)
{
	dofi_progress_call(&ia->progress, drain, &ud_first_way(ud_part(s))->domain->cq);
}

void ud_counts(const struct ud_side *s, const uint64_t *counter, uint64_t n)
{
	const int64_t until = dofi_now() + 30 * 1000000000LL;
	uint64_t now;

	while ((now = __atomic_load_n(counter, __ATOMIC_RELAXED)) < n && dofi_now() < until) {
		ud_sweep(s);
		usleep(100);
	}
	cr_expect_eq(now, n, "%llu", (unsigned long long)now);
}

/* Exchanges */

bool ud_port_reserve(DAT_CONN_QUAL qual)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dat-test/datagram-port/%u",
		 dofi_wire_datagram_port(qual, 0));
	if (!bind(fd, (struct sockaddr *)&name, sizeof(name)))
		return true;
	cr_assert_eq(errno, EADDRINUSE);
	close(fd);
	return false;
}

DAT_PSP_HANDLE ud_listen_any(const struct ud_side *s, DAT_CONN_QUAL *qual)
{
	DAT_PSP_HANDLE psp;

	for (;;) {
		succeed(dofi_psp_create_any(ia, qual, s->evd, DAT_PSP_CONSUMER_FLAG, &psp));
		if (ud_port_reserve(*qual))
			return psp;
		succeed(dofi_psp_free(psp));
	}
}

DAT_RETURN ud_call_at(const struct ud_side *s, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
		      const char *data)
{
	return dofi_ep_connect(s->ep, some_address(), qual, timeout, (DAT_COUNT)strlen(data),
			       (DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static void expect_data(const void *got, DAT_COUNT size, const char *data)
{
	cr_assert_eq(size, (DAT_COUNT)strlen(data), "%d", (int)size);
	cr_expect(!size || !memcmp(got, data, (size_t)size));
}

DAT_CR_HANDLE ud_request(const struct ud_side *s, const char *data)
{
	const DAT_EVENT event =
		event_await(s->evd, DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	const DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
	DAT_CR_PARAM param;

	cr_expect_eq(ud_extension(&event)->type, DAT_IB_UD_CONNECT_REQUEST);
	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	expect_data(param.private_data, param.private_data_size, data);
	return cr;
}

DAT_EVENT ud_ended(const struct ud_side *s, DAT_EVENT_NUMBER number, DAT_IB_EXT_TYPE type,
		   const char *data)
{
	const DAT_EVENT event = event_await(s->evd, number);
	const DAT_CONNECTION_EVENT_DATA *d = &event.event_data.connect_event_data;

	cr_expect_eq(d->ep_handle, s->ep);
	cr_expect_eq(ud_extension(&event)->type, type, "%d", ud_extension(&event)->type);
	expect_data(d->private_data, d->private_data_size, data);
	return event;
}

struct ud_peer *ud_ah_of(const DAT_EVENT *event)
{
	return (struct ud_peer *)(void *)ud_extension(event)->remote_ah.ah;
}

struct dofi_cm_msg ud_message(const struct ud_side *s, enum dofi_cm_kind kind)
{
	struct dofi_cm_msg msg = { .kind = kind };

	ud_introduce(ud_ep_of(s->ep), NULL, &msg);
	return msg;
}

static void calls_on_thread(void *arg)
{
	*(unsigned *)arg = ud_ia_of(ia)->n_calls;
}

unsigned ud_calls(void)
{
	unsigned n;

	dofi_progress_call(&ia->progress, calls_on_thread, &n);
	return n;
}

/*
 * The thread handles sockets in the order in which they become ready, so it handles this one last,
 * and closes it because of its messages.
 */
void ud_sockets_settle(DAT_CONN_QUAL qual)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(dofi_wire_datagram_port(qual, 0));
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	cr_assert(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

/* Faults */

static struct fi_ops_msg *real;

static int refused(fi_addr_t to)
{
	const fi_addr_t only = atomic_load(&ud_fault.only);

	atomic_fetch_add(&ud_fault.calls, 1);
	return only == FI_ADDR_UNSPEC || only == to ? atomic_load(&ud_fault.ret) : 0;
}

static ssize_t inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
	const int ret = refused(to);

	return ret ? ret : real->inject(ep, buf, len, to);
}

static ssize_t sendmsg_or_not(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	const int ret = refused(msg->addr);

	return ret ? ret : real->sendmsg(ep, msg, flags);
}

void ud_fault_open(void)
{
	static struct fi_ops_msg ops;
	struct fid_ep *ep = ud_part(&ud_near)->rdm.fid;

	real = ep->msg;
	ops = *real;
	ops.inject = inject;
	ops.sendmsg = sendmsg_or_not;
	ep->msg = &ops;
	ud_fault.only = FI_ADDR_UNSPEC;
}

void ud_make_patience_end(struct ud_peer *peer)
{
	dofi_mutex_lock(&peer->upz->lock);
	cr_assert(peer->stuck_since);
	peer->stuck_since -= UD_PATIENCE_NS + 1;
	dofi_mutex_unlock(&peer->upz->lock);
}
