/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Foreign clients, which are TCP clients without DAT, at a listening port: they connect and send
 * nothing, or too little.
 *
 * A fabric on TCP accepts such a connection and waits for its bytes. When the service point is
 * freed the fabric must drop the connection, too: bytes that arrive later must not reach freed
 * memory, which valgrind checks, and the descriptor must be closed.
 */

#include "robust.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE 64
#define HALF 5			/* too few bytes for a request */
#define HEAD 32			/* bytes that contain the length of the rest, on tcp */

/* The bytes of a fabric's connection request. */
static unsigned char request[1024];
static size_t request_size;

/* Connects @ep to a socket that records the request and rejects it. */
static void request_record(struct node *n, DAT_EP_HANDLE ep)
{
	struct listener listener = { .address = n->address };
	socklen_t len = sizeof(listener.address);
	int sock = socket(listener.address.ss_family, SOCK_STREAM, 0), fd;
	ssize_t got;

	((struct sockaddr_in *)&listener.address)->sin_port = 0;
	CHECK(!bind(sock, (struct sockaddr *)&listener.address, len) && !listen(sock, 1), "%s",
	      strerror(errno));
	CHECK(!getsockname(sock, (struct sockaddr *)&listener.address, &len), "%s",
	      strerror(errno));
	listener.qual = ntohs(((struct sockaddr_in *)&listener.address)->sin_port);
	ep_connect(ep, &listener);
	fd = accept(sock, NULL, NULL);
	got = recv(fd, request, sizeof(request), 0);
	CHECK(got > HEAD, "a request of %zd bytes", got);
	request_size = got;
	close(fd);
	close(sock);
	expect_conn(n->conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
	OK(dat_ep_reset(ep));
}

static void send_request(int fd, size_t size)
{
	if (send(fd, request, size, MSG_NOSIGNAL) < 0)
		CHECK(errno == EPIPE || errno == ECONNRESET, "%s", strerror(errno));
}

/*
 * Expects the peer to close @fd. If only the peer's kernel had accepted the connection, this
 * would show when bytes are sent.
 */
static void expect_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	send_request(fd, HALF);
	CHECK(poll(&p, 1, pair_scaled(PAIR_LIMIT)) == 1,
	      "a connection without a listener stays open");
	CHECK(recv(fd, &byte, 1, 0) <= 0, "a connection without a listener got an answer");
}

static DAT_PSP_HANDLE listen_at(struct node *n, DAT_CONN_QUAL qual)
{
	DAT_PSP_HANDLE psp;

	OK(dat_psp_create(n->ia, qual, n->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

/* Connects after the fabric has accepted all foreign clients; returns the request. */
static DAT_CR_HANDLE request_after(struct node *n, DAT_EP_HANDLE ep,
				   const struct listener *listener)
{
	ep_connect(ep, listener);
	return node_request(n);
}

static void reject(struct node *n, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	OK(cr_reject(cr, 0, NULL));
	expect_conn(n->conn, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
	OK(dat_ep_reset(ep));
}

/* Lets the fabric run its deferred work. */
static void fabric_progress(struct node *n, DAT_EP_HANDLE ep)
{
	struct listener listener = { .address = n->address };
	DAT_PSP_HANDLE psp = node_listen(n, &listener.qual);

	reject(n, request_after(n, ep, &listener), ep);
	OK(dat_psp_free(psp));
}

/* Two EPs of one node, connected through @listener. */
struct couple {
	DAT_EP_HANDLE active, passive;
};

static void expect_both(struct node *n, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	expect_event(n->conn, number, &event);
	expect_event(n->conn, number, &event);
}

static void couple_connect(struct couple *c, struct node *n, const struct listener *listener)
{
	c->active = node_ep(n, NULL);
	c->passive = node_ep(n, NULL);
	OK(dat_cr_accept(request_after(n, c->active, listener), c->passive, 0, NULL));
	expect_both(n, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void couple_exchange(struct couple *c, struct node *n, struct mem *m)
{
	post_recv(c->passive, m, 0, MESSAGE, 1);
	post_send(c->active, m, MESSAGE, MESSAGE, 2);
	expect_dto(n->req, 2, DAT_DTO_SUCCESS, MESSAGE);
	expect_dto(n->recv, 1, DAT_DTO_SUCCESS, MESSAGE);
}

static void couple_disconnect(struct couple *c, struct node *n)
{
	OK(dat_ep_disconnect(c->active, DAT_CLOSE_ABRUPT_FLAG));
	expect_both(n, DAT_CONNECTION_EVENT_DISCONNECTED);
	OK(dat_ep_free(c->active));
	OK(dat_ep_free(c->passive));
}

#define SILENT 5
#define CLOSING 5

/* Foreign clients connect, and some close at once, half of these after a few bytes. */
static void foreign_clients_connect(int fds[SILENT], const struct listener *listener)
{
	int i, fd;

	for (i = 0; i < SILENT; i++)
		fds[i] = foreign_client(listener);
	for (i = 0; i < CLOSING; i++) {
		fd = foreign_client(listener);
		send_request(fd, i % 2 ? HALF : 0);
		close(fd);
	}
}

/* The remaining foreign clients are disconnected, and send a whole request too late. */
static void foreign_clients_expect_closed(int fds[SILENT])
{
	int i;

	for (i = 0; i < SILENT; i++) {
		expect_closed(fds[i]);
		send_request(fds[i], request_size);
		close(fds[i]);
	}
}

/* Opens a node and an EP, after a first connection request of the process. */
static DAT_EP_HANDLE begin(struct node *n, struct listener *listener)
{
	DAT_EP_HANDLE ep;

	node_open(n);
	node_needs_tcp(n);
	memset(listener, 0, sizeof(*listener));
	listener->address = n->address;
	ep = node_ep(n, NULL);
	request_record(n, ep);
	fabric_progress(n, ep);
	return ep;
}

static void end(struct node *n, DAT_EP_HANDLE ep)
{
	fabric_progress(n, ep);
	OK(dat_ep_free(ep));
	node_close(n);
}

/*
 * Freeing the PSP drops the foreign clients; a connection through its port stays, and the port is
 * free at once.
 */
static void psp_freed(struct pair *p)
{
	struct resources before;
	struct listener listener;
	struct couple c;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	struct node n;
	struct mem m;
	int fds[SILENT];

	ep = begin(&n, &listener);
	mem_get(&n, &m, 2 * MESSAGE);
	psp = node_listen(&n, &listener.qual);
	/* rxm keeps its resources for a peer, here this process, for the next connection */
	couple_connect(&c, &n, &listener);
	couple_disconnect(&c, &n);
	OK(dat_psp_free(psp));
	before = resources_settled();
	psp = node_listen(&n, &listener.qual);
	foreign_clients_connect(fds, &listener);
	couple_connect(&c, &n, &listener);
	OK(dat_psp_free(psp));
	psp = listen_at(&n, listener.qual);
	foreign_clients_expect_closed(fds);
	couple_exchange(&c, &n, &m);
	reject(&n, request_after(&n, ep, &listener), ep);
	OK(dat_psp_free(psp));
	connect_fails(&n, ep, &listener, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_ep_reset(ep));
	couple_exchange(&c, &n, &m);
	couple_disconnect(&c, &n);
	expect_resources(&before, 64 << 20, 64 << 20);
	mem_put(&m);
	end(&n, ep);
}

/* Foreign clients that close release their resources while the service point stays. */
static void foreign_clients_leave(struct pair *p)
{
	struct resources before;
	struct listener listener;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	struct node n;
	int fds[SILENT], i;

	ep = begin(&n, &listener);
	psp = node_listen(&n, &listener.qual);
	before = resources_settled();
	foreign_clients_connect(fds, &listener);
	for (i = 0; i < SILENT; i++)
		close(fds[i]);
	reject(&n, request_after(&n, ep, &listener), ep);
	expect_resources(&before, 64 << 20, 64 << 20);
	OK(dat_psp_free(psp));
	end(&n, ep);
}

/* A request that is answered only after its service point is freed holds the port until then. */
static void answered_late(struct pair *p)
{
	struct listener listener;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	struct node n;
	int fds[SILENT];

	ep = begin(&n, &listener);
	psp = node_listen(&n, &listener.qual);
	foreign_clients_connect(fds, &listener);
	cr = request_after(&n, ep, &listener);
	OK(dat_psp_free(psp));
	reject(&n, cr, ep);
	foreign_clients_expect_closed(fds);
	OK(dat_psp_free(listen_at(&n, listener.qual)));
	end(&n, ep);
}

/* Freeing an RSP drops the foreign clients, too. */
static void rsp_freed(struct pair *p)
{
	struct listener listener;
	DAT_EP_HANDLE ep, reserved;
	DAT_RSP_HANDLE rsp;
	struct node n;
	int fds[SILENT];

	ep = begin(&n, &listener);
	reserved = node_ep(&n, NULL);
	OK(dat_psp_free(node_listen(&n, &listener.qual)));
	OK(dat_rsp_create(n.ia, listener.qual, reserved, n.cr, &rsp));
	foreign_clients_connect(fds, &listener);
	reject(&n, request_after(&n, ep, &listener), ep);
	OK(dat_rsp_free(rsp));
	foreign_clients_expect_closed(fds);
	OK(dat_ep_free(reserved));
	end(&n, ep);
}

/*
 * Closing the IA drops the foreign clients at its ports. Unanswered requests and a second service
 * point with foreign clients of its own are present.
 */
static void ia_closed(struct pair *p)
{
	struct listener listener, other;
	DAT_EP_HANDLE ep;
	struct node n;
	int fds[SILENT], more[SILENT], requesting;

	ep = begin(&n, &listener);
	other = listener;
	node_listen(&n, &listener.qual);
	node_listen(&n, &other.qual);
	foreign_clients_connect(fds, &listener);
	foreign_clients_connect(more, &other);
	requesting = foreign_client(&other);
	send_request(requesting, request_size);
	request_after(&n, ep, &listener);
	OK(dat_ia_close(n.ia, DAT_CLOSE_ABRUPT_FLAG));
	foreign_clients_expect_closed(fds);
	foreign_clients_expect_closed(more);
	close(requesting);
}

/* A request that remains incomplete delays no other request. */
static void incomplete_requests(struct pair *p)
{
	struct listener listener;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	struct node n;
	int fds[SILENT], i;

	ep = begin(&n, &listener);
	psp = node_listen(&n, &listener.qual);
	for (i = 0; i < SILENT; i++) {
		fds[i] = foreign_client(&listener);
		send_request(fds[i], HEAD);
	}
	reject(&n, request_after(&n, ep, &listener), ep);
	for (i = 0; i < SILENT; i++)
		close(fds[i]);
	OK(dat_psp_free(psp));
	end(&n, ep);
}

#define NOT_SOCKETS .not_sockets = "it waits for foreign clients without limit"

static const struct pair_case cases[] = {
	PAIR_CASE("PSP freed with foreign clients connected", NULL, psp_freed, NOT_SOCKETS),
	PAIR_CASE("foreign clients disconnect", NULL, foreign_clients_leave, NOT_SOCKETS),
	PAIR_CASE("foreign clients send incomplete requests", NULL, incomplete_requests,
		  NOT_SOCKETS),
	PAIR_CASE("late answer with foreign clients connected", NULL, answered_late, NOT_SOCKETS),
	PAIR_CASE("RSP freed with foreign clients connected", NULL, rsp_freed, NOT_SOCKETS),
	PAIR_CASE("IA closed with foreign clients connected", NULL, ia_closed, NOT_SOCKETS),
};

PAIR_MAIN(cases)
