/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf --peers: each number of connections runs in a new process at either end, so that memory
 * of an earlier number is not counted. The parents connect by TCP, and the children use that
 * connection to coordinate.
 */
#include "perf_peers.h"
#include "perf_oob.h"
#include "perf_stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERR_LEN 256
#define MESSAGE 8
/* A ping-pong needs no more, and an EP of default size holds them. */
#define WINDOW 2
#define WARM_UP 100
#define MAX_SAMPLES 100000
/* Time that the peer may need for each connection before it answers. */
#define CONNECTION_MS 10

/* One end. In the parent x has no transport; it holds timeouts and error texts only. */
struct peers {
	const struct perf_opts *opts;
	struct perf_oob oob;
	struct perf_xport *x;
	unsigned int n;
	unsigned int time_ms;	      /* time of the client's measurements */
	struct sockaddr_storage addr; /* client: address of the server */
	struct perf_fabric fabric;
	struct perf_peers_row row;
};

/* Report of a child to its parent. */
struct report {
	bool failed;
	struct perf_fabric fabric;
	struct perf_peers_row row;
	char text[ERR_LEN];
};

/* --- control messages ----------------------------------------------------- */

static int ctl_send(struct peers *p, const struct perf_ctl *ctl)
{
	unsigned char buf[PERF_CTL_LEN];

	perf_ctl_encode(ctl, buf);
	return perf_oob_send(&p->oob, p->x, buf, sizeof(buf));
}

static int notify(struct peers *p, enum perf_ctl_type type, uint64_t value)
{
	const struct perf_ctl ctl = { .type = type, .value = value };

	return ctl_send(p, &ctl);
}

static int ctl_recv(struct peers *p, struct perf_ctl *ctl)
{
	unsigned char buf[PERF_CTL_LEN];

	if (perf_oob_recv(&p->oob, p->x, buf, sizeof(buf)))
		return -1;
	if (perf_ctl_decode(ctl, buf, sizeof(buf)))
		return perf_fail(p->x, "malformed control message");
	return 0;
}

static int expect(struct peers *p, int type, uint64_t *value)
{
	struct perf_ctl ctl;

	if (ctl_recv(p, &ctl))
		return -1;
	if (ctl.type != type)
		return perf_fail(p->x, "the peer sent message %d instead of %d", ctl.type, type);
	*value = ctl.value;
	return 0;
}

/* --- both children ---------------------------------------------------------- */

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Growth of resident memory since @before; 0 if it shrank. */
static uint64_t bytes_since(uint64_t before)
{
	uint64_t now = resident_bytes();

	return now > before ? now - before : 0;
}

static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Creates the transport, without connections. */
static int open_ia(struct peers *p)
{
	struct perf_xport *x = perf_xport_new(p->opts, PERF_SIDE_DAT, NULL);

	if (!x)
		return perf_fail(p->x, "out of memory");
	/* the server is idle while the client measures empty polls */
	x->timeout_ms += CONNECTION_MS * p->n + 2 * p->time_ms;
	x->wait_client_ms = (int)x->timeout_ms;
	x->blocking = p->x->blocking;
	x->size_max = MESSAGE;
	perf_layout_init(&x->lay, MESSAGE, WINDOW);
	p->x = x;
	perf_oob_set_timeout(&p->oob, x->timeout_ms);
	allow_descriptors();
	if (perf_peers_open(x, p->n))
		return -1;
	perf_dat_fabric(x, &p->fabric);
	return 0;
}

/* --- the server's child ------------------------------------------------------ */

/* Serves the client's requests on one connection. */
static int serve_connection(struct peers *p, uint64_t index)
{
	const struct perf_ctl over = { .type = PERF_CTL_READY };
	struct perf_ctl ctl;

	if (perf_peers_select(p->x, index))
		return -1;
	for (;;) {
		if (perf_run_next(p->x, &ctl))
			return -1;
		if (ctl.type == PERF_CTL_QUIT)
			return perf_run_reply(p->x, &over);
		if (ctl.type != PERF_CTL_START)
			return perf_fail(p->x, "the client sent an unknown message");
		if (perf_run_serve(p->x, &ctl))
			return -1;
	}
}

static int serve_connections(struct peers *p)
{
	struct perf_ctl ctl;

	for (;;) {
		if (ctl_recv(p, &ctl))
			return -1;
		if (ctl.type == PERF_CTL_QUIT)
			return 0;
		if (ctl.type != PERF_CTL_SELECT)
			return perf_fail(p->x, "the client sent an unknown message");
		/* the client may close the connection when it knows that no completion is due */
		if (notify(p, PERF_CTL_READY, 0) || serve_connection(p, ctl.value) ||
		    notify(p, PERF_CTL_READY, 0))
			return -1;
	}
}

static int serve(struct peers *p)
{
	unsigned int port = 0;
	uint64_t before, ns;

	if (open_ia(p))
		return -1;
	before = resident_bytes();
	if (perf_peers_create(p->x) || p->x->ops->listen(p->x, &port) ||
	    notify(p, PERF_CTL_READY, port) || perf_peers_accept(p->x) ||
	    notify(p, PERF_CTL_DONE, bytes_since(before)) || serve_connections(p) ||
	    perf_peers_end(p->x, &ns))
		return -1;
	return notify(p, PERF_CTL_DONE, 0);
}

/* --- the client's child ------------------------------------------------------ */

static int ping_pong(struct peers *p, uint64_t *samples, double *us)
{
	struct perf_point point = {
		.test = PERF_SEND,
		.metric = PERF_LAT,
		.size = MESSAGE,
		.iters = WARM_UP,
		.samples = samples,
	};
	const struct perf_opts *opts = p->opts;
	struct perf_lat lat;

	if (perf_run_point(p->x, &point))
		return -1;
	point.iters = perf_iters_for(p->time_ms * 1000000ull, point.total_ns, WARM_UP, WARM_UP,
				     MAX_SAMPLES);
	if (opts->iters)
		point.iters = opts->iters < MAX_SAMPLES ? opts->iters : MAX_SAMPLES;
	if (perf_run_point(p->x, &point))
		return -1;
	perf_lat_of(samples, point.iters, 2, &lat);
	*us = lat.median;
	return 0;
}

static int measure_latency(struct peers *p, unsigned int index, double *us)
{
	const struct perf_ctl quit = { .type = PERF_CTL_QUIT };
	uint64_t *samples, value;
	struct perf_ctl reply;
	int rc;

	if (perf_peers_select(p->x, index) || notify(p, PERF_CTL_SELECT, index) ||
	    expect(p, PERF_CTL_READY, &value))
		return -1;
	samples = calloc(MAX_SAMPLES, sizeof(*samples));
	if (!samples)
		return perf_fail(p->x, "out of memory");
	rc = ping_pong(p, samples, us);
	free(samples);
	if (rc || perf_run_request(p->x, &quit, &reply))
		return -1;
	return expect(p, PERF_CTL_READY, &value);
}

static double kib_each(const struct peers *p, uint64_t bytes)
{
	return (double)bytes / 1024 / p->n;
}

static int measure_connecting(struct peers *p)
{
	const struct sockaddr *addr = p->opts->host ? (const struct sockaddr *)&p->addr : NULL;
	double *figure = p->row.figure;
	uint64_t before, port = 0, ns, server_bytes = 0;

	before = resident_bytes();
	if (perf_peers_create(p->x) || expect(p, PERF_CTL_READY, &port) ||
	    perf_peers_connect(p->x, addr, (unsigned int)port, &ns) ||
	    expect(p, PERF_CTL_DONE, &server_bytes))
		return -1;
	figure[PERF_PEERS_CONNECT] = p->n * 1e9 / (double)ns;
	figure[PERF_PEERS_CLIENT] = kib_each(p, bytes_since(before));
	figure[PERF_PEERS_SERVER] = kib_each(p, server_bytes);
	return 0;
}

static int measure(struct peers *p)
{
	const uint64_t budget = p->time_ms * 1000000ull;
	double *figure = p->row.figure;
	uint64_t ns, value;

	/* the first polls make the progress thread leave the CQ to this thread */
	if (open_ia(p) || measure_connecting(p) ||
	    perf_peers_empty(p->x, budget, &figure[PERF_PEERS_EMPTY]) ||
	    perf_peers_empty(p->x, budget, &figure[PERF_PEERS_EMPTY]) ||
	    measure_latency(p, 0, &figure[PERF_PEERS_FIRST]) ||
	    measure_latency(p, p->n - 1, &figure[PERF_PEERS_LAST]) || perf_peers_end(p->x, &ns))
		return -1;
	figure[PERF_PEERS_CLOSE] = (double)ns / 1e6;
	return notify(p, PERF_CTL_QUIT, 0) ? -1 : expect(p, PERF_CTL_DONE, &value);
}

/* --- both parents ------------------------------------------------------------------ */

static __attribute__((noreturn)) void child(struct peers *p, int (*work)(struct peers *), int fd)
{
	struct report report = { .failed = true };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	perf_stop_ignore();
	signal(SIGPIPE, SIG_IGN);
	report.failed = work(p) != 0;
	report.fabric = p->fabric;
	report.row = p->row;
	memcpy(report.text, p->x->err, sizeof(report.text));
	if (p->x->ops)
		p->x->ops->close(p->x);
	/* a report fits the pipe; a parent that has exited needs none */
	_exit(write(fd, &report, sizeof(report)) == sizeof(report) ? EXIT_SUCCESS : EXIT_FAILURE);
}

/*
 * Runs @work in a child process. The parent must not call DAT before, as DAT does not survive a
 * fork.
 */
static int run_in_child(struct peers *p, int (*work)(struct peers *))
{
	struct pollfd pfd = { .events = POLLIN };
	struct report report;
	ssize_t got;
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		return perf_fail(p->x, "%s", strerror(errno));
	pid = fork();
	if (pid == 0)
		child(p, work, fd[1]);
	close(fd[1]);
	pfd.fd = fd[0];
	while (poll(&pfd, 1, 1000) == 0)
		perf_progress_tick();
	/* the read ends when the child exits */
	got = pid < 0 ? -1 : read(fd[0], &report, sizeof(report));
	close(fd[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (got != sizeof(report))
		return perf_fail(p->x, "the process with %u connections exited without a report",
				 p->n);
	p->fabric = report.fabric;
	p->row = report.row;
	return report.failed ? perf_fail(p->x, "%s", report.text) : 0;
}

/* --- the server's parent ------------------------------------------------------- */

/* Returns 1 to continue, 0 when the client is done. */
static int next_number(struct peers *p)
{
	struct perf_ctl ctl;

	if (ctl_recv(p, &ctl))
		return -1;
	if (ctl.type == PERF_CTL_QUIT)
		return 0;
	if (ctl.type != PERF_CTL_PEERS || !ctl.value || ctl.value > PERF_PEERS_MAX ||
	    ctl.iters > PERF_TIME_MAX)
		return perf_fail(p->x, "the client requested an invalid number of connections");
	p->n = (unsigned int)ctl.value;
	p->time_ms = (unsigned int)ctl.iters;
	p->x->blocking = ctl.kind & PERF_HELLO_WAIT;
	return run_in_child(p, serve) ? -1 : 1;
}

/* A client without --peers sends a request of its fabric, which may be shorter than a message. */
static int check_client(struct peers *p)
{
	unsigned char begin[4];

	if (recv(p->oob.fd, begin, sizeof(begin), MSG_PEEK | MSG_WAITALL) == sizeof(begin) &&
	    perf_ctl_begins(begin))
		return 0;
	return perf_fail(p->x, "the client has no --peers, or is not a datperf of this version");
}

int perf_peers_server(const struct perf_opts *opts, void (*ready)(void *arg, unsigned int port),
		      void *arg, char *err, size_t errlen)
{
	struct perf_xport x = { .timeout_ms = opts->timeout_ms, .wait_client_ms = -1 };
	struct peers p = { .opts = opts, .x = &x };
	unsigned int port = opts->port;
	int rc = -1;

	perf_oob_init(&p.oob);
	if (opts->role == PERF_ROLE_LOCAL)
		x.wait_client_ms = (int)opts->timeout_ms;
	if (!perf_oob_listen(&p.oob, &x, &port)) {
		ready(arg, port);
		rc = perf_oob_accept(&p.oob, &x) ? -1 : check_client(&p);
	}
	do {
		rc = rc < 0 ? rc : next_number(&p);
	} while (rc > 0);
	perf_oob_close(&p.oob);
	snprintf(err, errlen, "%s", x.err);
	return rc;
}

/* --- the client's parent ------------------------------------------------------- */

static int run_once(struct peers *p, unsigned int n)
{
	const struct perf_ctl ctl = {
		.type = PERF_CTL_PEERS,
		.kind = p->x->blocking ? PERF_HELLO_WAIT : 0,
		.iters = p->time_ms,
		.value = n,
	};

	if (perf_stop)
		return -1;
	p->n = n;
	return ctl_send(p, &ctl) ? -1 : run_in_child(p, measure);
}

/* Measures the @nth number of connections; @row gets the medians of all repetitions. */
static int run_number(struct peers *p, int nth, struct perf_peers_row *row)
{
	static double runs[PERF_PEERS_NFIGURES][PERF_REPEAT_MAX];
	const unsigned int repeat = (unsigned int)p->opts->repeat, n = p->opts->peers[nth];
	unsigned int i;
	int f;

	for (i = 0; i < repeat; i++) {
		perf_progress((unsigned int)nth * repeat + i,
			      (unsigned int)p->opts->npeers * repeat, "connections", n);
		if (run_once(p, n))
			return -1;
		for (f = 0; f < PERF_PEERS_NFIGURES; f++)
			runs[f][i] = p->row.figure[f];
	}
	row->connections = n;
	for (f = 0; f < PERF_PEERS_NFIGURES; f++)
		row->figure[f] = perf_median(runs[f], (int)repeat);
	return 0;
}

static int run_all(struct peers *p)
{
	const struct perf_opts *opts = p->opts;
	struct perf_peers_row rows[PERF_PEERS_NUMBERS];
	struct perf_opts done = *opts; /* with the numbers that were measured */
	int i;

	perf_stop_catch();
	for (i = 0; i < opts->npeers; i++) {
		if (run_number(p, i, &rows[i]))
			break;
		perf_progress_clear();
		if (i == 0)
			perf_peers_out_begin(opts, &p->fabric);
		perf_peers_out_row(opts, &p->fabric, &rows[i]);
	}
	done.npeers = i;
	if (i < opts->npeers && !perf_stop)
		done.failure = p->x->err;
	/* without a first number there is no fabric */
	if (i || !done.failure)
		perf_peers_out_json(&done, &p->fabric, rows);
	if (done.failure)
		return -1;
	return notify(p, PERF_CTL_QUIT, 0) && !perf_stop ? -1 : 0;
}

int perf_peers_client(const struct perf_opts *opts, char *err, size_t errlen)
{
	struct perf_xport x = { .timeout_ms = opts->timeout_ms, .blocking = opts->wait };
	struct peers p = { .opts = opts, .x = &x, .time_ms = opts->time_ms };
	const char *hint = "";
	int rc;

	perf_oob_init(&p.oob);
	rc = perf_resolve(&x, opts->host, &p.addr);
	if (!rc && perf_oob_connect(&p.oob, &x, (struct sockaddr *)&p.addr, opts->port)) {
		hint = "; does the server have --peers?";
		rc = -1;
	}
	if (!rc)
		rc = run_all(&p);
	perf_progress_clear();
	perf_oob_close(&p.oob);
	snprintf(err, errlen, "%s%s", x.err, hint);
	return rc;
}
