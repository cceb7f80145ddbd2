/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Several clients at once: they meet, their results are added up, the first failure is named. */
#include "perf_hosts.h"
#include "perf_stop.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOSTS 3
#define MEETINGS 5

volatile sig_atomic_t perf_stop;

/* In memory of all processes: how often each client has measured, and how they behave. */
static struct {
	_Atomic unsigned int met[HOSTS];
	atomic_bool apart;
	_Atomic unsigned int looks; /* that found another client missing for a while */
	int fails, dies, few, late, stuck; /* number of the host, or -1 */
} *shared;

static int printed, rows;
static struct perf_cell sum;

void perf_stop_catch(void)
{
}

void perf_out_begin(const struct perf_opts *opts, const struct perf_fabric *fabric)
{
	cr_expect_str_eq(fabric->provider, "fake");
	cr_expect_eq(opts->nsizes, 1);
	printed++;
}

void perf_out_row(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  const struct perf_row *row)
{
	(void)opts, (void)fabric;
	sum = row->cell[PERF_SEND][PERF_SIDE_DAT];
	rows++;
}

void perf_out_end(const struct perf_opts *opts, const struct perf_fabric *fabric,
		  const struct perf_row *r)
{
	(void)opts, (void)fabric, (void)r;
}

/* Client @opts->port measures, and must be at most one meeting apart from the others. */
int perf_client(const struct perf_opts *opts, char *err, size_t errlen)
{
	const struct perf_fabric fabric = { .provider = "fake" };
	const int i = (int)opts->port - 1;
	struct perf_cell *cell = &perf_party_rows(opts->party)->cell[PERF_SEND][PERF_SIDE_DAT];
	unsigned int n, k;
	int rc;

	snprintf(err, errlen, "reason %d", i);
	if (perf_party_leads(opts->party) != !i)
		return -1;
	for (n = 0; n < (i == shared->few ? 1 : MEETINGS); n++) {
		if (i == shared->fails && n == 2)
			return -1;
		if (i == shared->dies && n == 2)
			raise(SIGKILL);
		while (i == shared->stuck)
			pause();
		while (i == shared->late && n == 2 && !atomic_load(&shared->looks))
			if (perf_stop)
				return -1;
		perf_party_come(opts->party);
		while (!(rc = perf_party_wait(opts->party, 1)))
			atomic_fetch_add(&shared->looks, 1);
		if (rc < 0)
			return -1;
		atomic_fetch_add(&shared->met[i], 1);
		for (k = 0; k < HOSTS; k++)
			if ((int)k != shared->few && atomic_load(&shared->met[k]) < n)
				atomic_store(&shared->apart, true);
	}
	cell->bw = 10 + i;
	cell->rate = 100;
	cell->lat.median = i;
	cell->lat.chosen = i == 1 ? 7 : 3;
	cell->bw_sent = 10;
	cell->bw_lost = (uint64_t)i;
	perf_party_end(opts->party, &fabric, 1);
	err[0] = '\0';
	return 0;
}

static int late = -1, stuck = -1;

static int run(int fails, int dies, int few, char err[256])
{
	const struct perf_opts opts = {
		.hosts = { { "a", 1 }, { "b", 2 }, { "c", 3 } },
		.nhosts = HOSTS,
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(shared, MAP_FAILED);
	shared->fails = fails;
	shared->dies = dies;
	shared->few = few;
	shared->late = late;
	shared->stuck = stuck;
	err[0] = '\0';
	return perf_hosts(&opts, err, 256);
}

Test(perf_hosts, meet_and_add_up, .timeout = 60)
{
	char err[256];

	cr_expect_eq(run(-1, -1, -1, err), 0, "%s", err);
	cr_expect(!atomic_load(&shared->apart));
	cr_expect_eq(printed, HOSTS + 1);
	cr_expect_eq(rows, HOSTS + 1);
	/* printed last */
	cr_expect_eq(sum.bw, 33);
	cr_expect_eq(sum.rate, 300);
	cr_expect_eq(sum.lat.chosen, 7);
	cr_expect_eq(sum.bw_sent, 30);
	cr_expect_eq(sum.bw_lost, 3);
}

/* While one is late, the others look for it, and go on when it comes. */
Test(perf_hosts, a_late_one, .timeout = 60)
{
	char err[256];

	late = 1;
	cr_expect_eq(run(-1, -1, -1, err), 0, "%s", err);
	cr_expect_gt(atomic_load(&shared->looks), 0);
	cr_expect_eq(printed, HOSTS + 1);
}

static void on_alarm(int signo)
{
	(void)signo;
	perf_stop = SIGUSR1;
}

/* A signal to this process alone reaches all clients. */
Test(perf_hosts, a_signal_is_passed_on, .timeout = 60)
{
	char err[256];

	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
	stuck = 2;
	alarm(1);
	cr_expect_eq(run(-1, -1, -1, err), 0);
	cr_expect_eq(printed, 0);
}

Test(perf_hosts, nobody_waits_for_one_that_has_finished, .timeout = 60)
{
	char err[256];

	cr_expect_eq(run(-1, -1, 1, err), 0, "%s", err);
	cr_expect_eq(atomic_load(&shared->met[0]), MEETINGS);
	cr_expect_eq(printed, HOSTS + 1);
}

Test(perf_hosts, the_first_failure_is_named, .timeout = 60)
{
	char err[256];

	cr_expect_eq(run(2, -1, -1, err), -1);
	cr_expect_str_eq(err, "c, port 3: reason 2");
	cr_expect_eq(printed, 0);
}

Test(perf_hosts, a_death_ends_all, .timeout = 60)
{
	char err[256];

	cr_expect_eq(run(-1, 0, -1, err), -1);
	cr_expect_str_eq(err, "a, port 1: the client was ended by Killed");
	cr_expect_eq(run(-1, 2, -1, err), -1);
	cr_expect_str_eq(err, "c, port 3: the client was ended by Killed");
}
