/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The event queues of a progress thread: when they are read, and when epoll watches them. */

#include "loop/progress.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/fds.h"
#include "base/layout.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The size of a connection event with the most private data that a fabric carries. */
#define EVENT_BYTES (sizeof(struct fi_eq_cm_entry) + 1024)

/*
 * A passive endpoint without a free descriptor leaves its event queue readable. After EMPTY_WAKEUPS
 * wakeups without an event the thread checks for that: the queue leaves epoll for PAUSE_NS then.
 */
#define EMPTY_WAKEUPS 16
#define PAUSE_NS 100000000

/* When an event queue is read next while it is not watched. */
static int64_t next_tick(int64_t now)
{
	return now + dofi_settings.tick_us * 1000;
}

/* Handles the next event. Returns whether there was one. */
static bool eq_take(struct dofi_progress *p, struct dofi_eq *eq)
{
	_Alignas(struct fi_eq_cm_entry) char buf[EVENT_BYTES];
	struct fi_eq_err_entry e = { .err_data = buf, .err_data_size = sizeof(buf) };
	uint32_t event;
	ssize_t n;

	if (!eq->fid)
		return false;
	/* if a request is too short, tcp (1.17) returns errno, and ignores it if errno is EAGAIN */
	errno = 0;
	n = fi_eq_read(eq->fid, &event, buf, sizeof(buf), 0);
	if (n >= 0) {
		p->ops->cm_event(p, event, (struct fi_eq_cm_entry *)buf, n);
	} else if (n == -FI_EAVAIL) {
		if (fi_eq_readerr(eq->fid, &e, 0) >= 0)
			p->ops->cm_error(p, &e);
	} else if (n != -FI_EAGAIN) {
		/* without the connection's name, its attempt ends by its time-out */
		if (p->traits.fails_for_one && n != -EBADF)
			dofi_log(DOFI_INFO, DOFI_FAB, "an event's connection failed: %s",
				 fi_strerror(-n));
		else
			dofi_progress_fail(p, n);
	}
	return n >= 0 || n == -FI_EAVAIL;
}

bool dofi_eq_drain(struct dofi_progress *p, struct dofi_eq *eq)
{
	bool found = false;

	eq->armed = false;
	while (eq_take(p, eq))
		found = true;
	return found;
}

void dofi_progress_events(struct dofi_progress *p)
{
	dofi_eq_drain(p, &p->eq);
	dofi_eq_drain(p, &p->listen_eq);
}

/* After a wakeup without an event: a connection may have come, or a descriptor may be lacking. */
static void eq_empty_wakeup(struct dofi_progress *p, struct dofi_eq *eq)
{
	bool lacks = false;
	int fd;

	if (++eq->empty_wakeups >= EMPTY_WAKEUPS) {
		eq->empty_wakeups = 0;
		fd = fcntl(p->wake_fd, F_DUPFD_CLOEXEC, 0);
		lacks = fd < 0 && (errno == EMFILE || errno == ENFILE);
		if (fd >= 0)
			close(fd);
	}
	if (lacks) {
		eq->paused_until = dofi_now() + PAUSE_NS;
		if (!p->lack_logged)
			dofi_log(DOFI_WARN, DOFI_FAB,
				 "no descriptors: connections wait; reported once");
		p->lack_logged = true;
	}
	p->listeners.arrived(p, lacks);
}

/* Returns whether the queue is empty, without a lock that a polling thread needs. */
static bool eq_is_empty(struct dofi_progress *p, struct dofi_eq *eq)
{
	struct fid *fid = &eq->fid->fid;

	return fi_trywait(p->fabric, &fid, 1) == FI_SUCCESS;
}

/* Reads a queue after a wakeup, or by the clock while a polling thread moves its data. */
static void eq_attend(struct dofi_progress *p, struct dofi_eq *eq, int64_t now)
{
	const bool listens = p->listeners.n && eq == dofi_progress_listen_eq(p);

	if (eq->watched && !eq->armed) {
		if (dofi_eq_drain(p, eq))
			eq->empty_wakeups = 0;
		else if (listens)
			eq_empty_wakeup(p, eq);
	} else if (!eq->watched && eq->fid && now >= eq->due_at) {
		if (!eq_is_empty(p, eq) || eq->paused_until)
			dofi_eq_drain(p, eq);
		if (listens)
			p->listeners.arrived(p, false);
		eq->due_at = next_tick(now);
	}
}

void dofi_eqs_serve(struct dofi_progress *p, int64_t now)
{
	if (atomic_load(&p->eq_wanted) && atomic_exchange(&p->eq_wanted, false))
		p->eq.due_at = now;
	eq_attend(p, &p->eq, now);
	eq_attend(p, &p->listen_eq, now);
}

static bool eq_arm(struct dofi_progress *p, struct dofi_eq *eq)
{
	if (!eq->armed && !eq->paused_until)
		eq->armed = !eq->fid || eq_is_empty(p, eq);
	return eq->armed || eq->paused_until;
}

/*
 * libfabric may lose the signal of an event that is written while fi_trywait() clears the signal,
 * so the queue is read once more. While the program polls, the next read by the clock finds it.
 */
bool dofi_eqs_arm(struct dofi_progress *p)
{
	const bool was_armed = p->eq.armed;

	if (!eq_arm(p, &p->eq)) {
		p->eq.due_at = 0;
		return false;
	}
	if (!was_armed && p->traits.data_in_eq && p->eq.watched && eq_take(p, &p->eq)) {
		p->eq.armed = false;
		return false;
	}
	return eq_arm(p, &p->listen_eq);
}

/*
 * The queue of endpoints is not watched while the program polls a CQ with a descriptor that reports
 * the bytes that the event queue would report. Other PZs do not need the event queue then to wake
 * the thread: their CQs are watched, and report arrivals.
 */
static void eq_watch(struct dofi_progress *p, struct dofi_eq *eq, int64_t now)
{
	const struct dofi_served *served;
	bool watched;

	if (now >= eq->paused_until)
		eq->paused_until = 0;
	watched = !eq->paused_until;
	if (watched && eq == &p->eq && p->traits.data_in_eq && now >= p->eq_stays_until)
		TAILQ_FOREACH(served, &p->served, link)
			if (served->has_fd && !served->ops->is_armed(served))
				watched = false;
	if (!eq->fid || watched == eq->watched)
		return;
	if (watched) {
		eq->watched = !dofi_source_add(p, &eq->source, eq->fd, EPOLLIN);
	} else {
		dofi_source_remove(p, eq->fd);
		eq->watched = false;
	}
	eq->armed = false;
	eq->due_at = next_tick(now);
	if (eq == &p->eq)
		atomic_store(&p->eq_away, !eq->watched);
}

void dofi_eqs_choose(struct dofi_progress *p)
{
	eq_watch(p, &p->eq, dofi_now());
	eq_watch(p, &p->listen_eq, dofi_now());
}

static int64_t eq_deadline(const struct dofi_eq *eq, int64_t deadline)
{
	return eq->fid && !eq->watched && eq->due_at < deadline ? eq->due_at : deadline;
}

int64_t dofi_eqs_deadline(const struct dofi_progress *p, int64_t deadline)
{
	return eq_deadline(&p->eq, eq_deadline(&p->listen_eq, deadline));
}

/* The queue has to be read again before the thread sleeps. */
static void eq_ready(struct dofi_source *source)
{
	DOFI_CONTAINER_OF(source, struct dofi_eq, source)->armed = false;
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
	} else {
		dofi_epoll_close_on_exec(eq->fd);
	}
	return ret;
}

void dofi_eqs_close(struct dofi_progress *p)
{
	if (p->listen_eq.fid)
		fi_close(&p->listen_eq.fid->fid);
	if (p->eq.fid)
		fi_close(&p->eq.fid->fid);
}

int dofi_eqs_open(struct dofi_progress *p, const struct fi_info *info)
{
	int ret;

	if (info->ep_attr->type != FI_EP_MSG)
		return 0;
	ret = eq_open(p, &p->eq);
	if (!ret && p->traits.data_in_eq)
		ret = eq_open(p, &p->listen_eq);
	if (ret)
		dofi_eqs_close(p);
	return ret;
}

static int eq_add(struct dofi_progress *p, struct dofi_eq *eq)
{
	int ret = eq->fid ? dofi_source_add(p, &eq->source, eq->fd, EPOLLIN) : 0;

	eq->watched = eq->fid && !ret;
	return ret;
}

int dofi_eqs_watch(struct dofi_progress *p)
{
	int ret = eq_add(p, &p->eq);

	return ret ? ret : eq_add(p, &p->listen_eq);
}
