/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sender's end of a link: offers, uses, wakeups, and descriptors that are refused. */

#include "rings/outbox.h"

#include "base/shm.h"
#include "nomem.h"
#include "rings/set.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

static struct set here, there;		/* the sender, and the receiver */
static struct dofi_inbox *inbox;	/* of there */
static struct dofi_outbox *outbox;	/* of here */

static void init(void)
{
	set_open(&here, 0, NULL);
	set_open(&there, 1, NULL);
	cr_assert_eq(dofi_inbox_open(there.rings, &inbox), 0);
}

static void fini(void)
{
	dofi_outbox_put(outbox, &here.bell);
	set_close(&here);
	set_close(&there);
}

TestSuite(outbox, .init = init, .fini = fini, .timeout = 30);

/* Returns the result of the use of an offer of @in. */
static int use(const struct dofi_inbox *in, struct dofi_outbox **out)
{
	struct dofi_outbox *offer = set_offer(in);
	int ret = dofi_outbox_get(here.rings, &offer, NULL, out);

	dofi_outbox_unmap(offer);
	return ret;
}

static void couple(void)
{
	cr_assert_eq(use(inbox, &outbox), 0);
}

/* Whether a notice wakes the receiver. */
static bool wakes(void)
{
	dofi_outbox_notify(outbox, &here.bell);
	return bell_rang(&there.bell);
}

static struct dofi_doorbell *doorbell(void)
{
	return there.rings->doorbell;
}

Test(outbox, frames_arrive_in_order)
{
	couple();
	set_send(outbox, 1);
	set_send(outbox, 2);
	cr_expect_eq(set_take(inbox), 1);
	cr_expect_eq(set_take(inbox), 2);
	cr_expect(!dofi_ring_has(&inbox->in));
}

/* Opens another inbox of @owner, and gets the outbox for its offer. */
static struct dofi_inbox *couple_again(struct set *owner, struct dofi_outbox **out)
{
	struct dofi_inbox *in;

	cr_assert_eq(dofi_inbox_open(owner->rings, &in), 0);
	cr_assert_eq(use(in, out), 0);
	return in;
}

Test(outbox, one_serves_all_uses)
{
	struct dofi_outbox *again = NULL;
	struct dofi_inbox *second;

	couple();
	second = couple_again(&there, &again);
	cr_expect_eq(again, outbox);
	cr_expect_eq(atomic_load(&second->link->use), DOFI_LINK_OFFERED, "it is not needed");
	dofi_inbox_offer_end(second);
	dofi_outbox_put(again, &here.bell);
	cr_expect_eq(atomic_load(&inbox->link->use), DOFI_LINK_CLAIMED);
	set_send(outbox, 3);
	cr_expect_eq(set_take(inbox), 3);
}

static struct dofi_mutex first_users;

/* The first use, of a user that holds first_users while it sends. */
static void couple_sole(void)
{
	struct dofi_outbox *offer = set_offer(inbox);

	cr_assert_eq(dofi_outbox_get(here.rings, &offer, &first_users, &outbox), 0);
	cr_assert(!offer);
}

Test(outbox, a_sole_user_takes_its_own_lock_alone)
{
	struct dofi_outbox *again = NULL;

	couple_sole();
	dofi_mutex_lock(&first_users);
	dofi_outbox_lock(outbox);
	cr_expect(!outbox->lock.locked);
	dofi_outbox_unlock(outbox);
	set_send(outbox, 1);
	dofi_mutex_unlock(&first_users);
	couple_again(&there, &again);
	dofi_outbox_lock(outbox);
	cr_expect(outbox->lock.locked);
	dofi_outbox_unlock(outbox);
	cr_expect_eq(set_take(inbox), 1);
	dofi_outbox_put(again, &here.bell);
}

static void *use_again(void *again)
{
	couple_again(&there, again);
	return NULL;
}

Test(outbox, a_second_user_waits_for_the_frame_of_the_first)
{
	struct dofi_outbox *again = NULL;
	unsigned char *frame;
	pthread_t thread;

	couple_sole();
	dofi_mutex_lock(&first_users);
	dofi_outbox_lock(outbox);
	cr_assert_eq(dofi_outbox_reserve(outbox, 1, &frame), 0);
	*frame = 1;
	cr_assert(!pthread_create(&thread, NULL, use_again, &again));
	while (!atomic_load(&first_users.waiters))
		sched_yield();
	cr_expect_eq(outbox->sole, &first_users);
	dofi_outbox_send(outbox);
	dofi_outbox_unlock(outbox);
	dofi_mutex_unlock(&first_users);
	pthread_join(thread, NULL);
	cr_expect(!outbox->sole);
	set_send(outbox, 2);
	cr_expect_eq(set_take(inbox), 1);
	cr_expect_eq(set_take(inbox), 2);
	dofi_outbox_put(again, &here.bell);
}

Test(outbox, each_peer_has_its_own)
{
	struct dofi_outbox *other = NULL;

	couple();
	couple_again(&here, &other);
	cr_expect(other != outbox && other->peer != outbox->peer);
	dofi_outbox_put(other, &here.bell);
}

Test(outbox, the_last_use_ends_it_and_wakes_the_receiver)
{
	couple();
	cr_expect(!dofi_rings_took_end(there.rings));
	dofi_outbox_put(outbox, &here.bell);
	outbox = NULL;
	cr_expect_eq(atomic_load(&inbox->link->use), DOFI_LINK_ENDED);
	cr_expect(dofi_rings_took_end(there.rings));
	cr_expect(!dofi_rings_took_end(there.rings));
	cr_expect(bell_rang(&there.bell));
}

Test(outbox, that_the_peer_has_shut_is_replaced)
{
	struct dofi_outbox *first;

	couple();
	first = outbox;
	dofi_inbox_shut(inbox);
	couple_again(&there, &outbox);
	cr_expect(outbox != first);
	dofi_outbox_put(first, &here.bell);
}

Test(outbox, a_withdrawn_offer_is_not_used)
{
	struct dofi_outbox *offer = set_offer(inbox);

	dofi_inbox_offer_end(inbox);
	cr_expect_eq(dofi_outbox_get(here.rings, &offer, NULL, &outbox), -ECONNRESET);
	cr_expect(!outbox);
	dofi_outbox_unmap(offer);
}

Test(outbox, has_ended_with_the_inbox_or_the_process_of_the_receiver)
{
	couple();
	cr_expect(!dofi_outbox_has_ended(outbox, &here.bell));
	dofi_inboxes_close(there.rings);
	cr_expect(dofi_outbox_has_ended(outbox, &here.bell));
	atomic_store(&outbox->link->use, DOFI_LINK_CLAIMED);
	cr_expect(!dofi_outbox_has_ended(outbox, &here.bell));
	strcpy(outbox->bell, "nobody");
	cr_expect(dofi_outbox_has_ended(outbox, &here.bell));
}

/* Wakeups and marks */

Test(outbox, a_peer_that_wants_nothing_is_not_woken)
{
	couple();
	cr_expect(!wakes());
	cr_expect_eq(atomic_load(&doorbell()->marks), 0);
}

Test(outbox, a_sleeper_is_woken_once)
{
	couple();
	atomic_store(&doorbell()->wants, DOFI_DOORBELL_WAKE);
	cr_expect(wakes());
	cr_expect(!wakes());
	cr_expect_eq(atomic_load(&doorbell()->marks), 0);
}

/* A leader sleeps on the doorbell's word itself, so the sender wakes it. */
Test(outbox, a_leader_is_woken_in_addition_to_the_progress_thread)
{
	couple();
	atomic_store(&doorbell()->wants, DOFI_DOORBELL_LEADER);
	cr_expect(!wakes(), "the progress thread does not sleep");
	cr_expect_eq(atomic_load(&doorbell()->wants), 0);
	atomic_store(&doorbell()->wants,
		     DOFI_DOORBELL_LEADER | DOFI_DOORBELL_WAKE | DOFI_DOORBELL_MARK);
	cr_expect(wakes());
	cr_expect_eq(atomic_load(&doorbell()->wants), DOFI_DOORBELL_MARK);
}

/* Marks @slot, and returns the marks. */
static uint64_t marked(uint32_t slot)
{
	atomic_store(&inbox->link->slot, slot);
	couple();
	atomic_store(&doorbell()->wants, DOFI_DOORBELL_MARK);
	cr_expect(!wakes());
	cr_expect_eq(atomic_load(&doorbell()->wants), DOFI_DOORBELL_MARK, "for each frame");
	return atomic_load(&doorbell()->marks);
}

Test(outbox, marks_its_slot)
{
	cr_expect_eq(marked(5), 1 << 5);
}

Test(outbox, shares_the_mark_of_a_slot_beyond_the_marks)
{
	cr_expect_eq(marked(DOFI_DOORBELL_MARKS + 1), 1 << 1);
}

Test(outbox, marks_within_the_doorbell_for_an_impossible_slot)
{
	cr_expect_eq(marked(UINT32_MAX), 1ull << 63);
}

/* Peers that err */

Test(outbox, a_name_without_an_end_is_cut)
{
	memset(doorbell()->bell, 'x', sizeof(doorbell()->bell));
	couple();
	cr_expect_eq(strlen(outbox->bell), sizeof(outbox->bell) - 1);
	atomic_store(&doorbell()->wants, DOFI_DOORBELL_WAKE);
	cr_expect(!wakes());
}

static void expect_refused(int link, int bell)
{
	struct dofi_outbox *offer = NULL;

	cr_expect_eq(dofi_outbox_map(link, bell, -1, &offer), -EPROTO);
	cr_expect(!offer);
}

Test(outbox, other_memory_is_refused)
{
	const int bell = there.rings->doorbell_fd;
	struct stat st;
	void *at;
	int fd;

	expect_refused(bell, bell);
	expect_refused(-1, bell);
	expect_refused(inbox->fd, inbox->fd);
	expect_refused(inbox->fd, -1);
	cr_assert_eq(fstat(inbox->fd, &st), 0);
	fd = dofi_sealed_make((size_t)st.st_size, &at);
	expect_refused(fd, bell);
	memcpy(at, inbox->link, sizeof(uint64_t));
	expect_refused(fd, bell);	/* the version differs */
	dofi_sealed_unmap(at, (size_t)st.st_size);
	close(fd);
}

Test(outbox, grants_are_mapped_if_they_are_grants)
{
	struct dofi_outbox *offer;

	cr_assert_eq(dofi_grants_publish(&there.grants), 0);
	cr_assert_eq(dofi_outbox_map(inbox->fd, there.rings->doorbell_fd, inbox->fd, &offer), 0);
	cr_expect(!offer->grants);
	dofi_outbox_unmap(offer);
	cr_assert_eq(dofi_outbox_map(inbox->fd, there.rings->doorbell_fd,
				     dofi_grant_book_fd(there.grants.book), &offer), 0);
	cr_expect(offer->grants != NULL);
	dofi_outbox_unmap(offer);
}

Test(outbox, memory_may_run_out)
{
	struct dofi_outbox *offer = NULL;

	nomem_after(0);
	cr_expect_eq(dofi_outbox_map(inbox->fd, there.rings->doorbell_fd, -1, &offer), -ENOMEM);
	cr_expect(!offer);
}
