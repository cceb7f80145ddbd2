/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The robust lock of endpoints in shared memory: which callers wait, and what a dead holder leaves.
 */

#include "xport/rdm/shm/lock.h"

#include "base/clock.h"
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

TestSuite(robust, .timeout = 30);

/* The first bytes of an endpoint's memory in libfabric 1.17. */
struct region {
	uint8_t version;
	uint8_t unused[23];
	pthread_spinlock_t lock;
};

#define NAME "dat-ofi-00000000gate0000"

/* Memory that the processes share. */
static struct page {
	_Atomic uint64_t holder;
} *page;
static struct region *region, *another;
static unsigned damages;

static void damaged(struct dofi_robust *g)
{
	cr_expect(atomic_load(&g->disabled));
	damages++;
}

static struct dofi_robust robust = { .guard.ops = &dofi_robust_guard_ops,
				     .name = NAME,
				     .damaged = damaged };

/* Maps a file that has no name any more, as after its owner was reaped. */
static struct region *region_map(const char *path, uint8_t version)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	struct region *r;

	cr_assert(fd >= 0, "%s", strerror(errno));
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	r = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(r != MAP_FAILED);
	close(fd);
	r->version = version;
	pthread_spin_init(&r->lock, PTHREAD_PROCESS_SHARED);
	return r;
}

/*
 * Makes a page for this process. The lock is taken with the page's number, by which a dead holder
 * is recognised.
 */
static int own_page(void)
{
	char name[DOFI_SHM_NAME];
	void *at;
	int fd = dofi_shm_file_make(name, &at);

	cr_assert(fd >= 0);
	munmap(at, DOFI_SHM_FILE_LEN);
	robust.guard.self = dofi_shm_file_number(name);
	cr_assert(robust.guard.self);
	return fd;
}

static int own_fd;

static void set_up(uint8_t version)
{
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(page != MAP_FAILED);
	robust.guard.holder = &page->holder;
	own_fd = own_page();
	region = region_map(DOFI_SHM_FOLDER "/" NAME ".0:0:0", version);
	another = region_map(DOFI_SHM_FOLDER "/" NAME "1.0:0:0", version);
}

static void tear_down(void)
{
	char name[DOFI_SHM_NAME];

	cr_expect_eq(page->holder, 0);
	snprintf(name, sizeof(name), "dat-ofi-%016llx", (unsigned long long)robust.guard.self);
	dofi_shm_file_remove(name);
	close(own_fd);
	dofi_shm_files_reap();
	munmap(region, 4096);
	munmap(another, 4096);
	munmap(page, 4096);
}

static bool is_free(struct region *r)
{
	if (pthread_spin_trylock(&r->lock))
		return false;
	pthread_spin_unlock(&r->lock);
	return true;
}

/* Takes the robust lock, holds libfabric's spin locks, and stays until the test ends it. */
static void stays(int fd)
{
	bool entered;

	own_page();
	entered = dofi_robust_try(&robust);
	pthread_spin_lock(&region->lock);
	pthread_spin_lock(&another->lock);
	say(fd, &entered, sizeof(entered));
	child_rest(fd);
}

static struct child holder_start(void)
{
	struct child c = child_start(stays);
	bool entered = false;

	hear(c.fd, &entered, sizeof(entered));
	cr_assert(entered);
	return c;
}

/* A dead holder is not noticed at once, but soon. */
static bool try_in_time(void)
{
	const int64_t until = dofi_now() + 10 * 1000000000LL;

	while (!dofi_robust_try(&robust))
		if (dofi_now() > until)
			return false;
	return true;
}

static bool enter_in_time(void)
{
	return dofi_robust_lock(&robust) || try_in_time();
}

Test(robust, none_is_open)
{
	cr_expect(dofi_robust_try(NULL));
	dofi_robust_unlock(NULL);
	cr_expect(dofi_robust_lock(NULL));
	dofi_robust_unlock(NULL);
}

Test(robust, a_live_holder_is_not_waited_for_long)
{
	int64_t begun;
	struct child c;

	set_up(4);
	c = holder_start();
	begun = dofi_now();
	cr_expect(!dofi_robust_try(&robust));
	cr_expect(dofi_now() - begun < 50 * 1000000LL);
	cr_expect_eq(dofi_robust_guard_ops.lock(&robust.guard), -ETIMEDOUT);
	cr_expect(dofi_now() - begun >= 90 * 1000000LL);
	cr_expect(!is_free(region), "a holder lives");
	child_kill(&c);
	cr_expect(enter_in_time());
	dofi_robust_unlock(&robust);
	tear_down();
}

Test(robust, a_dead_holder_leaves_nothing_locked)
{
	struct child c;
	int i;

	set_up(4);
	for (i = 0; i < 4; i++) {
		c = holder_start();
		child_kill(&c);
		cr_expect(!is_free(region));
		cr_expect(i % 2 ? try_in_time() : enter_in_time());
		cr_expect(is_free(region));
		cr_expect(!is_free(another), "it is behind another gate");
		pthread_spin_unlock(&another->lock);
		dofi_robust_unlock(&robust);
		cr_expect(dofi_robust_try(&robust));
		dofi_robust_unlock(&robust);
	}
	tear_down();
}

static void nobody_enters(void)
{
	const int64_t begun = dofi_now();

	cr_expect(!dofi_robust_try(&robust));
	cr_expect(!dofi_cq_guard_try(&robust.guard));
	cr_expect_eq(dofi_robust_guard_ops.lock(&robust.guard), -ENOTRECOVERABLE);
	cr_expect(dofi_now() - begun < 90 * 1000000LL, "nor waits");
}

Test(robust, an_unknown_layout_closes_it_until_the_owner_opens_it)
{
	const int64_t until = dofi_now() + 10 * 1000000000LL;
	struct child c;

	set_up(5);
	c = holder_start();
	child_kill(&c);
	while (!damages && dofi_now() < until)
		cr_expect(!dofi_robust_try(&robust));
	cr_expect_eq(damages, 1);
	cr_expect(!is_free(region));
	nobody_enters();
	cr_expect_eq(damages, 1);
	dofi_robust_enable(&robust);
	cr_expect(dofi_robust_try(&robust));
	dofi_robust_unlock(&robust);
	tear_down();
}

Test(robust, another_process_leaves_the_repair_to_the_owner)
{
	const int64_t until = dofi_now() + 100 * 1000000LL;
	struct child c;

	set_up(4);
	c = holder_start();
	child_kill(&c);
	robust.damaged = NULL;
	while (dofi_now() < until)
		cr_expect(!dofi_robust_try(&robust));
	cr_expect(!is_free(region));
	robust.damaged = damaged;
	cr_expect(enter_in_time());
	cr_expect_eq(robust.repairs, 1);
	cr_expect(is_free(region));
	dofi_robust_unlock(&robust);
	tear_down();
}

/* The pages of a live holder and of the caller were removed by another process. */
Test(robust, without_its_own_page_it_takes_no_holder_for_dead)
{
	char name[DOFI_SHM_NAME];
	struct child c;

	set_up(4);
	c = holder_start();
	snprintf(name, sizeof(name), "dat-ofi-%016llx", (unsigned long long)page->holder);
	dofi_shm_file_remove(name);
	snprintf(name, sizeof(name), "dat-ofi-%016llx", (unsigned long long)robust.guard.self);
	dofi_shm_file_remove(name);
	cr_expect(!dofi_robust_lock(&robust));
	cr_expect(!is_free(region));
	child_kill(&c);
	page->holder = 0;
	tear_down();
}

static bool got_in;

static void *enters(void *arg)
{
	(void)arg;
	got_in = dofi_robust_lock(&robust);
	if (got_in)
		dofi_robust_unlock(&robust);
	return NULL;
}

Test(robust, a_waiting_thread_gets_it_when_it_is_unlocked)
{
	pthread_t thread;

	set_up(4);
	cr_assert(dofi_robust_try(&robust));
	cr_assert_eq(pthread_create(&thread, NULL, enters, NULL), 0);
	dofi_robust_unlock(&robust);
	pthread_join(thread, NULL);
	cr_expect(got_in);
	tear_down();
}
