/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of rings without a PZ. */
#ifndef TEST_RINGS_SET_H
#define TEST_RINGS_SET_H

#include "rings/bells.h"
#include "rings/inbox.h"

struct set {
	struct fid_domain *domain;
	struct dofi_cq cq;
	struct dofi_rings *rings;
	struct dofi_bell bell;
	struct dofi_grants grants;
};

static inline void set_open(struct set *s, int number, const struct dofi_rings_user *user)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE };

	*s = (struct set){ .domain = NULL };
	cr_assert_eq(fi_domain(&dofi_rings_fabric, NULL, &s->domain, NULL), 0);
	cr_assert_eq(fi_cq_open(s->domain, &attr, &s->cq.fid, NULL), 0);
	dofi_mutex_init(&s->cq.lock);
	s->rings = dofi_rings_of(&s->cq);
	bell_make(&s->bell, number);
	dofi_grants_init(&s->grants);
	cr_assert_eq(dofi_rings_begin(s->rings, &s->cq, user, s, &s->bell, &s->grants), 0);
}

static inline void set_close(struct set *s)
{
	cr_expect(LIST_EMPTY(&s->rings->outboxes));
	dofi_inboxes_close(s->rings);
	cr_expect_eq(fi_close(&s->cq.fid->fid), 0);
	cr_expect_eq(fi_close(&s->domain->fid), 0);
	dofi_grants_fini(&s->grants);
	close(s->bell.fd);
}

/* Returns the offer of @inbox as its peer maps it. */
static inline struct dofi_outbox *set_offer(const struct dofi_inbox *inbox)
{
	struct dofi_outbox *offer = NULL;

	cr_assert_eq(dofi_outbox_map(inbox->fd, inbox->rings->doorbell_fd, -1, &offer), 0);
	return offer;
}

/* Sends a frame of a byte. */
static inline void set_send(struct dofi_outbox *outbox, unsigned char byte)
{
	unsigned char *frame;

	dofi_outbox_lock(outbox);
	cr_assert_eq(dofi_outbox_reserve(outbox, 1, &frame), 0);
	*frame = byte;
	dofi_outbox_send(outbox);
	dofi_outbox_unlock(outbox);
}

/* Takes a frame of a byte from @inbox. */
static inline unsigned char set_take(struct dofi_inbox *inbox)
{
	struct dofi_ring_record record;
	unsigned char byte;

	cr_assert(dofi_ring_take(&inbox->in, &record));
	cr_expect_eq(record.len, 1);
	byte = *record.data;
	dofi_ring_release(&inbox->in, record.end);
	return byte;
}

#endif
