/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the cases of a two-process test: forks the roles, limits their time, reports in TAP. */

#include "pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define CASE_SECONDS 30
#define BUSY 4			/* multiplies limits, which are for hangs, not slowness */
#define RUNNER_SCALE 8		/* valgrind's slowdown */
#define GRACE_MS 2000		/* for the second role to report, too */

/* Shared with the process that started the roles. */
struct shared {
	int skipped;
	char reason[256];
};

static struct shared *shared;
static const struct pair_case *current;
static const char *subject = "";	/* used while no case is current */
static struct pair *self;
static unsigned scale = 1;
static char conf_path[4096];

const void *pair_arg(void)
{
	return current->arg;
}

const char *pair_ia_name(void)
{
	const char *name = getenv("DAT_TEST_IA");

	return name && *name ? name : "ofi-tcp";
}

bool pair_fabric_is(const char *provider)
{
	const char *name = pair_ia_name();

	return !strncmp(name, "ofi-", 4) && !strcmp(name + 4, provider);
}

/* One write per line, so that the lines of the two roles do not mix. */
static void print_line(const char *format, va_list args, const char *file, int line)
{
	char text[1024];
	int n = current ? snprintf(text, sizeof(text), "# %s, %s: ", current->name,
				   self ? self->role : "") :
			  snprintf(text, sizeof(text), "# %s: ", subject);

	if (file)
		n += snprintf(text + n, sizeof(text) - n, "%s:%d: ", file, line);
	vsnprintf(text + n, sizeof(text) - n - 1, format, args);
	strcat(text, "\n");
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		return;
}

void pair_subject(const char *name)
{
	subject = name;
}

void pair_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args, NULL, 0);
	va_end(args);
}

/*
 * Uses _exit(), because exit() would run the provider's destructors in a process of unknown
 * state.
 */
void pair_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args, file, line);
	va_end(args);
	_exit(EXIT_FAILURE);
}

void pair_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(shared->reason, sizeof(shared->reason), format, args);
	va_end(args);
	__atomic_store_n(&shared->skipped, 1, __ATOMIC_RELEASE);
	_exit(EXIT_SKIP);
}

/* Time */

int64_t pair_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

unsigned pair_scaled(unsigned ms)
{
	return ms * scale;
}

int64_t pair_deadline(unsigned ms)
{
	return pair_now() + pair_scaled(ms) * INT64_C(1000);
}

/* The holder has the name; a waiting process has a connection to it, and reads its end. */
int pair_lock_qualifiers(void)
{
	const struct sockaddr_un name = { AF_UNIX, "\0dat-test/qualifiers" };
	bool held;
	char byte;
	int fd;

	do {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(fd >= 0, "%s", strerror(errno));
		held = !bind(fd, (const struct sockaddr *)&name, sizeof(name));
		if (held)
			CHECK(!listen(fd, 100), "%s", strerror(errno));
		else if (!connect(fd, (const struct sockaddr *)&name, sizeof(name)))
			CHECK(read(fd, &byte, 1) <= 0, "a byte from the holder");
		if (!held)
			close(fd);
	} while (!held);
	return fd;
}

static void scale_init(void)
{
	const char *wanted = getenv("DAT_TEST_SCALE");
	const char *runner = getenv("TEST_RUNNER");

	if (wanted && atoi(wanted) > 0)
		scale = atoi(wanted);
	if (runner && *runner)
		scale *= RUNNER_SCALE;
}

/* Messages */

static void wait_readable(struct pair *p)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	/* the peer's own waits are limited, too, and it may do several of them */
	int64_t deadline = pair_deadline(3 * PAIR_LIMIT);
	int n;

	do {
		int64_t left = (deadline - pair_now()) / 1000;

		n = poll(&pfd, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	CHECK(n == 1, "no message from the peer in time");
}

static void peer_gone(const char *what)
{
	if (__atomic_load_n(&shared->skipped, __ATOMIC_ACQUIRE))
		_exit(EXIT_SKIP);
	pair_fail(__FILE__, __LINE__, "the peer ended before %s", what);
}

void pair_send(struct pair *p, const void *data, size_t size)
{
	if (send(p->fd, data, size, MSG_NOSIGNAL) != (ssize_t)size)
		peer_gone("it could be sent a message");
}

void pair_recv(struct pair *p, void *data, size_t size)
{
	ssize_t n;

	wait_readable(p);
	n = recv(p->fd, data, size, MSG_TRUNC);
	if (n <= 0)
		peer_gone("it sent a message");
	SAME(n, size);
}

void pair_sync(struct pair *p)
{
	static unsigned count;
	unsigned mine = ++count, theirs;

	pair_send(p, &mine, sizeof(mine));
	pair_recv(p, &theirs, sizeof(theirs));
	SAME(theirs, mine);
}

/* A process that is killed before it has read all resets the connection. */
void pair_wait_gone(struct pair *p)
{
	char byte;
	ssize_t n;

	wait_readable(p);
	n = recv(p->fd, &byte, 1, 0);
	CHECK(!n || (n < 0 && errno == ECONNRESET), "%zd, %s", n, strerror(errno));
}

/* dat.conf */

static void conf_remove(void)
{
	unlink(conf_path);
}

static void conf_write(FILE *f)
{
	static const struct {
		const char *name, *params;
	} fabrics[] = {
		{ "tcp", "provider=tcp" },
		{ "sockets", "provider=sockets" },
		{ "shm", "provider=shm" },
		{ "shm-rdm", "provider=shm endpoint=rdm" },
		{ "verbs", "provider=verbs" },
		{ "tcp-rdm", "provider=tcp endpoint=rdm" },
		{ "sockets-rdm", "provider=sockets endpoint=rdm" },
		{ "rxm", "provider=tcp;ofi_rxm" },
		{ "efa", "provider=efa" },
		{ "psm3", "provider=psm3" },
		{ "sm2", "provider=sm2" },
	};
	const char *library = getenv(DAT_API == 1 ? "DAT_TEST_PROVIDER1" : "DAT_TEST_PROVIDER2");
	char by_default[32];
	size_t i;

	snprintf(by_default, sizeof(by_default), "libdaplofi.so.%d", DAT_API);
	fprintf(f, "ofi u%d.%d nonthreadsafe default %s dapl.%d.%d \"\" \"\"\n", DAT_VERSION_MAJOR,
		DAT_VERSION_MINOR, library && *library ? library : by_default, DAT_VERSION_MAJOR,
		DAT_VERSION_MINOR);
	for (i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++)
		fprintf(f, "ofi-%s u%d.%d nonthreadsafe default %s dapl.%d.%d \"%s\" \"\"\n",
			fabrics[i].name, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
			library && *library ? library : by_default,
			DAT_VERSION_MAJOR, DAT_VERSION_MINOR, fabrics[i].params);
}

static int conf_init(void)
{
	const char *dir = getenv("TMPDIR");
	FILE *f;
	int fd;

	if (getenv("DAT_OVERRIDE"))
		return 0;
	snprintf(conf_path, sizeof(conf_path), "%s/dat-test-XXXXXX", dir && *dir ? dir : "/tmp");
	fd = mkstemp(conf_path);
	if (fd < 0)
		return -1;
	f = fdopen(fd, "w");
	conf_write(f);
	fclose(f);
	atexit(conf_remove);
	return setenv("DAT_OVERRIDE", conf_path, 1);
}

/* Roles */

static void role_run(pair_role role, struct pair *p, const sigset_t *mask)
{
	pid_t pid = getpid();

	conf_path[0] = '\0';	/* the parent removes it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	self = p;
	if (p->fd >= 0) {
		pair_send(p, &pid, sizeof(pid));
		pair_recv(p, &p->peer, sizeof(p->peer));
	}
	role(p);
	exit(EXIT_SUCCESS);
}

/* A role, as its parent process sees it. */
struct child {
	pid_t pid;
	bool running;
	bool expect_killed;
	bool failed;
};

static void child_start(struct child *c, pair_role role, struct pair *p, int other_fd,
			const sigset_t *mask)
{
	c->pid = fork();
	if (c->pid < 0) {
		perror("fork");
		exit(EXIT_FAILURE);
	}
	if (!c->pid) {
		if (other_fd >= 0)
			close(other_fd);
		role_run(role, p, mask);
	}
	c->running = true;
}

static void child_ended(struct child *c, int status)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	c->running = false;
	c->failed = c->expect_killed ? !killed :
		!WIFEXITED(status) ||
		(WEXITSTATUS(status) != EXIT_SUCCESS && WEXITSTATUS(status) != EXIT_SKIP);
	if (!c->failed)
		return;
	if (WIFSIGNALED(status))
		printf("# %s: process %d ended by signal %d (%s)\n", current->name, (int)c->pid,
		       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		printf("# %s: process %d exited with %d\n", current->name, (int)c->pid,
		       WEXITSTATUS(status));
}

static void reap(struct child *c)
{
	int i, status;

	for (i = 0; i < 2; i++)
		if (c[i].running && waitpid(c[i].pid, &status, WNOHANG) == c[i].pid)
			child_ended(&c[i], status);
}

/* Waits for a child to end; returns false at the deadline. */
static bool wait_child(int64_t deadline)
{
	int64_t left = deadline - pair_now();
	struct timespec ts;
	sigset_t chld;

	if (left <= 0)
		return false;
	ts.tv_sec = left / 1000000;
	ts.tv_nsec = left % 1000000 * 1000;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	return sigtimedwait(&chld, NULL, &ts) > 0 || errno == EINTR;
}

static void children_wait(struct child *c)
{
	unsigned seconds = BUSY * (current->seconds ? current->seconds : CASE_SECONDS);
	int64_t deadline = pair_deadline(seconds * 1000);
	bool hurry = false;
	int i;

	for (;;) {
		reap(c);
		if (!c[0].running && !c[1].running)
			return;
		if (!hurry && (c[0].failed || c[1].failed)) {
			hurry = true;
			deadline = pair_deadline(GRACE_MS);
		}
		if (!wait_child(deadline))
			break;
	}
	for (i = 0; i < 2; i++) {
		int status;

		if (!c[i].running)
			continue;
		if (!hurry)
			printf("# %s: the %s has not finished after %u s\n", current->name,
			       i ? "client" : "server", pair_scaled(seconds));
		kill(c[i].pid, SIGKILL);
		waitpid(c[i].pid, &status, 0);
		c[i].running = false;
		c[i].failed = true;
	}
}

/* Returns whether the case passed; a skip passes. */
static bool case_once(const sigset_t *mask)
{
	struct pair server = { .role = "server", .server = true, .fd = -1 };
	struct pair client = { .role = "client", .fd = -1 };
	struct child c[2] = {
		{ .expect_killed = current->server_killed },
		{ .expect_killed = current->client_killed },
	};
	int fd[2];

	fflush(stdout);
	if (current->server) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd)) {
			perror("socketpair");
			exit(EXIT_FAILURE);
		}
		server.fd = fd[0];
		client.fd = fd[1];
		child_start(&c[0], current->server, &server, fd[1], mask);
	}
	child_start(&c[1], current->client, &client, server.fd, mask);
	if (current->server) {
		close(fd[0]);
		close(fd[1]);
	}
	children_wait(c);
	return !c[0].failed && !c[1].failed;
}

static unsigned n_skipped; /* cases */

static bool case_run(const struct pair_case *which, unsigned number, unsigned times,
		     const sigset_t *mask)
{
	unsigned i;
	bool ok = true;

	current = which;
	shared->skipped = 0;
	if (which->not_sockets && pair_fabric_is("sockets")) {
		printf("ok %u - %s # SKIP sockets: %s\n", number, which->name, which->not_sockets);
		n_skipped++;
		return true;
	}
	times *= which->repeat ? which->repeat : 1;
	for (i = 0; ok && !shared->skipped && i < times; i++)
		ok = case_once(mask);
	if (!ok && times > 1)
		printf("# %s: failed in round %u of %u\n", which->name, i, times);
	if (ok && shared->skipped) {
		printf("ok %u - %s # SKIP %s\n", number, which->name, shared->reason);
		n_skipped++;
	} else {
		printf("%s %u - %s\n", ok ? "ok" : "not ok", number, which->name);
	}
	fflush(stdout);
	return ok;
}

/* Without DAT_TEST_IA a missing fabric fails the test instead of skipping it. */
static bool finds_no_fabric(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PROVIDER_ATTR attr;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = dat_ia_open((DAT_NAME_PTR)pair_ia_name(), 8, &async, &ia);

	if (!ret) {
		/* lists libfabric's providers, which an IA of rings does not look for */
		dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr);
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	}
	return DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND;
}

bool pair_fabric_missing(void)
{
	int status = 0;
	pid_t pid;

	/*
	 * the parent's IA makes libfabric look for devices once, instead of a tenth of a second
	 * per role
	 */
	if (getenv("DAT_TEST_WARM"))
		return finds_no_fabric() && getenv("DAT_TEST_IA");
	if (!getenv("DAT_TEST_IA"))
		return false;
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(finds_no_fabric() ? EXIT_SKIP : EXIT_SUCCESS);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == EXIT_SKIP;
}

/* Arguments */

static bool wanted(const struct pair_case *c, int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++)
		if (!strcmp(argv[i], c->name))
			return true;
	return !argc;
}

static unsigned count_wanted(const struct pair_case *cases, size_t n, int argc, char **argv)
{
	unsigned count = 0;
	size_t i;

	for (i = 0; i < n; i++)
		count += wanted(&cases[i], argc, argv);
	return count;
}

static int list(const struct pair_case *cases, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		puts(cases[i].name);
	return EXIT_SUCCESS;
}

bool pair_init(sigset_t *mask)
{
	sigset_t chld;

	/*
	 * The libraries that libfabric links to calibrate clocks for a tenth of a second when
	 * loaded. Loading them here does that once instead of in each role. libfabric is not used
	 * before the fork.
	 */
	dlopen("libfabric.so.1", RTLD_NOW);
	/* a provider with assertions verifies its objects before it closes an IA */
	setenv("DAT_TEST_CHECK", "1", 0);

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, mask);
	scale_init();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared != MAP_FAILED && !conf_init();
}

int pair_main(const struct pair_case *cases, size_t n, int argc, char **argv)
{
	unsigned number = 0, times = 1, count, failed = 0;
	sigset_t mask;
	size_t i;
	int opt;

	while ((opt = getopt(argc, argv, "ln:")) != -1) {
		if (opt == 'l')
			return list(cases, n);
		if (opt != 'n' || atoi(optarg) < 1) {
			fprintf(stderr, "usage: %s [-l] [-n times] [case...]\n", argv[0]);
			return 2;
		}
		times = atoi(optarg);
	}
	argc -= optind;
	argv += optind;
	count = count_wanted(cases, n, argc, argv);
	if (!count || !pair_init(&mask)) {
		fprintf(stderr, "%s\n", count ? "setup failed" : "no such case");
		return 2;
	}
	if (pair_fabric_missing()) {
		printf("1..0 # SKIP no fabric for %s\n", pair_ia_name());
		return EXIT_SKIP;
	}
	printf("1..%u\n# DAT %d.%d, IA %s\n", count, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
	       pair_ia_name());
	for (i = 0; i < n; i++)
		if (wanted(&cases[i], argc, argv))
			failed += !case_run(&cases[i], ++number, times, &mask);
	if (failed)
		printf("# %u of %u failed\n", failed, count);
	if (n_skipped == count)
		return EXIT_SKIP;
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
