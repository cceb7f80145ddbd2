/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a completion queue: by the program's threads, or for them. */

#include "fab/cq.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "fab/wc.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* Software CQs grow beyond it by themselves. */
#define CQ_SIZE 4096

#define SHARD_SIZE 256			/* of a further shard, which has few endpoints */

#define LEAST_FIXED_SIZE 1024		/* more than an endpoint takes */

/* Polls that another thread's work refuses before one gives it the processor: a read takes fewer. */
#define REFUSALS 64

void dofi_cq_init(struct dofi_cq *cq)
{
	dofi_mutex_init(&cq->lock);
	dofi_mutex_init(&cq->access);
	atomic_init(&cq->shards, NULL);
	cq->several = false;
}

static void cq_ready(struct dofi_source *source)
{
	struct dofi_cq *cq = (struct dofi_cq *)((char *)source - offsetof(struct dofi_cq, source));

	cq->fired = true;
}

/* Lets epoll tell once when there is something to read. */
static int watch(struct dofi_cq *cq)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = &cq->source };

	if (cq->fd < 0)
		return 0;
	if (epoll_ctl(cq->progress->epfd, cq->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, cq->fd, &ev))
		return -errno;
	cq->watched = true;
	return 0;
}

static void forget(struct dofi_cq *cq)
{
	if (cq->watched)
		epoll_ctl(cq->progress->epfd, EPOLL_CTL_DEL, cq->fd, NULL);
	cq->watched = false;
}

/*
 * A descriptor that epoll knows and ignores still costs the kernel time with each packet. But to add the set of
 * several shards again would make the kernel look for loops in it, at each socket.
 */
static void unwatch(struct dofi_cq *cq)
{
	struct epoll_event none = { .events = EPOLLONESHOT, .data.ptr = &cq->source };

	if (!cq->several)
		forget(cq);
	else if (cq->watched)
		epoll_ctl(cq->progress->epfd, EPOLL_CTL_MOD, cq->fd, &none);
}

/*
 * A read takes what would have woken a sleeping thread for completions behind it: the progress thread when ARMED, or
 * the leader. Each read then has to take all. The thread that is going to sleep drains the CQ after this, with the
 * lock, and so after a read that was begun before.
 */
static bool read_takes_all(const struct dofi_cq *cq)
{
	return atomic_load(&cq->mode) == DOFI_CQ_ARMED || dofi_lead_is_taken(&cq->lead);
}

void dofi_cq_route(struct dofi_cq *cq)
{
	const bool direct = !read_takes_all(cq) && !cq->gate && !cq->mixed && !cq->several;

	atomic_store(&cq->programs_fid, direct ? cq->fid : NULL);
}

static void set_mode(struct dofi_cq *cq, enum dofi_cq_mode mode)
{
	const bool was_armed = atomic_load(&cq->mode) == DOFI_CQ_ARMED;

	if (was_armed == (mode == DOFI_CQ_ARMED)) {
		atomic_store(&cq->mode, mode);
		return;
	}
	dofi_mutex_lock(&cq->lock);
	atomic_store(&cq->mode, mode);
	dofi_cq_route(cq);
	dofi_mutex_unlock(&cq->lock);
}

void dofi_cq_set_gate(struct dofi_cq *cq, struct dofi_gate *gate)
{
	dofi_mutex_lock(&cq->lock);
	cq->gate = gate;
	cq->skips = 0;
	cq->turned_away = 0;
	atomic_store(&cq->programs_fid, NULL);
	dofi_mutex_unlock(&cq->lock);
}

/* Memory that is shared, and some devices, have nothing that epoll could watch. */
static int fid_open_of(struct fid_domain *domain, size_t size, struct fid_cq **fid, int *fd)
{
	struct fi_cq_attr attr = {
		.size = size,
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_FD,	/* FI_WAIT_UNSPEC would make FI_GETWAIT write a larger thing */
	};
	int ret = fi_cq_open(domain, &attr, fid, NULL);

	if (ret == -FI_ENOSYS) {
		*fd = -1;
		attr.wait_obj = FI_WAIT_NONE;
		return fi_cq_open(domain, &attr, fid, NULL);
	}
	if (ret)
		return ret;
	ret = fi_control(&(*fid)->fid, FI_GETWAIT, fd);
	if (ret)
		fi_close(&(*fid)->fid);
	return ret;
}

static int fid_open(struct dofi_cq *cq, struct fid_domain *domain, struct fid_cq **fid)
{
	unsigned size = cq->places;
	int ret;

	if (!cq->fixed)
		return fid_open_of(domain, CQ_SIZE, fid, &cq->fd);
	for (;;) {
		ret = fid_open_of(domain, size, fid, &cq->fd);
		if (!ret || size / 2 < LEAST_FIXED_SIZE)
			break;
		size /= 2;
	}
	cq->places = size;
	return ret;
}

int dofi_cq_open(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain)
{
	return dofi_cq_open_for(cq, progress, domain, progress->ops);
}

int dofi_cq_open_for(struct dofi_cq *cq, struct dofi_progress *progress, struct fid_domain *domain,
		     const struct dofi_progress_ops *ops)
{
	struct fid_cq *fid;
	int ret;

	ret = fid_open(cq, domain, &fid);
	if (ret)
		goto log;
	cq->source.ready = cq_ready;
	cq->progress = progress;
	cq->watched = false;
	ret = watch(cq);
	if (ret)
		goto close_cq;
	dofi_mutex_lock(&cq->lock);
	cq->fid = cq->first.fid = fid;
	cq->first.fd = cq->fd;
	cq->first.endpoints = 0;
	cq->domain = domain;
	cq->gate = NULL;
	cq->ops = ops;
	cq->completed = ops->completed;
	cq->mixed = ops->mixed;
	cq->owner = NULL;
	cq->left = 0;
	cq->most = 1;
	atomic_store(&cq->mode, DOFI_CQ_ARMED);
	dofi_cq_route(cq);
	dofi_lead_open(cq);
	dofi_mutex_unlock(&cq->lock);
	atomic_store(&cq->sleepers, 0);
	atomic_store(&cq->sweeps_done, atomic_load(&cq->sweeps_wanted));
	atomic_store(&cq->polled, false);
	atomic_store(&cq->taken, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->pause_us = dofi_settings.probe_us;
	cq->silent = 0;
	cq->fired = true;	/* arms it in the next round */
	TAILQ_INSERT_TAIL(&progress->cqs, cq, link);
	return 0;

close_cq:
	fi_close(&fid->fid);
log:
	dofi_log(DOFI_WARN, DOFI_FAB, "opening a completion queue: %s", fi_strerror(-ret));
	return ret;
}

void dofi_cq_close(struct dofi_cq *cq)
{
	struct fid_cq *fid = cq->fid;
	int ret;

	TAILQ_REMOVE(&cq->progress->cqs, cq, link);
	forget(cq);
	dofi_mutex_lock(&cq->lock);
	cq->fid = NULL;
	atomic_store(&cq->programs_fid, NULL);
	dofi_lead_close(cq);
	if (cq->several)
		dofi_shards_close(cq->shards);
	cq->several = false;
	dofi_mutex_unlock(&cq->lock);
	ret = fi_close(&fid->fid);
	if (ret)
		dofi_log(DOFI_WARN, DOFI_FAB, "closing a completion queue: %s", fi_strerror(-ret));
}

/* Shards */

/* From now on the shards are read: a thread that polls the first alone holds the lock meanwhile. */
static int shards_begin(struct dofi_cq *cq)
{
	int ret;

	if (!cq->shards)
		cq->shards = calloc(1, sizeof(*cq->shards));
	if (!cq->shards)
		return -ENOMEM;
	dofi_mutex_lock(&cq->lock);
	dofi_lead_expel(cq);	/* it sleeps on the descriptor of the first shard */
	ret = dofi_shards_open(cq->shards, &cq->first);
	if (!ret) {
		forget(cq);
		cq->several = true;
		cq->fd = cq->shards->set;
		atomic_store(&cq->programs_fid, NULL);
	}
	dofi_mutex_unlock(&cq->lock);
	return ret;
}

static int shard_add(struct dofi_cq *cq)
{
	struct fid_cq *fid;
	int fd, ret = 0;

	if (!cq->several)
		ret = shards_begin(cq);
	if (!ret)
		ret = fid_open_of(cq->domain, SHARD_SIZE, &fid, &fd);
	if (ret)
		return ret;
	dofi_mutex_lock(&cq->lock);
	ret = fd < 0 ? -FI_ENOSYS : dofi_shards_add(cq->shards, fid, fd);
	dofi_mutex_unlock(&cq->lock);
	if (ret)
		fi_close(&fid->fid);
	return ret;
}

static struct dofi_shard *shard_with_room(struct dofi_cq *cq)
{
	if (cq->several)
		return dofi_shards_with_room(cq->shards);
	return cq->first.endpoints < DOFI_SHARD_ENDPOINTS ? &cq->first : NULL;
}

struct dofi_shard *dofi_cq_enter_shard(struct dofi_cq *cq)
{
	struct dofi_shard *shard = cq->reads_each && cq->fd >= 0 ? shard_with_room(cq) : &cq->first;
	int ret;

	if (!shard) {
		ret = shard_add(cq);
		/* its descriptor is another now, or the set has one more: arms it in the next round */
		cq->fired = true;
		if (ret)
			dofi_log(DOFI_INFO, DOFI_FAB, "endpoints share a completion queue: %s", fi_strerror(-ret));
		shard = ret ? &cq->first : shard_with_room(cq);
	}
	shard->endpoints++;
	return shard;
}

void dofi_cq_leave_shard(struct dofi_cq *cq, struct dofi_shard *shard)
{
	if (cq->several)
		dofi_shards_leave(cq->shards, shard);
	else
		shard->endpoints--;
}

ssize_t dofi_cq_read_shards(struct dofi_cq *cq)
{
	ssize_t n = cq->left;

	if (!n)
		return dofi_shards_read(cq->shards, cq->progress->fabric, cq->entry, DOFI_CQ_BATCH);
	memmove(cq->entry, cq->next, n * sizeof(*cq->entry));
	cq->left = 0;
	return n;
}

/* The next failed completion; false when there is none. Needs the lock. */
static bool read_error(struct dofi_cq *cq, struct dofi_sink *sink)
{
	struct fi_cq_err_entry e = { 0 };
	struct fi_cq_data_entry entry;
	ssize_t n;

	dofi_cq_enter(cq);
	n = fi_cq_readerr(cq->several ? cq->shards->last->fid : cq->fid, &e, 0);
	dofi_cq_exit(cq);
	if (n < 1)
		return false;
	entry = (struct fi_cq_data_entry){
		.op_context = e.op_context, .flags = e.flags, .len = e.len,
	};
	/* shm of libfabric 1.17 reports negative errors */
	cq->completed(&entry, cq->wc_errors ? dofi_wc_errno(e.prov_errno, e.err) : abs(e.err),
		      sink);
	/* mostly a connection ended, and the fabric has written that event, too */
	dofi_progress_expect(cq->progress);
	return true;
}

/* Hands over what a read brought; how much it was, or DOFI_CQ_BATCH where more may be behind. */
static ssize_t hand_over(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink)
{
	ssize_t i;

	for (i = 0; i < n; i++)
		cq->completed(&cq->entry[i], 0, sink);
	if (n == -FI_EAVAIL)
		return read_error(cq, sink) ? DOFI_CQ_BATCH : 0;
	return n;
}

static ssize_t deal_with(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink)
{
	if (n < 0 && n != -FI_EAGAIN && n != -FI_EAVAIL)
		dofi_progress_fail(cq->progress, n);
	return hand_over(cq, n, sink);
}

/*
 * A read may leave some behind: of a batch that was full, or that ended before a failed
 * completion.
 */
static bool left_behind(const struct dofi_cq *cq, ssize_t n)
{
	return n == DOFI_CQ_BATCH || (n > 0 && read_takes_all(cq));
}

/* Who asks from here on, swept() itself too, asks for another one. Needs the lock. */
static void sweep(struct dofi_cq *cq)
{
	unsigned wanted;

	if (!dofi_cq_wants_sweep(cq) || !cq->fid)
		return;
	wanted = atomic_load(&cq->sweeps_wanted);
	cq->ops->swept(cq);
	atomic_store(&cq->sweeps_done, wanted);
}

void dofi_cq_want_sweep(struct dofi_cq *cq)
{
	unsigned before = atomic_fetch_add(&cq->sweeps_wanted, 1);

	/*
	 * Where one was wanted before, the progress thread knows. Else it sleeps, or is about to:
	 * it stores the mode before it looks at what is wanted.
	 */
	if (before == atomic_load(&cq->sweeps_done) && atomic_load(&cq->mode) == DOFI_CQ_ARMED &&
	    !dofi_progress_on_thread(cq->progress))
		dofi_progress_ring(cq->progress);
	/* a thread that sleeps on the CQ itself cannot serve it by the clock */
	dofi_lead_depose(&cq->lead);
}

ssize_t dofi_cq_read_behind_left(struct dofi_cq *cq, struct fid_cq *fid)
{
	const unsigned left = cq->left;
	ssize_t n;

	memmove(cq->entry, cq->next, left * sizeof(*cq->entry));
	cq->left = 0;
	n = dofi_cq_read_from(cq, fid, left, DOFI_CQ_BATCH - left);
	return n > 0 ? left + n : left;
}

void dofi_cq_go_on(struct dofi_cq *cq, ssize_t n, struct dofi_sink *sink)
{
	while (left_behind(cq, deal_with(cq, n, sink)))
		n = dofi_cq_read(cq);
	sweep(cq);
	dofi_cq_leave(cq);
}

void dofi_cq_go_on_with(struct dofi_cq *cq, const struct fi_cq_data_entry *entry, struct dofi_sink *sink)
{
	cq->completed(entry, 0, sink);
	sweep(cq);
	dofi_cq_leave(cq);
}

/*
 * The thread that holds the lock delivers to every EVD, the caller's included, once it runs: where
 * processors are few it may be the caller that keeps it from that, for as long as the scheduler lets
 * him poll.
 */
static __attribute__((noinline)) void give_way(struct dofi_cq *cq)
{
	if (atomic_fetch_add_explicit(&cq->refused, 1, memory_order_relaxed) % REFUSALS == REFUSALS - 1)
		sched_yield();
}

void dofi_cq_poll(struct dofi_cq *cq, struct dofi_sink *sink)
{
	if (dofi_cq_try(cq))
		dofi_cq_go_on(cq, dofi_cq_read(cq), sink);
	else
		give_way(cq);
}

/* Whoever sees that there is nothing may sleep, and not because somebody else was at the gate. */
static ssize_t read_patiently(struct dofi_cq *cq)
{
	ssize_t n = -FI_EAGAIN;

	if (cq->several && cq->fid)
		return dofi_cq_read_shards(cq);
	if (cq->fid && dofi_gate_enter(cq->gate)) {
		n = dofi_cq_read_batch(cq, cq->fid);
		dofi_gate_leave(cq->gate);
	}
	return n;
}

void dofi_cq_poll_next(struct dofi_cq *cq)
{
	struct fid_cq *fid;
	ssize_t n;

	if (!dofi_cq_try(cq)) {
		give_way(cq);
		return;
	}
	fid = atomic_load_explicit(&cq->programs_fid, memory_order_relaxed);
	if (!fid) {
		dofi_cq_go_on(cq, dofi_cq_read(cq), NULL);
		return;
	}
	if (cq->left) {
		dofi_cq_go_on_with(cq, dofi_cq_take_left(cq), NULL);
		return;
	}
	n = dofi_cq_read_some(cq, fid);
	if (n < 1)
		dofi_cq_go_on(cq, n, NULL);
	else
		dofi_cq_go_on_with(cq, cq->entry, NULL);
}

bool dofi_cq_drain(struct dofi_cq *cq)
{
	bool found = false;

	dofi_mutex_lock(&cq->lock);
	while (deal_with(cq, read_patiently(cq), NULL) > 0)
		found = true;
	sweep(cq);
	dofi_mutex_unlock(&cq->lock);
	return found;
}

void dofi_cq_kick(struct dofi_cq *cq, struct dofi_shard *shard)
{
	dofi_cq_ask(cq, shard);
	if (read_takes_all(cq))
		dofi_cq_drain(cq);
}

void dofi_cq_sleep_begin(struct dofi_cq *cq)
{
	/* pairs with the check of sleepers after mode is stored in yield_to_program() */
	atomic_fetch_add(&cq->sleepers, 1);
	if (atomic_load(&cq->mode) != DOFI_CQ_ARMED || cq->progress->silent_errors)
		dofi_progress_ring(cq->progress);
}

void dofi_cq_sleep_end(struct dofi_cq *cq)
{
	atomic_fetch_sub(&cq->sleepers, 1);
}

/* One read may take longer than the time between two looks: it copies what has arrived. */
static bool being_read(struct dofi_cq *cq)
{
	if (!dofi_mutex_try(&cq->lock))
		return true;
	dofi_mutex_unlock(&cq->lock);
	return false;
}

/*
 * A look at a busy program takes ten microseconds from it, in a virtual machine far more. The longer
 * it is at work, the longer it is left alone: up to so many ticks. If no peer depends on the looks
 * they are rare from the beginning: a thread that waits, here, is a sleeper.
 */
#define RAREST_LOOK 4
#define OFFLOADED_LOOK 64

/*
 * How long the program has the CQ for itself: briefly at first and while it posts alone, then longer each time. It
 * grows slowly, as a program that polls in bursts would get to long pauses otherwise, in which its peers wait for
 * their answers and poll themselves meanwhile. A look that found no poll halves it and no more: on a busy machine
 * the scheduler may have kept a polling thread from its processor. A leader reads the CQ as soon as something
 * arrives, however long that takes: after a short pause both threads would be woken.
 */
static long next_pause(const struct dofi_cq *cq, bool posts_alone, bool led)
{
	const long tick = dofi_settings.tick_us, most = tick * (cq->offloaded ? OFFLOADED_LOOK : RAREST_LOOK);
	long pause = cq->pause_us + (cq->pause_us + 3) / 4;

	if (atomic_load(&cq->mode) == DOFI_CQ_ARMED)
		pause = cq->pause_us / 2;
	else if (cq->offloaded)
		pause = most;
	if (posts_alone || pause < dofi_settings.probe_us)
		pause = dofi_settings.probe_us;
	if (led && pause < tick)
		pause = tick;
	return pause < most ? pause : most;
}

/* Leaves the CQ alone until look_at. Returns false if a thread began to sleep meanwhile. */
static bool yield_to_program(struct dofi_cq *cq, int64_t now, long pause)
{
	const bool first = atomic_load(&cq->mode) == DOFI_CQ_ARMED;

	unwatch(cq);
	cq->pause_us = pause;
	cq->look_at = now + pause * 1000;
	set_mode(cq, first ? DOFI_CQ_PROBED : DOFI_CQ_OWNED);
	return !atomic_load(&cq->sleepers);
}

void dofi_cq_probe(struct dofi_cq *cq, int64_t now)
{
	if (atomic_load(&cq->mode) == DOFI_CQ_ARMED)
		return;
	atomic_store(&cq->polled, false);
	atomic_store(&cq->taken, false);
	atomic_store(&cq->led, false);
	atomic_store(&cq->posted, false);
	cq->pause_us = dofi_settings.probe_us;
	cq->look_at = now + cq->pause_us * 1000;
}

/*
 * A program that posts, and waits for its peer by reading memory (the eager RDMA of MPI libraries), calls
 * nothing while it waits: the CQ is then served for it as if it slept. A look that finds posts alone does not
 * show that yet, as a long post, or many in a row, keep a polling program from its next poll. So the looks are
 * counted, up with each that found posts alone and down with each that found a poll, and the program is taken
 * for one that does not poll while the count is at least SILENT_LOOKS. Where hardware moves the data there is
 * nothing to serve.
 */
#define SILENT_LOOKS 4
#define SILENT_MOST 8

static bool is_silent(struct dofi_cq *cq, bool posts_alone, bool at_work)
{
	if (posts_alone && cq->silent < SILENT_MOST)
		cq->silent++;
	else if (at_work && cq->silent)
		cq->silent--;
	return cq->silent >= SILENT_LOOKS;
}

/*
 * Whether the polling thread has no processor now. It is taken for one that polls then, as where processors are few
 * it may be kept waiting for longer than any pause: if that armed the CQ, its peers would ring with each message, and
 * the progress threads that this wakes would keep all polling threads waiting for longer still. A thread that ran for
 * a while without a poll, or that sleeps, does something else.
 */
static bool lacks_processor(struct dofi_cq *cq, int64_t ran)
{
	return atomic_load(&cq->mode) != DOFI_CQ_ARMED && ran < dofi_settings.probe_us * 1000 &&
	       dofi_runner_is_runnable(&cq->poller);
}

/*
 * Leaves the CQ to the program's threads if they are at work here. A program that finds its EVDs full, or
 * posts, has no need to poll for a while: if that made this thread read for it, the EVDs would be full again
 * the next time, and every completion would cost two switches of threads. Now and then it is read for, as its
 * other EVDs and its peers need it.
 */
static bool leave_to_program(struct dofi_cq *cq, int64_t now)
{
	const bool polled = atomic_exchange(&cq->polled, false) || being_read(cq);
	const bool led = atomic_exchange(&cq->led, false);
	const bool at_work = atomic_exchange(&cq->taken, false) || polled || led;
	const bool posted = atomic_exchange(&cq->posted, false);
	const bool posts_alone = posted && !at_work && !cq->offloaded;
	const int64_t ran = dofi_runner_ran(&cq->poller);

	if (is_silent(cq, posts_alone, at_work) || atomic_load(&cq->sleepers) ||
	    (!at_work && !posted && !lacks_processor(cq, ran)))
		return false;
	if (!polled)
		dofi_cq_drain(cq);
	return yield_to_program(cq, now, next_pause(cq, posts_alone, led));
}

/*
 * Where signals are stale epoll tells of what was read long ago, again and again, unless
 * a read that may wait finds nothing. It waits for the shortest time there is. True if it
 * found something: what comes of that may be there to be read at once.
 */
static bool clear_signal(struct dofi_cq *cq)
{
	bool found;
	ssize_t n;

	dofi_mutex_lock(&cq->lock);
	dofi_cq_enter(cq);
	n = fi_cq_sread(cq->fid, cq->entry, DOFI_CQ_BATCH, NULL, 1);
	dofi_cq_exit(cq);
	found = hand_over(cq, n, NULL) > 0;
	dofi_mutex_unlock(&cq->lock);
	return found;
}

#define ARM_TRIES 8
#define SILENT_TICKS 200	/* or an idle program would feel it */

/*
 * After how many ticks an armed CQ is looked at though nothing told of it; 0 is never. Where epoll
 * tells of no failure, one that somebody sleeps for is looked at now and then.
 */
static int armed_ticks(const struct dofi_cq *cq)
{
	if (atomic_load(&cq->sweeps_wanted) != atomic_load(&cq->sweeps_done))
		return 1;
	return cq->progress->silent_errors && atomic_load(&cq->sleepers) ? SILENT_TICKS : 0;
}

static bool shards_can_sleep(struct dofi_cq *cq)
{
	bool rest;

	dofi_mutex_lock(&cq->lock);
	rest = dofi_shards_rest(cq->shards, cq->progress->fabric);
	dofi_mutex_unlock(&cq->lock);
	return rest;
}

bool dofi_cq_can_sleep(struct dofi_cq *cq, struct fid_cq *fid_cq)
{
	struct fid *fid = &fid_cq->fid;
	int ret;

	/* without a descriptor it is looked at again before the thread sleeps */
	if (cq->fd < 0)
		return true;
	if (cq->several)
		return shards_can_sleep(cq);
	dofi_cq_enter(cq);
	ret = fi_trywait(cq->progress->fabric, &fid, 1);
	dofi_cq_exit(cq);
	return ret == FI_SUCCESS;
}

/* Empties the CQ and lets epoll, or a bell, tell of the next completion. */
static void drain_and_arm(struct dofi_cq *cq, int64_t now)
{
	int i;

	/* before it is drained: whoever posts the first receive later sees it, see dofi_cq_kick() */
	set_mode(cq, DOFI_CQ_ARMED);
	for (i = 0; i < ARM_TRIES; i++) {
		if (!dofi_cq_drain(cq) && cq->fd >= 0 && cq->progress->stale_signal &&
		    clear_signal(cq))
			continue;
		if (dofi_cq_can_sleep(cq, cq->fid)) {
			if (!watch(cq)) {
				cq->look_at = now;
				return;
			}
			now += dofi_settings.tick_us * 1000;	/* there may be memory again */
			break;
		}
	}
	/* traffic outruns us: come back after the other queues had their turn */
	cq->look_at = now;
	set_mode(cq, DOFI_CQ_OWNED);
}

int64_t dofi_cq_next(const struct dofi_cq *cq)
{
	int ticks;

	if (atomic_load(&cq->mode) != DOFI_CQ_ARMED || cq->fired)
		return cq->look_at;
	ticks = armed_ticks(cq);
	return ticks ? cq->look_at + dofi_settings.tick_us * 1000 * ticks : DOFI_NEVER;
}

/* The leader was woken by what woke this thread, and reads it: if it does not, the next look finds that out. */
static bool leave_to_leader(struct dofi_cq *cq, int64_t now)
{
	if (!dofi_lead_is_taken(&cq->lead) || atomic_load(&cq->sleepers) || dofi_cq_wants_sweep(cq))
		return false;
	atomic_store(&cq->led, false);
	return yield_to_program(cq, now, next_pause(cq, false, true));
}

void dofi_cq_serve(struct dofi_cq *cq, int64_t now)
{
	bool armed = atomic_load(&cq->mode) == DOFI_CQ_ARMED;
	bool woken = armed && cq->fired;

	if (now < dofi_cq_next(cq) && (armed || !atomic_load(&cq->sleepers)))
		return;
	cq->fired = false;
	if (woken && leave_to_leader(cq, now))
		return;
	if (!leave_to_program(cq, now))
		drain_and_arm(cq, now);
}
