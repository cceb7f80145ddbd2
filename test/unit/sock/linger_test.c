/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets of ended connections: their lifetime, and the data that their peers receive. */

#include "sock/linger.h"

#include "base/clock.h"
#include "base/env.h"
#include "fab/fake.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE 60			/* ms */

static struct dofi_progress progress;
static int mine, its;			/* the two ends of a connection */
static size_t sent;			/* bytes that the peer has not read */

static void init(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	progress.epfd = epoll_create1(0);
	TAILQ_INIT(&progress.lingering);
	dofi_settings.linger_ms = PATIENCE;
	cr_assert_eq(bind(l, (struct sockaddr *)&a, len), 0);
	cr_assert_eq(listen(l, 1), 0);
	cr_assert_eq(getsockname(l, (struct sockaddr *)&a, &len), 0);
	mine = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(mine, (struct sockaddr *)&a, len), 0);
	its = accept(l, NULL, NULL);
	close(l);
}

TestSuite(linger, .init = init, .timeout = 20);

/* Patience beyond the limit of a test. */
#define HOUR 3600000

/* Sends until neither the peer's kernel nor ours takes more. */
static void fill_up(void)
{
	static char data[10000];
	ssize_t n;

	while ((n = send(mine, data, sizeof(data), MSG_DONTWAIT)) > 0)
		sent += n;
	cr_assert(sent > 0);
}

static int ends;			/* calls of ended() */
static bool all_acked;
static bool whole;

static void ended(void *arg, bool is_whole)
{
	cr_expect_eq(arg, &ends);
	ends++;
	whole = is_whole;
}

/* Ends the connection as the fabric does. */
static struct dofi_linger *end_for(dofi_linger_ended *callback)
{
	struct dofi_linger *linger = dofi_linger_begin(&progress, mine, callback, &ends, all_acked);

	close(mine);
	return linger;
}

static void end(void)
{
	end_for(NULL);
}

/*
 * Fires the progress thread's next timer when it is due, or when epoll reports the socket. Returns
 * false if there is none.
 */
static bool turn(void)
{
	struct dofi_timer *t = dofi_timer_next(&progress);
	struct dofi_source *source;
	struct epoll_event ev;
	int64_t left;

	if (!t)
		return false;
	left = t->at - dofi_now();
	if (left > 0 && epoll_wait(progress.epfd, &ev, 1, left / 1000000 + 1) == 1) {
		source = ev.data.ptr;
		source->ready(source);
		t = dofi_timer_next(&progress);
	}
	dofi_timer_stop(&progress, t);
	t->fire(t);
	return true;
}

static void all_turns(void)
{
	while (turn())
		;
	cr_expect(TAILQ_EMPTY(&progress.lingering));
}

#define REST 3000
static char rest[REST];			/* handed over: ones, after fill_up()'s zeros */
static size_t ones;

/* Reads at most @most bytes. Returns 0 at the end, or a negative errno. */
static ssize_t take(size_t most)
{
	static char data[1 << 20];
	ssize_t n = recv(its, data, most < sizeof(data) ? most : sizeof(data), 0), i;

	for (i = 0; i < n; i++)
		ones += data[i];
	return n < 0 ? -errno : n;
}

static ssize_t take_all(size_t *got)
{
	ssize_t n;

	for (*got = 0; (n = take(SIZE_MAX)) > 0; *got += n)
		;
	return n;
}

Test(linger, a_peer_that_takes_nothing_is_reset)
{
	struct pollfd p = { .fd = its, .events = POLLRDHUP };
	int64_t begun = dofi_now();
	size_t got;

	fill_up();
	end();
	cr_expect_eq(poll(&p, 1, 0), 0, "its kernel has no room for the end");
	all_turns();
	cr_expect_eq(poll(&p, 1, 5000), 1);
	cr_expect_eq(take_all(&got), -ECONNRESET);
	cr_expect(got && got < sent);
	cr_expect(dofi_now() - begun >= PATIENCE * 1000000LL);
}

struct taken {
	_Atomic size_t bytes;
	ssize_t end;
};

/* Reads a little every 10 ms. */
static void *take_slowly(void *arg)
{
	struct taken *t = arg;

	while ((t->end = take(1 << 16)) > 0) {
		t->bytes += t->end;
		poll(NULL, 0, 10);
	}
	return NULL;
}

Test(linger, a_peer_that_takes_its_time_gets_all)
{
	int64_t begun = dofi_now();
	struct taken taken = { 0 };
	pthread_t peer;

	dofi_settings.linger_ms = 5 * PATIENCE;
	fill_up();
	pthread_create(&peer, NULL, take_slowly, &taken);
	end();
	all_turns();
	cr_expect(dofi_now() - begun > 5 * PATIENCE * 1000000LL);
	pthread_join(peer, NULL);
	close(its);
	cr_expect_eq(taken.end, 0);
	cr_expect_eq(taken.bytes, sent, "%zu of %zu", taken.bytes, sent);
}

/* The first turn sends the end; the peer has not ended the connection yet. */
static void end_half(dofi_linger_ended *callback)
{
	end_for(callback);
	cr_assert(turn());
	cr_assert(!TAILQ_EMPTY(&progress.lingering));
}

static int error_of(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	return err;
}

/* A reset would discard data that the peer has not read. */
Test(linger, a_peer_that_still_sends_is_not_reset)
{
	static char data[1000];
	char got[5];
	int i;

	dofi_settings.linger_ms = HOUR;
	cr_assert_eq(send(mine, "last", 5, 0), 5);
	end_half(NULL);
	for (i = 0; i < 1000; i++) {
		cr_assert_eq(send(its, data, sizeof(data), MSG_NOSIGNAL), (ssize_t)sizeof(data));
		turn();
	}
	cr_expect_eq(error_of(its), 0);
	cr_expect_eq(recv(its, got, sizeof(got), 0), 5);
	cr_expect_str_eq(got, "last");
	cr_expect_eq(take(1), 0);
	close(its);
	all_turns();
}

Test(linger, a_socket_is_half_open_until_the_peer_ends_the_connection)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int copy = dup(mine);
	int64_t begun;

	dofi_settings.linger_ms = HOUR;
	end_half(NULL);
	cr_expect_eq(getsockopt(copy, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	cr_expect(info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_FIN_WAIT2, "%d",
		  info.tcpi_state);
	close(copy);
	cr_expect_eq(take(1), 0);
	begun = dofi_now();
	close(its);
	all_turns();
	cr_expect(dofi_now() - begun < 10000000000LL, "epoll reports the peer's end");
}

static _Atomic bool stop_sending;

static void *send_endlessly(void *arg)
{
	static char data[10000];

	while (!stop_sending && send(its, data, sizeof(data), MSG_NOSIGNAL) > 0)
		;
	return arg;
}

Test(linger, a_peer_that_sends_endlessly_is_not_kept)
{
	pthread_t peer;

	end();
	pthread_create(&peer, NULL, send_endlessly, NULL);
	all_turns();
	stop_sending = true;
	pthread_join(peer, NULL);
}

Test(linger, a_peer_that_does_not_end_the_connection_is_given_up)
{
	int64_t begun = dofi_now();

	dofi_settings.keepalive_s = 1;
	end();
	all_turns();
	cr_expect(dofi_now() - begun >= 1000000000LL);
	cr_expect_eq(take(1), 0);
}

/* Waiting for the peer */

Test(linger, a_peer_that_is_waited_for_may_take_its_time)
{
	struct taken taken = { 0 };
	pthread_t peer;

	dofi_settings.linger_ms = 1;
	dofi_settings.keepalive_s = 60;
	fill_up();
	end_half(ended);
	while (dofi_timer_next(&progress)->at - dofi_now() < PATIENCE * 1000000LL)
		turn();
	cr_expect_eq(ends, 0);
	pthread_create(&peer, NULL, take_slowly, &taken);
	/* its host may acknowledge all before the peer has read the last of it */
	while (taken.bytes < sent)
		turn();
	pthread_join(peer, NULL);
	close(its);
	all_turns();
	cr_expect_eq(taken.bytes, sent);
	cr_expect_eq(ends, 1);
	cr_expect(whole);
}

Test(linger, a_peer_that_is_waited_for_and_dies_has_not_taken_all)
{
	dofi_settings.keepalive_s = 60;
	fill_up();
	end_half(ended);
	close(its);	/* with unread data */
	all_turns();
	cr_expect_eq(ends, 1);
	cr_expect(!whole);
}

Test(linger, a_peer_that_has_all_data_is_waited_for_as_long_as_data_would_be_kept)
{
	int64_t begun = dofi_now();

	dofi_settings.keepalive_s = 60;
	end_for(ended);
	while (!ends)
		turn();
	cr_expect(dofi_now() - begun >= PATIENCE * 1000000LL);
	cr_expect(whole);
	cr_expect(!TAILQ_EMPTY(&progress.lingering), "no reset, should the peer still send");
	close(its);
	all_turns();
	cr_expect_eq(ends, 1);
}

Test(linger, a_host_that_had_all_data_need_not_acknowledge_the_end)
{
	dofi_settings.keepalive_s = 60;
	fill_up();	/* stands for a goodbye that no host acknowledges */
	all_acked = true;
	end_for(ended);
	while (!ends)
		turn();
	cr_expect(whole);
	all_turns();
	cr_expect_eq(ends, 1);
}

Test(linger, a_live_host_whose_program_reads_nothing_is_waited_for)
{
	int64_t begun = dofi_now();

	dofi_settings.keepalive_s = 1;
	fill_up();
	end_for(ended);
	while (dofi_now() - begun < 2500000000LL)
		turn();
	cr_expect_eq(ends, 0);
	close(its);
	all_turns();
	cr_expect_eq(ends, 1);
}

Test(linger, a_connection_that_is_left_ends_without_a_callback)
{
	struct dofi_linger *linger;

	dofi_settings.keepalive_s = 60;
	fill_up();
	linger = end_for(ended);
	turn();
	dofi_linger_leave(linger);
	all_turns();
	cr_expect_eq(ends, 0);
}

Test(linger, a_peer_that_is_gone_is_not_waited_for)
{
	dofi_settings.linger_ms = HOUR;
	fill_up();
	close(its);
	end();
	all_turns();
}

static void is_reported_soon(void)
{
	size_t got;

	dofi_settings.linger_ms = 0;
	fill_up();
	end();
	all_turns();
	cr_expect_eq(take_all(&got), -ECONNRESET);
}

Test(linger, without_patience_it_is_reset_soon)
{
	is_reported_soon();
}

Test(linger, a_socket_that_another_process_has_too_is_ended)
{
	int copy = dup(mine);

	is_reported_soon();
	close(copy);
}

Test(linger, at_the_end_the_kernel_goes_on)
{
	size_t got;

	fill_up();
	end();
	turn();
	progress.lingering_end(&progress);
	cr_expect(!dofi_timer_next(&progress));
	cr_expect_eq(take_all(&got), 0);
	cr_expect_eq(got, sent);
}

Test(linger, at_the_end_the_kernel_gets_the_time_out)
{
	int copy = dup(mine), timeout = 0;
	socklen_t len = sizeof(timeout);

	fill_up();
	end();
	progress.lingering_end(&progress);
	cr_expect_eq(getsockopt(copy, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &len), 0);
	cr_expect_eq(timeout, PATIENCE);
	close(copy);
}

static void hand_over(void)
{
	memset(rest, 1, REST);
	dofi_linger_adopt(&progress, mine, rest, REST);
	memset(rest, 0, REST);
}

Test(linger, what_is_handed_over_is_sent_before_the_end)
{
	size_t got;

	hand_over();
	turn();
	shutdown(its, SHUT_WR);
	all_turns();
	cr_expect_eq(take_all(&got), 0);
	cr_expect_eq(got, REST);
	cr_expect_eq(ones, REST);
	cr_expect(fcntl(mine, F_GETFD) < 0);
}

Test(linger, what_is_handed_over_waits_for_a_slow_peer)
{
	struct taken taken = { 0 };
	pthread_t peer;

	dofi_settings.linger_ms = HOUR;
	fill_up();
	hand_over();
	cr_assert(turn());
	cr_assert(turn());
	cr_assert(!TAILQ_EMPTY(&progress.lingering));
	pthread_create(&peer, NULL, take_slowly, &taken);
	while (taken.bytes < sent + REST)
		turn();
	pthread_join(peer, NULL);
	close(its);
	all_turns();
	cr_expect_eq(taken.end, 0);
	cr_expect_eq(taken.bytes, sent + REST);
	cr_expect_eq(ones, REST);
}

Test(linger, adopted_data_that_is_not_taken_is_given_up)
{
	size_t got;

	fill_up();
	hand_over();
	all_turns();
	cr_expect_eq(take_all(&got), -ECONNRESET);
	cr_expect(!ones);
}

Test(linger, adopted_data_for_a_dead_peer_is_dropped)
{
	dofi_settings.linger_ms = HOUR;
	fill_up();
	close(its);
	hand_over();
	all_turns();
}

Test(linger, at_the_end_what_is_handed_over_is_sent)
{
	int copy = dup(mine);
	size_t got;

	hand_over();
	progress.lingering_end(&progress);
	cr_expect_eq(take_all(&got), 0);
	cr_expect_eq(ones, REST);
	close(copy);
}

Test(linger, no_socket_is_nothing)
{
	cr_expect(!dofi_linger_begin(&progress, -1, NULL, NULL, false));
	cr_expect(!turn());
	cr_expect(!progress.lingering_end);
}

Test(linger, without_descriptors_the_connection_just_ends)
{
	struct rlimit limit, none;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	end();
	setrlimit(RLIMIT_NOFILE, &limit);
	cr_expect(!turn());
	cr_expect_eq(take(1), 0);
}
