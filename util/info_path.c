/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks the path from an IA of this host to a datperf server on another one. */
#include "info_path.h"

#include "dat_text.h"
#include "info_child.h"
#include "info_checks.h"
#include "log_lines.h"
#include "open_reason.h"
#include "perf_dat.h"
#include "perf_ud.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_SECONDS 20
/* Shorter than a step: the reason of a failed call says more than a hung step. */
#define PATIENCE_MS 10000
#define PROBE_MS 3000
/* Longer than tcp's listener takes on a busy machine. */
#define IGNORED_MS 5000

#define SHORT 8
#define LONG 65536
#define ROUNDS 200
#define WINDOW 8			/* messages in flight */

/* The attempts, in this order. */
enum step { OPEN, CONNECT, MESSAGES, LONG_MESSAGES, RDMA, DATAGRAMS, STEPS };

/* The child process's findings. */
struct path {
	DAT_PROVIDER_INFO info;
	struct sockaddr_storage peer;
	unsigned port;
	bool here;			/* the peer has an address of this host */
	int mtu;			/* of the path in bytes, 0 if unknown */
	enum step failed;		/* STEPS: none */
	bool datagrams;			/* the IA has them, and the API */
	char fabric[64];
	bool rdm;
	bool rings;			/* the IA has shared memory to peers on this host */
	char local[CHECK_TEXT_MAX];	/* why the peer on this host is slower than it could be */
	double connect_ms, us;
	char why[REASON_MAX];
};

/* --- the route ------------------------------------------------------------ */

static socklen_t size_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
}

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;

	if (a->ss_family != b->ss_family)
		return false;
	return a->ss_family == AF_INET6 ? IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) :
					  a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* Writes the name of the interface that has the address @own. */
static void interface_of(const struct sockaddr_storage *own, char name[IF_NAMESIZE])
{
	struct ifaddrs *list, *i;

	strcpy(name, "?");
	if (getifaddrs(&list))
		return;
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == own->ss_family &&
		    same_host((const struct sockaddr_storage *)i->ifa_addr, own))
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
	freeifaddrs(list);
}

/* Sets the port, as UDP sockets need one to connect. */
static void port_set(struct sockaddr_storage *address, unsigned port)
{
	((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

static int mtu_of(int fd, const struct sockaddr_storage *peer)
{
	const bool v6 = peer->ss_family == AF_INET6;
	socklen_t len = sizeof(int);
	int mtu = 0;

	if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &len))
		return 0;
	return mtu;
}

/* Prints the address, interface and MTU that the kernel uses for packets to the peer. */
static bool route_check(FILE *out, struct path *p, const char *host)
{
	struct sockaddr_storage to = p->peer, own = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(own);
	char peer[64], from[64], name[IF_NAMESIZE];
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	port_set(&to, p->port);
	dat_text_address((struct sockaddr *)&p->peer, peer, sizeof(peer));
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, size_of(&to)) ||
	    getsockname(fd, (struct sockaddr *)&own, &len))
		err = errno;
	else
		p->mtu = mtu_of(fd, &to);
	if (fd >= 0)
		close(fd);
	if (err) {
		check_row(out, "route", CHECK_BAD,
			  "%s is %s: %s; \"ip route get %s\" shows the route", host, peer,
			  strerror(err), peer);
		return false;
	}
	p->here = same_host(&own, &p->peer);
	interface_of(&own, name);
	check_row(out, "route", CHECK_OK, "%s is %s; from %s on %s, MTU %d", host, peer,
	    dat_text_address((struct sockaddr *)&own, from, sizeof(from)), name, p->mtu);
	return true;
}

static bool resolve(FILE *out, struct path *p, const char *host)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int ret = getaddrinfo(host, NULL, &hints, &list);

	if (ret) {
		check_row(out, "route", CHECK_BAD, "%s: %s", host, gai_strerror(ret));
		return false;
	}
	memcpy(&p->peer, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return true;
}

/* --- the port ------------------------------------------------------------- */

/* Connects to the peer's port. Returns a descriptor, or a negative errno. */
static int tcp_connect(const struct path *p)
{
	struct sockaddr_storage to = p->peer;
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err = 0;
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(err);

	if (fd < 0)
		return -errno;
	port_set(&to, p->port);
	if (connect(fd, (struct sockaddr *)&to, size_of(&to))) {
		err = errno;
		if (err == EINPROGRESS && poll(&ready, 1, PROBE_MS) < 1)
			err = ETIMEDOUT;
		else if (err == EINPROGRESS)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	}
	if (!err)
		return fd;
	close(fd);
	return -err;
}

/*
 * Whether a program at the peer's port ignores bytes of no protocol. libfabric's tcp closes the
 * connection at once, and its sockets ignores them; but a request of tcp ends the process of a
 * listener of sockets.
 */
static bool port_ignores(const struct path *p)
{
	struct pollfd answer = { .fd = tcp_connect(p), .events = POLLIN };
	char bytes[64];
	bool ignores;

	if (answer.fd < 0)
		return false;
	memset(bytes, 0xff, sizeof(bytes));
	ignores = send(answer.fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes) &&
		  !poll(&answer, 1, IGNORED_MS);
	close(answer.fd);
	return ignores;
}

/* --- in the child process -------------------------------------------------- */

static bool point_run(struct perf_xport *x, enum perf_test test, enum perf_metric metric,
		      size_t size, uint64_t iters, uint64_t *samples)
{
	struct perf_point point = {
		.test = test, .metric = metric, .size = size, .iters = iters, .samples = samples,
	};

	return !perf_run_point(x, &point);
}

static bool fails(struct path *p, enum step step, const struct perf_xport *x)
{
	p->failed = step;
	snprintf(p->why, sizeof(p->why), "%s", x->err);
	return false;
}

static void attributes_read(struct path *p, DAT_IA_HANDLE ia)
{
	DAT_PROVIDER_ATTR attr;
	const char *local, *size, *provider;

	if (dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr) != DAT_SUCCESS)
		return;
	local = dat_named_attr(&attr, "OFI_LOCAL");
	size = dat_named_attr(&attr, "OFI_DATAGRAM_SIZE");
	provider = dat_named_attr(&attr, "OFI_PROVIDER");
	p->rings = (provider && !strcmp(provider, "rings")) || (local && !strcmp(local, "rings"));
	p->datagrams = size && strtoul(size, NULL, 10);
}

static bool peer_open(struct child *c, struct path *p, struct perf_xport *x)
{
	struct perf_fabric fabric;

	child_step(c, "opening the IA");
	if (x->ops->open(x))
		return fails(p, OPEN, x);
	perf_dat_fabric(x, &fabric);
	snprintf(p->fabric, sizeof(p->fabric), "%s", fabric.provider);
	p->rdm = fabric.rdm;
	attributes_read(p, perf_to_dat(x)->ia);
	p->datagrams &= x->ops->ud != NULL;
	return true;
}

static bool peer_connect(struct child *c, struct path *p, struct perf_xport *x)
{
	uint64_t begun = perf_now_ns();

	child_step(c, "connecting");
	if (!strcmp(p->fabric, "tcp") && port_ignores(p)) {
		perf_fail(x, "%s: the program at the port does not answer: it hangs, or is another "
			  "one, or on another fabric such as sockets; no request was sent, which "
			  "might end it", p->info.ia_name);
		return fails(p, CONNECT, x);
	}
	if (x->ops->connect(x, (struct sockaddr *)&p->peer, p->port))
		return fails(p, CONNECT, x);
	p->connect_ms = (double)(perf_now_ns() - begun) / 1e6;
	return true;
}

static bool messages_exchange(struct child *c, struct path *p, struct perf_xport *x)
{
	uint64_t samples[ROUNDS];
	struct perf_lat lat;

	child_step(c, "exchanging messages of 8 bytes");
	if (!point_run(x, PERF_SEND, PERF_VERIFY, SHORT, 4, NULL) ||
	    !point_run(x, PERF_SEND, PERF_LAT, SHORT, ROUNDS, samples))
		return fails(p, MESSAGES, x);
	perf_lat_of(samples, ROUNDS, 2, &lat);	/* of one way */
	p->us = lat.median;
	child_step(c, "exchanging messages of 64 KiB");
	if (!point_run(x, PERF_SEND, PERF_VERIFY, LONG, 4, NULL))
		return fails(p, LONG_MESSAGES, x);
	child_step(c, "writing 64 KiB into the peer's memory");
	if (!point_run(x, PERF_WRITE, PERF_VERIFY, LONG, 4, NULL))
		return fails(p, RDMA, x);
	return true;
}

static bool datagrams_exchange(struct child *c, struct path *p, struct perf_xport *x)
{
	if (!p->datagrams)
		return true;
	child_step(c, "exchanging datagrams");
	if (perf_ud_open(x, false) || !point_run(x, PERF_UD, PERF_VERIFY, SHORT, 20, NULL))
		return fails(p, DATAGRAMS, x);
	return true;
}

/*
 * Copies the first line of the provider's log about a peer on this host: why it is slower than it
 * could be.
 */
static void local_read(struct path *p)
{
	static const char *const words[] = {
		"the peer on this host is", "a peer shares no memory", "the peer's memory cannot",
		"peers on this host cannot",
	};
	char text[LOG_TEXT_MAX];
	const char *found, *first = NULL;
	size_t i;

	log_read(STDERR_FILENO, text);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		found = strstr(text, words[i]);
		if (found && (!first || found < first))
			first = found;
	}
	if (first)
		snprintf(p->local, sizeof(p->local), "%.*s", (int)strcspn(first, "\n"), first);
}

/* Replaces the text of a failed connection by the provider's, which has the cause. */
static void cause_read(struct path *p)
{
	char text[LOG_TEXT_MAX];
	const char *cause;

	log_read(STDERR_FILENO, text);
	cause = strstr(text, ": no connection to ");
	cause = cause ? strstr(cause + 2, ": ") : NULL;
	if (cause)
		snprintf(p->why, sizeof(p->why), "%s%.*s", p->info.ia_name,
			 (int)strcspn(cause, "\n"), cause);
}

static bool path_run(struct child *c, void *shared)
{
	static const struct perf_ctl quit = { .type = PERF_CTL_QUIT };
	struct path *p = shared;
	struct perf_xport *x;
	struct perf_ctl reply;
	bool works;

	setenv("DAT_OFI_LOG", "2", 1);
	p->failed = OPEN;
	x = perf_dat_new(p->info.ia_name);
	if (!x) {
		snprintf(p->why, sizeof(p->why), "out of memory");
		return false;
	}
	x->timeout_ms = PATIENCE_MS;
	x->wait_client_ms = -1;
	x->blocking = true;
	x->size_max = LONG + PERF_UD_EXTRA;
	x->lanes = x->threads = 1;
	x->session = (uint16_t)(getpid() | 1);
	perf_layout_init(&x->lay, x->size_max, WINDOW);
	works = peer_open(c, p, x) && peer_connect(c, p, x) && messages_exchange(c, p, x) &&
		datagrams_exchange(c, p, x);
	local_read(p);
	if (!works && p->failed == CONNECT)
		cause_read(p);
	if (!works)
		return false;
	p->failed = STEPS;
	child_step(c, "disconnecting");
	if (!perf_run_request(x, &quit, &reply))
		x->ops->disconnect(x);
	return true;
}

/* --- causes ----------------------------------------------------------------- */

/* Writes the range of ports that the system picks from. */
static const char *ephemeral(char text[48])
{
	long first, last;

	check_ephemeral(&first, &last);
	snprintf(text, 48, "%ld-%ld", first, last);
	return text;
}

static void connect_explain(FILE *out, const struct path *p)
{
	char ports[48];
	int err;

	check_row(out, "connection", CHECK_BAD, "%s", p->why);
	if (!strcmp(p->fabric, "verbs") || !strcmp(p->fabric, "shm"))
		return;
	err = tcp_connect(p);
	if (err >= 0)
		close(err);
	err = err < 0 ? -err : 0;
	switch (err) {
	case 0:
		check_row(out, "port", CHECK_OK,
		    "TCP port %u accepts connections; \"ss -ltnp\" there names the program",
		    p->port);
		if (p->rdm)
			check_row(out, "fabric", CHECK_BAD,
			    "%s uses ports of its own, too: a firewall must admit TCP and UDP to "
			    "ports %s of both hosts; both ends need the same fabric",
			    p->fabric, ephemeral(ports));
		break;
	case ECONNREFUSED:
		check_row(out, "port", CHECK_BAD,
		    "nothing listens at TCP port %u; run \"datperf --server --keep -D %s\" there; "
		    "if it does, a firewall rejects it", p->port, p->info.ia_name);
		break;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EACCES:
	case EPERM:
		check_row(out, "port", CHECK_BAD,
		    "TCP port %u: %s: a firewall rejects it, or a router has no route; a firewall "
		    "must admit TCP to the ports of the programs' qualifiers", p->port,
		    strerror(err));
		break;
	case ETIMEDOUT:
		check_row(out, "port", CHECK_BAD,
		    "no answer from TCP port %u: a firewall discards it, or the host is down; a "
		    "firewall must admit TCP to the ports of the programs' qualifiers", p->port);
		break;
	default:
		check_row(out, "port", CHECK_BAD, "TCP port %u: %s", p->port, strerror(err));
	}
}

static void failure_explain(FILE *out, const struct path *p)
{
	char ports[48];

	switch (p->failed) {
	case OPEN:
		check_row(out, "IA", CHECK_BAD, "%s; \"datinfo --doctor -D %s\" says why", p->why,
		    p->info.ia_name);
		break;
	case CONNECT:
		connect_explain(out, p);
		break;
	case LONG_MESSAGES:
		check_row(out, "long messages", CHECK_BAD,
		    "%s: short messages arrive, those of 64 KiB do not; \"ping -M do -s %d\" shows "
		    "whether packets of the MTU arrive", p->why, p->mtu - 28);
		break;
	case DATAGRAMS:
		check_row(out, "datagrams", CHECK_BAD,
		    "%s; a firewall must admit UDP to ports %s of both hosts", p->why,
		    ephemeral(ports));
		break;
	default:
		check_row(out, p->failed == RDMA ? "RDMA" : "messages", CHECK_BAD, "%s", p->why);
	}
}

/* --- the rows ----------------------------------------------------------------- */

/* How processes of one host reach each other. */
static void local_print(FILE *out, const struct path *p)
{
	if (!p->here || p->failed <= CONNECT)
		return;
	if (p->local[0])
		check_row(out, "this host", CHECK_NOTE, "%s", p->local);
	else if (p->rings)
		check_row(out, "this host", CHECK_OK, "the peer is reached by shared memory");
	else
		check_row(out, "this host", CHECK_NOTE,
		    "the peer is on this host; the IAs ofi and ofi-shm have shared memory to it");
}

static void success_print(FILE *out, const struct path *p)
{
	if (p->failed > CONNECT)
		check_row(out, "connection", CHECK_OK, "%s on %s in %.1f ms", p->info.ia_name,
			  p->fabric, p->connect_ms);
	if (p->failed > MESSAGES)
		check_row(out, "messages", CHECK_OK, "8 bytes: %.1f us", p->us);
	if (p->failed > LONG_MESSAGES)
		check_row(out, "long messages", CHECK_OK, "64 KiB arrive");
	if (p->failed > RDMA)
		check_row(out, "RDMA", CHECK_OK, "64 KiB written");
	if (p->failed > DATAGRAMS && p->datagrams)
		check_row(out, "datagrams", CHECK_OK, "arrive in both directions");
}

bool path_check(FILE *out, const DAT_PROVIDER_INFO *info, const char *host, unsigned port)
{
	struct path p = { .info = *info, .port = port, .failed = OPEN };
	struct child_result r;

	if (!resolve(out, &p, host) || !route_check(out, &p, host))
		return false;
	if (child_run(path_run, &p, sizeof(p), STEP_SECONDS, &r)) {
		check_row(out, "IA", CHECK_BAD, "%s", r.log);
		return false;
	}
	if (r.end == CHILD_HUNG || r.end == CHILD_DIED)
		snprintf(p.why, sizeof(p.why), "the process %s while %s",
			 r.end == CHILD_HUNG ? "hung" : "died", r.step);
	success_print(out, &p);
	local_print(out, &p);
	if (p.failed != STEPS)
		failure_explain(out, &p);
	return p.failed == STEPS;
}
