/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The progress thread of an IA.
 *
 * Software fabrics move nothing by themselves: an idle target would not answer an RDMA read. So one
 * thread per IA sleeps in epoll on the event queues, the completion queues and an eventfd. It costs
 * nothing while all is idle, except with rings, for which it wakes once per second
 * (dofi_longest_sleep_ns). It leaves queues that the program polls to the program.
 *
 * Only this thread opens (on verbs a helper of it: xport/msg/open.c), connects and closes endpoints
 * and reads the event queues: an event never
 * refers to an endpoint that another thread is closing.
 */
#ifndef DOFI_LOOP_PROGRESS_H
#define DOFI_LOOP_PROGRESS_H

#include "base/mutex.h"
#include "base/table.h"

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct dofi_served;
struct dofi_progress;

/* A descriptor in the epoll set; the structure that contains the source acts on the report. */
struct dofi_source {
	void (*ready)(struct dofi_source *source);
};

/* Work for the progress thread. */
struct dofi_work {
	void (*run)(struct dofi_work *work);
	STAILQ_ENTRY(dofi_work) link;
	bool queued;			/* under the progress lock */
};

struct dofi_timer {
	struct dofi_heap_node node;	/* while it is running */
	int64_t at;			/* 0 when not running */
	void (*fire)(struct dofi_timer *timer);
};

/*
 * A queue that the progress thread serves and the program's threads poll. An armed queue wakes the
 * progress thread: by its descriptor, or else by the peer (dofi_progress_ops.sleep_begin). A queue
 * that the program polls is not armed. Functions: progress thread, no lock held.
 */
struct dofi_served_ops {
	/* Serves the queue if it is due or has fired. Returns its next time, or DOFI_NEVER. */
	int64_t (*serve)(struct dofi_served *served, int64_t now);
	/* A thread of the program is about to sleep: serve() soon checks whether others poll. */
	void (*probe)(struct dofi_served *served, int64_t now);
	/* Reads until the queue is empty. Returns whether it held anything. */
	bool (*drain)(struct dofi_served *served);
	bool (*is_armed)(const struct dofi_served *served);
};

struct dofi_served {
	const struct dofi_served_ops *ops;
	bool has_fd;	/* a descriptor in the epoll set reports arrivals while it is armed */
	bool fired;		/* something arrived, or armed anew: serve() is due at once */
	TAILQ_ENTRY(dofi_served) link;
};

/* Returns whether only a peer can wake the progress thread for @served. Any thread. */
static inline bool dofi_served_relies_on_peer(const struct dofi_served *served)
{
	return !served->has_fd && served->ops->is_armed(served);
}

/*
 * An event queue: of endpoints, or where the fabric needs it of passive endpoints. Progress thread
 * only, once that runs. Where its descriptor reports each byte for its endpoints (data_in_eq), it
 * leaves the epoll set while a program polls a CQ, as reading it would contend with the polling
 * thread; it is then read every millisecond, and on request.
 */
struct dofi_eq {
	struct fid_eq *fid;		/* NULL if there is none */
	int fd;
	struct dofi_source source;
	bool watched;			/* fd is in the epoll set; otherwise due_at counts */
	bool armed;			/* not read since fi_trywait() found it empty */
	int64_t due_at;		/* when it is read next while it is not watched */
	int64_t paused_until;		/* until then it is out of epoll, for lack of descriptors */
	unsigned empty_wakeups;		/* consecutive wakeups without an event */
};

/* The properties of a fabric's event queues: fab/quirks.c. */
struct dofi_eq_traits {
	/* the descriptor reports data, and reading moves it: passive endpoints get another */
	bool data_in_eq;
	bool fails_for_one;		/* an error of the queue may concern a single connection */
};

/* The listening ports of passive endpoints. Belongs to sock/watch.c. Progress thread only. */
struct dofi_listeners {
	/*
	 * Called while n is not 0, after a wakeup without an event: a connection may have come to a
	 * port. @many: many connections may be silent.
	 */
	void (*arrived)(struct dofi_progress *p, bool many);
	unsigned n;			/* how many ports listen */
	int spare;	/* a descriptor that is closed when a search finds none free; or -1 */
	unsigned wakes;	/* calls of arrived() since the last search for silent connections */
	int64_t searched;		/* when the last search was */
	struct dofi_timer timer;	/* for the next search */
	bool reported;			/* silent connections have been logged */
};

struct dofi_cq;
struct dofi_linger;
struct dofi_sink;	/* where an event of a polling thread is written directly; opaque here */

/*
 * Delivers a completion: @entry->op_context is the context of the operation, @err is 0 or a
 * positive libfabric error, @sink is the reading thread's, or NULL. Any thread, CQ lock
 * held. May take the EP lock and the locks below. Must not read the CQ.
 */
typedef void dofi_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/* See struct dofi_progress_ops. */
typedef bool dofi_polled(struct dofi_cq *cq, struct dofi_sink *sink);

/* The calls of the progress thread and the CQs into higher layers. */
struct dofi_progress_ops {
	dofi_completed *completed;
	bool foreign_contexts;	/* an op_context may be something other than a DTO slot */
	/*
	 * Returns true if it delivered a receive to the sink, or there is no completion; false if
	 * the caller has to read the CQ. Any thread, CQ lock held. May be NULL.
	 */
	dofi_polled *poll;
	/* A connection event of @len bytes. Progress thread, no lock held. */
	void (*cm_event)(struct dofi_progress *progress, uint32_t event,
			 struct fi_eq_cm_entry *entry, size_t len);
	/* A failed connection attempt. Progress thread, no lock held. */
	void (*cm_error)(struct dofi_progress *progress, const struct fi_eq_err_entry *entry);
	/* The fabric has failed, see dofi_progress_fail(). Progress thread, no lock held. */
	void (*failed)(struct dofi_progress *progress, int err);
	/*
	 * Called after dofi_cq_want_sweep() and the next read: submits refused operations again.
	 * Any thread, CQ lock held. Must not block, read the CQ or take its lock, but may want
	 * another sweep. May be NULL.
	 */
	void (*swept)(struct dofi_cq *cq);
	/*
	 * The thread is about to sleep while CQs have no descriptor: peers that send wake it from
	 * now on, by a descriptor of the epoll set. The store that peers load is sequentially
	 * consistent, as the CQs are read again after it. Returns false, without sleep_end(), if
	 * peers do not wake the thread. Progress thread, no lock held. NULL if peers never do.
	 */
	bool (*sleep_begin)(struct dofi_progress *progress);
	/* The thread is awake: peers need not wake it. Progress thread, no lock held. */
	void (*sleep_end)(struct dofi_progress *progress);
};

/*
 * The longest sleep, in ns, of a thread that relies on peers to wake it. A faulty peer can withdraw
 * the request for a wakeup that all peers of a CQ see. Written by tests alone.
 */
extern int64_t dofi_longest_sleep_ns;

struct dofi_progress {
	const struct dofi_progress_ops *ops;
	struct fid_fabric *fabric;
	struct dofi_eq eq;		/* of endpoints; without a fid if they do not connect */
	struct dofi_eq listen_eq;	/* see dofi_progress_listen_eq() */
	struct dofi_eq_traits traits;
	int epfd;
	int wake_fd;
	struct dofi_source wake_source;
	pthread_t thread;
	const char *log_ia;		/* dofi_log_call_ia of the thread that opens the IA */
	_Atomic int failure;		/* a negative errno once the fabric has failed */
	struct dofi_work failure_work;
	_Atomic bool eq_away;		/* eq is out of the epoll set, as the program polls */
	_Atomic bool cq_away;		/* a CQ was left to the program before the last sleep */
	_Atomic bool eq_wanted;		/* a thread requests that eq is read nevertheless */
	_Atomic bool probe_wanted; /* a thread requests a check whether the program still polls */

	struct dofi_mutex lock;		/* the fields below */
	STAILQ_HEAD(, dofi_work) work;
	const struct dofi_work *running; /* the work that the thread took last; NULL: it is done */
	bool stop;

	/* progress thread only */
	TAILQ_HEAD(, dofi_served) served;
	struct dofi_heap timers;	/* soonest first */
	TAILQ_HEAD(, dofi_linger) lingering;
	/* once the thread has ended; NULL if nothing ever lingered */
	void (*lingering_end)(struct dofi_progress *p);
	int socket_hint;		/* where sock/watch.c begins to search */
	struct dofi_listeners listeners;
	bool lack_logged;		/* the lack of descriptors has been logged */
	int64_t eq_stays_until;	/* eq stays in the epoll set until then, though the program polls */
	bool sleeping;			/* ops->sleep_begin() succeeded: peers wake the thread */
};

/* Starts a thread with all signals blocked, so that no handler of the program runs on it. */
int dofi_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* Opens the fabric of @info unless it is open, and starts the thread. 0 or a negative errno. */
int dofi_progress_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
			struct fi_info *info, const struct dofi_eq_traits *traits);

/* Stops the thread: no work runs and no event is delivered after it. All CQs must be closed. */
void dofi_progress_stop(struct dofi_progress *p);

/* Queues @work unless it is queued already; once it runs it can be queued again. Any thread. */
void dofi_progress_post(struct dofi_progress *p, struct dofi_work *work);

/* Removes @work from the queue, and waits for it if it runs elsewhere. Any thread, no lock. */
void dofi_progress_withdraw(struct dofi_progress *p, struct dofi_work *work);

/* Runs @fn(@arg), or nothing if @fn is NULL, on the progress thread, and waits. */
void dofi_progress_call(struct dofi_progress *p, void (*fn)(void *arg), void *arg);

/* Reports the first failure of a queue, a negative errno, to ops->failed(). Any thread. */
void dofi_progress_fail(struct dofi_progress *p, int err);

/* Wakes the progress thread. Any thread. */
void dofi_progress_wake(struct dofi_progress *p);

/*
 * When the event queue of endpoints is read while it is out of the epoll set:
 *
 * dofi_progress_expect(): at once, as an event may have been written just now. Any thread.
 * dofi_progress_await(): an event is expected soon, so the queue stays watched for some
 *	milliseconds. Progress thread.
 * dofi_progress_probe(): the caller is about to sleep until a connection event comes, which may
 *	depend on a CQ that is left to the program. If no other thread polls, event queue and CQs
 *	are watched again without waiting for the next service of the CQs. Any thread, any lock.
 */
void dofi_progress_expect(struct dofi_progress *p);
void dofi_progress_await(struct dofi_progress *p);
void dofi_progress_probe(struct dofi_progress *p);

/* Returns the queue for passive endpoints: a separate one if the endpoints' queue reports data. */
static inline struct dofi_eq *dofi_progress_listen_eq(struct dofi_progress *p)
{
	return p->listen_eq.fid ? &p->listen_eq : &p->eq;
}

/* Handles all events of the queues. Some fabrics make progress here. Not within an event. */
void dofi_progress_events(struct dofi_progress *p);

bool dofi_progress_on_thread(const struct dofi_progress *p);

/*
 * Calls source->ready() on the progress thread while one of @events, an error or the end of @fd is
 * reported. A removed source may be called until the next work runs. Any thread.
 */
int dofi_source_add(struct dofi_progress *p, struct dofi_source *source, int fd, uint32_t events);
int dofi_source_change(struct dofi_progress *p, struct dofi_source *source, int fd,
		       uint32_t events);
void dofi_source_remove(struct dofi_progress *p, int fd);

/* @at is a time of dofi_now(); DOFI_NEVER starts nothing. Progress thread only. */
void dofi_timer_start(struct dofi_progress *p, struct dofi_timer *timer, int64_t at);
void dofi_timer_stop(struct dofi_progress *p, struct dofi_timer *timer);

/* Returns the timer that fires next, or NULL. Progress thread only. */
struct dofi_timer *dofi_timer_next(const struct dofi_progress *p);

/*
 * Open the event queues that connected endpoints of @info need, and add them to the epoll set.
 * Before the thread runs. Return 0, or a negative errno if nothing is open.
 */
int dofi_eqs_open(struct dofi_progress *p, const struct fi_info *info);
int dofi_eqs_watch(struct dofi_progress *p);
void dofi_eqs_close(struct dofi_progress *p);

/* A step of a round of the loop, as the next ones: reads the due and the reported queues. */
void dofi_eqs_serve(struct dofi_progress *p, int64_t now);
/* Reads all events of @eq. Returns whether there were any. */
bool dofi_eq_drain(struct dofi_progress *p, struct dofi_eq *eq);
/* Adds each queue to the epoll set or removes it, by traffic and free descriptors. */
void dofi_eqs_choose(struct dofi_progress *p);
/* Returns whether the thread may sleep: each queue is empty, or is read by the clock. */
bool dofi_eqs_arm(struct dofi_progress *p);
/* Returns when a queue outside the epoll set has to be read, or @deadline if that is earlier. */
int64_t dofi_eqs_deadline(const struct dofi_progress *p, int64_t deadline);

#endif
