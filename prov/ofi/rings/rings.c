/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fabric of our own for peers on the same host: a completion queue over a set of rings. */

#include "rings/rings.h"

#include "base/layout.h"
#include "base/shm.h"
#include "rings/inbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With up to this many rings, each read covers all; with more, only the marked ones. */
#define FEW 8

/* How many frames of a ring are taken before the next one's. */
#define AT_A_TIME 8

static struct dofi_rings *rings_of(struct fid_cq *cq)
{
	return DOFI_CONTAINER_OF(cq, struct dofi_rings, fid);
}

/* Frames */

static struct fi_cq_data_entry *broken(struct dofi_inbox *inbox, struct fi_cq_data_entry *entry)
{
	if (!inbox->in.broken || inbox->reported)
		return entry;
	inbox->reported = true;
	*entry = (struct fi_cq_data_entry){ .op_context = inbox };
	return entry + 1;
}

/* Takes frames of @inbox into @entry and on, up to @end. Returns the next entry. */
static struct fi_cq_data_entry *take(struct dofi_inbox *inbox, struct fi_cq_data_entry *entry,
				     const struct fi_cq_data_entry *end)
{
	struct dofi_ring_record record;

	if (end - entry > AT_A_TIME)
		end = entry + AT_A_TIME;
	for (; entry < end && dofi_ring_take(&inbox->in, &record); entry++) {
		entry->op_context = inbox;
		entry->flags = FI_RECV;
		entry->len = record.len;
		entry->buf = (void *)(uintptr_t)record.data;
		entry->data = record.end;
	}
	return entry < end ? broken(inbox, entry) : entry;
}

/* Returns the first inbox with a record in each @step th slot from @from to before @to, or NULL. */
static inline struct dofi_inbox *find_from(struct dofi_rings *rings, uint32_t from, uint32_t to,
					   uint32_t step)
{
	struct dofi_inbox **inboxes = rings->inbox, *inbox;
	uint32_t slot;

	for (slot = from; slot < to; slot += step) {
		inbox = inboxes[slot];
		if (inbox && dofi_ring_has(&inbox->in)) {
			rings->turn = slot + 1 < rings->n_slots ? slot + 1 : 0;
			return inbox;
		}
	}
	return NULL;
}

/* Marks */

/*
 * Collects the marks of all inboxes that the next read, or search, has to cover.
 *
 * Takes the marks from the doorbell, before their rings are read: a sender that finds a mark set
 * does not set it again, and the frame that it published before is read after the mark was cleared.
 * The first load may be relaxed: a read that must miss nothing covers all inboxes (all_due). The
 * load of all_due may be relaxed: the thread that has set it reads under the CQ lock, and finds it
 * set unless another read has covered all inboxes since.
 */
static void due_collect(struct dofi_rings *rings)
{
	struct dofi_doorbell *doorbell = rings->doorbell;

	if (atomic_load_explicit(&doorbell->marks, memory_order_relaxed))
		rings->due |= atomic_exchange(&doorbell->marks, 0);
	if (atomic_load_explicit(&rings->all_due, memory_order_relaxed) &&
	    atomic_exchange(&rings->all_due, false))
		rings->due = ~0ull;
}

/* Returns the first due mark from rings->turn on, or else from the beginning. */
static uint32_t due_next(const struct dofi_rings *rings)
{
	const uint64_t from = rings->due & ~0ull << rings->turn % DOFI_DOORBELL_MARKS;

	return __builtin_ctzll(from ? from : rings->due);
}

/* The mark of the inbox stays due, as it may have more records. */
static struct dofi_inbox *find_in_many(struct dofi_rings *rings)
{
	const uint32_t step = DOFI_DOORBELL_MARKS, turn = rings->turn;
	struct dofi_inbox *inbox = NULL;
	uint32_t mark;

	due_collect(rings);
	while (!inbox && rings->due) {
		mark = due_next(rings);
		inbox = find_from(rings, turn + (mark - turn) % step, rings->n_slots, step);
		if (!inbox)
			inbox = find_from(rings, mark, turn, step);
		if (!inbox)
			rings->due &= ~(1ull << mark);
	}
	return inbox;
}

/* An empty poll ends here, so it saves few registers. */
bool dofi_rings_poll(struct dofi_cq *cq, struct dofi_sink *sink)
{
	struct dofi_rings *rings = rings_of(cq->fid);
	struct dofi_inbox *inbox;

	dofi_mutex_assert_held(&cq->lock);
	if (__builtin_expect(rings->marks, 0)) {
		inbox = find_in_many(rings);
	} else {
		inbox = find_from(rings, rings->turn, rings->n_slots, 1);
		if (!inbox)
			inbox = find_from(rings, 0, rings->turn, 1);
	}
	return !inbox || rings->user->poll(rings->owner, inbox, sink);
}

/* The completion queue: an entry has the inbox, the frame in the ring, and the end of its record */

void dofi_rings_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	struct dofi_inbox *inbox = entry->op_context;
	const struct dofi_rings *rings = inbox->rings;

	(void)err;
	rings->user->arrived(rings->owner, inbox, entry->buf, entry->len, sink);
	if (entry->buf)
		dofi_ring_release(&inbox->in, entry->data);
}

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct dofi_rings *rings = rings_of(cq);
	struct fi_cq_data_entry *begin = buf, *entry = buf;
	const struct fi_cq_data_entry *end = entry + count;
	struct dofi_inbox *inbox;
	uint32_t i, slot = rings->turn;

	if (rings->marks) {
		while (entry < end && (inbox = find_in_many(rings)))
			entry = take(inbox, entry, end);
		return entry == begin ? -FI_EAGAIN : entry - begin;
	}
	for (i = 0; i < rings->n_slots && entry < end; i++, slot++) {
		if (slot >= rings->n_slots)
			slot = 0;
		if (rings->inbox[slot])
			entry = take(rings->inbox[slot], entry, end);
	}
	rings->turn = rings->turn + 1 < rings->n_slots ? rings->turn + 1 : 0;
	return entry == begin ? -FI_EAGAIN : entry - begin;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	(void)cq, (void)entry, (void)flags;
	return -FI_EAGAIN;
}

static int cq_close(struct fid *fid)
{
	struct dofi_rings *rings = rings_of((struct fid_cq *)fid);

	dofi_sealed_unmap(rings->doorbell, sizeof(*rings->doorbell));
	close(rings->doorbell_fd);
	free(rings->inbox);
	free(rings);
	return 0;
}

static struct fi_ops cq_fid_ops = { .size = sizeof(cq_fid_ops), .close = cq_close };
static struct fi_ops_cq cq_ops = { .size = sizeof(cq_ops), .read = cq_read, .readerr = cq_readerr };

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		   void *context)
{
	struct dofi_rings *rings;
	void *at;

	(void)domain;
	if (attr->wait_obj != FI_WAIT_NONE)
		return -FI_ENOSYS;
	rings = calloc(1, sizeof(*rings));
	if (!rings)
		return -ENOMEM;
	rings->doorbell_fd = dofi_sealed_make(sizeof(*rings->doorbell), &at);
	if (rings->doorbell_fd < 0) {
		const int ret = rings->doorbell_fd;

		free(rings);
		return ret;
	}
	rings->doorbell = at;
	rings->lead = (struct dofi_lead_word){
		.word = &rings->doorbell->wants,
		.bit = DOFI_DOORBELL_LEADER,
		.search = &rings->all_due,
	};
	rings->fid.fid = (struct fid){
		.fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops,
	};
	rings->fid.ops = &cq_ops;
	*cq = &rings->fid;
	return 0;
}

/* The domain, which has no state */

static int nothing_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

static struct fi_ops fid_ops = { .size = sizeof(fid_ops), .close = nothing_close };
static struct fi_ops_domain domain_ops = { .size = sizeof(domain_ops), .cq_open = cq_open };
static struct fid_domain the_domain = {
	.fid = { .fclass = FI_CLASS_DOMAIN, .ops = &fid_ops }, .ops = &domain_ops,
};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **domain, void *context)
{
	(void)fabric, (void)info, (void)context;
	*domain = &the_domain;
	return 0;
}

static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops), .domain = domain_open };
struct fid_fabric dofi_rings_fabric = {
	.fid = { .fclass = FI_CLASS_FABRIC, .ops = &fid_ops }, .ops = &fabric_ops,
};

/* The set */

struct dofi_rings *dofi_rings_of(const struct dofi_cq *cq)
{
	return rings_of(cq->fid);
}

int dofi_rings_begin(struct dofi_rings *rings, struct dofi_cq *cq,
		     const struct dofi_rings_user *user, void *owner, const struct dofi_bell *bell,
		     struct dofi_grants *grants)
{
	const uint32_t high = dofi_random(), low = dofi_random();

	if (!high || !low)
		return -EIO;
	rings->cq = cq;
	rings->user = user;
	rings->owner = owner;
	rings->grants = grants;
	TAILQ_INIT(&rings->inboxes);
	LIST_INIT(&rings->outboxes);
	rings->doorbell->key = (uint64_t)high << 32 | low;
	memcpy(rings->doorbell->bell, bell->name, sizeof(bell->name));
	return 0;
}

int dofi_rings_add(struct dofi_rings *rings, struct dofi_inbox *inbox)
{
	const uint32_t capacity = rings->capacity ? 2 * rings->capacity : FEW;
	struct dofi_inbox **more;
	uint32_t slot = 0;

	while (slot < rings->n_slots && rings->inbox[slot])
		slot++;
	if (slot == rings->capacity) {
		more = realloc(rings->inbox, capacity * sizeof(*more));
		if (!more)
			return -ENOMEM;
		rings->inbox = more;
		rings->capacity = capacity;
	}
	inbox->slot = slot;
	rings->inbox[slot] = inbox;
	if (slot == rings->n_slots)
		rings->n_slots++;
	if (rings->n_slots > FEW && !rings->marks) {
		/*
		 * Requests marks, and then covers all rings in the next read. A producer publishes
		 * a frame before it loads wants: it sees the request, or that read finds the frame.
		 */
		rings->marks = true;
		atomic_fetch_or(&rings->doorbell->wants, DOFI_DOORBELL_MARK);
		atomic_store(&rings->all_due, true);
	}
	atomic_store(&inbox->link->slot, slot);
	return 0;
}

void dofi_rings_remove(struct dofi_rings *rings, struct dofi_inbox *inbox)
{
	rings->inbox[inbox->slot] = NULL;
	while (rings->n_slots && !rings->inbox[rings->n_slots - 1])
		rings->n_slots--;
	if (rings->turn > rings->n_slots)
		rings->turn = 0;
	if (rings->marks && rings->n_slots <= FEW) {
		rings->marks = false;
		rings->due = 0;
		atomic_fetch_and(&rings->doorbell->wants, ~(uint32_t)DOFI_DOORBELL_MARK);
	}
}

bool dofi_rings_took_end(struct dofi_rings *rings)
{
	return atomic_load(&rings->doorbell->ended) &&
	       atomic_exchange(&rings->doorbell->ended, 0);
}

/* The caller reads after it has requested wakeups: it misses no frame, as in dofi_rings_add(). */
void dofi_rings_sleep_begin(struct dofi_rings *rings)
{
	atomic_fetch_or(&rings->doorbell->wants, DOFI_DOORBELL_WAKE);
	atomic_store(&rings->all_due, true);
}

void dofi_rings_sleep_end(struct dofi_rings *rings)
{
	if (atomic_load_explicit(&rings->doorbell->wants, memory_order_relaxed) &
	    DOFI_DOORBELL_WAKE)
		atomic_fetch_and(&rings->doorbell->wants, ~(uint32_t)DOFI_DOORBELL_WAKE);
}
