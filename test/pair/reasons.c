/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attempts to connect that fail: each ends with the right event, and the log at level 1 has the
 * peer's address and the reason. The peers are programs of other protocols, other fabrics, a port
 * without a program and an address without a host.
 */

#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The log */

static int log_file;

static void log_begin(void)
{
	log_file = memfd_create("log", MFD_CLOEXEC);
	CHECK(log_file >= 0 && dup2(log_file, STDERR_FILENO) >= 0, "%s", strerror(errno));
	setenv("DAT_OFI_LOG", "1", 1);
	setenv("DAT_OFI_LOG_DEST", "1", 1);
}

/* The last attempt has left one line, with the name @ia and one of the reasons. */
static void log_has(const char *ia, const char *const reasons[])
{
	char text[4096], begin[128];
	ssize_t n = pread(log_file, text, sizeof(text) - 1, 0);
	const char *line;

	CHECK(n >= 0, "%s", strerror(errno));
	text[n] = 0;
	CHECK(!ftruncate(log_file, 0) && !lseek(log_file, 0, SEEK_SET), "%s", strerror(errno));
	line = strstr(text, "no connection to ");
	CHECK(line && !strstr(line + 1, "no connection to "), "not one line: %s", text);
	snprintf(begin, sizeof(begin), " cm: warning: %s: ep 0x", ia);
	CHECK(strstr(text, begin), "not \"%s\": %s", begin, text);
	while (*reasons && !strstr(line, *reasons))
		reasons++;
	CHECK(*reasons, "another reason: %s", line);
}

/* The sockets provider of libfabric reports any failure as a refusal. */
#define VAGUE "refused, no program listens at the port, or one that speaks another protocol"

static const char *const refused[] = { "refused, no program listens at the port", NULL };
static const char *const foreign[] = { "another program or fabric listens there", VAGUE, NULL };
static const char *const unanswered[] = { "no answer within the time-out", NULL };
static const char *const no_route[] = { "no route leads to the address", NULL };

/* A program of another protocol: one thread that serves one connection. */

struct foreign_server {
	int fd;
	const char *answer;
	size_t size; /* of the answer */
	bool keeps;  /* the connection stays open until the server is closed */
	pthread_t thread;
};

static void *serve(void *arg)
{
	struct foreign_server *s = arg;
	char bytes[512];
	int fd = accept(s->fd, NULL, NULL);

	if (fd < 0)
		return NULL;
	if (s->keeps) {
		while (recv(fd, bytes, sizeof(bytes), 0) > 0)
			;
	} else if (recv(fd, bytes, sizeof(bytes), 0) > 0 && s->size) {
		send(fd, s->answer, s->size, MSG_NOSIGNAL);
		/* the answer arrives before the end */
		shutdown(fd, SHUT_WR);
		while (recv(fd, bytes, sizeof(bytes), 0) > 0)
			;
	}
	close(fd);
	return NULL;
}

static void server_open(struct foreign_server *s, struct node *n, struct listener *listener)
{
	socklen_t len = sizeof(listener->address);

	listener->address = n->address;
	((struct sockaddr_in *)&listener->address)->sin_port = 0;
	s->fd = socket(listener->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(s->fd >= 0 && !bind(s->fd, (struct sockaddr *)&listener->address, len) &&
		      !listen(s->fd, 1) &&
		      !getsockname(s->fd, (struct sockaddr *)&listener->address, &len),
	      "%s", strerror(errno));
	listener->qual = ntohs(((struct sockaddr_in *)&listener->address)->sin_port);
	CHECK(!pthread_create(&s->thread, NULL, serve, s), "no thread");
}

static void server_close(struct foreign_server *s)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

#define HTTP "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
#define RANDOM                                                             \
	"\x9d\x03\x7f\xe1\x00\x55\xaa\x10\x42\x8b\xff\x00\x01\x6c\x93\x2e" \
	"\x71\xd8\x0a\x5f\xc4\x36\xb9\x12\x88\xee\x4d\x07\x60\xa3\xf9\x2b"

static const struct foreign_case {
	const char *answer;
	size_t size;
} http = { HTTP, sizeof(HTTP) - 1 }, noise = { RANDOM, sizeof(RANDOM) - 1 }, silence = { "", 0 };

static void needs_tcp(void)
{
	if (pair_fabric_is("verbs") || pair_fabric_is("efa"))
		pair_skip("%s does not use TCP", pair_ia_name());
}

static void meets_foreign_server(struct pair *p)
{
	const struct foreign_case *c = pair_arg();
	struct foreign_server s = { .answer = c->answer, .size = c->size };
	struct listener listener;
	struct node n;

	needs_tcp();
	log_begin();
	node_begin(&n, 0);
	server_open(&s, &n, &listener);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	log_has(pair_ia_name(), foreign);
	server_close(&s);
	node_end(&n);
}

#define TIMEOUT_MS 300

static void meets_silent_server(struct pair *p)
{
	struct foreign_server s = { .keeps = true };
	struct listener listener;
	DAT_EP_HANDLE ep;
	struct node n;

	needs_tcp();
	log_begin();
	node_open(&n);
	ep = node_ep(&n, NULL);
	server_open(&s, &n, &listener);
	connect_with(ep, &listener, pair_scaled(TIMEOUT_MS), 0, NULL);
	expect_conn(n.conn, DAT_CONNECTION_EVENT_TIMED_OUT, ep);
	log_has(pair_ia_name(), unanswered);
	OK(dat_ep_free(ep));
	server_close(&s);
	node_close(&n);
}

/* A port that was bound and closed has no listener. */
static void meets_nobody(struct pair *p)
{
	struct foreign_server s = { .fd = -1 };
	struct listener listener;
	struct node n;

	needs_tcp();
	log_begin();
	node_begin(&n, 0);
	server_open(&s, &n, &listener);
	server_close(&s);
	connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	log_has(pair_ia_name(), refused);
	node_end(&n);
}

static void meets_no_host(struct pair *p)
{
	static const char *const addresses[] = { "240.0.0.1", "255.255.255.255", "224.0.0.1" };
	struct listener listener = { .qual = 45248 };
	struct sockaddr_in *in = (struct sockaddr_in *)&listener.address;
	struct node n;
	size_t i;

	log_begin();
	node_begin(&n, 0);
	for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		in->sin_family = AF_INET;
		CHECK(inet_pton(AF_INET, addresses[i], &in->sin_addr) == 1, "address");
		connect_fails(&n, n.ep, &listener, DAT_CONNECTION_EVENT_UNREACHABLE);
		log_has(pair_ia_name(), no_route);
		OK(dat_ep_reset(n.ep));
	}
	node_end(&n);
}

/*
 * Another fabric: an EP of sockets requests a connection from a service point of tcp. The other
 * direction ends the process of the service point, within libfabric's sockets provider (1.17).
 */

static char sockets[] = "ofi-sockets";

struct other {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, conn;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
};

static void other_open(struct other *o)
{
	*o = (struct other){ .async = DAT_HANDLE_NULL };
	if (dat_ia_open(sockets, 8, &o->async, &o->ia))
		pair_skip("%s cannot be opened", sockets);
	OK(dat_pz_create(o->ia, &o->pz));
	OK(dat_evd_create(o->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &o->conn));
	OK(dat_ep_create(o->ia, o->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, o->conn, NULL, &o->ep));
}

static void other_close(struct other *o)
{
	OK(dat_ep_free(o->ep));
	OK(dat_evd_free(o->conn));
	OK(dat_pz_free(o->pz));
	OK(dat_ia_close(o->ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void meets_other_fabric(struct pair *p)
{
	struct listener listener;
	DAT_PSP_HANDLE psp;
	struct other o;
	struct node n;

	if (!pair_fabric_is("tcp"))
		pair_skip("%s is not a fabric on TCP with connected endpoints", pair_ia_name());
	log_begin();
	node_open(&n);
	other_open(&o);
	psp = node_listen(&n, &listener.qual);
	listener.address = n.address;
	ep_connect(o.ep, &listener);
	expect_conn(o.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, o.ep);
	log_has(sockets, foreign);
	expect_quiet(n.cr);
	OK(dat_psp_free(psp));
	other_close(&o);
	node_close(&n);
}

static const struct pair_case cases[] = {
	PAIR_CASE("no program listens at the port", NULL, meets_nobody),
	PAIR_CASE("an HTTP server listens there", NULL, meets_foreign_server, .arg = &http),
	PAIR_CASE("the answer is noise", NULL, meets_foreign_server, .arg = &noise),
	PAIR_CASE("the connection ends without an answer", NULL, meets_foreign_server,
		  .arg = &silence),
	PAIR_CASE("the peer never answers", NULL, meets_silent_server),
	PAIR_CASE("the address is of no host", NULL, meets_no_host),
	PAIR_CASE("another fabric listens there", NULL, meets_other_fabric),
};

int main(int argc, char **argv)
{
	/* the provider reads its log settings once, which must happen in each role */
	unsetenv("DAT_TEST_WARM");
	return pair_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
