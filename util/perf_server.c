/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf's server: executes the control messages of a client, or of one client after another. */
#include "datperf.h"
#include "perf_ud.h"

#include <pthread.h>
#include <string.h>

struct server {
	const struct perf_opts *opts;
	struct perf_xport *listener;
	struct perf_xport *x[PERF_NSIDES];
	enum perf_side current; /* side that it listens to */
	bool met;		/* a client has connected, even if only to be refused */
};

/* The connections of a thread of the client, other than the first thread. */
struct helper {
	pthread_t thread;
	struct perf_xport *x;
	bool running;
	int rc;
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
	case PERF_CTL_OPEN_UD:
		return perf_ud_accept(x, &ctl) ? -1 : 1;
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

/* --- other threads ------------------------------------------------------- */

static void *help(void *arg)
{
	struct helper *h = arg;
	struct server s = { .current = PERF_SIDE_DAT, .x = { [PERF_SIDE_DAT] = h->x } };

	h->rc = serve(&s);
	return NULL;
}

static int helper_start(struct server *s, struct helper *h, unsigned int i)
{
	struct perf_xport *first = s->x[PERF_SIDE_DAT];

	h->x = perf_dat_share(s->listener);
	if (!h->x)
		return perf_fail(first, "out of memory");
	h->x->session = first->session;
	h->x->lanes = first->lanes;
	h->x->first_lane = i * first->lanes;
	if (h->x->ops->open(h->x) || h->x->ops->accept(h->x))
		return -1;
	h->running = !pthread_create(&h->thread, NULL, help, h);
	return h->running ? 0 : perf_fail(first, "cannot create %u threads", first->threads);
}

/* Stores the reason if the helper failed but not the first thread. */
static int helper_end(struct server *s, struct helper *h)
{
	struct perf_xport *first = s->x[PERF_SIDE_DAT];

	if (h->running)
		pthread_join(h->thread, NULL);
	if (!h->x)
		return 0;
	if (h->x->err[0])
		perf_fail(first, "%s", h->x->err);
	h->x->ops->close(h->x);
	return h->rc;
}

/* Serves all threads of a client; the connections of the first are open. */
static int serve_threads(struct server *s)
{
	struct perf_xport *first = s->x[s->current];
	struct helper helper[PERF_THREADS_MAX] = { 0 };
	unsigned int i;
	int rc = 0;

	for (i = 1; !rc && i < first->threads; i++)
		rc = helper_start(s, &helper[i], i);
	if (!rc)
		rc = serve(s);
	for (i = 1; i < first->threads; i++)
		if (helper_end(s, &helper[i]))
			rc = -1;
	return rc;
}

/* --- clients ---------------------------------------------------------------- */

/*
 * A client of DAT has connections of its own on the IA of the listener, which stays open for the
 * next one.
 */
static int accept_client(struct server *s)
{
	struct perf_xport *x = s->listener;

	if (s->current == PERF_SIDE_DAT)
		x = perf_dat_share(s->listener);
	if (!x)
		return perf_fail(s->listener, "out of memory");
	s->x[s->current] = x;
	if (x != s->listener && x->ops->open(x))
		return -1;
	return x->ops->accept(x);
}

/* Serves one client. Returns 0, or -1 with an error text in @err. */
static int serve_client(struct server *s, char *err, size_t errlen)
{
	int i, rc = accept_client(s);
	struct perf_xport *first = s->x[s->current];

	s->met = first && (first->session || first->refused);
	if (!rc)
		rc = serve_threads(s);
	snprintf(err, errlen, "out of memory");
	for (i = PERF_NSIDES - 1; i >= 0; i--) {
		if (!s->x[i])
			continue;
		if (s->x[i]->err[0])
			snprintf(err, errlen, "%s", s->x[i]->err);
		if (i == PERF_SIDE_DAT)
			perf_dat_forget(s->listener, s->x[i]->session);
		if (s->x[i] != s->listener)
			s->x[i]->ops->close(s->x[i]);
		s->x[i] = NULL;
	}
	return rc;
}

/* With --keep only an error of the server itself ends it. */
static int serve_clients(struct server *s, char *err, size_t errlen)
{
	const enum perf_side first = s->current;
	int rc;

	do {
		s->current = first;
		rc = serve_client(s, err, errlen);
		if (rc && s->opts->keep && s->met)
			fprintf(stderr, "datperf: %s\n", err);
	} while (s->opts->keep && (!rc || s->met));
	return rc;
}

int perf_server(const struct perf_opts *opts, void (*ready)(void *arg, unsigned int port),
		void *arg, char *err, size_t errlen)
{
	struct server s = { .opts = opts };
	struct perf_fabric fabric;
	unsigned int port = opts->port;
	struct perf_xport *x;
	int rc = -1;

	s.current = opts->side[PERF_SIDE_DAT] ? PERF_SIDE_DAT : PERF_SIDE_RAW;
	if (s.current == PERF_SIDE_RAW && perf_raw_only_fabric(opts, &fabric, err, errlen))
		return -1;
	x = perf_xport_new(opts, s.current, &fabric);
	s.listener = x;
	snprintf(err, errlen, "out of memory");
	if (!x)
		return -1;
	if (opts->role == PERF_ROLE_LOCAL)
		x->wait_client_ms = (int)opts->timeout_ms;
	if (x->ops->open(x) || x->ops->listen(x, &port)) {
		snprintf(err, errlen, "%s", x->err);
	} else {
		ready(arg, port);
		rc = serve_clients(&s, err, errlen);
	}
	x->ops->close(x);
	return rc;
}
