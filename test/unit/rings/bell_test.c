/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bells. */

#include "rings/bell.h"

#include "loop/one.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

/* A bell on the progress thread, and one that only rings. */
static struct dofi_bell bell, other;
static sem_t woken;
static void (*real_ready)(struct dofi_source *source);
static int ret;

static void counted(struct dofi_source *source)
{
	real_ready(source);
	sem_post(&woken);
}

static void open_on_thread(void *arg)
{
	struct dofi_bell *b = arg;

	ret = dofi_bell_open(b, &progress);
	if (ret || b != &bell)
		return;
	real_ready = b->source.ready;
	b->source.ready = counted;
}

static void bell_open(struct dofi_bell *b)
{
	dofi_progress_call(&progress, open_on_thread, b);
	cr_assert_eq(ret, 0);
}

static void close_on_thread(void *arg)
{
	dofi_bell_close(arg);
}

static void bell_close(struct dofi_bell *b)
{
	dofi_progress_call(&progress, close_on_thread, b);
}

static void bells_init(void)
{
	init();
	sem_init(&woken, 0, 0);
	bell_open(&bell);
	bell_open(&other);
}

static void bells_fini(void)
{
	bell_close(&bell);
	bell_close(&other);
	dofi_progress_stop(&progress);
}

TestSuite(bell, .init = bells_init, .fini = bells_fini, .timeout = 60);

static bool wakes(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30;
	return !sem_timedwait(&woken, &until);
}

static bool is_drained(void)
{
	char byte;

	settle();
	return recv(bell.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

Test(bell, wakes_the_thread_of_its_owner)
{
	dofi_bell_ring(&other, bell.name);
	cr_assert(wakes());
	cr_expect(is_drained());
	dofi_bell_ring(&other, bell.name);
	cr_expect(wakes());
}

Test(bell, of_nobody_is_rung_without_harm)
{
	errno = EDOM;
	cr_expect(!dofi_bell_ring(&other, "no such name"));
	cr_expect_eq(errno, EDOM, "a post may ring");
	cr_expect(dofi_bell_ring(&other, bell.name));
	cr_expect(wakes());
}

Test(bell, is_found_without_ringing_it)
{
	cr_expect(dofi_bell_exists(bell.name));
	cr_expect(!dofi_bell_exists("no such name"));
	settle();
	cr_expect(sem_trywait(&woken));
	bell_close(&bell);
	cr_expect(!dofi_bell_exists(bell.name));
}

static struct dofi_bell *rung_bell;

static void remember(struct dofi_bell *b)
{
	rung_bell = b;
}

Test(bell, calls_its_owner)
{
	bell.rung = remember;
	dofi_bell_ring(&other, bell.name);
	cr_assert(wakes());
	cr_expect_eq(rung_bell, &bell);
}

static sem_t held, release;

static void hold(struct dofi_work *work)
{
	sem_post(&held);
	sem_wait(&release);
}

/* The owner is woken already, so further bytes may be lost. */
Test(bell, a_full_bell_does_not_block)
{
	static struct dofi_work work = { .run = hold };
	int i;

	sem_init(&held, 0, 0);
	sem_init(&release, 0, 0);
	dofi_progress_post(&progress, &work);
	sem_wait(&held);
	for (i = 0; i < 100000; i++)
		cr_assert(dofi_bell_ring(&other, bell.name), "it exists");
	sem_post(&release);
	cr_expect(wakes());
	cr_expect(is_drained());
}

Test(bell, has_a_name_of_its_own)
{
	cr_expect_eq(strlen(bell.name), DOFI_BELL_NAME - 1);
	cr_expect(strcmp(bell.name, other.name));
}

Test(bell, is_closed_once)
{
	const int fd = bell.fd;

	bell_close(&bell);
	cr_expect_eq(bell.fd, -1);
	cr_expect(fcntl(fd, F_GETFD) < 0);
	bell_close(&bell);
	dofi_bell_ring(&other, bell.name);
	bell_open(&bell);
	dofi_bell_ring(&other, bell.name);
	cr_expect(wakes());
}
