/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs the clauses of the conformance suite in child processes, counts and reports them. */

#include "conform.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLAUSE_SECONDS 120	/* of a clause: some create thousands of objects */
#define EXIT_SKIP 77
#define NAME_MAX_LENGTH 128
#define FEW 4096		/* objects that take negligible time */
#define MANY 100000		/* objects that take a few seconds */

/* The chapters in the order of the report. */
static const char *const chapters[] = {
	"self", "registry", "ia", "handle", "query", "pz", "lmr", "rmr", "evd", "cno", "sp", "cr",
	"ep", "modify", "connect", "request", "state", "dto", "flags", "srq", "v2",
	"datagram",
};

enum outcome { UNTRIED, PASSED, SKIPPED, FAILED, N_OUTCOMES };

/* One of the selected clauses. */
struct item {
	const struct clause *clause;
	unsigned i;			/* index in its family */
	char name[NAME_MAX_LENGTH];
};

/* Shared with the parent process. */
struct result {
	enum outcome outcome;
	char reason[NAME_MAX_LENGTH];
};

struct shared {
	size_t current;			/* index of the running item */
	struct result results[];
};

static struct clause *clauses;
static struct item *items;
static size_t n_items;
static struct shared *shared;
static bool verbose, thorough;
static jmp_buf skipped;

void conform_add(struct clause *c)
{
	c->next = clauses;
	clauses = c;
}

void skip(const char *format, ...)
{
	struct result *r = &shared->results[shared->current];
	va_list args;

	va_start(args, format);
	vsnprintf(r->reason, sizeof(r->reason), format, args);
	va_end(args);
	longjmp(skipped, 1);
}

void needs_strict(const struct node *n, bool strict)
{
	if (node_is_strict(n) != strict)
		skip("OFI_STRICT is %s", strict ? "FALSE" : "not FALSE");
}

void skip_if_too_many(const char *attribute, DAT_COUNT count)
{
	if (count > (thorough ? MANY : FEW))
		skip("%s is %d%s", attribute, (int)count, count > MANY ? "" : ", try --thorough");
}

/* Whether a clause, or a call in it, is listed in conform_pending. */
static bool pending(const char *text)
{
	size_t i, length;

	for (i = 0; conform_pending[i]; i++) {
		length = strlen(conform_pending[i]);
		if (!strncmp(text, conform_pending[i], length) && strchr("(/", text[length]))
			return true;
	}
	return false;
}

void conform_ret(const char *file, int line, const char *call, DAT_RETURN ret, DAT_RETURN type)
{
	const char *clause = items[shared->current].name;
	const char *about = pending(call) ? call : pending(clause) ? clause : NULL;

	if (DAT_GET_TYPE(ret) == DAT_NOT_IMPLEMENTED && about)
		skip("not implemented yet: %.*s", (int)strcspn(about, "(/"), about);
	pair_ret(file, line, call, ret, type);
}

static bool is_pending(const char *clause)
{
	size_t i;

	for (i = 0; conform_pending[i]; i++)
		if (strchr(conform_pending[i], '/') && !fnmatch(conform_pending[i], clause, 0))
			return true;
	return false;
}

/* One clause */

static void item_run(const struct item *item, struct node *n)
{
	DAT_EVENT event;
	DAT_RETURN ret;

	if (!n->ia) {
		objects_reset();
		node_open(n);
	}
	if (setjmp(skipped)) {
		shared->results[shared->current].outcome = SKIPPED;
	} else {
		if (is_pending(item->name))
			skip("not implemented yet");
		item->clause->run(n, item->i);
		ret = n->ia ? dat_evd_dequeue(n->async, &event) : DAT_QUEUE_EMPTY;
		CHECK(ret != DAT_SUCCESS, "%s (%#x) remains on the asynchronous EVD",
		      event_name(event.event_number), event.event_number);
		shared->results[shared->current].outcome = PASSED;
	}
	if (n->ia && !(item->clause->shared_ia && item->clause == item[1].clause)) {
		OK(dat_ia_close(n->ia, DAT_CLOSE_ABRUPT_FLAG));
		n->ia = DAT_HANDLE_NULL;
	}
}

static void child(const sigset_t *mask)
{
	static struct node n;	/* static, because longjmp() may clobber automatic variables */
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE keeper;	/* keeps the provider loaded from clause to clause */

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	pair_subject("the start of a process");
	OK(dat_ia_open((DAT_NAME_PTR)pair_ia_name(), 1, &async, &keeper));
	for (; shared->current < n_items; shared->current++) {
		pair_subject(items[shared->current].name);
		alarm(pair_scaled(CLAUSE_SECONDS));
		item_run(&items[shared->current], &n);
	}
	pair_subject("the end of the process");
	OK(dat_ia_close(keeper, DAT_CLOSE_GRACEFUL_FLAG));
	exit(EXIT_SUCCESS);
}

/* All clauses */

static void record_failure(const char *name, struct result *r, int status)
{
	r->outcome = FAILED;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(r->reason, sizeof(r->reason), "not finished after %u s",
			 pair_scaled(CLAUSE_SECONDS));
	else if (WIFSIGNALED(status))
		snprintf(r->reason, sizeof(r->reason), "ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(r->reason, sizeof(r->reason), "exited with %d", WEXITSTATUS(status));
	printf("FAILED %s: %s\n", name, r->reason);
}

/* Runs all clauses from shared->current on. Returns false if a process fails outside a clause. */
static bool run_all(const sigset_t *mask)
{
	struct result end = { .outcome = UNTRIED };
	int status;
	pid_t pid;

	for (;; shared->current++) {
		fflush(stdout);
		pid = fork();
		if (!pid)
			child(mask);
		if (pid < 0 || waitpid(pid, &status, 0) != pid) {
			perror("fork");
			return false;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
			return true;
		if (shared->current == n_items) {
			record_failure("the end of the process", &end, status);
			return false;
		}
		record_failure(items[shared->current].name, &shared->results[shared->current],
			       status);
	}
}

/* The report */

static void count(const char *chapter, unsigned number[N_OUTCOMES])
{
	size_t i;

	memset(number, 0, N_OUTCOMES * sizeof(*number));
	for (i = 0; i < n_items; i++)
		if (!chapter || !strcmp(items[i].clause->chapter, chapter))
			number[shared->results[i].outcome]++;
}

static void report_line(const char *what, const unsigned number[N_OUTCOMES])
{
	printf("%-10s %4u tried, %4u passed, %3u skipped, %3u failed\n", what,
	       number[PASSED] + number[SKIPPED] + number[FAILED], number[PASSED],
	       number[SKIPPED], number[FAILED]);
}

/* Prints the report and returns the number of clauses that failed. */
static unsigned report(void)
{
	unsigned number[N_OUTCOMES];
	char title[32];
	size_t i;

	for (i = 0; i < n_items; i++) {
		const struct result *r = &shared->results[i];

		if (r->outcome == SKIPPED)
			printf("skipped %s: %s\n", items[i].name, r->reason);
		else if (r->outcome == PASSED && verbose)
			printf("passed %s\n", items[i].name);
	}
	for (i = 0; i < COUNT(chapters); i++) {
		count(chapters[i], number);
		if (number[PASSED] + number[SKIPPED] + number[FAILED])
			report_line(chapters[i], number);
	}
	count(NULL, number);
	snprintf(title, sizeof(title), "DAT %d.%d %s", DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
		 pair_ia_name());
	report_line(title, number);
	return number[FAILED] + number[UNTRIED];
}

/* Selection */

static size_t rank(const char *chapter)
{
	size_t i;

	for (i = 0; i < COUNT(chapters) && strcmp(chapters[i], chapter); i++)
		;
	return i;
}

static int compare_items(const void *a, const void *b)
{
	const struct clause *l = ((const struct item *)a)->clause;
	const struct clause *r = ((const struct item *)b)->clause;

	if (rank(l->chapter) != rank(r->chapter))
		return rank(l->chapter) < rank(r->chapter) ? -1 : 1;
	if (l != r)
		return l->line - r->line;
	return ((const struct item *)a)->i < ((const struct item *)b)->i ? -1 : 1;
}

static void name_item(struct item *item, const struct clause *c, unsigned i)
{
	item->clause = c;
	item->i = i;
	item->name[0] = '\0';
	if (c->count)
		c->name_of(i, item->name, sizeof(item->name));
	else
		snprintf(item->name, sizeof(item->name), "%s", c->name);
}

static bool select_items(const char *chapter, const char *pattern)
{
	const struct clause *c;
	size_t most = 0;
	unsigned i;

	for (c = clauses; c; c = c->next)
		most += c->count ? c->count : 1;
	items = calloc(most + 1, sizeof(*items)); /* last: the process's end */
	if (!items)
		return false;
	for (c = clauses; c; c = c->next)
		for (i = 0; i < (c->count ? c->count : 1); i++) {
			struct item *item = &items[n_items];

			name_item(item, c, i);
			if (*item->name && (!chapter || !strcmp(c->chapter, chapter)) &&
			    (!pattern || !fnmatch(pattern, item->name, 0)))
				n_items++;
		}
	items[n_items] = (struct item){ .clause = NULL };
	qsort(items, n_items, sizeof(*items), compare_items);
	return n_items > 0;
}

static int list(void)
{
	size_t i;

	for (i = 0; i < n_items; i++)
		printf("%-10s %s\n", items[i].clause->chapter, items[i].name);
	return EXIT_SUCCESS;
}

static int usage(const char *program)
{
	fprintf(stderr,
		"usage: %s [--ia NAME] [--chapter NAME] [--only PATTERN] [--list] [--thorough]\n"
		"       [--verbose]\n"
		"  --ia NAME        the IA to test, as in dat.conf (ofi-tcp)\n"
		"  --chapter NAME   only the clauses of this chapter\n"
		"  --only PATTERN   only clauses that match this glob pattern: 'dat_evd_*'\n"
		"  --list           list the clauses\n"
		"  --thorough       also clauses that create very many objects\n"
		"  --verbose        also list the clauses that pass\n", program);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "ia", required_argument, NULL, 'i' },
		{ "chapter", required_argument, NULL, 'c' },
		{ "only", required_argument, NULL, 'o' },
		{ "list", no_argument, NULL, 'l' },
		{ "thorough", no_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 }
	};
	const char *chapter = NULL, *pattern = NULL;
	bool only_list = false, completed;
	sigset_t mask;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'i': setenv("DAT_TEST_IA", optarg, 1); break;
		case 'c': chapter = optarg; break;
		case 'o': pattern = optarg; break;
		case 'l': only_list = true; break;
		case 't': thorough = true; break;
		case 'v': verbose = true; break;
		default: return usage(argv[0]);
		}
	}
	if (optind != argc)
		return usage(argv[0]);
	if (!select_items(chapter, pattern)) {
		fprintf(stderr, "no such clause\n");
		return 2;
	}
	if (only_list)
		return list();
	shared = mmap(NULL, sizeof(*shared) + n_items * sizeof(shared->results[0]),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || !pair_init(&mask)) {
		perror("setup failed");
		return 2;
	}
	if (pair_fabric_missing()) {
		printf("SKIP: no fabric for %s\n", pair_ia_name());
		return EXIT_SKIP;
	}
	completed = run_all(&mask);
	return report() || !completed ? EXIT_FAILURE : EXIT_SUCCESS;
}
