/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The progress thread of an IA: one loop over work, timers, events and completions. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/prompt.h"
#include "fab/cq.h"
#include "sock/halfopen.h"
#include "sock/linger.h"
#include "fab/quirks.h"
#include "fab/topo.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Room for a connection event with the most private data any fabric carries. */
#define EVENT_BYTES (sizeof(struct fi_eq_cm_entry) + 1024)

/* How often an event queue is looked at while it is not watched. */
#define EQ_TICK_NS 1000000
/* How often where a look waits for the lock that a polling thread holds most of the time. */
#define EQ_LOCKED_TICK_NS 2000000

/*
 * A passive endpoint that cannot accept for lack of a descriptor leaves its event queue readable. After VAIN wakeups
 * without an event the progress thread checks for that. If so, the queue is out of epoll for REST_NS, and read every
 * REST_TICK_NS.
 */
#define VAIN 16
#define REST_NS 100000000
#define REST_TICK_NS 10000000

/* How long after dofi_progress_await() the event queue stays watched: most attempts take far less. */
#define EQ_STAYS_NS 10000000

static void eq_read_error(struct dofi_progress *p, struct dofi_eq *eq)
{
	char data[EVENT_BYTES];
	struct fi_eq_err_entry e = { .err_data = data, .err_data_size = sizeof(data) };

	if (fi_eq_readerr(eq->fid, &e, 0) >= 0)
		p->ops->cm_error(p, &e);
}

/* Which connection it was is not told; its attempt is timed out. */
static void eq_failed(struct dofi_progress *p, ssize_t err)
{
	if (p->eq_fails_for_one && err != -EBADF)
		dofi_log(DOFI_INFO, DOFI_FAB, "an event's connection failed: %s", fi_strerror(-err));
	else
		dofi_progress_fail(p, err);
}

/* Handles one event, for which it waits up to @ms; whether there was one. */
static bool eq_take(struct dofi_progress *p, struct dofi_eq *eq, int ms)
{
	_Alignas(struct fi_eq_cm_entry) char buf[EVENT_BYTES];
	uint32_t event;
	ssize_t n;

	if (!eq->fid)
		return false;
	/* tcp and net (1.17) take it for the reason why a request is too short, and EAGAIN for none */
	errno = 0;
	n = ms ? fi_eq_sread(eq->fid, &event, buf, sizeof(buf), ms, 0) :
		 fi_eq_read(eq->fid, &event, buf, sizeof(buf), 0);
	if (n == -FI_EAVAIL)
		eq_read_error(p, eq);
	else if (n >= 0)
		p->ops->cm_event(p, event, (struct fi_eq_cm_entry *)buf, n);
	else if (n != -FI_EAGAIN && !ms)
		eq_failed(p, n);
	return n >= 0 || n == -FI_EAVAIL;
}

static bool eq_drain(struct dofi_progress *p, struct dofi_eq *eq)
{
	bool found = false;

	eq->armed = false;
	while (eq_take(p, eq, 0))
		found = true;
	return found;
}

void dofi_progress_events(struct dofi_progress *p)
{
	eq_drain(p, &p->eq);
	eq_drain(p, &p->listen_eq);
}

static bool has_descriptors(const struct dofi_progress *p)
{
	int fd = fcntl(p->doorbell, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (errno != EMFILE && errno != ENFILE);
}

static void eq_vain(struct dofi_progress *p, struct dofi_eq *eq)
{
	bool poor = false;

	if (++eq->vain >= VAIN) {
		eq->vain = 0;
		poor = !has_descriptors(p);
	}
	if (poor) {
		eq->rests_until = dofi_now() + REST_NS;
		if (!p->poor)
			dofi_log(DOFI_WARN, DOFI_FAB, "no descriptors: connections wait; told once");
		p->poor = true;
	}
	dofi_halfopen_arrived(p, poor);
}

/* After a wake-up: epoll that told of nothing may do so for ever, see clear_signal() in cq.c. */
static void eq_serve(struct dofi_progress *p, struct dofi_eq *eq)
{
	if (eq_drain(p, eq)) {
		eq->vain = 0;
		return;
	}
	if (p->stale_signal && p->alone == &eq->source)
		eq_take(p, eq, 1);
	if (p->doors.n && eq == dofi_progress_listen_eq(p))
		eq_vain(p, eq);
}

/* Whether nothing is in it. It takes no lock that a polling thread needs. */
static bool eq_is_empty(struct dofi_progress *p, struct dofi_eq *eq)
{
	struct fid *fid = &eq->fid->fid;

	return fi_trywait(p->fabric, &fid, 1) == FI_SUCCESS;
}

/*
 * While it is not watched the polling thread moves the endpoints' data, and writes their events. Where
 * signals are stale fi_trywait() does not look for events.
 */
static void eq_look(struct dofi_progress *p, struct dofi_eq *eq, int64_t now)
{
	if (p->stale_signal || !eq_is_empty(p, eq) || eq->rests_until)
		eq_drain(p, eq);
	if (p->doors.n && eq == dofi_progress_listen_eq(p))
		dofi_halfopen_arrived(p, false);
	if (eq->rests_until)
		eq->look_at = now + REST_TICK_NS;
	else
		eq->look_at = now + (p->stale_signal ? EQ_LOCKED_TICK_NS : EQ_TICK_NS);
}

static void eq_attend(struct dofi_progress *p, struct dofi_eq *eq, int64_t now)
{
	if (eq->watched && !eq->armed)
		eq_serve(p, eq);
	else if (!eq->watched && eq->fid && now >= eq->look_at)
		eq_look(p, eq, now);
}

static void serve_eqs(struct dofi_progress *p, int64_t now)
{
	if (atomic_load(&p->eq_wanted) && atomic_exchange(&p->eq_wanted, false))
		p->eq.look_at = now;
	eq_attend(p, &p->eq, now);
	eq_attend(p, &p->listen_eq, now);
}

static struct dofi_work *work_next(struct dofi_progress *p)
{
	struct dofi_work *w;

	dofi_mutex_lock(&p->lock);
	w = STAILQ_FIRST(&p->work);
	if (w) {
		STAILQ_REMOVE_HEAD(&p->work, link);
		w->queued = false;
	}
	dofi_mutex_unlock(&p->lock);
	return w;
}

/*
 * Between two works the event queue is emptied: an event of an endpoint that one
 * of them closed must be gone before another opens one at the same address.
 */
static void run_work(struct dofi_progress *p)
{
	struct dofi_work *w;

	while ((w = work_next(p))) {
		w->run(w);
		dofi_progress_events(p);
	}
}

static void run_timers(struct dofi_progress *p, int64_t now)
{
	struct dofi_timer *t;

	while ((t = dofi_timer_next(p)) && t->at <= now) {
		dofi_timer_stop(p, t);
		t->fire(t);
		dofi_progress_events(p);
	}
}

/* Serves every CQ and tells when to wake if nothing happens. */
static int64_t serve_cqs(struct dofi_progress *p, int64_t now)
{
	const struct dofi_timer *t = dofi_timer_next(p);
	int64_t next = t ? t->at : DOFI_NEVER;
	struct dofi_cq *cq;

	TAILQ_FOREACH(cq, &p->cqs, link) {
		dofi_cq_serve(cq, now);
		if (dofi_cq_next(cq) < next)
			next = dofi_cq_next(cq);
	}
	return next;
}

/* epoll_wait with a deadline in nanoseconds. */
static int wait_until(int epfd, struct epoll_event *ev, int n, int64_t deadline)
{
	static _Atomic bool old_kernel;	/* Linux before 5.11, and valgrind's idea of Linux */
	int64_t left = deadline == DOFI_NEVER ? -1 : deadline - dofi_now();
	struct timespec ts;
	int ret;

	if (deadline != DOFI_NEVER && left < 0)
		left = 0;
	if (!old_kernel) {
		ts = dofi_timespec(left < 0 ? 0 : left);
		ret = epoll_pwait2(epfd, ev, n, left < 0 ? NULL : &ts, NULL);
		if (ret >= 0 || errno != ENOSYS)
			return ret;
		old_kernel = true;
	}
	return epoll_wait(epfd, ev, n, left < 0 ? -1 : (int)(left / 1000000 + 1));
}

#define WAKEUPS 32

/* Without epoll, as after a program has closed all descriptors, nothing can be waited for. */
static void epoll_failed(struct dofi_progress *p)
{
	const struct timespec rest = { .tv_nsec = 10 * 1000000 };

	if (errno == EINTR)
		return;
	dofi_progress_fail(p, -errno);
	nanosleep(&rest, NULL);
}

static bool eq_arm(struct dofi_progress *p, struct dofi_eq *eq)
{
	if (!eq->armed && !eq->rests_until)
		eq->armed = !eq->fid || eq_is_empty(p, eq);
	return eq->armed || eq->rests_until;
}

/*
 * libfabric's event queue may lose the signal of an event that another thread writes while fi_trywait()
 * clears it: such an event is found by reading once more. Where the program polls, the next look finds it.
 */
static bool eqs_arm(struct dofi_progress *p)
{
	const bool was_armed = p->eq.armed;

	if (!eq_arm(p, &p->eq)) {
		p->eq.look_at = 0;
		return false;
	}
	if (!was_armed && p->data_in_eq && p->eq.watched && eq_take(p, &p->eq, 0)) {
		p->eq.armed = false;
		return false;
	}
	return eq_arm(p, &p->listen_eq);
}

static bool program_polls(const struct dofi_progress *p)
{
	const struct dofi_cq *cq;

	TAILQ_FOREACH(cq, &p->cqs, link)
		if (cq->fd >= 0 && atomic_load(&cq->mode) != DOFI_CQ_ARMED)
			return true;
	return false;
}

/*
 * A PZ that nobody polls while another one is polled needs no event queue to wake the thread: its CQ
 * is watched, and reports the same bytes.
 */
static bool is_to_be_watched(const struct dofi_progress *p, const struct dofi_eq *eq, int64_t now)
{
	if (eq->rests_until)
		return false;
	return eq != &p->eq || !p->data_in_eq || now < p->eq_stays_until || !program_polls(p);
}

static void eq_watch(struct dofi_progress *p, struct dofi_eq *eq, int64_t now)
{
	bool watched;

	if (now >= eq->rests_until)
		eq->rests_until = 0;
	watched = is_to_be_watched(p, eq, now);
	if (!eq->fid || watched == eq->watched)
		return;
	if (watched) {
		eq->watched = !dofi_source_add(p, &eq->source, eq->fd, EPOLLIN);
	} else {
		dofi_source_remove(p, eq->fd);
		eq->watched = false;
	}
	eq->armed = false;
	eq->look_at = now + (eq->rests_until ? REST_TICK_NS : EQ_TICK_NS);
	if (eq == &p->eq)
		atomic_store(&p->eq_away, !eq->watched);
}

static bool program_has_one(const struct dofi_progress *p)
{
	const struct dofi_cq *cq;

	TAILQ_FOREACH(cq, &p->cqs, link)
		if (cq->fd < 0 && !dofi_cq_relies_on_bell(cq))
			return true;
	return false;
}

#define NO_BELL_TICKS 4

/*
 * Before the thread sleeps on CQs that have no descriptor, when to wake if nothing happens. Peers
 * are asked to ring first and the CQs looked at after that, so that nothing comes unnoticed in
 * between. The peers of a program that polls are not asked: they would ring for what it finds by
 * itself, and while the thread looks after its CQ it can after the others.
 */
static int64_t rest(struct dofi_progress *p, int64_t deadline)
{
	bool polled = program_has_one(p), relies = false, found = false;
	int64_t look;
	struct dofi_cq *cq;

	TAILQ_FOREACH(cq, &p->cqs, link)
		relies |= dofi_cq_relies_on_bell(cq);
	if (!relies)
		return deadline;
	p->resting = !polled && p->ops->rest && p->ops->rest(p);
	if (!p->resting) {
		look = dofi_now() + dofi_settings.tick_us * 1000 * (polled ? 1 : NO_BELL_TICKS);
		return look < deadline ? look : deadline;
	}
	TAILQ_FOREACH(cq, &p->cqs, link)
		if (dofi_cq_relies_on_bell(cq))
			found |= dofi_cq_drain(cq);
	return found ? 0 : deadline;
}

static void rise(struct dofi_progress *p)
{
	struct dofi_cq *cq;

	if (p->resting)
		p->ops->rise(p);
	p->resting = false;
	TAILQ_FOREACH(cq, &p->cqs, link)
		if (dofi_cq_relies_on_bell(cq))
			cq->fired = true;
}

static int64_t eq_deadline(const struct dofi_eq *eq, int64_t deadline)
{
	return eq->fid && !eq->watched && eq->look_at < deadline ? eq->look_at : deadline;
}

static void wait_for_something(struct dofi_progress *p, int64_t deadline)
{
	struct epoll_event ev[WAKEUPS];
	int i, n;

	eq_watch(p, &p->eq, dofi_now());
	eq_watch(p, &p->listen_eq, dofi_now());
	if (!eqs_arm(p))
		return;
	deadline = eq_deadline(&p->eq, eq_deadline(&p->listen_eq, deadline));
	deadline = rest(p, deadline);
	dofi_fork_guard_rest(&p->fork_guard);
	n = wait_until(p->epfd, ev, WAKEUPS, deadline);
	dofi_fork_guard_work(&p->fork_guard);
	if (n < 0)
		epoll_failed(p);
	rise(p);
	p->eq.armed = n == 0 && p->eq.watched;
	p->alone = n == 1 ? ev[0].data.ptr : NULL;
	for (i = 0; i < n; i++) {
		struct dofi_source *source = ev[i].data.ptr;

		source->ready(source);
	}
}

/* The endpoints' queue is read after every wake-up anyway. */
static void eq_ready(struct dofi_source *source)
{
	struct dofi_eq *eq = (struct dofi_eq *)((char *)source - offsetof(struct dofi_eq, source));

	eq->armed = false;
}

static void doorbell_ready(struct dofi_source *source)
{
	struct dofi_progress *p = (struct dofi_progress *)
		((char *)source - offsetof(struct dofi_progress, doorbell_source));
	uint64_t rung;

	if (read(p->doorbell, &rung, sizeof(rung)) < 0)
		return;
}

static bool stopped(struct dofi_progress *p)
{
	bool stop;

	dofi_mutex_lock(&p->lock);
	stop = p->stop;
	dofi_mutex_unlock(&p->lock);
	return stop;
}

/* What a thread that begins to sleep may have missed is read now, and soon the event queue is watched. */
static void run_probe(struct dofi_progress *p, int64_t now)
{
	struct dofi_cq *cq;

	if (!atomic_load(&p->probe_wanted) || !atomic_exchange(&p->probe_wanted, false))
		return;
	eq_drain(p, &p->eq);
	TAILQ_FOREACH(cq, &p->cqs, link)
		dofi_cq_probe(cq, now);
}

static void *progress_run(void *arg)
{
	struct dofi_progress *p = arg;

	pthread_setname_np(pthread_self(), "dat-ofi");
	dofi_prompt();
	dofi_fork_guard_work(&p->fork_guard);
	while (!stopped(p)) {
		int64_t now, next;

		run_work(p);
		now = dofi_now();
		run_timers(p, now);
		run_probe(p, now);
		serve_eqs(p, now);
		next = serve_cqs(p, now);
		wait_for_something(p, next);
	}
	dofi_fork_guard_rest(&p->fork_guard);
	return NULL;
}

static int eq_open(struct dofi_progress *p, struct dofi_eq *eq)
{
	struct fi_eq_attr attr = { .size = 1024, .wait_obj = FI_WAIT_FD };
	int ret;

	ret = fi_eq_open(p->fabric, &attr, &eq->fid, NULL);
	if (ret)
		return ret;
	eq->source.ready = eq_ready;
	ret = fi_control(&eq->fid->fid, FI_GETWAIT, &eq->fd);
	if (ret) {
		fi_close(&eq->fid->fid);
		eq->fid = NULL;
	}
	return ret;
}

static void eqs_close(struct dofi_progress *p)
{
	if (p->listen_eq.fid)
		fi_close(&p->listen_eq.fid->fid);
	if (p->eq.fid)
		fi_close(&p->eq.fid->fid);
}

/* Endpoints that do not connect have no events. */
static int eqs_open(struct dofi_progress *p, const struct fi_info *info,
		    const struct dofi_quirk *quirk)
{
	int ret;

	if (info->ep_attr->type != FI_EP_MSG)
		return 0;
	p->data_in_eq = quirk->data_in_eq;
	ret = eq_open(p, &p->eq);
	if (!ret && quirk->listens_apart)
		ret = eq_open(p, &p->listen_eq);
	if (ret)
		eqs_close(p);
	return ret;
}

static int eq_add(struct dofi_progress *p, struct dofi_eq *eq)
{
	int ret = eq->fid ? dofi_source_add(p, &eq->source, eq->fd, EPOLLIN) : 0;

	eq->watched = eq->fid && !ret;
	return ret;
}

static int epoll_open(struct dofi_progress *p)
{
	int ret;

	p->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epfd < 0)
		return -errno;
	p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->doorbell < 0) {
		ret = -errno;
		goto close_epoll;
	}
	p->doorbell_source.ready = doorbell_ready;
	ret = dofi_source_add(p, &p->doorbell_source, p->doorbell, EPOLLIN);
	if (!ret)
		ret = eq_add(p, &p->eq);
	if (!ret)
		ret = eq_add(p, &p->listen_eq);
	if (!ret)
		return 0;
	close(p->doorbell);
close_epoll:
	close(p->epfd);
	return ret;
}

int dofi_thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static void failure_tell(struct dofi_work *work)
{
	struct dofi_progress *p = (struct dofi_progress *)
		((char *)work - offsetof(struct dofi_progress, failure_work));

	dofi_log(DOFI_ERR, DOFI_FAB, "the fabric works no more: %s", fi_strerror(-p->failure));
	p->ops->failed(p, p->failure);
}

int dofi_progress_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
			struct fi_info *info)
{
	const struct dofi_quirk *quirk = dofi_quirk_of(info->fabric_attr->prov_name);
	int ret;

	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->owner = getpid();
	p->stale_signal = quirk->stale_signal;
	p->trywait_reads = quirk->trywait_reads;
	p->failure_work.run = failure_tell;
	p->silent_errors = quirk->silent_errors;
	p->eq_fails_for_one = quirk->eq_fails_for_one;
	dofi_mutex_init(&p->lock);
	STAILQ_INIT(&p->work);
	TAILQ_INIT(&p->cqs);
	TAILQ_INIT(&p->lingering);
	ret = fi_fabric(info->fabric_attr, &p->fabric, NULL);
	if (ret)
		goto log;
	ret = eqs_open(p, info, quirk);
	if (ret)
		goto close_fabric;
	ret = epoll_open(p);
	if (ret)
		goto close_eq;
	dofi_fork_guard_add(&p->fork_guard);
	ret = dofi_thread_start(&p->thread, progress_run, p);
	if (!ret) {
		dofi_topo_bind(p->thread, info);
		return 0;
	}

	dofi_fork_guard_remove(&p->fork_guard);
	close(p->doorbell);
	close(p->epfd);
close_eq:
	eqs_close(p);
close_fabric:
	fi_close(&p->fabric->fid);
log:
	dofi_log(DOFI_ERR, DOFI_FAB, "opening fabric %s: %s",
		 info->fabric_attr->prov_name, fi_strerror(-ret));
	return ret;
}

void dofi_progress_stop(struct dofi_progress *p)
{
	if (dofi_progress_orphaned(p))
		return;
	dofi_mutex_lock(&p->lock);
	p->stop = true;
	dofi_mutex_unlock(&p->lock);
	dofi_progress_ring(p);
	pthread_join(p->thread, NULL);
	dofi_linger_end(p);
	dofi_fork_guard_remove(&p->fork_guard);
	close(p->doorbell);
	close(p->epfd);
	eqs_close(p);
	fi_close(&p->fabric->fid);
}

void dofi_progress_ring(struct dofi_progress *p)
{
	uint64_t one = 1;

	/* fails only when the counter is full, and then the thread is awake anyway */
	if (write(p->doorbell, &one, sizeof(one)) < 0)
		return;
}

void dofi_progress_expect(struct dofi_progress *p)
{
	if (atomic_load(&p->eq_away) && !atomic_exchange(&p->eq_wanted, true) &&
	    !dofi_progress_on_thread(p))
		dofi_progress_ring(p);
}

void dofi_progress_await(struct dofi_progress *p)
{
	if (p->data_in_eq)
		p->eq_stays_until = dofi_now() + EQ_STAYS_NS;
}

void dofi_progress_probe(struct dofi_progress *p)
{
	if (atomic_load(&p->eq_away) && !atomic_exchange(&p->probe_wanted, true))
		dofi_progress_ring(p);
}

void dofi_progress_post(struct dofi_progress *p, struct dofi_work *work)
{
	bool first;

	dofi_mutex_lock(&p->lock);
	first = STAILQ_EMPTY(&p->work);
	if (!work->queued) {
		work->queued = true;
		STAILQ_INSERT_TAIL(&p->work, work, link);
	}
	dofi_mutex_unlock(&p->lock);
	/* the thread does all that is queued before it sleeps again, so the first is enough to wake it */
	if (first)
		dofi_progress_ring(p);
}

void dofi_progress_withdraw(struct dofi_progress *p, struct dofi_work *work)
{
	dofi_mutex_lock(&p->lock);
	if (work->queued)
		STAILQ_REMOVE(&p->work, work, dofi_work, link);
	work->queued = false;
	dofi_mutex_unlock(&p->lock);
}

void dofi_progress_fail(struct dofi_progress *p, int err)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&p->failure, &none, err))
		dofi_progress_post(p, &p->failure_work);
}

struct call {
	struct dofi_work work;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void call_run(struct dofi_work *work)
{
	struct call *c = (struct call *)work;

	c->fn(c->arg);
	sem_post(&c->done);
}

void dofi_progress_call(struct dofi_progress *p, void (*fn)(void *arg), void *arg)
{
	struct call c = { .work.run = call_run, .fn = fn, .arg = arg };

	if (dofi_progress_orphaned(p))
		return;
	if (dofi_progress_on_thread(p)) {
		fn(arg);
		return;
	}
	sem_init(&c.done, 0, 0);
	dofi_progress_post(p, &c.work);
	while (sem_wait(&c.done) && errno == EINTR)
		;
	sem_destroy(&c.done);
}

bool dofi_progress_on_thread(const struct dofi_progress *p)
{
	return pthread_equal(p->thread, pthread_self());
}

bool dofi_progress_orphaned(const struct dofi_progress *p)
{
	return p->owner != getpid();
}

static int source_set(struct dofi_progress *p, int op, int fd, struct dofi_source *source,
		      uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(p->epfd, op, fd, &ev) ? -errno : 0;
}

int dofi_source_add(struct dofi_progress *p, struct dofi_source *source, int fd, uint32_t events)
{
	return source_set(p, EPOLL_CTL_ADD, fd, source, events);
}

int dofi_source_change(struct dofi_progress *p, struct dofi_source *source, int fd, uint32_t events)
{
	return source_set(p, EPOLL_CTL_MOD, fd, source, events);
}

void dofi_source_remove(struct dofi_progress *p, int fd)
{
	source_set(p, EPOLL_CTL_DEL, fd, NULL, 0);
}

void dofi_timer_start(struct dofi_progress *p, struct dofi_timer *timer, int64_t at)
{
	dofi_timer_stop(p, timer);
	if (at == DOFI_NEVER)
		return;
	timer->at = at;
	dofi_heap_insert(&p->timers, &timer->node, at);
}

void dofi_timer_stop(struct dofi_progress *p, struct dofi_timer *timer)
{
	if (!timer->at)
		return;
	dofi_heap_remove(&p->timers, &timer->node);
	timer->at = 0;
}
