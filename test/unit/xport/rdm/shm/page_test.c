/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pages of IAs: what proves that a peer is near, wakeups, and what is left in /dev/shm. */

#include "xport/rdm/shm/page.h"

#include "base/clock.h"
#include "child.h"
#include "xport/rdm/shm/alone.h"
#include "xport/rdm/shm/real.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct dofi_shm shm;

TestSuite(shm, .init = be_alone, .timeout = 30);

/* What a process sends about its page over the network. */
struct said {
	char name[DOFI_SHM_NAME];
	uint8_t cookie[DOFI_SHM_COOKIE];
};

static struct said said_of(const struct dofi_shm *s)
{
	struct said said;

	memcpy(said.name, s->name, sizeof(said.name));
	memcpy(said.cookie, s->page->cookie, sizeof(said.cookie));
	return said;
}

/* The number of files in /dev/shm with names that begin with @name. */
static int files(const char *name)
{
	DIR *folder = opendir(DOFI_SHM_FOLDER);
	const struct dirent *e;
	int n = 0;

	cr_assert(folder);
	while ((e = readdir(folder)))
		n += !strncmp(e->d_name, name, strlen(name));
	closedir(folder);
	return n;
}

static void put(const char *name, const char *rest)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), DOFI_SHM_FOLDER "/%s%s", name, rest);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert(fd >= 0);
	close(fd);
}

Test(shm, comes_and_goes)
{
	struct dofi_shm other = { .page = NULL };
	char name[DOFI_SHM_NAME];

	dofi_shm_close(&other);
	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(dofi_shm_open(&other), 0);
	memcpy(name, shm.name, sizeof(name));
	cr_expect(strcmp(name, other.name));
	cr_expect(memcmp(shm.page->cookie, other.page->cookie, DOFI_SHM_COOKIE));
	cr_expect_eq(shm.page->asleep, 0);
	cr_expect_eq(reap_one(name), -EBUSY);
	put(name, ".5:0:0");	/* left behind by the fabric */
	dofi_shm_close(&shm);
	dofi_shm_close(&shm);
	cr_expect_eq(files(name), 0);
	cr_expect_eq(files(other.name), 1);
	dofi_shm_close(&other);
}

Test(shm, endpoints_are_numbered)
{
	char first[64], second[64], expected[64];

	cr_assert_eq(dofi_shm_open(&shm), 0);
	snprintf(expected, sizeof(expected), "fi_shm://%s.0", shm.name);
	cr_expect_eq(dofi_shm_endpoint(&shm, first, strlen(expected)), -ENOSPC);
	cr_expect_eq(dofi_shm_endpoint(&shm, first, strlen(expected) + 1), 0);
	cr_expect_str_eq(first, expected);
	cr_expect_eq(dofi_shm_endpoint(&shm, second, sizeof(second)), 0);
	cr_expect(strcmp(first, second));
	dofi_shm_close(&shm);
}

Test(shm, an_endpoint_that_does_not_fit_is_refused)
{
	const struct rlimit small = { .rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY };
	char address[64];

	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	cr_expect_eq(dofi_shm_endpoint(&shm, address, sizeof(address)), -EFBIG);
	dofi_shm_close(&shm);
}

static int check(const char *address)
{
	char *exact = strdup(address);	/* exact size: a checker finds a read beyond it */
	int ret = dofi_shm_endpoint_check(shm.name, exact, strlen(exact) + 1);

	free(exact);
	return ret;
}

static int check_with(const char *numbers)
{
	char address[300];

	snprintf(address, sizeof(address), "fi_shm://%s.%s", shm.name, numbers);
	return check(address);
}

Test(shm, an_address_is_that_of_an_endpoint_of_its_owner)
{
	char path[64], address[64];
	int fd;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_expect_eq(check_with("0:0:0"), -ENOENT);
	snprintf(path, sizeof(path), DOFI_SHM_FOLDER "/%s.0:0:0", shm.name);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	cr_assert(fd >= 0);
	close(fd);
	cr_expect_eq(check_with("0:0:0"), 0);
	cr_expect_eq(check_with("1:0:0"), -ENOENT);
	cr_expect_eq(check_with(""), -EPROTO);
	cr_expect_eq(check_with("0/x"), -EPROTO);
	cr_expect_eq(check_with("../../etc/passwd"), -EPROTO);
	cr_expect_eq(check_with("000000000000000000000000000000000000000000000000"), -EPROTO);
	cr_expect_eq(check(""), -EPROTO);
	cr_expect_eq(check("fi_shm://dat-ofi-0000000000000000.0:0:0"), -EPROTO);
	snprintf(address, sizeof(address), "fi_shm://%s", shm.name);
	cr_expect_eq(check(address), -EPROTO);
	snprintf(address, sizeof(address), "fi_shm://%s.0:0:0", shm.name);
	cr_expect_eq(dofi_shm_endpoint_check(shm.name, address, strlen(address)), -EPROTO,
		     "without its end");
	cr_expect_eq(dofi_shm_endpoint_check(shm.name, address, 0), -EPROTO);
	dofi_shm_close(&shm);
}

/* For loopback, and for the provider of the other API version in this process. */
Test(shm, a_page_of_ones_own_may_be_mapped)
{
	struct dofi_shm_peer *one, *two;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(dofi_shm_map(&shm, shm.name, shm.page->cookie, &one), 0);
	cr_assert_eq(dofi_shm_map(&shm, shm.name, shm.page->cookie, &two), 0);
	cr_expect(one == two, "one mapping for all");
	cr_expect_eq(reap_one(shm.name), -EBUSY, "it still has its lock");
	cr_expect(!dofi_shm_notify(one));
	dofi_shm_sleep_begin(&shm);
	cr_expect(dofi_shm_notify(one));
	cr_expect(!dofi_shm_notify(two), "once is enough");
	dofi_shm_sleep_begin(&shm);
	dofi_shm_sleep_end(&shm);
	cr_expect(!dofi_shm_notify(two));
	dofi_shm_unmap(one);
	dofi_shm_sleep_begin(&shm);
	cr_expect(dofi_shm_notify(two));
	cr_expect_eq(atomic_load(shm.robust.guard.sent), 5, "asked whether it sleeps so often");
	dofi_shm_unmap(two);
	dofi_shm_close(&shm);
}

/* dofi_shm_notify() wakes the leader by its own word. The caller wakes the progress thread. */
Test(shm, leaders_and_the_progress_thread_sleep_apart)
{
	struct dofi_shm_peer *peer;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(dofi_shm_map(&shm, shm.name, shm.page->cookie, &peer), 0);
	dofi_lead_word_ask(&shm.lead);
	cr_expect(!dofi_shm_notify(peer));
	cr_expect_eq(shm.page->asleep, 0);
	dofi_lead_word_ask(&shm.lead);
	dofi_shm_sleep_begin(&shm);
	dofi_shm_sleep_end(&shm);
	cr_expect_eq(shm.page->asleep, DOFI_SHM_LEADER, "the leader sleeps on");
	dofi_shm_sleep_begin(&shm);
	dofi_lead_word_end(&shm.lead);
	cr_expect_eq(shm.page->asleep, DOFI_SHM_THREAD, "the progress thread sleeps on");
	dofi_lead_word_ask(&shm.lead);
	cr_expect(dofi_shm_notify(peer), "both");
	cr_expect_eq(shm.page->asleep, 0);
	dofi_shm_unmap(peer);
	dofi_shm_close(&shm);
}

/* Opens a page, leads, and waits on the word until it is woken. */
static void leader(int fd)
{
	struct dofi_mutex lock = { 0 };
	struct dofi_cond wakeup;
	struct dofi_shm mine;
	struct said said;
	int err = 0;

	cr_assert_eq(dofi_shm_open(&mine), 0);
	dofi_cond_init(&wakeup);
	dofi_lead_word_ask(&mine.lead);
	said = said_of(&mine);
	say(fd, &said, sizeof(said));
	dofi_mutex_lock(&lock);
	while (atomic_load(&mine.page->asleep) && !err)
		err = dofi_cond_wait_word(&wakeup, &lock, dofi_deadline(20000000),
					  &mine.page->asleep, DOFI_SHM_LEADER);
	dofi_mutex_unlock(&lock);
	say(fd, &err, sizeof(err));
	child_rest(fd);
}

/* Opens a page, sleeps, and waits until it is woken. */
static void sleeper(int fd)
{
	struct dofi_shm mine;
	struct said said;

	cr_assert_eq(dofi_shm_open(&mine), 0);
	dofi_shm_sleep_begin(&mine);
	said = said_of(&mine);
	say(fd, &said, sizeof(said));
	while (atomic_load(&mine.page->asleep))
		sched_yield();
	say(fd, "", 1);
	child_rest(fd);
}

/*
 * The robust lock holds the number of an IA's page, by which a dead holder is found. So each IA has
 * a lock of its own.
 */
Test(shm, each_ia_has_a_lock_of_its_own_to_a_peer)
{
	struct dofi_shm_peer *one, *two;
	struct dofi_shm other;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(dofi_shm_open(&other), 0);
	cr_assert_eq(dofi_shm_map(&shm, other.name, other.page->cookie, &one), 0);
	cr_assert_eq(dofi_shm_map(&other, other.name, other.page->cookie, &two), 0);
	cr_expect(one->robust.guard.self == shm.robust.guard.self &&
		  two->robust.guard.self == other.robust.guard.self);
	cr_expect(shm.robust.guard.self != other.robust.guard.self);
	cr_expect(dofi_robust_try(&one->robust));
	cr_expect(!dofi_robust_try(&two->robust) && !dofi_robust_try(&other.robust));
	dofi_robust_unlock(&one->robust);
	cr_expect(dofi_robust_try(&other.robust));
	dofi_robust_unlock(&other.robust);
	dofi_shm_unmap(one);
	dofi_shm_unmap(two);
	dofi_shm_close(&other);
	dofi_shm_close(&shm);
}

static bool child_sleeps(const struct child *c)
{
	char path[64], line[128];
	bool asleep = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)c->pid);
	f = fopen(path, "r");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		asleep |= !strncmp(line, "State:\tS", 8);
	fclose(f);
	return asleep;
}

Test(shm, a_leader_in_another_process_is_woken)
{
	struct child c = child_start(leader);
	struct dofi_shm_peer *peer;
	struct said said;
	int err;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	hear(c.fd, &said, sizeof(said));
	cr_assert_eq(dofi_shm_map(&shm, said.name, said.cookie, &peer), 0);
	while (!child_sleeps(&c))
		usleep(100);
	cr_expect(!dofi_shm_notify(peer));
	hear(c.fd, &err, sizeof(err));
	cr_expect(!err || err == -EBUSY, "%d", err);
	dofi_shm_unmap(peer);
	child_kill(&c);
	dofi_shm_close(&shm);
}

Test(shm, another_process_is_woken_and_its_death_is_seen)
{
	struct child c = child_start(sleeper);
	struct dofi_shm_peer *peer, *late;
	struct said said;
	char byte;

	hear(c.fd, &said, sizeof(said));
	cr_assert_eq(dofi_shm_map(&shm, said.name, said.cookie, &peer), 0);
	cr_expect(dofi_shm_notify(peer));
	hear(c.fd, &byte, 1);
	cr_expect_eq(reap_one(said.name), -EBUSY);
	child_kill(&c);
	cr_expect(is_of_dead_owner(dofi_shm_map(&shm, said.name, said.cookie, &late), -ESTALE));
	cr_expect(is_of_dead_owner(reap_one(said.name), 0));
	cr_expect_eq(dofi_shm_map(&shm, said.name, said.cookie, &late), -ENOENT);
	cr_expect(!dofi_shm_notify(peer), "the mapping outlives it");
	dofi_shm_unmap(peer);
	cr_expect_eq(files(said.name), 0);
}

Test(shm, a_page_that_is_not_as_said_is_refused)
{
	struct dofi_shm_peer *peer = NULL, *good;
	char name[DOFI_SHM_NAME];
	struct said said;
	void *at;
	int fd;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	said = said_of(&shm);
	said.cookie[DOFI_SHM_COOKIE - 1] ^= 1;
	cr_expect_eq(dofi_shm_map(&shm, said.name, said.cookie, &peer), -EPROTO);
	cr_assert_eq(dofi_shm_map(&shm, said.name, shm.page->cookie, &good), 0);
	cr_expect_eq(dofi_shm_map(&shm, said.name, said.cookie, &peer), -EPROTO,
		     "nor beside a good one");
	dofi_shm_unmap(good);
	shm.page->version++;
	cr_expect_eq(dofi_shm_map(&shm, said.name, shm.page->cookie, &peer), -EPROTO);
	cr_expect_eq(dofi_shm_map(&shm, "../shm/dat-ofi-012345678", said.cookie, &peer), -EINVAL);
	fd = dofi_shm_file_make(name, &at);
	memset(said.cookie, 0, sizeof(said.cookie));
	cr_expect_eq(dofi_shm_map(&shm, name, said.cookie, &peer), -EPROTO);
	dofi_shm_file_remove(name);
	close(fd);
	cr_expect(!peer);
	dofi_shm_close(&shm);
}

/* A child that is forked while the IA is open, and outlives its parent. */
static int grandchild[2];

static void parent_of_survivor(int fd)
{
	struct dofi_shm mine;
	struct said said;

	cr_assert_eq(dofi_shm_open(&mine), 0);
	if (!fork()) {
		close(grandchild[0]);
		say(grandchild[1], "", 1);
		child_rest(grandchild[1]);
	}
	said = said_of(&mine);
	say(fd, &said, sizeof(said));
	child_rest(fd);
}

Test(shm, a_forked_child_does_not_keep_its_parent_alive)
{
	struct dofi_shm_peer *peer;
	struct child c;
	struct said said;
	char byte;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, grandchild), 0);
	c = child_start(parent_of_survivor);
	close(grandchild[1]);
	hear(c.fd, &said, sizeof(said));
	cr_expect_eq(dofi_shm_map(&shm, said.name, said.cookie, &peer), 0);
	dofi_shm_unmap(peer);
	hear(grandchild[0], &byte, 1);
	child_kill(&c);
	cr_expect(is_of_dead_owner(dofi_shm_map(&shm, said.name, said.cookie, &peer), -ESTALE));
	cr_expect(is_of_dead_owner(reap_one(said.name), 0));
	cr_expect_eq(files(said.name), 0);
	cr_expect_eq(send(grandchild[0], "", 1, MSG_NOSIGNAL), 1, "the grandchild lives");
	close(grandchild[0]);
}

static void closes(int fd)
{
	struct dofi_shm mine;

	(void)fd;
	cr_assert_eq(dofi_shm_open(&mine), 0);
	dofi_shm_close(&shm);
	cr_assert(!shm.page);
	cr_assert_eq(reap_one(mine.name), -EBUSY, "its own lock is its own");
	dofi_shm_close(&mine);
	exit(0);
}

Test(shm, a_forked_child_takes_nothing_of_its_parents)
{
	struct child c;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	put(shm.name, ".0:0:0");
	c = child_start(closes);
	cr_expect_eq(child_end(&c), 0);
	cr_expect_eq(reap_one(shm.name), -EBUSY);
	cr_expect_eq(files(shm.name), 2);
	dofi_shm_close(&shm);
}

/* Opens all that an IA has, and is then killed. */
static void crasher(int fd)
{
	struct shm_real real;
	char address[64];

	if (!shm_real_open(&real))
		_exit(77);
	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(dofi_shm_endpoint(&shm, address, sizeof(address)), 0);
	shm_real_endpoint(&real, address);
	cr_assert_eq(dofi_shm_endpoint(&shm, address, sizeof(address)), 0);
	shm_real_endpoint(&real, address);
	say(fd, shm.name, sizeof(shm.name));
	child_rest(fd);
}

Test(shm, a_killed_ia_leaves_nothing_behind)
{
	char name[DOFI_SHM_NAME];
	struct child c;
	int i;

	for (i = 0; i < 4; i++) {
		c = child_start(crasher);
		if (recv(c.fd, name, sizeof(name), MSG_WAITALL) != sizeof(name)) {
			cr_expect_eq(WEXITSTATUS(child_end(&c)), 77);
			return;
		}
		cr_expect_eq(files(name), 3, "the fabric's files have our name: %d", files(name));
		child_kill(&c);
		/* the peer that lost it, or an IA that opens */
		if (i % 2) {
			cr_expect(is_of_dead_owner(reap_one(name), 0));
		} else {
			cr_assert_eq(dofi_shm_open(&shm), 0);
			dofi_shm_close(&shm);
		}
		cr_expect_eq(files(name), 0);
	}
}

/* Runs with a /dev/shm of its own, without the page that the test reports. */
static void map_from_afar(int fd)
{
	struct dofi_shm_peer *peer;
	struct said said;
	int ret;

	hear(fd, &said, sizeof(said));
	child_enter_dev_shm();
	ret = dofi_shm_map(&shm, said.name, said.cookie, &peer);
	say(fd, &ret, sizeof(ret));
}

Test(shm, a_page_in_another_dev_shm_is_not_there)
{
	struct child c = child_start(map_from_afar);
	struct said said;
	int ret;

	cr_assert_eq(dofi_shm_open(&shm), 0);
	said = said_of(&shm);
	say(c.fd, &said, sizeof(said));
	if (recv(c.fd, &ret, sizeof(ret), MSG_WAITALL) == sizeof(ret))
		cr_expect_eq(ret, -ENOENT);
	child_end(&c);
	dofi_shm_close(&shm);
}
