/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A connection's shared memory: what reaches the other end, and which descriptors are refused. */

#include "rings/link.h"

#include "base/shm.h"
#include "nomem.h"
#include "rings/bells.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct dofi_link *asker, *asked;
static struct dofi_doorbell *doorbell[2];	/* of the connecting end, and of its peer */
static int doorbell_fd[2];
static struct dofi_bell bell[2];

/* Whether the notice of @link wakes the other end. */
static bool wakes(struct dofi_link *link)
{
	dofi_link_notify(link, &bell[0]);
	return bell_rang(&bell[link == asker]);
}

static void init(void)
{
	void *at;
	int i;

	for (i = 0; i < 2; i++) {
		doorbell_fd[i] = dofi_sealed_make(sizeof(struct dofi_doorbell), &at);
		cr_assert(doorbell_fd[i] >= 0);
		doorbell[i] = at;
		bell_make(&bell[i], i);
		memcpy(doorbell[i]->bell, bell[i].name, sizeof(bell[i].name));
	}
	cr_assert_eq(dofi_link_make(&asker), 0);
	asker->slot = 5;
	dofi_link_show_slot(asker);
}

static void couple(void)
{
	cr_assert_eq(dofi_link_join(asker->fd, doorbell_fd[0], &asked), 0);
	asked->slot = 4097;
	dofi_link_show_slot(asked);
	cr_assert_eq(dofi_link_meet(asker, doorbell_fd[1]), 0);
}

static void fini(void)
{
	int i;

	dofi_link_free(asker);
	dofi_link_free(asked);
	asker = asked = NULL;
	for (i = 0; i < 2; i++) {
		dofi_sealed_unmap(doorbell[i], sizeof(*doorbell[i]));
		close(doorbell_fd[i]);
		close(bell[i].fd);
	}
}

TestSuite(link, .init = init, .fini = fini, .timeout = 30);

static void send_to(struct dofi_link *from, struct dofi_link *to, unsigned char byte)
{
	struct dofi_ring_record record;
	unsigned char *frame;

	cr_assert_eq(dofi_link_reserve(from, 1, &frame), 0);
	*frame = byte;
	dofi_link_send(from, 1);
	cr_assert(dofi_ring_take(&to->in, &record));
	cr_expect_eq(record.len, 1);
	cr_expect_eq(*record.data, byte);
	cr_expect(!dofi_ring_has(&from->in), "it is no echo");
	dofi_ring_release(&to->in, record.end);
}

Test(link, frames_go_both_ways)
{
	couple();
	send_to(asker, asked, 1);
	send_to(asked, asker, 2);
	send_to(asked, asker, 3);
	send_to(asker, asked, 4);
}

Test(link, the_descriptor_is_closed_when_the_peer_has_it)
{
	const int fd = asker->fd;
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	couple();
	cr_expect(fstat(fd, &st));
	cr_expect_eq(asker->fd, -1);
}

Test(link, the_end_of_a_link_that_no_peer_met_closes_its_descriptor)
{
	const int fd = asker->fd;
	struct stat st;

	dofi_link_free(asker);
	asker = NULL;
	cr_expect(fstat(fd, &st));
}

Test(link, a_peer_that_wants_nothing_is_not_woken)
{
	couple();
	cr_expect(!wakes(asker));
	cr_expect(!wakes(asked));
	cr_expect_eq(atomic_load(&doorbell[1]->marked), 0);
}

Test(link, a_sleeper_is_woken_once)
{
	couple();
	atomic_store(&doorbell[1]->wants, DOFI_DOORBELL_WAKE);
	cr_expect(wakes(asker));
	cr_expect(!wakes(asker));
	atomic_store(&doorbell[0]->wants, DOFI_DOORBELL_WAKE);
	cr_expect(!wakes(asker), "it is this end that sleeps");
	cr_expect(wakes(asked));
	cr_expect_eq(atomic_load(&doorbell[1]->marked), 0);
}

/* A leader sleeps on the doorbell's word itself, so the link wakes it. */
Test(link, a_leader_is_woken_in_addition_to_the_progress_thread)
{
	couple();
	atomic_store(&doorbell[1]->wants, DOFI_DOORBELL_LEADER);
	cr_expect(!wakes(asker), "the progress thread does not sleep");
	cr_expect_eq(atomic_load(&doorbell[1]->wants), 0);
	atomic_store(&doorbell[1]->wants,
		     DOFI_DOORBELL_LEADER | DOFI_DOORBELL_WAKE | DOFI_DOORBELL_MARK);
	cr_expect(wakes(asker));
	cr_expect_eq(atomic_load(&doorbell[1]->wants), DOFI_DOORBELL_MARK);
}

Test(link, a_ring_is_marked_by_its_place)
{
	couple();
	atomic_store(&doorbell[0]->wants, DOFI_DOORBELL_MARK);
	cr_expect(!wakes(asked));
	cr_expect_eq(atomic_load(&doorbell[0]->mark[0]), 1 << 5);
	cr_expect_eq(atomic_load(&doorbell[0]->marked), 1);
	atomic_store(&doorbell[1]->wants, DOFI_DOORBELL_MARK | DOFI_DOORBELL_WAKE);
	cr_expect(wakes(asker));
	cr_expect_eq(atomic_load(&doorbell[1]->mark[0]), 2, "a place beyond the marks shares one");
	cr_expect_eq(atomic_load(&doorbell[1]->wants), DOFI_DOORBELL_MARK, "for each frame");
}

/*
 * The consumer may have cleared marked but not the mark itself. The next frame sets marked again.
 */
Test(link, a_mark_that_is_there_is_shown_again)
{
	couple();
	atomic_store(&doorbell[0]->wants, DOFI_DOORBELL_MARK);
	dofi_link_notify(asked, &bell[0]);
	atomic_store(&doorbell[0]->marked, 0);
	dofi_link_notify(asked, &bell[0]);
	cr_expect_eq(atomic_load(&doorbell[0]->marked), 1);
}

Test(link, without_a_descriptor_for_the_doorbell_there_is_none)
{
	cr_assert_eq(dofi_link_join(asker->fd, doorbell_fd[0], &asked), 0);
	cr_expect_eq(dofi_link_meet(asker, -1), -EMFILE);
	cr_expect_eq(asker->fd, -1);
	cr_expect_eq(dofi_link_meet(asker, doorbell_fd[1]), 0);
	cr_expect_eq(dofi_link_meet(asker, -1), 0, "it has one");
}

Test(link, a_name_without_an_end_is_cut)
{
	memset(doorbell[0]->bell, 'x', sizeof(doorbell[0]->bell));
	couple();
	cr_expect_eq(strlen(asked->bell), sizeof(asked->bell) - 1);
	atomic_store(&doorbell[0]->wants, DOFI_DOORBELL_WAKE);
	cr_expect(!wakes(asked));
}

Test(link, an_impossible_slot_marks_within_the_doorbell)
{
	int i;

	cr_assert_eq(dofi_link_join(asker->fd, doorbell_fd[0], &asked), 0);
	asked->slot = UINT32_MAX;
	dofi_link_show_slot(asked);
	cr_assert_eq(dofi_link_meet(asker, doorbell_fd[1]), 0);
	atomic_store(&doorbell[1]->wants, DOFI_DOORBELL_MARK);
	dofi_link_notify(asker, &bell[0]);
	for (i = 0; i < DOFI_DOORBELL_WORDS - 1; i++)
		cr_expect_eq(atomic_load(&doorbell[1]->mark[i]), 0);
	cr_expect_eq(atomic_load(&doorbell[1]->mark[i]), 1ull << 63);
}

static void expect_no_link(int fd, int bell_of)
{
	cr_expect_eq(dofi_link_join(fd, bell_of, &asked), -EPROTO);
	cr_expect(!asked);
}

Test(link, an_end_learns_the_grants_of_the_other)
{
	struct dofi_grants grants;
	uint64_t count = 0;

	couple();
	dofi_grants_init(&grants);
	cr_assert_eq(dofi_grants_publish(&grants), 0);
	dofi_link_learn_grants(asked, doorbell_fd[0]);
	dofi_link_learn_grants(asked, -1);
	cr_expect(!asked->grants, "these are no grants");
	dofi_link_learn_grants(asked, dofi_grant_book_fd(grants.book));
	cr_expect(asked->grants != NULL);
	dofi_link_learn_grants(asked, -1);
	cr_expect(asked->grants != NULL, "the first ones stay");
	dofi_grants_fini(&grants);
	/* the marks of the two ends are two */
	dofi_writing_begin(asked->writing, &count, 3);
	cr_expect(asker->writer.writing->busy && !asked->writer.writing->busy);
	dofi_writing_end(asked->writing);
	dofi_writer_end(&asker->writer);
	cr_expect(dofi_writing_is_over(asked->writing) && !dofi_writing_is_over(asker->writing));
}

Test(link, other_memory_is_refused)
{
	struct stat st;
	void *at;
	int fd;

	expect_no_link(doorbell_fd[0], doorbell_fd[0]);
	expect_no_link(-1, doorbell_fd[0]);
	expect_no_link(asker->fd, asker->fd);
	expect_no_link(asker->fd, -1);
	cr_assert_eq(fstat(asker->fd, &st), 0);
	fd = dofi_sealed_make((size_t)st.st_size, &at);
	expect_no_link(fd, doorbell_fd[0]);
	memcpy(at, asker->memory, sizeof(uint64_t));
	expect_no_link(fd, doorbell_fd[0]);	/* the version differs */
	dofi_sealed_unmap(at, (size_t)st.st_size);
	close(fd);
}

Test(link, another_doorbell_is_refused)
{
	cr_assert_eq(dofi_link_join(asker->fd, doorbell_fd[0], &asked), 0);
	cr_expect_eq(dofi_link_meet(asker, STDIN_FILENO), -EPROTO);
	cr_expect(!asker->doorbell);
}

Test(link, memory_may_run_out)
{
	struct dofi_link *link = NULL;

	nomem_after(0);
	cr_expect_eq(dofi_link_make(&link), -ENOMEM);
	nomem_after(0);
	cr_expect_eq(dofi_link_join(asker->fd, doorbell_fd[0], &link), -ENOMEM);
	cr_expect(!link);
}

/* Links in one direction: asker made the link, and asked sends. */

static void offer(void)
{
	cr_assert_eq(dofi_link_join(asker->fd, doorbell_fd[0], &asked), 0);
}

Test(link, an_offer_is_claimed_once)
{
	offer();
	cr_expect(dofi_link_claim(asked));
	cr_expect(!dofi_link_claim(asked));
	cr_expect(!dofi_link_withdraw(asker));
	send_to(asked, asker, 1);
	cr_expect(!dofi_link_has_ended(asker));
	cr_expect(!dofi_link_is_shut(asked));
}

Test(link, an_offer_that_was_withdrawn_is_not_claimed)
{
	offer();
	cr_expect(dofi_link_withdraw(asker));
	cr_expect(!dofi_link_claim(asked));
	cr_expect(dofi_link_is_shut(asked));
}

Test(link, the_end_is_shown_in_the_doorbell_of_the_maker)
{
	offer();
	dofi_link_claim(asked);
	dofi_link_end(asked);
	cr_expect(dofi_link_has_ended(asker));
	cr_expect(atomic_load(&doorbell[0]->ended));
	cr_expect(!atomic_load(&doorbell[1]->ended));
	cr_expect(!dofi_link_withdraw(asker));
}

Test(link, the_sender_learns_that_the_maker_has_gone)
{
	offer();
	dofi_link_claim(asked);
	dofi_link_shut(asker);
	cr_expect(dofi_link_is_shut(asked));
	dofi_link_end(asked);
	cr_expect(dofi_link_has_ended(asker));
}
