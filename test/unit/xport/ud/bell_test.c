/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The doorbell of an IA. */

#include "xport/ud/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A doorbell on the IA's thread, and one that only rings. */
static struct ud_bell bell, other;
static char name[64], other_name[64];
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
	struct ud_bell *b = arg;

	ret = ud_bell_open(b, &ia->progress, b == &bell ? name : other_name);
	if (ret || b != &bell)
		return;
	real_ready = b->source.ready;
	b->source.ready = counted;
}

static int bell_open(struct ud_bell *b)
{
	dofi_progress_call(&ia->progress, open_on_thread, b);
	return ret;
}

static void close_on_thread(void *arg)
{
	ud_bell_close(arg);
}

static void bell_close(struct ud_bell *b)
{
	dofi_progress_call(&ia->progress, close_on_thread, b);
}

static void init(void)
{
	ud_init_alone();
	snprintf(name, sizeof(name), "test-%d", (int)getpid());
	snprintf(other_name, sizeof(other_name), "test-%d-other", (int)getpid());
	sem_init(&woken, 0, 0);
	cr_assert_eq(bell_open(&bell), 0);
	cr_assert_eq(bell_open(&other), 0);
}

static void fini(void)
{
	bell_close(&bell);
	bell_close(&other);
	ud_fini();
}

TestSuite(xport_ud_bell, .init = init, .fini = fini, .timeout = 60);

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

Test(xport_ud_bell, wakes_the_thread_of_its_owner)
{
	ud_bell_ring(&other, name);
	cr_assert(wakes());
	cr_expect(is_drained());
	ud_bell_ring(&other, name);
	cr_expect(wakes());
}

Test(xport_ud_bell, of_nobody_is_rung_without_harm)
{
	cr_expect(!ud_bell_ring(&other, "no such name"));
	cr_expect(ud_bell_ring(&other, name));
	cr_expect(wakes());
}

Test(xport_ud_bell, is_found_without_ringing_it)
{
	cr_expect(ud_bell_exists(name));
	cr_expect(!ud_bell_exists("no such name"));
	settle();
	cr_expect(sem_trywait(&woken));
	bell_close(&bell);
	cr_expect(!ud_bell_exists(name));
}

static struct ud_bell *rung_bell;

static void rung(struct ud_bell *b)
{
	rung_bell = b;
}

Test(xport_ud_bell, calls_its_owner)
{
	bell.rung = rung;
	ud_bell_ring(&other, name);
	cr_assert(wakes());
	cr_expect_eq(rung_bell, &bell);
}

static sem_t held, release;

static void hold(struct dofi_work *work)
{
	(void)work;
	sem_post(&held);
	sem_wait(&release);
}

/* The owner is woken already, so further bytes may be lost. */
Test(xport_ud_bell, a_full_bell_does_not_block)
{
	static struct dofi_work work = { .run = hold };
	int i;

	sem_init(&held, 0, 0);
	sem_init(&release, 0, 0);
	dofi_progress_post(&ia->progress, &work);
	sem_wait(&held);
	for (i = 0; i < 100000; i++)
		cr_assert(ud_bell_ring(&other, name), "it exists");
	sem_post(&release);
	cr_expect(wakes());
	cr_expect(is_drained());
}

Test(xport_ud_bell, has_a_name_of_its_own)
{
	static struct ud_bell same;

	snprintf(other_name, sizeof(other_name), "%s", name);
	cr_expect_eq(bell_open(&same), -EADDRINUSE);
	cr_expect_eq(same.fd, -1);
	bell_close(&same);
}

Test(xport_ud_bell, is_closed_once)
{
	const int fd = bell.fd;

	bell_close(&bell);
	cr_expect_eq(bell.fd, -1);
	cr_expect(fcntl(fd, F_GETFD) < 0);
	bell_close(&bell);
	ud_bell_ring(&other, name);
	cr_assert_eq(bell_open(&bell), 0);
	ud_bell_ring(&other, name);
	cr_expect(wakes());
}

/* The longest name fits an address. */
Test(xport_ud_bell, has_any_name)
{
	bell_close(&bell);
	memset(name, 'n', DOFI_CM_NAME - 1);
	name[DOFI_CM_NAME - 1] = 0;
	cr_assert_eq(bell_open(&bell), 0);
	ud_bell_ring(&other, name);
	cr_expect(wakes());
}

Test(xport_ud_bell, of_an_ia_without_rings_stays_closed)
{
	struct ud_ia *uia = ud_ia_of(ia);

	cr_expect_eq(uia->bell.fd, -1);
	ud_side_open(&ud_near);
	cr_expect_eq(uia->bell.fd, -1);
}
