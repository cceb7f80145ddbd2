/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A fabric of our own for peers on the same host: a completion queue over a set of rings. */

#include "rings/rings.h"

#include "base/layout.h"
#include "base/shm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With up to this many rings, each read covers all; with more, only the marked ones. */
#define FEW 8

/* How many frames of a ring are taken before the next one's. */
#define AT_A_TIME 8

struct dofi_rings {
	struct fid_cq cq;
	struct fid_ep ep;
	struct dofi_doorbell *doorbell;
	int doorbell_fd;

	/* under the lock of the CQ, but for all_due */
	struct dofi_link **link;	/* by slot; NULL in a free slot */
	uint32_t n_slots;		/* slots up to the last one in use */
	uint32_t capacity;		/* slots that the array has */
	uint32_t turn;			/* the slot, or mark, that the next read begins with */
	bool marks;			/* peers mark their rings, as there were more than FEW */
	uint64_t due[DOFI_DOORBELL_WORDS]; /* marks that were taken from the doorbell */
	uint64_t due_words;		/* a bit for each word of due that is not 0 */
	_Atomic bool all_due;		/* the next read covers all rings; any thread */
	struct dofi_lead_word lead;	/* DOFI_DOORBELL_LEADER of the doorbell */
};

static struct dofi_rings *rings_of(struct fid_cq *cq)
{
	return DOFI_CONTAINER_OF(cq, struct dofi_rings, cq);
}

/* Frames */

static struct fi_cq_data_entry *broken(struct dofi_link *link, struct fi_cq_data_entry *entry)
{
	if (!link->in.broken || link->reported)
		return entry;
	link->reported = true;
	*entry = (struct fi_cq_data_entry){ .op_context = link };
	return entry + 1;
}

/* Takes frames of @link into @entry and on, up to @end. Returns the next entry. */
static struct fi_cq_data_entry *take(struct dofi_link *link, struct fi_cq_data_entry *entry,
				     const struct fi_cq_data_entry *end)
{
	struct dofi_ring_record record;

	if (end - entry > AT_A_TIME)
		end = entry + AT_A_TIME;
	for (; entry < end && dofi_ring_take(&link->in, &record); entry++) {
		entry->op_context = link;
		entry->flags = FI_RECV;
		entry->len = record.len;
		entry->buf = (void *)(uintptr_t)record.data;
		entry->data = record.end;
	}
	return entry < end ? broken(link, entry) : entry;
}

/* Returns the first ring in the slots from @from to before @to that has a record, or NULL. */
static inline struct dofi_link *find_from(struct dofi_rings *rings, uint32_t from, uint32_t to)
{
	struct dofi_link **links = rings->link, *link;
	uint32_t slot;

	for (slot = from; slot < to; slot++) {
		link = links[slot];
		if (link && dofi_ring_has(&link->in)) {
			rings->turn = slot + 1 < rings->n_slots ? slot + 1 : 0;
			return link;
		}
	}
	return NULL;
}

/* Marks */

static void due_set(struct dofi_rings *rings, uint32_t mark)
{
	rings->due[mark / 64] |= 1ull << mark % 64;
	rings->due_words |= 1ull << mark / 64;
}

static void due_clear(struct dofi_rings *rings, uint32_t mark)
{
	rings->due[mark / 64] &= ~(1ull << mark % 64);
	if (!rings->due[mark / 64])
		rings->due_words &= ~(1ull << mark / 64);
}

/*
 * Collects the marks of all rings that the next read, or search, has to cover.
 *
 * Takes the marks from the doorbell, before their rings are read: a producer that finds a mark set
 * does not set it again, and the frame that it published before is read after the mark was cleared.
 * The first load may be relaxed: a read that must miss nothing covers all rings (all_due). The load
 * of all_due may be relaxed: the thread that has set it reads under the CQ lock, and finds it set
 * unless another read has covered all rings since.
 */
static void due_collect(struct dofi_rings *rings)
{
	struct dofi_doorbell *doorbell = rings->doorbell;
	uint64_t words = 0;
	uint32_t slot;
	int i;

	if (atomic_load_explicit(&doorbell->marked, memory_order_relaxed))
		words = atomic_exchange(&doorbell->marked, 0);
	for (; words; words &= words - 1) {
		i = __builtin_ctzll(words);
		rings->due[i] |= atomic_exchange(&doorbell->mark[i], 0);
		if (rings->due[i])
			rings->due_words |= 1ull << i;
	}
	if (atomic_load_explicit(&rings->all_due, memory_order_relaxed) &&
	    atomic_exchange(&rings->all_due, false))
		for (slot = 0; slot < rings->n_slots && slot < DOFI_DOORBELL_MARKS; slot++)
			due_set(rings, slot);
}

/* Returns the first due mark from rings->turn on, or else from the beginning. */
static uint32_t due_next(const struct dofi_rings *rings)
{
	const uint32_t turn = rings->turn % DOFI_DOORBELL_MARKS, w = turn / 64;
	const uint64_t here = rings->due[w] & ~0ull << turn % 64;
	uint64_t words = w < 63 ? rings->due_words & ~0ull << (w + 1) : 0;
	int i;

	if (here)
		return w * 64 + __builtin_ctzll(here);
	if (!words)
		words = rings->due_words;
	i = __builtin_ctzll(words);
	return i * 64 + __builtin_ctzll(rings->due[i]);
}

/* Returns a ring with @mark that has a record, or NULL. */
static struct dofi_link *find_with(const struct dofi_rings *rings, uint32_t mark)
{
	uint32_t slot;

	for (slot = mark; slot < rings->n_slots; slot += DOFI_DOORBELL_MARKS)
		if (rings->link[slot] && dofi_ring_has(&rings->link[slot]->in))
			return rings->link[slot];
	return NULL;
}

/* The mark of the ring stays due, as the ring may have more records. */
static struct dofi_link *find_in_many(struct dofi_rings *rings)
{
	struct dofi_link *link = NULL;
	uint32_t mark;

	due_collect(rings);
	while (!link && rings->due_words) {
		mark = due_next(rings);
		link = find_with(rings, mark);
		if (!link)
			due_clear(rings, mark);
		rings->turn = mark + 1;
	}
	return link;
}

/* An empty poll ends here, so it saves few registers. */
bool dofi_rings_poll(struct dofi_cq *cq, struct dofi_sink *sink)
{
	struct dofi_rings *rings = rings_of(cq->fid);
	struct dofi_link *link;

	dofi_mutex_assert_held(&cq->lock);
	if (__builtin_expect(rings->marks, 0)) {
		link = find_in_many(rings);
	} else {
		link = find_from(rings, rings->turn, rings->n_slots);
		if (!link)
			link = find_from(rings, 0, rings->turn);
	}
	return !link || link->user->poll(link, sink);
}

/* The completion queue: an entry has the link, the frame in the ring, and the end of its record */

void dofi_rings_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	struct dofi_link *link = entry->op_context;

	(void)err;
	link->user->arrived(link, entry->buf, entry->len, sink);
	if (entry->buf)
		dofi_ring_release(&link->in, entry->data);
}

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct dofi_rings *rings = rings_of(cq);
	struct fi_cq_data_entry *begin = buf, *entry = buf;
	const struct fi_cq_data_entry *end = entry + count;
	uint32_t i, mark, slot = rings->turn;

	if (!rings->marks) {
		for (i = 0; i < rings->n_slots && entry < end; i++, slot++) {
			if (slot >= rings->n_slots)
				slot = 0;
			if (rings->link[slot])
				entry = take(rings->link[slot], entry, end);
		}
		rings->turn = rings->turn + 1 < rings->n_slots ? rings->turn + 1 : 0;
		return entry == begin ? -FI_EAGAIN : entry - begin;
	}
	due_collect(rings);
	while (rings->due_words && entry < end) {
		mark = due_next(rings);
		for (slot = mark; slot < rings->n_slots; slot += DOFI_DOORBELL_MARKS)
			if (rings->link[slot])
				entry = take(rings->link[slot], entry, end);
		/* the mark stays due if a ring may have more */
		if (!find_with(rings, mark))
			due_clear(rings, mark);
		rings->turn = mark + 1;
	}
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
	free(rings->link);
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
	rings->cq.fid = (struct fid){
		.fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops,
	};
	rings->cq.ops = &cq_ops;
	*cq = &rings->cq;
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

struct fid_ep *dofi_rings_ep(struct dofi_rings *rings)
{
	return &rings->ep;
}

const struct dofi_lead_word *dofi_rings_lead(const struct dofi_rings *rings)
{
	return &rings->lead;
}

void dofi_rings_set_bell(struct dofi_rings *rings, const struct dofi_bell *bell)
{
	memcpy(rings->doorbell->bell, bell->name, sizeof(bell->name));
}

int dofi_rings_doorbell(const struct dofi_rings *rings)
{
	return rings->doorbell_fd;
}

int dofi_rings_add(struct dofi_rings *rings, struct dofi_link *link)
{
	const uint32_t capacity = rings->capacity ? 2 * rings->capacity : FEW;
	struct dofi_link **more;
	uint32_t slot = 0;

	while (slot < rings->n_slots && rings->link[slot])
		slot++;
	if (slot == rings->capacity) {
		more = realloc(rings->link, capacity * sizeof(*more));
		if (!more)
			return -ENOMEM;
		rings->link = more;
		rings->capacity = capacity;
	}
	link->slot = slot;
	rings->link[slot] = link;
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
	dofi_link_show_slot(link);
	return 0;
}

void dofi_rings_remove(struct dofi_rings *rings, struct dofi_link *link)
{
	rings->link[link->slot] = NULL;
	while (rings->n_slots && !rings->link[rings->n_slots - 1])
		rings->n_slots--;
	if (rings->turn > rings->n_slots)
		rings->turn = 0;
}

bool dofi_rings_took_end(struct dofi_rings *rings)
{
	return atomic_load(&rings->doorbell->ended) &&
	       atomic_exchange(&rings->doorbell->ended, false);
}

/* As dofi_rings_add() for marks: the caller reads after it has requested wakeups. */
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
