/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * datperf: measures latency and bandwidth of DAT, alone or compared with bare libfabric. This file
 * runs one role, or with --local both.
 */
#include "perf_hosts.h"
#include "perf_peers.h"
#include "perf_plot.h"
#include "perf_ssh.h"
#include "perf_stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ERR_LEN 256
/* Time that a finished server may take to release its resources. */
#define EXIT_MS 5000

/* Report of the child of --local to its parent: one when it listens, one if it fails. */
struct report {
	int failed; /* 0: listening on port; 1: text is the reason */
	unsigned int port;
	char text[ERR_LEN];
};

static void bind_cpu(const struct perf_opts *opts, bool last)
{
	cpu_set_t all, one;
	int i, cpu = -1;

	if (!opts->bind || sched_getaffinity(0, sizeof(all), &all))
		return;
	for (i = 0; i < CPU_SETSIZE && (last || cpu < 0); i++)
		if (CPU_ISSET(i, &all))
			cpu = i;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int fail(const char *err)
{
	fprintf(stderr, "datperf: %s\n", err);
	return EXIT_FAILURE;
}

/* Returns the exit status of a client without an error. */
static int finished(void)
{
	if (!perf_stop)
		return EXIT_SUCCESS;
	fflush(stdout);
	fprintf(stderr, "datperf: interrupted\n");
	return 128 + perf_stop;
}

static int serve(const struct perf_opts *opts, void (*ready)(void *arg, unsigned int port),
		 void *arg, char *err)
{
	return (opts->npeers ? perf_peers_server : perf_server)(opts, ready, arg, err, ERR_LEN);
}

static int measure(const struct perf_opts *opts, char *err)
{
	if (opts->nhosts > 1)
		return perf_hosts(opts, err, ERR_LEN);
	return (opts->npeers ? perf_peers_client : perf_client)(opts, err, ERR_LEN);
}

/* --- one role ----------------------------------------------------------- */

static void listening(void *arg, unsigned int port)
{
	(void)arg;
	fprintf(stderr, "datperf: " PERF_SSH_LISTENING " %u\n", port);
}

/* Ends the process at the end of its input, which a client has ended or left. */
static void *watch_input(void *begun)
{
	char buf[64];

	sem_post(begun);
	while (read(STDIN_FILENO, buf, sizeof(buf)) > 0)
		;
	kill(getpid(), SIGTERM);
	return NULL;
}

static int run_server(const struct perf_opts *opts)
{
	char err[ERR_LEN];
	pthread_t thread;
	sem_t begun;

	sem_init(&begun, 0, 0);
	if (opts->eof && pthread_create(&thread, NULL, watch_input, &begun))
		return fail("cannot create a thread");
	/* a child that is forked while the thread starts would inherit locks of the allocator */
	while (opts->eof && sem_wait(&begun))
		;
	bind_cpu(opts, true);
	return serve(opts, listening, NULL, err) ? fail(err) : EXIT_SUCCESS;
}

static int run_client(const struct perf_opts *opts)
{
	char err[ERR_LEN];

	bind_cpu(opts, false);
	return measure(opts, err) ? fail(err) : finished();
}

/* Starts the server by ssh, runs the client, and ends the server. */
static int run_with_ssh(const struct perf_opts *opts)
{
	struct perf_ssh ssh;
	char err[ERR_LEN];
	int status, server;

	if (perf_ssh_start(&ssh, opts, err, sizeof(err)))
		return fail(err);
	status = run_client(opts);
	server = perf_ssh_end(&ssh, status != EXIT_FAILURE);
	return status || !server ? status : fail("the server failed while exiting");
}

/* --- both --------------------------------------------------------------- */

static void send_report(int fd, const struct report *report)
{
	/* one report fits the pipe; the parent may have exited already */
	if (write(fd, report, sizeof(*report)) < 0)
		_exit(EXIT_FAILURE);
}

static void child_ready(void *arg, unsigned int port)
{
	const struct report report = { .port = port };

	send_report(*(int *)arg, &report);
}

static int run_child(const struct perf_opts *opts, int fd)
{
	struct report report = { .failed = 1 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	perf_stop_ignore();
	signal(SIGPIPE, SIG_IGN);
	bind_cpu(opts, true);
	if (!serve(opts, child_ready, &fd, report.text))
		return EXIT_SUCCESS;
	send_report(fd, &report);
	return EXIT_FAILURE;
}

/* Returns NULL if a report arrived within @timeout_ms, else why there is none. */
static const char *read_report(int fd, int timeout_ms, struct report *report)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	if (poll(&pfd, 1, timeout_ms) <= 0)
		return "the server process did not open the device in time; see --timeout";
	return read(fd, report, sizeof(*report)) == sizeof(*report) ?
		       NULL : "the server process exited without a report";
}

/* Reaps the child. Kills it at once without @wait, else if it does not exit within EXIT_MS. */
static int reap_child(pid_t pid, int fd, bool wait)
{
	struct pollfd pfd = { .fd = fd, .events = 0 };
	int status = 0;

	/* the pipe hangs up when the child exits */
	if (!wait || poll(&pfd, 1, EXIT_MS) <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int run_parent(struct perf_opts *opts, pid_t pid, int fd)
{
	struct report report = { .port = 0 };
	const char *why;
	char err[ERR_LEN];
	int status;

	/* opening a device may take as long as the timeout for a silent peer */
	why = read_report(fd, (int)opts->timeout_ms, &report);
	if (why) {
		reap_child(pid, fd, false);
		return fail(why);
	}
	if (report.failed) {
		reap_child(pid, fd, true);
		return fail(report.text);
	}
	opts->port = report.port;
	bind_cpu(opts, false);
	if (measure(opts, err)) {
		/* an error of the server may be the cause */
		if (read_report(fd, 200, &report) && report.failed)
			fprintf(stderr, "datperf: %s (server: %s)\n", err, report.text);
		else
			fail(err);
		reap_child(pid, fd, false);
		return EXIT_FAILURE;
	}
	status = reap_child(pid, fd, true);
	if (!perf_stop && (!WIFEXITED(status) || WEXITSTATUS(status)))
		return fail(read_report(fd, 0, &report) && report.failed ?
				    report.text :
				    "the server process failed while exiting");
	return finished();
}

static int run_local(struct perf_opts *opts)
{
	int fd[2], status;
	pid_t pid;

	if (pipe(fd))
		return fail(strerror(errno));
	/* fork before any call of DAT or libfabric: neither survives a fork */
	pid = fork();
	if (pid < 0)
		return fail(strerror(errno));
	if (pid == 0) {
		close(fd[0]);
		exit(run_child(opts, fd[1]));
	}
	close(fd[1]);
	status = run_parent(opts, pid, fd[0]);
	close(fd[0]);
	return status;
}

static int run(struct perf_opts *opts)
{
	char err[ERR_LEN];

	if (opts->from)
		return perf_plot_files(opts, err, sizeof(err)) ? fail(err) : EXIT_SUCCESS;
	/* a measurement that cannot be drawn need not begin */
	if (opts->plot && perf_plot_check(err, sizeof(err)))
		return fail(err);
	switch (opts->role) {
	case PERF_ROLE_SERVER:
		return run_server(opts);
	case PERF_ROLE_CLIENT:
		return opts->ssh ? run_with_ssh(opts) : run_client(opts);
	default:
		return run_local(opts);
	}
}

int main(int argc, char **argv)
{
	struct perf_opts opts;
	int status = perf_opts_parse(argc, argv, &opts);

	if (status >= 0)
		return status;
	status = run(&opts);
	if (!status && (fflush(stdout) || ferror(stdout)))
		return fail("not all results were written to standard output");
	return status;
}
