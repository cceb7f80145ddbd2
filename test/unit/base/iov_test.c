/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copying bytes into and out of segments, for each offset and length, with no byte touched outside
 * them.
 */

#include "base/iov.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOTAL 8
#define MOST 12				/* more than TOTAL */

/* Segments of 0, 3, 0, 1 and 4 bytes, with an unused byte between neighbours. */
static char memory[TOTAL + 6];
static struct iovec pieces[5];
static const size_t lengths[5] = { 0, 3, 0, 1, 4 };

static void init(void)
{
	char *at = memory + 1;
	int i;

	memset(memory, '-', sizeof(memory));
	for (i = 0; i < 5; i++) {
		pieces[i] = (struct iovec){ at, lengths[i] };
		at += lengths[i] + 1;
	}
}

TestSuite(iov, .init = init);

static size_t fitting(size_t offset, size_t len)
{
	const size_t room = offset < TOTAL ? TOTAL - offset : 0;

	return len < room ? len : room;
}

/* Byte @i of the segments' bytes, as a pointer into memory[]. */
static char *byte(size_t i)
{
	return memory + (i < 3 ? 2 + i : i < 4 ? 7 : 5 + i);
}

Test(iov, the_pieces_are_where_the_test_believes)
{
	size_t i;

	cr_expect_eq(byte(0), pieces[1].iov_base);
	cr_expect_eq(byte(3), pieces[3].iov_base);
	for (i = 4; i < TOTAL; i++)
		cr_expect_eq(byte(i), (char *)pieces[4].iov_base + i - 4);
}

Test(iov, scatter_writes_what_it_is_given_and_no_more)
{
	size_t offset, len, i;

	for (offset = 0; offset < MOST; offset++)
		for (len = 0; len < MOST; len++) {
			char want[sizeof(memory)];

			init();
			memcpy(want, memory, sizeof(want));
			for (i = 0; i < fitting(offset, len); i++)
				want[byte(offset + i) - memory] = "abcdefghijkl"[i];
			cr_assert_eq(dofi_iov_scatter(pieces, 5, offset, "abcdefghijkl", len),
				     fitting(offset, len));
			cr_assert(!memcmp(memory, want, sizeof(want)), "%zu bytes at %zu", len,
				  offset);
		}
}

Test(iov, gather_reads_them_back)
{
	char got[MOST], want[MOST];
	size_t offset, len, i;

	for (i = 0; i < TOTAL; i++)
		*byte(i) = "ABCDEFGH"[i];
	for (offset = 0; offset < MOST; offset++)
		for (len = 0; len < MOST; len++) {
			memset(got, '.', sizeof(got));
			memset(want, '.', sizeof(want));
			for (i = 0; i < fitting(offset, len); i++)
				want[i] = "ABCDEFGH"[offset + i];
			cr_assert_eq(dofi_iov_gather(got, pieces, 5, offset, len),
				     fitting(offset, len));
			cr_assert(!memcmp(got, want, sizeof(want)), "%zu bytes at %zu", len,
				  offset);
		}
}

Test(iov, no_pieces_hold_nothing)
{
	char c = 'x';

	cr_expect_eq(dofi_iov_scatter(NULL, 0, 0, "y", 1), 0);
	cr_expect_eq(dofi_iov_gather(&c, NULL, 0, 0, 1), 0);
	cr_expect_eq(c, 'x');
}

/* Landing: the last word of the destination is written last */

#define AREA 16384
#define LANDINGS 20000

/* At these alignments glibc's memcpy() fails the test. */
_Alignas(4096) static unsigned char from[AREA], memory_to[AREA + 16];
static unsigned char *const to = memory_to + 8;

Test(iov, the_tail_is_in_one_aligned_word)
{
	size_t begin, len, tail, end;

	for (begin = 0; begin < 8; begin++)
		for (len = 0; len < 40; len++) {
			tail = dofi_iov_tail(to + begin, len);
			end = begin + len;
			cr_expect(tail <= len);
			cr_expect_eq(tail > 0, len > 0);
			if (tail)
				cr_expect_eq((end - tail) / 8, (end - 1) / 8);
			if (tail < len)
				cr_expect_eq((end - tail) % 8, 0);
		}
}

Test(iov, what_lands_is_what_was_sent_and_no_more)
{
	size_t begin, len, i;

	for (i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (begin = 0; begin < 8; begin++)
		for (len = 0; begin + len <= 100; len++) {
			memset(to, 0, AREA);
			dofi_iov_land(to + begin, from, len);
			cr_expect(!memcmp(to + begin, from, len));
			for (i = 0; i < begin; i++)
				cr_expect_eq(to[i], 0);
			cr_expect_eq(to[begin + len], 0);
		}
}

/* Lands one round after the other, each after the test thread has seen the round before it. */
static _Atomic unsigned seen;
static size_t area;

static void *land_all(void *arg)
{
	unsigned round;

	for (round = 1; round <= LANDINGS; round++) {
		memset(from, (unsigned char)round, sizeof(from));
		dofi_iov_land(to, from, area);
		while (atomic_load(&seen) != round)
			sched_yield();
	}
	return NULL;
}

/*
 * Spins on the last byte, but yields now and then so that the writer can run on a single processor.
 */
static void await_landing(const unsigned char *last, unsigned round)
{
	unsigned looks = 0;

	while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != (unsigned char)round)
		if (!(++looks % 1000))
			sched_yield();
}

static void watch_landings(size_t size)
{
	pthread_t thread;
	unsigned round;

	area = size;
	cr_assert_eq(pthread_create(&thread, NULL, land_all, NULL), 0);
	for (round = 1; round <= LANDINGS; round++) {
		await_landing(&to[size - 1], round);
		cr_assert_eq(__atomic_load_n(&to[0], __ATOMIC_RELAXED), (unsigned char)round);
		cr_assert_eq(__atomic_load_n(&to[size / 2], __ATOMIC_RELAXED),
			     (unsigned char)round);
		atomic_store(&seen, round);
	}
	pthread_join(thread, NULL);
}

Test(iov, the_last_byte_is_stored_last, .timeout = 60)
{
	watch_landings(AREA);
}

Test(iov, the_last_byte_of_an_odd_number_is_stored_last, .timeout = 60)
{
	watch_landings(AREA - 3);
}

/*
 * A child process lands the bytes, one instruction at a time. After each, this process clears the
 * bytes that have changed, as a program does that polls a flag: a second store would set them
 * again.
 */

#define STORED 88		/* longest copy that is watched */
#define STEPS 100000		/* more than the child needs */

static pid_t lander_start(size_t begin, size_t len)
{
	int status;
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		dofi_iov_land(to + begin, from, len);
		_exit(0);
	}
	/* also if it is not traced: an emulator has no ptrace() */
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

/* Returns whether @pid stopped again after one instruction. */
static bool lander_step(pid_t pid)
{
	int status;

	cr_assert(!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), "%s", strerror(errno));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFSTOPPED(status);
}

/* Valgrind and emulators of a processor support no steps. */
static bool can_step(void)
{
	const pid_t pid = lander_start(0, 0);
	const bool can = !ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return can;
}

static void watch_stores(size_t begin, size_t len)
{
	unsigned char now[STORED];
	const pid_t pid = lander_start(begin, len);
	struct iovec here = { now, len }, there = { to + begin, len };
	size_t stored = 0, steps, i;

	for (steps = 0; lander_step(pid); steps++) {
		cr_assert(steps < STEPS);
		cr_assert_eq(process_vm_readv(pid, &here, 1, &there, 1, 0), (ssize_t)len);
		for (i = 0; i < len; i++) {
			if (!now[i])
				continue;
			cr_assert_eq(i, stored++, "byte %zu of %zu at %zu", i, len, begin);
			now[i] = 0;
		}
		cr_assert_eq(process_vm_writev(pid, &here, 1, &there, 1, 0), (ssize_t)len);
	}
	cr_expect_eq(stored, len);
}

Test(iov, each_byte_is_stored_once_in_ascending_order, .timeout = 60)
{
	static const size_t begins[] = { 0, 1, 2, 4, 7 };
	size_t i, len;

	if (!can_step()) {
		fprintf(stderr, "skipped: stores of a copy: single steps do not work here\n");
		return;
	}
	memset(to, 0, AREA);
	memset(from, 'x', sizeof(from));
	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		for (len = 1; len <= STORED; len += len < 18 ? 1 : 7)
			watch_stores(begins[i], len);
}
