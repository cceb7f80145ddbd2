/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What wakes a progress thread: descriptors, timers, and work that other threads hand over. */
#ifndef DOFI_LOOP_SOURCE_H
#define DOFI_LOOP_SOURCE_H

#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

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

/* A timer. Progress thread only. */
struct dofi_timer {
	struct dofi_heap_node node;	/* while it is running */
	int64_t at;			/* 0 when not running */
	void (*fire)(struct dofi_timer *timer);
};

/*
 * Calls source->ready() on the progress thread while one of @events (EPOLLIN, ...) is true of @fd.
 * Errors and the end of a connection are always reported. A removed source may still be called
 * until the next work runs. Any thread.
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

#endif
