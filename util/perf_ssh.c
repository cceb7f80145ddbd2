/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datperf --ssh: the server, as a process on another host. */
#include "perf_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Time that a server may take to end. */
#define EXIT_MS 5000
#define COMMAND_MAX 1024

/* Appends @option and, unless it is NULL, @value, quoted for the shell of the other host. */
static void add(FILE *command, const char *option, const char *value)
{
	fprintf(command, " %s", option);
	if (!value)
		return;
	fputs(" '", command);
	for (; *value; value++)
		fprintf(command, *value == '\'' ? "'\\''" : "%c", *value);
	putc('\'', command);
}

/* Writes the server's command line. Returns -1 if it is too long. */
static int server_command(const struct perf_opts *opts, char *text, size_t len)
{
	FILE *command = fmemopen(text, len, "w");
	char number[32];
	int rc;

	if (!command)
		return -1;
	fputs("datperf --server --stdin", command);
	snprintf(number, sizeof(number), "%u", opts->port);
	add(command, "--port", number);
	snprintf(number, sizeof(number), "%u", opts->timeout_ms / 1000);
	add(command, "--timeout", number);
	if (opts->bind)
		add(command, "--bind", NULL);
	if (opts->npeers)
		add(command, "--peers", "1");
	if (!opts->side[PERF_SIDE_DAT])
		add(command, "--raw-only", NULL);
	if (opts->device) {
		add(command, "--device", opts->device);
	} else {
		add(command, "--provider", opts->provider);
		add(command, "--endpoint", opts->rdm ? "rdm" : "msg");
	}
	fflush(command);
	rc = ferror(command) || ftell(command) >= (long)len ? -1 : 0;
	fclose(command);
	return rc;
}

static __attribute__((noreturn)) void run_ssh(const struct perf_opts *opts, const char *command,
					      int in, int err)
{
	const char *program = getenv("DATPERF_SSH");

	if (!program || !*program)
		program = "ssh";
	/* Ctrl-C is for the client, which still needs the server to end the measurement */
	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(in, STDIN_FILENO);
	dup2(err, STDERR_FILENO);
	execlp(program, program, opts->ssh, command, (char *)NULL);
	fprintf(stderr, "datperf: cannot run %s: %s\n", program, strerror(errno));
	_exit(127);
}

/* Prints the server's lines before its report that it listens. */
static int wait_until_listening(struct perf_ssh *ssh)
{
	char line[512];

	while (fgets(line, sizeof(line), ssh->err)) {
		if (strstr(line, PERF_SSH_LISTENING))
			return 0;
		fputs(line, stderr);
	}
	return -1;
}

int perf_ssh_start(struct perf_ssh *ssh, const struct perf_opts *opts, char *err, size_t errlen)
{
	char command[COMMAND_MAX];
	int in[2], out[2];

	if (server_command(opts, command, sizeof(command)) || pipe2(in, O_CLOEXEC) ||
	    pipe2(out, O_CLOEXEC) || !(ssh->err = fdopen(out[0], "r")) || (ssh->pid = fork()) < 0) {
		snprintf(err, errlen, "cannot start the server: %s", strerror(errno));
		return -1;
	}
	if (ssh->pid == 0)
		run_ssh(opts, command, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	ssh->in = in[1];
	if (!wait_until_listening(ssh))
		return 0;
	snprintf(err, errlen, "the server on %s did not start", opts->ssh);
	perf_ssh_end(ssh, false);
	return -1;
}

int perf_ssh_end(struct perf_ssh *ssh, bool served)
{
	/* the pipe hangs up when ssh exits, which it does after the server */
	struct pollfd pfd = { .fd = fileno(ssh->err), .events = 0 };
	char line[512];
	int status = 0;

	if (served)
		poll(&pfd, 1, EXIT_MS);
	close(ssh->in);
	if (poll(&pfd, 1, EXIT_MS) <= 0)
		kill(ssh->pid, SIGTERM);
	while (fgets(line, sizeof(line), ssh->err))
		fputs(line, stderr);
	fclose(ssh->err);
	while (waitpid(ssh->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
