/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Measures the resources of the running process, and generates pseudo-random numbers. */

#include "robust.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

unsigned env_count(const char *name, unsigned by_default)
{
	const char *value = getenv(name);

	return value && atoi(value) > 0 ? (unsigned)atoi(value) : by_default;
}

unsigned next_random(unsigned below)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	unsigned n = 0;

	CHECK(dir, "%s cannot be read", path);
	while ((d = readdir(dir)))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Excludes freed memory, because the peak of allocation depends on scheduling. */
static void measure_memory(struct resources *h)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	unsigned long size, resident, shared;
	FILE *f;
	int n;

	malloc_trim(0);
	f = fopen("/proc/self/statm", "r");
	n = f ? fscanf(f, "%lu %lu %lu", &size, &resident, &shared) : 0;
	CHECK(n == 3, "no /proc/self/statm");
	fclose(f);
	h->own = (resident - shared) * page;
	h->shared = shared * page;
}

static struct resources resources_now(void)
{
	struct resources h = {
		.fds = count_entries("/proc/self/fd"),
		.threads = count_entries("/proc/self/task"),
	};

	measure_memory(&h);
	return h;
}

bool memory_is_measurable(void)
{
	const char *runner = getenv("TEST_RUNNER");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	return false;
#endif
#endif
	return !runner || !*runner;
}

/* Resources that are being released still count, so take the minimum of many samples. */
#define SAMPLES 50

struct resources resources_settled(void)
{
	struct resources least = resources_now(), now;
	int i;

	for (i = 0; i < SAMPLES; i++) {
		poll(NULL, 0, 1);
		now = resources_now();
		if (now.fds < least.fds)
			least.fds = now.fds;
		if (now.threads < least.threads)
			least.threads = now.threads;
		if (now.own < least.own)
			least.own = now.own;
		if (now.shared < least.shared)
			least.shared = now.shared;
	}
	return least;
}

void expect_resources(const struct resources *before, size_t own, size_t shared)
{
	int64_t deadline = pair_deadline(2000);
	struct resources now;

	do {
		now = resources_settled();
	} while ((now.fds > before->fds || now.threads > before->threads) && pair_now() < deadline);
	pair_note("descriptors from %u to %u, threads from %u to %u, "
		  "memory from %zu + %zu to %zu + %zu KiB",
		  before->fds, now.fds, before->threads, now.threads, before->own >> 10,
		  before->shared >> 10, now.own >> 10, now.shared >> 10);
	/* fewer, if connections were still closing when @before was taken */
	CHECK(now.fds <= before->fds, "%u more descriptors", now.fds - before->fds);
	SAME(now.threads, before->threads);
	if (!memory_is_measurable())
		return;
	CHECK(now.own <= before->own + own, "%zu more bytes", now.own - before->own);
	CHECK(now.shared <= before->shared + shared, "%zu more shared bytes",
	      now.shared - before->shared);
}

/* The number after @field in the status of thread @tid if its name is @name; else 0. */
static unsigned long status_of(const char *tid, const char *name, const char *field)
{
	char path[300], line[256], value[64];
	unsigned long n = 0;
	bool named = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Name: %63s", value) == 1)
			named = !strcmp(value, name);
		else if (!strncmp(line, field, strlen(field)))
			n = strtoul(line + strlen(field), NULL, 10);
	}
	if (f)
		fclose(f);
	return named ? n : 0;
}

unsigned long thread_sleeps(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned long n = 0;
	struct dirent *d;

	CHECK(dir, "/proc/self/task cannot be read");
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.')
			n += status_of(d->d_name, name, "voluntary_ctxt_switches:");
	closedir(dir);
	return n;
}

static char thread_state(pid_t tid)
{
	char path[64], line[512], *after_name;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "r");
	CHECK(f && fgets(line, sizeof(line), f), "thread %d has ended", (int)tid);
	fclose(f);
	after_name = strrchr(line, ')');
	return after_name ? after_name[2] : '?';
}

void wait_asleep(pid_t tid)
{
	int64_t deadline = pair_deadline(PAIR_LIMIT);
	int in_a_row = 0;

	while (in_a_row < 5) {
		CHECK(pair_now() < deadline, "thread %d does not sleep", (int)tid);
		in_a_row = thread_state(tid) == 'S' ? in_a_row + 1 : 0;
		poll(NULL, 0, 1);
	}
}

void need_fds(unsigned n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= n)
		return;
	if (limit.rlim_max < n)
		pair_skip("%u descriptors are needed, %llu allowed", n,
			  (unsigned long long)limit.rlim_max);
	limit.rlim_cur = n;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int foreign_client(const struct listener *to)
{
	struct sockaddr_storage address = to->address;
	const bool six = address.ss_family == AF_INET6;
	int fd = socket(address.ss_family, SOCK_STREAM, 0);

	((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)to->qual);
	CHECK(fd >= 0, "%s", strerror(errno));
	CHECK(!connect(fd, (struct sockaddr *)&address,
		       six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)),
	      "%s", strerror(errno));
	return fd;
}
