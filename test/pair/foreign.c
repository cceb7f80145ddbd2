/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Peers that connect through the fabric, but are not this provider: bare libfabric, with private
 * data of any kind. The provider refuses them with a line in the log, and its other connections
 * go on.
 */

#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORT_TRIES 64

static const struct payload {
	size_t size;
	unsigned char bytes[48];
} payloads[] = {
	{ 0, "" },
	{ 1, "\xda" },
	{ 48, "" },
	{ 47, "Greetings from a program that is not this one." },
	{ 4, "\xda\x11\0" },		/* of version 1 */
	{ 4, "\xda\x23\0" },		/* a rejection */
	{ 8, "\xda\x21\0\xff" "1234" },	/* less data than the header announces */
	{ 16, "\xda\x21\xff\0" "123456789012" },
};

#define N_PAYLOADS (sizeof(payloads) / sizeof(payloads[0]))

/* Redirects the role's log to a file, in which each foreign peer leaves one line. */

static int log_begin(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0, "%s", strerror(errno));
	setenv("DAT_OFI_LOG", "1", 1);
	setenv("DAT_OFI_LOG_DEST", "1", 1);
	return fd;
}

static void log_has(int fd, const char *line, size_t times)
{
	static char text[1 << 16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;

	CHECK(n >= 0, "%s", strerror(errno));
	text[n] = 0;
	for (at = strstr(text, line); at; at = strstr(at + 1, line), times--)
		CHECK(times, "too many of these lines in the log: %s", text);
	CHECK(!times, "%zu lines are missing in the log: %s", times, text);
}

/* Bare libfabric */

struct bare {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_eq *eq;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_pep *pep;
	struct fid_ep *ep;
};

union entry {
	struct fi_eq_cm_entry cm;
	unsigned char room[sizeof(struct fi_eq_cm_entry) + 512];
};

#define BARE_OK(call)                                                                      \
	do {                                                                               \
		int bare_ret = (call);                                                     \
		CHECK(!bare_ret, "%s: %s", #call, fi_strerror(-bare_ret));                 \
	} while (0)

/* The fabric of the IA's name, at @address: a peer's if @dest, else a local one. */
static struct fi_info *bare_info(const struct sockaddr_storage *address, unsigned port, bool dest)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	char node[INET6_ADDRSTRLEN], service[8];
	const bool six = address->ss_family == AF_INET6;

	inet_ntop(address->ss_family,
		  six ? (void *)&((struct sockaddr_in6 *)address)->sin6_addr :
			(void *)&((struct sockaddr_in *)address)->sin_addr, node, sizeof(node));
	snprintf(service, sizeof(service), "%u", port);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(pair_ia_name() + strlen("ofi-"));
	BARE_OK(fi_getinfo(FI_VERSION(1, 17), node, service, dest ? 0 : FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void bare_open(struct bare *b, struct fi_info *info)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_FD };

	memset(b, 0, sizeof(*b));
	b->info = info;
	BARE_OK(fi_fabric(info->fabric_attr, &b->fabric, NULL));
	BARE_OK(fi_eq_open(b->fabric, &eq, &b->eq, NULL));
}

static void bare_ep(struct bare *b, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD };

	BARE_OK(fi_domain(b->fabric, info, &b->domain, NULL));
	BARE_OK(fi_cq_open(b->domain, &cq, &b->cq, NULL));
	BARE_OK(fi_endpoint(b->domain, info, &b->ep, NULL));
	BARE_OK(fi_ep_bind(b->ep, &b->eq->fid, 0));
	BARE_OK(fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV));
	BARE_OK(fi_enable(b->ep));
}

static void bare_ep_close(struct bare *b)
{
	fi_close(&b->ep->fid);
	fi_close(&b->cq->fid);
	fi_close(&b->domain->fid);
	b->ep = NULL;
}

static void bare_close(struct bare *b)
{
	if (b->ep)
		bare_ep_close(b);
	if (b->pep)
		fi_close(&b->pep->fid);
	fi_close(&b->eq->fid);
	fi_close(&b->fabric->fid);
	fi_freeinfo(b->info);
}

/* Waits for an event and returns its type, or 0 for a failure. */
static uint32_t bare_event(struct bare *b, union entry *entry)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	uint32_t event = 0;
	ssize_t n;

	do {
		/* tcp makes progress only when polled */
		if (b->ep)
			fi_cq_read(b->cq, NULL, 0);
		n = fi_eq_sread(b->eq, &event, entry, sizeof(*entry), 20, 0);
		CHECK(pair_now() < deadline, "no event of the fabric");
	} while (n == -FI_EAGAIN);
	if (n == -FI_EAVAIL) {
		struct fi_eq_err_entry e = { .err = 0 };

		CHECK(fi_eq_readerr(b->eq, &e, 0) >= 0, "no error entry");
		return 0;
	}
	CHECK(n > 0, "%s", fi_strerror((int)-n));
	return event;
}

static void needs_fabric(void)
{
	const char *name = pair_ia_name();

	if (strcmp(name, "ofi-tcp") && strcmp(name, "ofi-verbs"))
		pair_skip("%s: its connection manager is not tested with foreign peers", name);
}

/* Foreign peers connect to the provider */

/* The foreign peers, and the number of lines that they leave in the log. */
struct foreign_peers {
	void (*connect)(const struct listener *listener);
	void (*need)(void);
	size_t lines;
};

static void dat_listener(struct pair *p)
{
	const struct foreign_peers *peers = pair_arg();
	int log = log_begin();
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	struct node n;

	peers->need();
	node_open(&n);
	psp = node_listen(&n, &qual);
	pair_send_listener(p, &n, qual);
	n.ep = node_ep(&n, NULL);
	pair_sync(p);	/* all peers have connected */
	expect_quiet(n.cr);
	log_has(log, "a connection request that is not ours", peers->lines);
	pair_sync(p);
	OK(dat_cr_accept(node_request(&n), n.ep, 0, NULL));
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	OK(dat_psp_free(psp));
	node_end(&n);
}

static void bare_connect(const struct listener *listener, const struct payload *s)
{
	union entry entry;
	struct bare b;

	bare_open(&b, bare_info(&listener->address, (unsigned)listener->qual, true));
	bare_ep(&b, b.info);
	BARE_OK(fi_connect(b.ep, b.info->dest_addr, s->size ? s->bytes : NULL, s->size));
	SAME(bare_event(&b, &entry), 0);
	bare_close(&b);
}

static void libfabric_connects(const struct listener *listener)
{
	size_t i;

	for (i = 0; i < N_PAYLOADS; i++)
		bare_connect(listener, &payloads[i]);
}

/* A connection of librdmacm's, by rdma-core's rping, with or without private data. */
static void rping_connects(const struct listener *listener)
{
	char command[128], node[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &((const struct sockaddr_in *)&listener->address)->sin_addr, node,
		  sizeof(node));
	snprintf(command, sizeof(command), "timeout 20 rping -c -a %s -p %u -C 1 >/dev/null 2>&1",
		 node, (unsigned)listener->qual);
	CHECK(system(command), "rping succeeded");
}

static void needs_rping(void)
{
	if (!pair_fabric_is("verbs") || system("command -v rping >/dev/null"))
		pair_skip("rping and an RDMA device are needed");
}

static void foreign_connector(struct pair *p)
{
	const struct foreign_peers *peers = pair_arg();
	struct listener listener;
	struct node n;

	peers->need();
	node_begin(&n, 0);
	pair_recv_listener(p, &listener);
	peers->connect(&listener);
	pair_sync(p);
	pair_sync(p);
	ep_connect(n.ep, &listener);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_ESTABLISHED, n.ep);
	pair_unlink(p, &n, n.ep);
	node_end(&n);
}

/* The provider connects to foreign peers */

/* Listens at the first free port. */
static unsigned bare_listen(struct bare *b, const struct sockaddr_storage *address)
{
	unsigned port, i;

	for (i = 0; i < PORT_TRIES; i++) {
		port = 20000 + (getpid() + i * 131) % 10000;
		bare_open(b, bare_info(address, port, false));
		if (!fi_passive_ep(b->fabric, b->info, &b->pep, NULL)) {
			BARE_OK(fi_pep_bind(b->pep, &b->eq->fid, 0));
			if (!fi_listen(b->pep))
				return port;
		}
		bare_close(b);
	}
	pair_fail(__FILE__, __LINE__, "no port is free");
}

static void answer(struct bare *b, struct fi_info *info, const struct payload *s, bool yes)
{
	const void *bytes = s->size ? s->bytes : NULL;
	union entry entry;

	if (!yes) {
		BARE_OK(fi_reject(b->pep, info->handle, bytes, s->size));
		return;
	}
	bare_ep(b, info);
	BARE_OK(fi_accept(b->ep, bytes, s->size));
	/* the connection lasts for a moment, or is not even established */
	if (bare_event(b, &entry) == FI_CONNECTED)
		bare_event(b, &entry);
	bare_ep_close(b);
}

static void foreign_listener(struct pair *p)
{
	struct listener listener;
	union entry entry;
	struct bare b;
	size_t i;

	needs_fabric();
	pair_recv_listener(p, &listener);
	listener.qual = bare_listen(&b, &listener.address);
	pair_send(p, &listener, sizeof(listener));
	for (i = 0; i < 2 * N_PAYLOADS; i++) {
		SAME(bare_event(&b, &entry), FI_CONNREQ);
		answer(&b, entry.cm.info, &payloads[i / 2], i % 2);
		fi_freeinfo(entry.cm.info);
		pair_sync(p);
	}
	bare_close(&b);
}

static void dat_connector(struct pair *p)
{
	int log = log_begin();
	struct listener listener;
	struct node n;
	size_t i;

	needs_fabric();
	node_open(&n);
	pair_send_listener(p, &n, 0);
	pair_recv_listener(p, &listener);
	n.ep = node_ep(&n, NULL);
	for (i = 0; i < 2 * N_PAYLOADS; i++) {
		/*
		 * only the header of a rejection is valid: it is reported as the peer's rejection
		 */
		const bool rejected = !(i % 2) && payloads[i / 2].bytes[1] == 0x23;

		connect_with(n.ep, &listener, pair_scaled(PAIR_LIMIT), 0, NULL);
		expect_conn(n.conn, rejected ? DAT_CONNECTION_EVENT_PEER_REJECTED :
					       DAT_CONNECTION_EVENT_NON_PEER_REJECTED, n.ep);
		expect_quiet(n.conn);
		pair_sync(p);
		OK(dat_ep_reset(n.ep));
	}
	log_has(log, "the acceptor is not this provider", N_PAYLOADS);
	node_end(&n);
}

static const struct foreign_peers libfabric = { libfabric_connects, needs_fabric, N_PAYLOADS };
static const struct foreign_peers rping = { rping_connects, needs_rping, 1 };

static const struct pair_case cases[] = {
	PAIR_CASE("foreign peers connect to the provider", dat_listener, foreign_connector,
		  .arg = &libfabric, .seconds = 60),
	PAIR_CASE("rping connects to the provider", dat_listener, foreign_connector, .arg = &rping,
		  .seconds = 60),
	PAIR_CASE("the provider connects to foreign peers", foreign_listener, dat_connector,
		  .seconds = 60),
};

int main(int argc, char **argv)
{
	/* the provider reads its log settings once, which must happen in each role */
	unsetenv("DAT_TEST_WARM");
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
