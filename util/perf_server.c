/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's server: executes the control messages of one client. */
#include "datperf.h"

#include <string.h>

struct server {
	const struct perf_opts *opts;
	struct perf_xport *x[PERF_NSIDES];
	enum perf_side current; /* side that it listens to */
};

static int reply(struct server *s, enum perf_ctl_type type, uint64_t value)
{
	const struct perf_ctl ctl = { .type = type, .value = value };

	return perf_run_reply(s->x[s->current], &ctl);
}

/* Listens on the fabric of the IA, sends the port to the client, and accepts its connection. */
static int open_raw(struct server *s)
{
	struct perf_fabric fabric;
	struct perf_xport *raw;
	unsigned int port = 0;

	if (s->current != PERF_SIDE_DAT || s->x[PERF_SIDE_RAW])
		return reply(s, PERF_CTL_ERROR, 0);
	perf_dat_fabric(s->x[PERF_SIDE_DAT], &fabric);
	raw = perf_xport_new(s->opts, PERF_SIDE_RAW, &fabric);
	if (!raw)
		return perf_fail(s->x[PERF_SIDE_DAT], "out of memory");
	s->x[PERF_SIDE_RAW] = raw;
	raw->wait_client_ms = (int)s->opts->timeout_ms;
	if (raw->ops->open(raw) || raw->ops->listen(raw, &port)) {
		reply(s, PERF_CTL_ERROR, 0);
		return -1;
	}
	return reply(s, PERF_CTL_READY, port) ? -1 : raw->ops->accept(raw);
}

static int select_side(struct server *s, uint64_t side)
{
	if (side >= PERF_NSIDES || !s->x[side])
		return perf_fail(s->x[s->current], "the client selected a side that is not open");
	if (reply(s, PERF_CTL_READY, 0))
		return -1;
	s->current = (enum perf_side)side;
	return 0;
}

/* Returns 1 to continue, 0 when the client is done. */
static int serve_one(struct server *s)
{
	struct perf_xport *x = s->x[s->current];
	struct perf_ctl ctl;

	if (perf_run_next(x, &ctl))
		return -1;
	switch (ctl.type) {
	case PERF_CTL_START:
		return perf_run_serve(x, &ctl) ? -1 : 1;
	case PERF_CTL_OPEN_RAW:
		return open_raw(s) ? -1 : 1;
	case PERF_CTL_SELECT:
		return select_side(s, ctl.value) ? -1 : 1;
	case PERF_CTL_QUIT:
		return reply(s, PERF_CTL_READY, 0);
	default:
		return perf_fail(x, "the client sent an unknown message");
	}
}

static int serve(struct server *s)
{
	int rc, i;

	do {
		rc = serve_one(s);
	} while (rc > 0);
	for (i = 0; rc == 0 && i < PERF_NSIDES; i++)
		if (s->x[i])
			s->x[i]->ops->disconnect(s->x[i]);
	return rc;
}

int perf_server(const struct perf_opts *opts, void (*ready)(void *arg, unsigned int port),
		void *arg, char *err, size_t errlen)
{
	struct server s = { .opts = opts };
	unsigned int port = opts->port;
	struct perf_xport *x;
	int i, rc = -1;

	s.current = opts->side[PERF_SIDE_DAT] ? PERF_SIDE_DAT : PERF_SIDE_RAW;
	x = perf_xport_new(opts, s.current, NULL);
	s.x[s.current] = x;
	if (x && opts->role == PERF_ROLE_LOCAL)
		x->wait_client_ms = (int)opts->timeout_ms;
	if (x && !x->ops->open(x) && !x->ops->listen(x, &port)) {
		ready(arg, port);
		rc = x->ops->accept(x) ? -1 : serve(&s);
	}
	snprintf(err, errlen, "out of memory");
	for (i = PERF_NSIDES - 1; i >= 0; i--) {
		if (!s.x[i])
			continue;
		if (s.x[i]->err[0])
			snprintf(err, errlen, "%s", s.x[i]->err);
		s.x[i]->ops->close(s.x[i]);
	}
	return rc;
}
