/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The progress thread of an IA.
 *
 * Software fabrics move nothing by themselves: an idle target would not answer
 * an RDMA read. One thread per IA therefore sleeps in epoll on the event queue,
 * the completion queues and a doorbell. It costs nothing while all is idle, and
 * stays out of the way of a program that polls for itself ("gating", below).
 *
 * It is also the only thread that opens, connects and closes endpoints and reads
 * the event queue: an event can then never meet an endpoint that is being closed.
 */
#ifndef DOFI_LOOP_PROGRESS_H
#define DOFI_LOOP_PROGRESS_H

#include "base/heap.h"
#include "base/mutex.h"
#include "loop/eq.h"
#include "loop/fork.h"
#include "loop/poller.h"
#include "loop/source.h"

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct dofi_progress;

/* The ports of passive endpoints, for sock/halfopen.c. */
struct dofi_listeners {
	/*
	 * The event queue has work and reports no event: a connection may have come. @crowd: silent ones have to be
	 * searched soon. Called while n is not 0.
	 */
	void (*arrived)(struct dofi_progress *p, bool many);
	unsigned n;
	int spare;			/* a descriptor to give up when there are no others, or -1 */
	unsigned wakes;			/* since the last search for silent connections, */
	int64_t searched;		/* which was then */
	struct dofi_timer timer;	/* for the next */
	bool reported;			/* the log has that some were found */
};

struct dofi_cq;
struct dofi_linger;
struct dofi_sink;	/* where a polling thread wants its event, if it can have it at once */

/*
 * A completion: @entry->op_context is what was posted, @err 0 or a positive libfabric
 * error, @sink of the thread that reads, or NULL. Any thread, CQ lock held; must not
 * block or call back.
 */
typedef void dofi_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* What this layer calls upward. */
struct dofi_progress_ops {
	dofi_completed *completed;
	/* Not all contexts are those of the program's operations. */
	bool mixed;
	/* A connection event of @len bytes. Progress thread, no lock held. */
	void (*cm_event)(struct dofi_progress *progress, uint32_t event,
			 struct fi_eq_cm_entry *entry, size_t len);
	/* A failed connection attempt. Progress thread, no lock held. */
	void (*cm_error)(struct dofi_progress *progress, const struct fi_eq_err_entry *entry);
	/* The fabric works no more, see dofi_progress_fail(). Progress thread, no lock held. */
	void (*failed)(struct dofi_progress *progress, int err);
	/*
	 * After dofi_cq_want_sweep(), once a read has left nothing: time to try again what the
	 * fabric did not take. Any thread, CQ lock held; must not block or call back. May be NULL.
	 */
	void (*swept)(struct dofi_cq *cq);
	/*
	 * The thread goes to sleep on CQs that have no descriptor. From here on peers must ring:
	 * whoever sends after this was stored makes some descriptor of epoll's readable. The store
	 * is sequentially consistent, for the CQs are looked at once more after it. False if nobody
	 * rings; rise() is not called then. Progress thread, no lock held. NULL: nobody rings.
	 */
	bool (*rest)(struct dofi_progress *progress);
	/* It is up again, peers need not ring. Progress thread, no lock held; NULL if rest is. */
	void (*rise)(struct dofi_progress *progress);
};

struct dofi_progress {
	const struct dofi_progress_ops *ops;
	struct fid_fabric *fabric;
	struct dofi_eq eq;		/* no fid where endpoints do not connect */
	struct dofi_eq listen_eq;	/* see dofi_progress_listen_eq() */
	struct dofi_eq_traits traits;
	int epfd;
	int doorbell;
	struct dofi_source doorbell_source;
	pthread_t thread;
	pid_t owner;			/* a forked child has no progress thread */
	struct dofi_fork_guard fork_guard;
	_Atomic int failure;		/* a negative errno, once the fabric works no more */
	struct dofi_work failure_work;
	_Atomic bool eq_away;		/* the eq is not watched, because the program polls */
	_Atomic bool eq_wanted;		/* somebody asks for a look at it all the same */
	_Atomic bool probe_wanted;	/* somebody asks whether the program still polls */

	struct dofi_mutex lock;		/* the fields below */
	STAILQ_HEAD(, dofi_work) work;
	bool stop;

	/* progress thread only */
	TAILQ_HEAD(, dofi_poller) pollers;
	struct dofi_heap timers;	/* soonest first */
	TAILQ_HEAD(, dofi_linger) lingering;
	void (*lingering_end)(struct dofi_progress *p);	/* once the thread has ended; NULL if nothing ever lingered */
	int socket_hint;		/* where sock/watch.c begins to search */
	const struct dofi_source *alone; /* what epoll reported, if it was nothing else */
	struct dofi_listeners listeners;
	bool lack_logged;			/* it was logged that there are no descriptors */
	int64_t eq_stays_until;		/* the eq is watched until then though the program polls */
	bool resting;			/* peers ring, see struct dofi_progress_ops */
};

/* The program's signal handlers do not run on it, which it does not know. 0 or a negative errno. */
int dofi_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* Opens the fabric of @info and starts the thread. 0 or a negative errno. */
int dofi_progress_start(struct dofi_progress *p, const struct dofi_progress_ops *ops, struct fi_info *info,
			const struct dofi_eq_traits *traits);

/* After it no work runs and no event comes. All CQs are closed before. */
void dofi_progress_stop(struct dofi_progress *p);

/* Queues @work unless it is queued already; it may be queued again once it runs. */
void dofi_progress_post(struct dofi_progress *p, struct dofi_work *work);

/* Takes @work back if it is queued: it does not run. Progress thread only. */
void dofi_progress_withdraw(struct dofi_progress *p, struct dofi_work *work);

/*
 * Runs @fn(@arg) on the progress thread and waits for it; at once when called
 * there. In a forked child, which has no such thread, nothing runs.
 */
void dofi_progress_call(struct dofi_progress *p, void (*fn)(void *arg), void *arg);

/*
 * A queue of the fabric cannot be read, or not be waited for: what the program waits for may
 * never come. It is told of the first such error, @err, a negative errno. Any thread.
 */
void dofi_progress_fail(struct dofi_progress *p, int err);

/* Makes the progress thread look at everything once. Any thread. */
void dofi_progress_wake(struct dofi_progress *p);

/*
 * When the event queue of endpoints is read while it is out of the epoll set (eq.h):
 *
 * dofi_progress_expect(): at once, as an event may have been written just now. Any thread.
 * dofi_progress_await(): an event is expected soon, so the queue stays watched for some milliseconds.
 *	Progress thread.
 * dofi_progress_probe(): the caller is about to sleep until a connection event comes. If no other
 *	thread polls, the queue is watched again without waiting for the next service of the CQs. Any
 *	thread, any lock.
 */
void dofi_progress_expect(struct dofi_progress *p);
void dofi_progress_await(struct dofi_progress *p);
void dofi_progress_probe(struct dofi_progress *p);

/* The queue that passive endpoints are bound to: their own where an endpoint's queue has data in it. */
static inline struct dofi_eq *dofi_progress_listen_eq(struct dofi_progress *p)
{
	return p->listen_eq.fid ? &p->listen_eq : &p->eq;
}

/*
 * Handles all events that the queues have, and lets the fabric do what it does only then. Progress
 * thread only, not within an event.
 */
void dofi_progress_events(struct dofi_progress *p);

bool dofi_progress_on_thread(const struct dofi_progress *p);

/* Whether this process lost the thread by fork: nothing of the fabric may be touched. */
bool dofi_progress_orphaned(const struct dofi_progress *p);

#endif
