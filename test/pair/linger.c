/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection ends abruptly with more messages in flight than the fabric holds. The peer gets
 * every message that the sender completed, provided that it receives, and is notified of the end
 * if it does not.
 */

#include "pair.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Some fabrics accept a few large messages before receives are posted; others accept small ones,
 * but not all of these.
 */
#define N_SMALL 40
#define N_MESSAGES (N_SMALL + 24)
#define SMALL 2000
#define LARGE (256 << 10)
#define QUIET_ROUNDS 4		/* rounds between checks that no end was reported yet */

struct ending {
	void (*end)(struct link *l);	/* may close the IA */
	const char *patience_ms;
};

static size_t length_of(unsigned i)
{
	return i < N_SMALL ? SMALL : LARGE;
}

static void disconnect(struct link *l)
{
	OK(dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void disconnect_and_hear(struct link *l)
{
	OK(dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_conn(l->n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, l->ep);
}

static void disconnect_gracefully(struct link *l)
{
	OK(dat_ep_disconnect(l->ep, DAT_CLOSE_GRACEFUL_FLAG));
}

static void free_ep(struct link *l)
{
	OK(dat_ep_free(l->ep));
	l->ep = DAT_HANDLE_NULL;
}

static void close_ia(struct link *l)
{
	OK(dat_ia_close(l->n.ia, DAT_CLOSE_ABRUPT_FLAG));
	l->n.ia = DAT_HANDLE_NULL;
}

static void open_both(struct pair *p, struct link *l)
{
	const struct ending *ending = pair_arg();

	setenv("DAT_OFI_LINGER_MS", ending->patience_ms, 1);
	link_open_depth(p, l, (size_t)N_MESSAGES * LARGE, N_MESSAGES);
}

/* Returns the number of sends that complete without help of the peer. */
static unsigned count_done(struct link *l)
{
	DAT_EVENT event;
	DAT_COUNT more;
	/* the first send completes once the fabric processes it; on hardware none does */
	unsigned n = 0, ms = node_is_on_verbs(&l->n) ? PAIR_QUIET : pair_scaled(PAIR_LIMIT);

	while (dat_evd_wait(l->n.req, ms * 1000, 1, &event, &more) == DAT_SUCCESS) {
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		n++;
		ms = PAIR_QUIET;
	}
	return n;
}

static void client(struct pair *p)
{
	const struct ending *ending = pair_arg();
	unsigned i, done;
	struct link l;

	open_both(p, &l);
	for (i = 0; i < N_MESSAGES; i++) {
		fill(l.m.base + i * LARGE, length_of(i), i);
		post_send(l.ep, &l.m, i * LARGE, length_of(i), i);
	}
	done = count_done(&l);
	ending->end(&l);
	pair_send(p, &done, sizeof(done));
	pair_sync(p);
	if (l.n.ia)
		OK(dat_ia_close(l.n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void late_server(struct pair *p)
{
	unsigned i, done;
	struct link l;

	open_both(p, &l);
	pair_recv(p, &done, sizeof(done));
	if (!done && node_is_on_verbs(&l.n))
		pair_skip("hardware buffers no sends: a send completes when it is received");
	CHECK(done > 0 && done < N_MESSAGES, "%u", done);
	for (i = 0; i < done; i++) {
		if (i % QUIET_ROUNDS == 0)
			expect_quiet(l.n.conn);
		post_recv(l.ep, &l.m, i * LARGE, LARGE, i);
		expect_dto(l.n.recv, i, DAT_DTO_SUCCESS, length_of(i));
		verify(l.m.base + i * LARGE, length_of(i), i);
	}
	/* only a part of a message can be left, and the end */
	post_recv(l.ep, &l.m, 0, LARGE, i);
	expect_end(l.n.conn, l.ep);
	expect_dto(l.n.recv, i, DAT_DTO_ERR_FLUSHED, 0);
	pair_sync(p);
	link_free(&l);
}

static void idle_server(struct pair *p)
{
	unsigned done;
	struct link l;

	open_both(p, &l);
	pair_recv(p, &done, sizeof(done));
	expect_end(l.n.conn, l.ep);
	pair_sync(p);
	link_free(&l);
}

/* long enough to distinguish a peer that is late on a busy machine from one that has stopped */
static const struct ending disconnecting = { disconnect, "60000" };
static const struct ending closing = { close_ia, "60000" };
static const struct ending freeing = { free_ep, "300" };
static const struct ending abrupt = { disconnect_and_hear, "60000" };
static const struct ending graceful = { disconnect_gracefully, "60000" };

/*
 * The fabrics of TCP end a connection in two halves: a socket that is closed while its peer still
 * sends would be reset, and the reset overtakes data that the peer has not read.
 */

/* Returns how many sockets of this process have sent their end, and wait for the peer's. */
static unsigned count_half_closed(void)
{
	unsigned n = 0;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		struct tcp_info info = { .tcpi_state = TCP_CLOSE };
		socklen_t len = sizeof(info);

		if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
			n += info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_FIN_WAIT2;
	}
	return n;
}

static bool task_is_stopped(pid_t pid, const char *task)
{
	char path[300], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task);
	f = fopen(path, "r");
	CHECK(f, "%s", path);
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'T';
}

static bool is_stopped(pid_t pid)
{
	char path[64];
	const struct dirent *e;
	bool all = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	CHECK(dir, "%s", path);
	while (all && (e = readdir(dir)))
		all = e->d_name[0] == '.' || task_is_stopped(pid, e->d_name);
	closedir(dir);
	return all;
}

/* Returns when all threads of the peer have stopped. */
static void stop_peer(const struct pair *p)
{
	const int64_t deadline = pair_deadline(PAIR_LIMIT);

	kill(p->peer, SIGSTOP);
	while (!is_stopped(p->peer))
		CHECK(pair_now() < deadline, "the peer does not stop");
}

static void half_server(struct pair *p)
{
	struct link l;

	if (!pair_fabric_is("tcp"))
		pair_skip("the fabric has no sockets, or keeps them");
	open_both(p, &l);
	pair_sync(p);
	expect_end(l.n.conn, l.ep);
	pair_sync(p);
	link_free(&l);
}

static void half_client(struct pair *p)
{
	const struct ending *ending = pair_arg();
	const int64_t deadline = pair_deadline(PAIR_LIMIT);
	struct link l;

	if (!pair_fabric_is("tcp"))
		pair_skip("the fabric has no sockets, or keeps them");
	open_both(p, &l);
	pair_sync(p);
	stop_peer(p);
	ending->end(&l);
	while (!count_half_closed())
		CHECK(pair_now() < deadline, "no socket is half closed");
	expect_quiet(l.n.conn);
	SAME(count_half_closed(), 1);
	kill(p->peer, SIGCONT);
	while (count_half_closed())
		CHECK(pair_now() < deadline, "a socket stays half closed");
	if (ending == &graceful)
		expect_conn(l.n.conn, DAT_CONNECTION_EVENT_DISCONNECTED, l.ep);
	pair_sync(p);
	link_free(&l);
}

#define NOT_SOCKETS .not_sockets = "it occasionally loses one of many messages in flight"

static const struct pair_case cases[] = {
	PAIR_CASE("disconnected, and received late", late_server, client, .arg = &disconnecting,
		  NOT_SOCKETS),
	PAIR_CASE("IA closed, and received late", late_server, client, .arg = &closing,
		  NOT_SOCKETS),
	PAIR_CASE("an abrupt end leaves the socket half closed until the peer ends it too",
		  half_server, half_client, .arg = &abrupt),
	PAIR_CASE("a graceful end waits for the end of the peer", half_server, half_client,
		  .arg = &graceful),
	PAIR_CASE("freed, and not received", idle_server, client, .arg = &freeing, NOT_SOCKETS),
};

PAIR_MAIN(cases)
