/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures against several servers at once: a client process for each, since every one has an IA of
 * its own. The clients begin each measurement together, and this process prints the results.
 */
#include "perf_hosts.h"

#include "perf_stop.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a client sleeps between two looks for the others; they begin that much apart. */
#define LOOK_NS 20000

struct perf_party {
	struct perf_parties *all;
	pid_t pid;
	_Atomic unsigned int come; /* measurements that it has come to; UINT_MAX at its end */
	int n;			   /* sizes measured */
	struct perf_fabric fabric;
	char err[256];
	struct perf_row rows[PERF_MAX_SIZES];
};

/* In memory that all processes share. */
struct perf_parties {
	_Atomic int ended; /* number, from 1, of the first one that failed or was interrupted */
	int n;
	struct perf_party party[];
};

void perf_party_come(struct perf_party *p)
{
	atomic_fetch_add(&p->come, 1);
}

int perf_party_wait(struct perf_party *p, unsigned int ms)
{
	const uint64_t until = perf_now_ns() + ms * 1000000ull;
	const struct timespec look = { .tv_nsec = LOOK_NS };
	const unsigned int mine = atomic_load(&p->come);
	struct perf_parties *all = p->all;
	int i;

	for (i = 0; i < all->n; i++) {
		while (atomic_load(&all->party[i].come) < mine) {
			if (atomic_load(&all->ended) || perf_stop)
				return -1;
			if (perf_now_ns() > until)
				return 0;
			nanosleep(&look, NULL);
		}
	}
	return atomic_load(&all->ended) ? -1 : 1;
}

/* Ends all clients because of @p. */
static void end_all(struct perf_party *p)
{
	int none = 0;

	atomic_compare_exchange_strong(&p->all->ended, &none, (int)(p - p->all->party) + 1);
}

bool perf_party_leads(const struct perf_party *p)
{
	return p == p->all->party;
}

struct perf_row *perf_party_rows(struct perf_party *p)
{
	return p->rows;
}

void perf_party_end(struct perf_party *p, const struct perf_fabric *fabric, int n)
{
	p->fabric = *fabric;
	p->n = n;
}

/* --- the clients ---------------------------------------------------------- */

static _Noreturn void client_main(const struct perf_opts *opts, struct perf_party *p, int i)
{
	struct perf_opts own = *opts;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	own.party = p;
	own.host = opts->hosts[i].name;
	own.port = opts->hosts[i].port;
	rc = perf_client(&own, p->err, sizeof(p->err));
	if (rc || perf_stop)
		end_all(p);
	atomic_store(&p->come, UINT_MAX);
	exit(rc ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Client @pid has ended with @status. One that did not reach client_main()'s end told no other. */
static void client_ended(struct perf_parties *all, pid_t pid, int status)
{
	struct perf_party *p = all->party;

	while (p->pid != pid)
		p++;
	p->pid = -1;
	if (atomic_load(&p->come) == UINT_MAX)
		return;
	snprintf(p->err, sizeof(p->err), "the client was ended by %s",
		 WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a library");
	end_all(p);
}

/* Waits for all clients, in the order of their ends, and passes a signal on, once. */
static void clients_await(struct perf_parties *all)
{
	const struct timespec look = { .tv_nsec = 100 * LOOK_NS };
	bool passed = false;
	int i, status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) >= 0 || errno == EINTR) {
		if (pid > 0) {
			client_ended(all, pid, status);
			continue;
		}
		for (i = 0; perf_stop && !passed && i < all->n; i++)
			if (all->party[i].pid > 0)
				kill(all->party[i].pid, perf_stop);
		passed = perf_stop;
		nanosleep(&look, NULL);
	}
}

/* A client waits for all others, so that those which exist end when one cannot be started. */
static void clients_run(const struct perf_opts *opts, struct perf_parties *all)
{
	pid_t pid;
	int i;

	fflush(stdout);
	for (i = 0; i < all->n; i++) {
		struct perf_party *p = &all->party[i];

		p->all = all;
		pid = fork();
		if (!pid)
			client_main(opts, p, i);
		if (pid < 0) {
			snprintf(p->err, sizeof(p->err), "fork: %s", strerror(errno));
			end_all(p);
		}
		p->pid = pid;
	}
	clients_await(all);
}

/* --- the results ---------------------------------------------------------- */

/* Whether the printed latency of @a exceeds that of @b. An unknown latency exceeds a known one. */
static bool is_slower(const struct perf_lat *a, const struct perf_lat *b)
{
	if (isnan(a->chosen) || isnan(b->chosen))
		return isnan(a->chosen) && (!isnan(b->chosen) || a->median > b->median);
	return a->chosen > b->chosen;
}

static void add(struct perf_cell *sum, const struct perf_cell *cell)
{
	struct perf_cell both = is_slower(&cell->lat, &sum->lat) ? *cell : *sum;

	both.bw = sum->bw + cell->bw;
	both.rate = sum->rate + cell->rate;
	both.bw_sent = sum->bw_sent + cell->bw_sent;
	both.bw_lost = sum->bw_lost + cell->bw_lost;
	both.bw_scatters = sum->bw_scatters | cell->bw_scatters;
	*sum = both;
}

/* Adds up the bandwidths of all clients in the first one's rows, which get the worst latency. */
static void rows_add(struct perf_parties *all, int n)
{
	int i, k, t, s;

	for (i = 1; i < all->n; i++)
		for (k = 0; k < n; k++)
			for (t = 0; t < PERF_NTESTS; t++)
				for (s = 0; s < PERF_NSIDES; s++)
					add(&all->party[0].rows[k].cell[t][s],
					    &all->party[i].rows[k].cell[t][s]);
}

static void print(struct perf_opts *opts, const struct perf_party *p, int n)
{
	int i;

	opts->nsizes = n;
	perf_out_begin(opts, &p->fabric);
	for (i = 0; i < n; i++)
		perf_out_row(opts, &p->fabric, &p->rows[i]);
	perf_out_end(opts, &p->fabric, p->rows);
}

static void print_all(const struct perf_opts *opts, struct perf_parties *all, const char *failure)
{
	struct perf_opts own = *opts;
	bool first = true;
	int i, n = INT_MAX;

	own.failure = failure;
	if (opts->json)
		puts("[");
	for (i = 0; i < all->n; i++) {
		struct perf_party *p = &all->party[i];

		n = p->n < n ? p->n : n;
		own.host = opts->hosts[i].name;
		own.port = opts->hosts[i].port;
		if (!p->n && !opts->json)
			continue;
		if (opts->json)
			fputs(first ? "" : ",\n", stdout);
		else
			printf("%s%s, port %u: ", first ? "" : "\n", own.host, own.port);
		print(&own, p, p->n);
		first = false;
	}
	if (opts->json) {
		puts("]");
	} else if (n) {
		rows_add(all, n);
		own.rate *= (unsigned int)all->n;
		fputs("\nall hosts, bandwidths added up, the latency of the slowest: ", stdout);
		print(&own, &all->party[0], n);
	}
}

int perf_hosts(const struct perf_opts *opts, char *err, size_t errlen)
{
	const size_t size = sizeof(struct perf_parties) +
			    (size_t)opts->nhosts * sizeof(struct perf_party);
	struct perf_parties *all = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct perf_party *first;
	int i, rc = 0;

	if (all == MAP_FAILED) {
		snprintf(err, errlen, "%s", strerror(errno));
		return -1;
	}
	all->n = opts->nhosts;
	perf_stop_catch();
	clients_run(opts, all);
	i = atomic_load(&all->ended) - 1;
	first = i >= 0 ? &all->party[i] : NULL;
	/* a signal to this process is no failure */
	if (first && !perf_stop) {
		snprintf(err, errlen, "%s, port %u: %s", opts->hosts[i].name, opts->hosts[i].port,
			 first->err[0] ? first->err : "the client was interrupted");
		rc = -1;
	}
	print_all(opts, all, rc ? err : NULL);
	fflush(stdout);
	munmap(all, size);
	return rc;
}
