/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What wakes a progress thread: descriptors and timers. Work is in progress.c. */

#include "loop/source.h"

#include "base/clock.h"
#include "base/layout.h"
#include "loop/progress.h"

#include <errno.h>
#include <sys/epoll.h>

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

struct dofi_timer *dofi_timer_next(const struct dofi_progress *p)
{
	struct dofi_heap_node *node = dofi_heap_top(&p->timers);

	return node ? DOFI_CONTAINER_OF(node, struct dofi_timer, node) : NULL;
}
