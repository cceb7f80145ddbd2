/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A proxy between the two ends of CM sockets (xport/cm/conn.c), which changes the bytes of their
 * messages.
 */

#include "proxy.h"

#include "fuzz.h"
#include "xport/cm/wire.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define LINKS 64
#define TAGS 22				/* number of field tags: cm_wire.c */
#define CONN_QUAL 1
#define ADDR 11
#define KEPT 8				/* values kept of each field, to replace others */
#define FIELD_HEADER 3

struct message {
	size_t len;
	unsigned char bytes[2 * DOFI_CM_MAX];
};

struct value {
	size_t len;
	unsigned char bytes[DOFI_CM_MAX];
};

/* An incoming connection and the one that forwards it. */
struct link {
	bool open, honest;
	uint64_t random;
	struct {
		int fd;
		struct message in;
		unsigned n_fds;		/* descriptors received, for the next message forwarded */
		int fds[DOFI_CM_FDS];
	} end[2];
};

struct proxy {
	pthread_t thread;
	int listener, stop[2];
	bool local;
	struct sockaddr_storage to;
	uint64_t to_qual, qual, seed, accepted;
	_Atomic bool honest;
	_Atomic unsigned changes;
	struct link link[LINKS];
	struct value kept[TAGS][KEPT];
	struct message last;		/* an earlier message */
};

static uint64_t next(struct link *l)
{
	uint64_t z = l->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static unsigned below(struct link *l, unsigned n)
{
	return n ? next(l) % n : 0;
}

/* Fields */

static size_t number_at(const unsigned char *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/*
 * The offset of the field after the one at @at, or 0 after the last. Messages of the ends are
 * complete and valid.
 */
static size_t field_next(const struct message *m, size_t at)
{
	at = at ? at + FIELD_HEADER + number_at(m->bytes + at + 1) : DOFI_CM_HEADER;
	return at + FIELD_HEADER <= m->len ? at : 0;
}

static size_t field_find(const struct message *m, unsigned tag)
{
	size_t at = 0;

	while ((at = field_next(m, at)))
		if (m->bytes[at] == tag)
			break;
	return at;
}

static size_t field_any(struct link *l, const struct message *m)
{
	unsigned n = 0, i;
	size_t at = 0;

	while ((at = field_next(m, at)))
		n++;
	for (i = n ? 1 + below(l, n) : 0; i; i--)
		at = field_next(m, at);
	return at;
}

/* Replaces the value of the field at @at. */
static void value_set(struct message *m, size_t at, const struct value *value)
{
	size_t old = number_at(m->bytes + at + 1), behind = at + FIELD_HEADER + old;
	size_t size = m->len - DOFI_CM_HEADER - old + value->len;

	if (!value->len || m->len - old + value->len > sizeof(m->bytes))
		return;
	memmove(m->bytes + at + FIELD_HEADER + value->len, m->bytes + behind, m->len - behind);
	memcpy(m->bytes + at + FIELD_HEADER, value->bytes, value->len);
	m->len = DOFI_CM_HEADER + size;
	m->bytes[at + 1] = value->len >> 8;
	m->bytes[at + 2] = value->len;
	m->bytes[6] = size >> 8;
	m->bytes[7] = size;
}

static void qual_set(struct message *m, uint64_t qual)
{
	struct value value = { .len = sizeof(qual) };
	size_t at = field_find(m, CONN_QUAL);
	unsigned i;

	for (i = 0; i < sizeof(qual); i++)
		value.bytes[i] = qual >> (56 - 8 * i);
	if (at)
		value_set(m, at, &value);
}

/* Keeps the values of a forwarded message, which may replace other values later. */
static void remember(struct proxy *p, struct link *l, const struct message *m)
{
	size_t at = 0;

	while ((at = field_next(m, at))) {
		const unsigned tag = m->bytes[at];
		struct value *v = tag < TAGS ? &p->kept[tag][below(l, KEPT)] : NULL;

		if (!v)
			continue;
		v->len = number_at(m->bytes + at + 1);
		memcpy(v->bytes, m->bytes + at + FIELD_HEADER, v->len);
	}
	if (m->len > DOFI_CM_HEADER && !below(l, 4))
		p->last = *m;
}

/* Changes */

static void byte_change(struct link *l, unsigned char *p)
{
	switch (below(l, 5)) {
	case 0: *p ^= 1u << below(l, 8); break;
	case 1: *p = next(l); break;
	case 2: *p += 1; break;
	case 3: *p -= 1; break;
	default: *p = below(l, 2) ? 0 : 0xff;
	}
}

static void field_change(struct proxy *p, struct link *l, struct message *m)
{
	/* an address more often, since a fabric's use of it is least known */
	const size_t at = below(l, 4) ? field_any(l, m) : field_find(m, ADDR);
	const size_t len = at ? number_at(m->bytes + at + 1) : 0;
	unsigned char *value = m->bytes + at + FIELD_HEADER;
	unsigned i;

	if (!len)
		return;
	switch (below(l, 4)) {
	case 0:
		for (i = 1 + below(l, 4); i; i--)
			byte_change(l, value + below(l, len));
		break;
	case 1:
		memset(value, below(l, 2) ? 0 : 0xff, len);
		break;
	default:
		value_set(m, at, &p->kept[m->bytes[at] % TAGS][below(l, KEPT)]);
	}
}

static void bytes_change(struct link *l, struct message *m)
{
	unsigned i;

	for (i = 1 + below(l, 8); i; i--)
		byte_change(l, m->bytes + below(l, m->len));
}

/*
 * Cuts a part, but at least one byte stays: to lose a whole wakeup message is impossible in a
 * stream.
 */
static void cut(struct link *l, struct message *m)
{
	size_t at = below(l, m->len), n = below(l, m->len - at + !!at);

	memmove(m->bytes + at, m->bytes + at + n, m->len - at - n);
	m->len -= n;
}

static void repeat(struct message *m)
{
	if (2 * m->len > sizeof(m->bytes))
		return;
	memcpy(m->bytes + m->len, m->bytes, m->len);
	m->len *= 2;
}

/* Limits addresses to the loopback, so that no change makes an end contact another host. */
static void limit_to_loopback(struct message *m)
{
	struct dofi_cm_msg msg;
	unsigned char *addr;
	sa_family_t family;

	if (dofi_cm_unpack(m->bytes, m->len, &msg) <= 0 ||
	    msg.addr_len < sizeof(struct sockaddr_in))
		return;
	addr = m->bytes + ((const unsigned char *)msg.addr - m->bytes);
	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET)
		addr[offsetof(struct sockaddr_in, sin_addr)] = 127;
	else if (family == AF_INET6 && msg.addr_len >= sizeof(struct sockaddr_in6))
		memcpy(addr + offsetof(struct sockaddr_in6, sin6_addr), &in6addr_loopback,
		       sizeof(in6addr_loopback));
}

static void change(struct proxy *p, struct link *l, struct message *m)
{
	unsigned i;

	switch (below(l, 10)) {
	case 0: bytes_change(l, m); break;
	case 1: cut(l, m); break;
	case 2: repeat(m); break;
	case 3: m->bytes[5] = below(l, 9); break;
	case 4:
		if (p->last.len)
			*m = p->last;
		qual_set(m, p->to_qual);
		break;
	default:
		for (i = 1 + below(l, 3); i; i--)
			field_change(p, l, m);
	}
	limit_to_loopback(m);
	p->changes++;
}

/* Forwarding */

static void fds_close(struct link *l, int from)
{
	while (l->end[from].n_fds)
		close(l->end[from].fds[--l->end[from].n_fds]);
}

static void link_close(struct link *l)
{
	int i;

	for (i = 0; i < 2; i++) {
		fds_close(l, i);
		shutdown(l->end[i].fd, SHUT_RDWR);
		close(l->end[i].fd);
	}
	l->open = false;
}

/* Sends the message with its descriptors; all after the first @n are lost. */
static bool message_send(struct link *l, int from, const struct message *m, unsigned n)
{
	char control[CMSG_SPACE(DOFI_CM_FDS * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)m->bytes, m->len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *header;
	bool sent;

	if (n) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(header), l->end[from].fds, n * sizeof(int));
	}
	sent = sendmsg(l->end[!from].fd, &msg, MSG_NOSIGNAL) >= 0;
	fds_close(l, from);
	return sent;
}

static void pass_on(struct proxy *p, struct link *l, int from, struct message *m)
{
	unsigned n = l->end[from].n_fds;

	if (m->bytes[5] == DOFI_CM_REQUEST)
		qual_set(m, p->to_qual);
	remember(p, l, m);
	if (!l->honest && below(l, 2))
		change(p, l, m);
	if (!l->honest && n && !below(l, 8))
		n = below(l, n);
	if (m->len && !message_send(l, from, m, n))
		link_close(l);
}

static void take_messages(struct proxy *p, struct link *l, int from)
{
	struct message *in = &l->end[from].in, m;

	while (l->open && in->len >= DOFI_CM_HEADER) {
		m.len = DOFI_CM_HEADER + number_at(in->bytes + 6);
		if (m.len > in->len)
			return;
		memcpy(m.bytes, in->bytes, m.len);
		in->len -= m.len;
		memmove(in->bytes, in->bytes + m.len, in->len);
		pass_on(p, l, from, &m);
	}
}

static void link_read(struct proxy *p, struct link *l, int from)
{
	struct message *in = &l->end[from].in;
	char control[CMSG_SPACE(DOFI_CM_FDS * sizeof(int))];
	struct iovec iov = { in->bytes + in->len, sizeof(in->bytes) - in->len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(l->end[from].fd, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header;

	if (n <= 0) {
		link_close(l);
		return;
	}
	header = CMSG_FIRSTHDR(&msg);
	if (header && header->cmsg_type == SCM_RIGHTS) {
		fds_close(l, from);
		l->end[from].n_fds = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(l->end[from].fds, CMSG_DATA(header), l->end[from].n_fds * sizeof(int));
	}
	in->len += n;
	take_messages(p, l, from);
}

/* Connections */

static socklen_t name_of(struct sockaddr_un *name, uint64_t qual)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dat-ofi/side/%" PRIu64,
			qual);
}

static socklen_t address_len(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
}

static int connect_onward(struct proxy *p)
{
	struct sockaddr_storage to = p->to;
	struct sockaddr_un name;
	int fd = socket(p->local ? AF_UNIX : to.ss_family, SOCK_STREAM, 0), ret;

	fuzz_expect(fd >= 0);
	((struct sockaddr_in *)&to)->sin_port = htons((uint16_t)p->to_qual);
	if (p->local)
		ret = connect(fd, (struct sockaddr *)&name, name_of(&name, p->to_qual));
	else
		ret = connect(fd, (struct sockaddr *)&to, address_len(&to));
	if (!ret)
		return fd;
	close(fd);
	return -1;
}

static void link_open(struct proxy *p)
{
	int fd = accept(p->listener, NULL, NULL), out = fd < 0 ? -1 : connect_onward(p), i;
	struct link *l = NULL;

	for (i = 0; i < LINKS && !l; i++)
		l = p->link[i].open ? NULL : &p->link[i];
	if (out < 0 || !l) {
		close(fd);
		close(out);
		return;
	}
	*l = (struct link){ .open = true, .honest = p->honest, .random = p->seed + ++p->accepted };
	l->end[0].fd = fd;
	l->end[1].fd = out;
}

static void *run(void *arg)
{
	struct proxy *p = arg;
	struct pollfd fds[2 + 2 * LINKS];
	int i;

	for (;;) {
		fds[0] = (struct pollfd){ .fd = p->stop[0], .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
		for (i = 0; i < 2 * LINKS; i++)
			fds[2 + i] = (struct pollfd){
				.fd = p->link[i / 2].open ? p->link[i / 2].end[i % 2].fd : -1,
				.events = POLLIN,
			};
		if (poll(fds, 2 + 2 * LINKS, -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		for (i = 0; i < 2 * LINKS; i++)
			if (fds[2 + i].revents && p->link[i / 2].open)
				link_read(p, &p->link[i / 2], i % 2);
		if (fds[1].revents)
			link_open(p);
	}
	for (i = 0; i < LINKS; i++)
		if (p->link[i].open)
			link_close(&p->link[i]);
	return NULL;
}

/* Reserves a TCP port for the proxy. With AF_UNIX it only names the socket. */
static int port_get(struct proxy *p)
{
	struct sockaddr_storage address = p->to;
	socklen_t len = address_len(&address);
	int fd = socket(address.ss_family, SOCK_STREAM, 0);

	((struct sockaddr_in *)&address)->sin_port = 0;
	fuzz_expect(fd >= 0 && !bind(fd, (struct sockaddr *)&address, len));
	fuzz_expect(!getsockname(fd, (struct sockaddr *)&address, &len));
	p->qual = ntohs(((struct sockaddr_in *)&address)->sin_port);
	return fd;
}

static void listen_at(struct proxy *p)
{
	int port = port_get(p);
	struct sockaddr_un name;

	p->listener = port;
	if (p->local) {
		p->listener = socket(AF_UNIX, SOCK_STREAM, 0);
		fuzz_expect(p->listener >= 0 &&
			    !bind(p->listener, (struct sockaddr *)&name, name_of(&name, p->qual)));
		close(port);
	}
	fuzz_expect(!listen(p->listener, LINKS));
}

struct proxy *proxy_open(const struct sockaddr_storage *to, uint64_t qual, bool local,
			 uint64_t seed)
{
	struct proxy *p = calloc(1, sizeof(*p));

	fuzz_expect(p && !pipe(p->stop));
	p->to = *to;
	p->to_qual = qual;
	p->local = local;
	p->seed = seed << 20;
	listen_at(p);
	fuzz_expect(!pthread_create(&p->thread, NULL, run, p));
	return p;
}

uint64_t proxy_qual(const struct proxy *p)
{
	return p->qual;
}

void proxy_set_honest(struct proxy *p, bool honest)
{
	p->honest = honest;
}

unsigned proxy_changes(const struct proxy *p)
{
	return p->changes;
}

void proxy_close(struct proxy *p)
{
	close(p->stop[1]);
	pthread_join(p->thread, NULL);
	close(p->stop[0]);
	close(p->listener);
	free(p);
}
