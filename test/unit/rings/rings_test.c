/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A completion queue over many rings: its results, their order, and the damage that a peer can do.
 */

#include "rings/rings.h"

#include "nomem.h"
#include "rings/set.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define MANY 300
#define BATCH 16

static struct set set;
static struct dofi_rings *rings;
static struct dofi_doorbell *doorbell;
static struct dofi_inbox *here[MANY];
static struct dofi_outbox *there[MANY];	/* offers, which tests use */
static struct fi_cq_data_entry entry[BATCH];

static struct dofi_inbox *polled;
static const unsigned char *arrived;

static void user_arrived(void *owner, struct dofi_inbox *inbox, const unsigned char *frame,
			 size_t len, struct dofi_sink *sink)
{
	cr_expect_eq(owner, &set);
	arrived = frame;
}

static bool user_poll(void *owner, struct dofi_inbox *inbox, struct dofi_sink *sink)
{
	cr_expect_eq(owner, &set);
	polled = inbox;
	return false;
}

static const struct dofi_rings_user user = { .arrived = user_arrived, .poll = user_poll };

static int open_cq(enum fi_wait_obj wait_obj)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = wait_obj };

	return fi_cq_open(set.domain, &attr, &set.cq.fid, NULL);
}

static void init(void)
{
	set_open(&set, 0, &user);
	rings = set.rings;
	doorbell = rings->doorbell;
}

static void remove_one(int i)
{
	dofi_outbox_unmap(there[i]);
	dofi_inbox_offer_end(here[i]);
	here[i] = NULL;
	there[i] = NULL;
}

static void fini(void)
{
	const int fd = rings->doorbell_fd;
	int i;

	for (i = 0; i < MANY; i++)
		if (here[i])
			remove_one(i);
	set_close(&set);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "the doorbell is closed");
}

TestSuite(rings, .init = init, .fini = fini, .timeout = 60);

/* Passes a completion to the user. */
static void release(const struct fi_cq_data_entry *e)
{
	dofi_rings_completed(e, 0, NULL);
	cr_expect_eq(arrived, e->buf);
}

static void add_one(int i)
{
	cr_assert_eq(dofi_inbox_open(rings, &here[i]), 0);
	there[i] = set_offer(here[i]);
}

static void add(int n)
{
	int i;

	for (i = 0; i < n; i++)
		add_one(i);
}

static bool send_by(int i, unsigned char byte)
{
	set_send(there[i], byte);
	dofi_outbox_notify(there[i], &set.bell);
	return bell_rang(&set.bell);
}

static ssize_t read_up_to(size_t most)
{
	return fi_cq_read(set.cq.fid, entry, most);
}

static void expect_nothing(void)
{
	cr_expect_eq(read_up_to(BATCH), -FI_EAGAIN);
}

static unsigned char byte_of(const struct fi_cq_data_entry *e)
{
	cr_assert(e->buf);
	cr_expect_eq(e->flags, FI_RECV);
	cr_expect_eq(e->len, 1);
	return *(const unsigned char *)e->buf;
}

static void expect_one(int i, unsigned char byte)
{
	cr_assert_eq(read_up_to(1), 1);
	cr_expect_eq(entry->op_context, here[i]);
	cr_expect_eq(byte_of(entry), byte);
	release(entry);
}

Test(rings, nothing_is_read_where_nothing_is)
{
	expect_nothing();
	add(1);
	expect_nothing();
	cr_expect_eq(fi_cq_readerr(set.cq.fid, &(struct fi_cq_err_entry){ .flags = 0 }, 0),
		     -FI_EAGAIN);
}

Test(rings, there_is_no_descriptor_to_wait_for)
{
	struct fid_cq *own = set.cq.fid;

	cr_expect_eq(open_cq(FI_WAIT_FD), -FI_ENOSYS);
	cr_expect_eq(set.cq.fid, own);
}

Test(rings, frames_of_a_peer_come_in_order)
{
	unsigned char i;

	add(1);
	for (i = 0; i < 20; i++)
		send_by(0, i);
	for (i = 0; i < 20; i++)
		expect_one(0, i);
	expect_nothing();
}

Test(rings, a_read_brings_several)
{
	ssize_t n, i;
	int sum = 0, total = 0;

	add(2);
	for (i = 0; i < 12; i++)
		send_by((int)i % 2, 1);
	while ((n = read_up_to(BATCH)) > 0) {
		total += (int)n;
		for (i = 0; i < n; i++) {
			sum += byte_of(&entry[i]);
			release(&entry[i]);
		}
	}
	cr_expect_eq(total, 12);
	cr_expect_eq(sum, 12);
}

/* A ring that is never empty does not starve the others. */
static void expect_turns(int n)
{
	bool seen[MANY] = { false };
	int reads, i, k;
	ssize_t got;

	for (reads = 0; reads < 4 * n; reads++) {
		for (i = 0; i < 4; i++)
			send_by(0, 0);
		got = read_up_to(4);
		for (i = 0; i < got; i++) {
			for (k = 0; here[k] != entry[i].op_context; k++)
				;
			seen[k] = true;
			release(&entry[i]);
		}
	}
	for (i = 0; i < n; i++)
		cr_expect(seen[i], "%d of %d", i, n);
}

Test(rings, of_few_each_has_its_turn)
{
	int i;

	add(4);
	for (i = 1; i < 4; i++)
		send_by(i, 1);
	expect_turns(4);
}

Test(rings, of_many_each_has_its_turn)
{
	int i;

	add(MANY);
	for (i = 1; i < MANY; i++)
		send_by(i, 1);
	expect_turns(MANY);
}

/* Returns the ring in which a poll finds a frame, or -1. */
static int found(void)
{
	bool none;
	int i;

	polled = NULL;
	dofi_mutex_lock(&set.cq.lock);
	none = dofi_rings_poll(&set.cq, NULL);
	dofi_mutex_unlock(&set.cq.lock);
	cr_expect_eq(none, !polled);
	if (!polled)
		return -1;
	for (i = 0; here[i] != polled; i++)
		;
	return i;
}

Test(rings, a_search_finds_each_ring_in_turn)
{
	int i;

	add(4);
	cr_expect_eq(found(), -1);
	for (i = 1; i < 4; i++)
		send_by(i, (unsigned char)i);
	for (i = 0; i < 6; i++)
		cr_expect_eq(found(), 1 + i % 3);
	cr_expect_eq(read_up_to(BATCH), 3);
	for (i = 0; i < 3; i++)
		release(&entry[i]);
	cr_expect_eq(found(), -1);
	remove_one(3);
	send_by(0, 9);
	cr_expect_eq(found(), 0);
}

/* Consumes the record of the ring that is found, as the fast path does. */
static void expect_found(int i, unsigned char byte)
{
	struct dofi_ring_record record;

	cr_assert_eq(found(), i);
	cr_assert(dofi_ring_peek(&here[i]->in, &record));
	cr_expect_eq(*record.data, byte);
	dofi_ring_consume(&here[i]->in, &record);
}

Test(rings, of_many_rings_a_search_finds_the_marked_ones)
{
	add(MANY);
	cr_expect_eq(found(), -1);
	send_by(200, 1);
	send_by(290, 2);
	expect_found(200, 1);
	expect_found(290, 2);
	cr_expect_eq(found(), -1);
}

/* The ring that was found may have more records: its mark stays due until the ring is empty. */
Test(rings, a_search_finds_each_marked_ring_in_turn)
{
	add(MANY);
	cr_expect_eq(found(), -1);
	send_by(200, 1);
	send_by(200, 2);
	send_by(201, 5);
	send_by(290, 3);
	expect_found(200, 1);
	expect_found(201, 5);
	expect_found(290, 3);
	expect_found(200, 2);
	cr_expect_eq(found(), -1);
	send_by(200, 4);
	expect_found(200, 4);
}

/* A search, too, finds frames from before the peers were asked for marks. */
Test(rings, a_search_covers_all_rings_once_marks_begin)
{
	int i;

	add(8);
	send_by(7, 9);
	for (i = 8; i < 12; i++)
		add_one(i);
	expect_found(7, 9);
	cr_expect_eq(found(), -1);
}

Test(rings, few_peers_are_asked_for_nothing)
{
	add(8);
	cr_expect_eq(atomic_load(&doorbell->wants), 0);
	send_by(3, 1);
	cr_expect_eq(atomic_load(&doorbell->marks), 0);
	expect_one(3, 1);
}

Test(rings, many_mark_their_rings)
{
	int i;

	add(MANY);
	cr_expect_eq(atomic_load(&doorbell->wants), DOFI_DOORBELL_MARK);
	expect_nothing();
	for (i = MANY - 1; i >= 0; i -= 50) {
		send_by(i, (unsigned char)i);
		expect_one(i, (unsigned char)i);
	}
	expect_nothing();
	cr_expect_eq(atomic_load(&doorbell->marks), 0);
}

/* Frames that were sent while there were few rings have no mark. */
Test(rings, what_came_before_marks_is_found)
{
	int i;

	add(8);
	send_by(7, 9);
	for (i = 8; i < 12; i++)
		add_one(i);
	expect_one(7, 9);
	expect_nothing();
}

Test(rings, before_a_sleep_all_rings_are_read)
{
	add(MANY);
	expect_nothing();
	send_by(200, 5);
	atomic_store(&doorbell->marks, 0);
	dofi_rings_sleep_begin(rings);
	expect_one(200, 5);
	cr_expect(!atomic_load(rings->lead.search), "later reads follow the marks");
}

Test(rings, a_sleeper_is_woken_until_it_rises)
{
	add(2);
	cr_expect(!send_by(0, 1));
	dofi_rings_sleep_begin(rings);
	cr_expect(send_by(1, 2));
	cr_expect(!send_by(1, 3));
	dofi_rings_sleep_begin(rings);
	dofi_rings_sleep_end(rings);
	cr_expect(!send_by(1, 4));
}

Test(rings, marks_end_with_the_number_of_inboxes)
{
	int i;

	add(20);
	send_by(3, 7);
	for (i = 8; i < 20; i++)
		remove_one(i);
	cr_expect_eq(atomic_load(&doorbell->wants), 0);
	expect_one(3, 7);
	add_one(8);
	cr_expect_eq(atomic_load(&doorbell->wants), DOFI_DOORBELL_MARK);
}

Test(rings, marks_without_a_ring_are_nothing)
{
	add(9);
	atomic_store(&doorbell->marks, UINT64_MAX);
	expect_nothing();
	send_by(8, 1);
	expect_one(8, 1);
	expect_nothing();
}

/* A peer may have cleared a mark. The leader finds the frame without it. */
Test(rings, a_leader_reads_all_rings_before_it_sleeps)
{
	const struct dofi_lead_word *lead = &rings->lead;

	add(20);
	expect_nothing();
	send_by(17, 1);
	atomic_store(&doorbell->marks, 0);
	dofi_lead_word_ask(lead);
	cr_expect(atomic_load(&doorbell->wants) & DOFI_DOORBELL_LEADER);
	expect_one(17, 1);
	send_by(3, 2);
	cr_expect(!(atomic_load(&doorbell->wants) & DOFI_DOORBELL_LEADER), "the peer wakes it");
	expect_one(3, 2);
}

Test(rings, a_broken_ring_is_reported_once)
{
	add(2);
	atomic_store(dofi_ring_word(there[1]->out.ring, 0), DOFI_RING_SKIP);
	cr_assert_eq(read_up_to(BATCH), 1);
	cr_expect_eq(entry->op_context, here[1]);
	cr_expect(!entry->buf);
	expect_nothing();
	send_by(0, 1);
	expect_one(0, 1);
}

Test(rings, a_broken_one_of_many_is_reported_once)
{
	add(20);
	atomic_store(dofi_ring_word(there[17]->out.ring, 0), UINT64_MAX - 1);
	dofi_outbox_notify_slow(there[17], &set.bell);
	cr_assert_eq(read_up_to(BATCH), 1);
	cr_expect_eq(entry->op_context, here[17]);
	cr_expect(!entry->buf);
	expect_nothing();
}

Test(rings, a_removed_inbox_is_not_read)
{
	add(3);
	send_by(1, 1);
	remove_one(1);
	expect_nothing();
	add_one(1);
	send_by(1, 2);
	expect_one(1, 2);
}

Test(rings, the_others_are_read_when_the_last_one_is_removed)
{
	int i;

	add(5);
	for (i = 4; i >= 3; i--) {
		remove_one(i);
		send_by(2, (unsigned char)i);
		expect_one(2, (unsigned char)i);
	}
}

Test(rings, memory_may_run_out)
{
	struct fid_cq *own = set.cq.fid;

	nomem_after(0);
	cr_expect_eq(open_cq(FI_WAIT_NONE), -ENOMEM);
	cr_expect_eq(set.cq.fid, own);
	expect_nothing();
}

Test(rings, descriptors_may_run_out)
{
	struct rlimit limit, none = { 0, 0 };
	struct fid_cq *own = set.cq.fid;
	int ret;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = open_cq(FI_WAIT_NONE);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(ret, -EMFILE);
	cr_expect_eq(set.cq.fid, own);
}
