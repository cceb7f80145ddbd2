/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The leader of a CQ: a program's thread that sleeps on the CQ itself. */

#include "fab/lead.h"

#include "base/clock.h"
#include "base/nap.h"
#include "fab/cq.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * If they cannot be opened, the CQ has no leaders, and the progress thread wakes waiting threads.
 */
static void descriptors_open(struct dofi_lead *lead)
{
	lead->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lead->signals = lead->wakeup_fd < 0 ? -1 : dofi_nap_open();
}

static void descriptors_close(struct dofi_lead *lead)
{
	if (lead->wakeup_fd >= 0)
		close(lead->wakeup_fd);
	if (lead->signals >= 0)
		close(lead->signals);
}

/*
 * A descriptor that does not report failures would not wake the leader. Such a CQ has no leader:
 * the progress thread reads it.
 */
void dofi_lead_open(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	struct dofi_lead *lead = &cq->lead;

	dofi_mutex_assert_held(&cq->lock);
	lead->wakeup_fd = lead->signals = -1;
	atomic_store(&lead->word, NULL);
	atomic_store(&lead->taken, false);
	dofi_cond_init(&lead->left);
	if (cq->fd >= 0 && !cq->silent_errors)
		descriptors_open(lead);
	lead->able = lead->signals >= 0;
}

void dofi_lead_expel(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	struct dofi_lead *lead = &cq->lead;
	const bool able = lead->able;

	dofi_mutex_assert_held(&cq->lock);
	lead->able = false;		/* the leader cannot lead again before this thread runs */
	while (atomic_load(&lead->taken)) {
		dofi_lead_depose(lead);
		dofi_cond_wait(&lead->left, &cq->lock, DOFI_NEVER);
	}
	lead->able = able;
}

void dofi_lead_close(struct dofi_cq *cq) DOFI_NEEDS(cq->lock)
{
	struct dofi_lead *lead = &cq->lead;

	dofi_mutex_assert_held(&cq->lock);
	dofi_lead_expel(cq);
	lead->able = false;
	descriptors_close(lead);
	lead->wakeup_fd = lead->signals = -1;
	atomic_store(&lead->word, NULL);
}

void dofi_lead_set_word(struct dofi_cq *cq, const struct dofi_lead_word *word)
{
	dofi_mutex_lock(&cq->lock);
	if (cq->fd < 0) {
		atomic_store(&cq->lead.word, word);
		cq->lead.able = word != NULL;
	}
	dofi_mutex_unlock(&cq->lock);
}

/*
 * Returns the CQ to be led, or NULL. Sets *@read to false if the leader can sleep without a read.
 */
static struct fid_cq *take(struct dofi_cq *cq, bool *read)
{
	struct dofi_lead *lead = &cq->lead;
	struct fid_cq *fid = NULL;

	dofi_mutex_lock(&cq->lock);
	if (lead->able && !lead->taken && !atomic_load(&cq->sleepers)) {
		fid = cq->fid;
		atomic_store(&lead->taken, fid != NULL);
		atomic_store_explicit(&cq->led, true, memory_order_relaxed);
		dofi_cq_route(cq);
	}
	*read = cq->fd < 0 || cq->several || cq->left || !cq->trywait_reads ||
		dofi_cq_wants_sweep(cq);
	dofi_mutex_unlock(&cq->lock);
	return fid;
}

/* Returns 0 if the caller may sleep, or an error of dofi_lead_begin(). */
static int prepare(struct dofi_cq *cq, struct fid_cq *fid, bool read)
{
	const struct dofi_lead_word *word = atomic_load(&cq->lead.word);

	if (word)
		dofi_lead_word_ask(word);
	if (read && dofi_cq_drain(cq))
		return -EAGAIN;
	if (dofi_cq_wants_sweep_now(cq))
		return -EBUSY;
	if (dofi_cq_can_sleep(cq, fid))
		return 0;
	dofi_cq_drain(cq);
	return -EAGAIN;
}

int dofi_lead_begin(struct dofi_cq *cq)
{
	struct fid_cq *fid;
	bool read;
	int err;

	if (!dofi_lead_is_able(&cq->lead))
		return -EBUSY;
	fid = take(cq, &read);
	if (!fid)
		return -EBUSY;
	err = prepare(cq, fid, read);
	if (err)
		dofi_lead_end(cq);
	return err;
}

/* Sleeps until a peer wakes the leader, but no longer than dofi_longest_rest_ns. */
static int sleep_on_word(const struct dofi_lead_word *w, struct dofi_cond *cond,
			 struct dofi_mutex *lock, int64_t deadline) DOFI_NEEDS(*lock)
{
	const uint32_t value = atomic_load(w->word);
	const int64_t most = dofi_now() + dofi_longest_rest_ns;
	int err;

	if (!(value & w->bit))
		return 0;
	err = dofi_cond_wait_word(cond, lock, most < deadline ? most : deadline, w->word, value);
	return err == -ETIMEDOUT && most < deadline ? 0 : err;
}

int dofi_lead_sleep(struct dofi_cq *cq, struct dofi_cond *cond, struct dofi_mutex *lock,
		    int64_t deadline)
{
	const struct dofi_lead *lead = &cq->lead;
	const struct dofi_lead_word *w = atomic_load(&lead->word);

	dofi_mutex_assert_held(lock);
	if (cq->fd >= 0)
		return dofi_cond_wait_fd(cond, lock, deadline, cq->fd, lead->wakeup_fd,
					 lead->signals);
	return w ? sleep_on_word(w, cond, lock, deadline) : 0;
}

void dofi_lead_end(struct dofi_cq *cq)
{
	dofi_mutex_lock(&cq->lock);
	atomic_store(&cq->lead.taken, false);
	dofi_cq_route(cq);
	dofi_cond_broadcast(&cq->lead.left);
	dofi_mutex_unlock(&cq->lock);
}

void dofi_lead_depose(struct dofi_lead *lead)
{
	const struct dofi_lead_word *word;

	if (!atomic_load(&lead->taken))
		return;
	word = atomic_load(&lead->word);
	if (word)
		dofi_lead_word_end(word);
	else if (lead->wakeup_fd >= 0)
		dofi_nap_end(lead->wakeup_fd);
}
