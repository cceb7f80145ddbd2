/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Consumer Notification Object: waits for many EVDs at once. */
#ifndef DOFI_OBJ_EVD_CNO_H
#define DOFI_OBJ_EVD_CNO_H

#include "base/cond.h"
#include "base/mutex.h"
#include "obj/ia.h"

struct dofi_evd;

/* The state of an EVD in its CNO; under the CNO's lock. */
struct dofi_cno_source {
	struct dofi_evd *evd;
	bool owed;			/* it has events that the CNO reported, or has to report */
	TAILQ_ENTRY(dofi_cno_source) link;
};

/* The recipients of a trigger. Each takes it by itself, as DAT passes a trigger to both. */
enum {
	DOFI_CNO_WAITER = 1,		/* dat_cno_wait(), dat_cno_trigger() and the descriptor */
	DOFI_CNO_AGENT = 2,
	DOFI_CNO_BOTH = DOFI_CNO_WAITER | DOFI_CNO_AGENT,
};

struct dofi_cno {
	struct dofi_obj obj;
	struct dofi_mutex lock;		/* the fields below; nothing is locked under it */
	struct dofi_cond wakeup;
	unsigned triggered;		/* recipients that have a trigger to take */
	int fd;				/* an eventfd, readable while triggered; or -1 */
	unsigned again;			/* recipients triggered for events reported before */
	bool dying;
	struct dofi_evd *evd;		/* the last EVD that triggered: a hint */
	TAILQ_HEAD(, dofi_cno_source) sources;
	int waiters;
	unsigned released;		/* how often all waiters were sent away */
	DAT_OS_WAIT_PROXY_AGENT agent;	/* none after it was called */
	bool agent_armed;		/* an agent is called once each time it is set */
	struct dofi_work agent_work;
};

DOFI_OBJ_HANDLES(cno, CNO, struct dofi_cno);

/*
 * An EVD starts or stops triggering the CNO. When the last EVD is @freed, no more events can come:
 * the waiters return, and the agent or descriptor reports that. The EVD lock may be held here and
 * in the functions below.
 */
void dofi_cno_attach(struct dofi_cno *cno, struct dofi_cno_source *source)
	DOFI_NEEDS_NOT(cno->lock);
void dofi_cno_detach(struct dofi_cno *cno, struct dofi_cno_source *source, bool freed)
	DOFI_NEEDS_NOT(cno->lock);

/* Triggers the CNO for an EVD that has events. Any thread. */
void dofi_cno_raise(struct dofi_cno *cno, struct dofi_cno_source *source) DOFI_NEEDS_NOT(cno->lock);

/*
 * Call after dequeueing an event from an EVD. @more: the EVD has further events to report. One
 * trigger may stand for several events of several EVDs, so a program that takes one event per
 * trigger gets another trigger.
 */
void dofi_cno_update(struct dofi_cno *cno, struct dofi_cno_source *source, bool more)
	DOFI_NEEDS_NOT(cno->lock);

DAT_RETURN dofi_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *cno_handle);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno_handle);
DAT_RETURN dofi_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE *evd_handle);
#endif
DAT_RETURN dofi_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent);
DAT_RETURN dofi_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param);
DAT_RETURN dofi_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
			 DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dofi_cno_free(DAT_CNO_HANDLE cno_handle);

#endif
