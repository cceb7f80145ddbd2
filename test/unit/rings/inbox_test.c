/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The receiver's end of a link: offers, and the ends of inboxes. With frames: xport/ud/. */

#include "rings/inbox.h"

#include "nomem.h"
#include "rings/set.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

static struct set here, there;		/* the receiver, and the sender */
static struct dofi_inbox *inbox;
static struct dofi_outbox *outbox;

static void init(void)
{
	set_open(&here, 0, NULL);
	set_open(&there, 1, NULL);
	cr_assert_eq(dofi_inbox_open(here.rings, &inbox), 0);
}

static void fini(void)
{
	dofi_outbox_put(outbox, &there.bell);
	set_close(&there);
	set_close(&here);
}

TestSuite(inbox, .init = init, .fini = fini, .timeout = 30);

static void claim(void)
{
	struct dofi_outbox *offer = set_offer(inbox);

	cr_assert_eq(dofi_outbox_get(there.rings, &offer, NULL, &outbox), 0);
}

static unsigned inboxes(void)
{
	const struct dofi_inbox *i;
	unsigned n = 0;

	TAILQ_FOREACH(i, &here.rings->inboxes, all)
		n++;
	return n;
}

Test(inbox, that_nobody_claimed_ends_with_its_exchange)
{
	const int fd = inbox->fd;

	cr_expect_eq(inboxes(), 1);
	dofi_inbox_offer_end(inbox);
	cr_expect_eq(inboxes(), 0);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	dofi_inbox_offer_end(NULL);
}

Test(inbox, that_was_claimed_stays_without_its_descriptor)
{
	const int fd = inbox->fd;

	claim();
	dofi_inbox_offer_end(inbox);
	cr_expect_eq(inboxes(), 1);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	set_send(outbox, 7);
	cr_expect_eq(set_take(inbox), 7);
	dofi_inboxes_reap(here.rings);
	cr_expect_eq(inboxes(), 1);
}

static void release(void)
{
	dofi_outbox_put(outbox, &there.bell);
	outbox = NULL;
}

Test(inbox, that_the_sender_has_ended_is_reaped)
{
	claim();
	dofi_inbox_offer_end(inbox);
	release();
	dofi_inboxes_reap(here.rings);
	cr_expect_eq(inboxes(), 0);
}

Test(inbox, is_not_reaped_during_its_exchange)
{
	claim();
	release();
	dofi_inboxes_reap(here.rings);
	cr_expect_eq(inboxes(), 1);
	dofi_inbox_offer_end(inbox);
	cr_expect_eq(inboxes(), 0);
}

Test(inbox, of_a_dead_process_ends_with_a_later_exchange)
{
	struct dofi_inbox *next;

	claim();
	dofi_inbox_offer_end(inbox);
	cr_assert_eq(dofi_inbox_open(here.rings, &next), 0);
	cr_expect_eq(inboxes(), 2, "the process lives");
	dofi_inbox_offer_end(next);
	strcpy(inbox->link->bell, "nobody");
	cr_assert_eq(dofi_inbox_open(here.rings, &next), 0);
	cr_expect_eq(inboxes(), 1);
}

Test(inbox, that_is_shut_is_not_read)
{
	claim();
	set_send(outbox, 1);
	dofi_inbox_shut(inbox);
	cr_expect(!dofi_ring_has(&inbox->in));
	cr_expect(dofi_outbox_has_ended(outbox, &there.bell));
}

/* The peer has claimed it, and the exchange ended before this end knew. */
Test(inbox, that_was_claimed_knows_its_peer)
{
	claim();
	cr_expect_eq(dofi_inbox_peer(inbox), there.rings->doorbell->key);
	dofi_inbox_offer_end(inbox);
	inbox->link->key = 0;		/* by a faulty peer */
	cr_expect_eq(dofi_inbox_peer(inbox), there.rings->doorbell->key);
	cr_expect_eq(*inbox->writer.pid, (uint32_t)getpid());
}

static _Atomic pid_t caller;
static _Atomic bool returned;

static void *await_writes(void *arg)
{
	atomic_store(&caller, (pid_t)syscall(SYS_gettid));
	dofi_inboxes_await_writes(here.rings, *(uint64_t *)arg);
	atomic_store(&returned, true);
	return arg;
}

Test(inbox, the_writes_of_its_peer_are_awaited)
{
	struct dofi_writing *writing = &inbox->link->writing[DOFI_WRITINGS - 1];
	uint64_t count = 0, peer = there.rings->doorbell->key, other = peer + 1;
	pthread_t thread;

	claim();
	cr_expect_eq(dofi_inbox_peer(inbox), peer);
	cr_expect_eq(*inbox->writer.pid, (uint32_t)getpid());
	dofi_inboxes_await_writes(here.rings, peer);
	dofi_writing_begin(writing, &count, 3);
	dofi_inboxes_await_writes(here.rings, other);
	cr_assert_eq(pthread_create(&thread, NULL, await_writes, &peer), 0);
	while (!thread_rests(atomic_load(&caller)))
		usleep(100);
	cr_expect(!atomic_load(&returned));
	dofi_writing_end(writing);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(inbox, memory_may_run_out)
{
	struct dofi_inbox *next = NULL;

	nomem_after(0);
	cr_expect_eq(dofi_inbox_open(here.rings, &next), -ENOMEM);
	cr_expect(!next);
	cr_expect_eq(inboxes(), 1);
}
