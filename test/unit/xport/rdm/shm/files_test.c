/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files in /dev/shm: which are removed, and which no process can remove. */

#include "xport/rdm/shm/files.h"

#include "base/clock.h"
#include "child.h"
#include "xport/rdm/shm/alone.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* A file with its owner's lock. */
struct owned {
	char name[DOFI_SHM_NAME];
	int fd;
	void *at;
};

TestSuite(shm_files, .init = be_alone, .timeout = 30);

static struct owned own(void)
{
	struct owned o;

	o.fd = dofi_shm_file_make(o.name, &o.at);
	cr_assert(o.fd >= 0, "%d", o.fd);
	return o;
}

static void disown(struct owned *o)
{
	dofi_shm_file_remove(o->name);
	close(o->fd);
}

static const char *path_of(const char *name, const char *rest)
{
	static char path[128];

	snprintf(path, sizeof(path), DOFI_SHM_FOLDER "/%s%s", name, rest);
	return path;
}

static void put(const char *name, const char *rest)
{
	int fd = open(path_of(name, rest), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	cr_assert(fd >= 0);
	close(fd);
}

static bool is_there(const char *name, const char *rest)
{
	struct stat st;

	return !lstat(path_of(name, rest), &st);
}

static bool lives(const char *name)
{
	int fd = dofi_shm_file_open(name);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* An owner in a process of its own, with two files of the fabric. */
static void owner(int fd)
{
	struct owned o = own();

	put(o.name, ".0:0:0");
	put(o.name, ".17");
	say(fd, o.name, sizeof(o.name));
	child_rest(fd);
}

static void expect_all_there(const char *name, bool there)
{
	cr_expect_eq(is_there(name, ""), there);
	cr_expect_eq(is_there(name, ".0:0:0"), there);
	cr_expect_eq(is_there(name, ".17"), there);
}

Test(shm_files, an_owner_has_it_until_it_says_otherwise)
{
	struct owned o = own();
	struct stat st;

	cr_assert_eq(stat(path_of(o.name, ""), &st), 0);
	cr_expect_eq(st.st_mode, S_IFREG | 0600);
	cr_expect_eq(st.st_size, DOFI_SHM_FILE_LEN);
	cr_expect_eq(fcntl(o.fd, F_GETFD), FD_CLOEXEC);
	cr_expect(lives(o.name));
	cr_expect_eq(reap_one(o.name), -EBUSY);
	dofi_shm_files_reap();
	cr_expect(lives(o.name));
	put(o.name, ".0:0:0");
	put(o.name, ".17");
	disown(&o);
	expect_all_there(o.name, false);
	cr_expect_eq(dofi_shm_file_open(o.name), -ENOENT);
}

/* A lock of the process would end when any descriptor of the file is closed. */
Test(shm_files, another_open_in_the_process_does_not_unlock_it)
{
	struct owned o = own();
	int fd = open(path_of(o.name, ""), O_RDWR | O_CLOEXEC);

	cr_assert(fd >= 0);
	close(fd);
	cr_expect(lives(o.name));
	cr_expect(lives(o.name));
	disown(&o);
}

/* A child that was forked while the descriptor was closed keeps the mapping forever. */
Test(shm_files, a_mapping_does_not_keep_the_lock)
{
	struct owned o = own();

	close(o.fd);
	cr_expect(is_of_dead_owner(dofi_shm_file_open(o.name), -ESTALE));
	cr_expect(is_of_dead_owner(reap_one(o.name), 0));
	cr_expect(!is_there(o.name, ""));
	*(volatile char *)o.at = 1;
}

Test(shm_files, files_of_a_dead_owner_are_removed)
{
	struct child c = child_start(owner);
	char name[DOFI_SHM_NAME];

	hear(c.fd, name, sizeof(name));
	cr_expect(lives(name));
	cr_expect_eq(reap_one(name), -EBUSY);
	expect_all_there(name, true);
	child_kill(&c);
	cr_expect(is_of_dead_owner(dofi_shm_file_open(name), -ESTALE));
	cr_expect(is_of_dead_owner(reap_one(name), 0));
	expect_all_there(name, false);
	cr_expect_eq(reap_one(name), -ENOENT);
}

Test(shm_files, files_of_all_dead_owners_are_removed_and_no_others)
{
	struct child dead = child_start(owner), alive = child_start(owner);
	char gone[DOFI_SHM_NAME], here[DOFI_SHM_NAME];

	hear(dead.fd, gone, sizeof(gone));
	hear(alive.fd, here, sizeof(here));
	child_kill(&dead);
	dofi_shm_files_reap();
	expect_all_there(gone, false);
	expect_all_there(here, true);
	child_kill(&alive);
	dofi_shm_files_reap();
	expect_all_there(here, false);
}

/* Its owner removed the page and was then killed. */
Test(shm_files, a_file_of_an_endpoint_without_a_page_is_removed)
{
	struct owned o = own();

	put("dat-ofi-0000000000000bad", ".3:0:0");
	put(o.name, ".3:0:0");
	cr_expect_eq(reap_one("dat-ofi-0000000000000bad"), -ENOENT);
	cr_expect(!is_there("dat-ofi-0000000000000bad", ".3:0:0"));
	put("dat-ofi-0000000000000bad", ".3:0:0");
	dofi_shm_files_reap();
	cr_expect(!is_there("dat-ofi-0000000000000bad", ".3:0:0"));
	cr_expect(is_there(o.name, ".3:0:0"));
	disown(&o);
}

Test(shm_files, files_of_other_names_are_left_alone)
{
	static const char *const other[] = {
		"dat-ofi-",
		"dat-ofi-12",
		"dat-ofi-0123456789abcdef0",
		"dat-ofi-0123456789abcdeg",
		"dat-ofi-0123456789ABCDEF.1",
		"dat-ofi-0123456789abcdef-1",
		"dat-ofx-0123456789abcdef.1",
		".dat-ofi-0123456789abcdef",
		"dat-ofi-0123456789abcdef0.1",
	};
	size_t i;

	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		put(other[i], "");
	dofi_shm_files_reap();
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		cr_expect(is_there(other[i], ""), "%s", other[i]);
		unlink(path_of(other[i], ""));
	}
}

Test(shm_files, a_name_from_the_network_may_be_anything)
{
	static const char *const bad[] = {
		"",
		".",
		"..",
		"/",
		"../etc/passwd",
		"/dev/shm/dat-ofi-0123456789abcdef",
		"dat-ofi-",
		"dat-ofi-0123456789abcde/",
		"dat-ofi-../../../etc/pass",
		"dat-ofi-0123456789abcdef.0",
		"dat-ofi-0123456789abcdef0",
		"dat-ofi-0123456789ABCDEF",
		"dat-ofi-0123456789abcdef/x",
		"Dat-ofi-0123456789abcdef",
		"dat-ofi-0123456789abcde",
	};
	char longest[4096];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(dofi_shm_file_open(bad[i]), -EINVAL, "%s", bad[i]);
		cr_expect_eq(reap_one(bad[i]), -EINVAL, "%s", bad[i]);
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	memcpy(longest, "dat-ofi-", 8);
	cr_expect_eq(dofi_shm_file_open(longest), -EINVAL);
}

static void opens_as(const char *name, int error)
{
	cr_expect_eq(dofi_shm_file_open(name), error);
	cr_expect_eq(reap_one(name), error);
	dofi_shm_files_reap();
	cr_expect(is_there(name, ""), "it is not one of ours to remove");
	remove(path_of(name, ""));
}

Test(shm_files, what_is_no_such_file_is_refused)
{
	static const char name[] = "dat-ofi-00000000000f11e5";
	static const char target[] = DOFI_SHM_FOLDER "/somebodys-file";

	put(name, "");
	opens_as(name, -EPROTO);
	cr_assert_eq(mkfifo(path_of(name, ""), 0600), 0);
	opens_as(name, -EPROTO);
	cr_assert_eq(mkdir(path_of(name, ""), 0700), 0);
	opens_as(name, -EISDIR);
	put("somebodys-file", "");
	cr_assert_eq(symlink(target, path_of(name, "")), 0);
	opens_as(name, -ELOOP);
	cr_assert_eq(symlink(target, path_of(name, ".1")), 0);
	dofi_shm_files_reap();
	cr_expect(!is_there(name, ".1"));
	cr_expect(is_there("somebodys-file", ""), "links are not followed");
	unlink(target);
}

/* Owners that come and go. Each must find its own files. */
static void come_and_go(int fd)
{
	int i;

	for (i = 0; i < 60; i++) {
		struct owned o = own();

		put(o.name, ".0:0:0");
		dofi_shm_files_reap();
		cr_assert(lives(o.name) && is_there(o.name, ".0:0:0"), "round %d", i);
		if (i % 2)
			disown(&o);	/* otherwise other processes reap it as dead */
		close(o.fd);
	}
	(void)fd;
}

static int count(const char *prefix)
{
	DIR *folder = opendir(DOFI_SHM_FOLDER);
	const struct dirent *e;
	int n = 0;

	cr_assert(folder);
	while ((e = readdir(folder)))
		n += !strncmp(e->d_name, prefix, strlen(prefix));
	closedir(folder);
	return n;
}

Test(shm_files, many_reap_at_once_and_spare_live_owners)
{
	struct child c[4];
	int i;

	for (i = 0; i < 4; i++)
		c[i] = child_start(come_and_go);
	for (i = 0; i < 4; i++)
		cr_expect_eq(child_end(&c[i]), 0);
}

static void other_user(int fd)
{
	struct owned o;
	char roots[DOFI_SHM_NAME];

	hear(fd, roots, sizeof(roots));
	cr_assert_eq(setuid(65534), 0);
	cr_assert_eq(dofi_shm_file_open(roots), -EACCES);
	cr_assert_eq(reap_one(roots), -EACCES);
	dofi_shm_files_reap();
	o = own();
	put(o.name, ".0:0:0");
	put(o.name, ".17");
	say(fd, o.name, sizeof(o.name));
	child_rest(fd);
}

Test(shm_files, another_users_are_left_alone)
{
	struct owned o = own();
	struct child c;
	char name[DOFI_SHM_NAME];

	if (geteuid()) {
		fprintf(stderr, "skipped: files of another user: for root alone\n");
		disown(&o);
		return;
	}
	c = child_start(other_user);
	say(c.fd, o.name, sizeof(o.name));
	hear(c.fd, name, sizeof(name));
	cr_expect_eq(dofi_shm_file_open(name), -EACCES, "root may open it and must not");
	child_kill(&c);
	cr_expect_eq(reap_one(name), -EACCES);
	dofi_shm_files_reap();
	expect_all_there(name, true);
	unlink(path_of(name, ""));
	dofi_shm_files_reap();
	cr_expect(is_there(name, ".17"), "an orphan of another user");
	unlink(path_of(name, ".17"));
	unlink(path_of(name, ".0:0:0"));
	cr_expect(lives(o.name));
	disown(&o);
}

static void owner_elsewhere(int fd)
{
	char outer[DOFI_SHM_NAME];

	hear(fd, outer, sizeof(outer));
	child_enter_pid_space();
	cr_assert_eq(getpid(), 1);
	dofi_shm_files_reap();
	cr_assert(lives(outer));
	owner(fd);
}

Test(shm_files, another_pid_namespace_is_no_other_life)
{
	struct owned o = own();
	struct child c = child_start(owner_elsewhere);
	char name[DOFI_SHM_NAME];

	say(c.fd, o.name, sizeof(o.name));
	if (recv(c.fd, name, sizeof(name), MSG_WAITALL) == sizeof(name)) {
		dofi_shm_files_reap();
		expect_all_there(name, true);
		cr_expect_eq(reap_one(name), -EBUSY);
		/* the child ends when its socket is closed */
		child_end(&c);
		dofi_shm_files_reap();
		expect_all_there(name, false);
	} else {
		cr_expect_eq(WEXITSTATUS(child_end(&c)), 77);
	}
	cr_expect(lives(o.name));
	disown(&o);
}

/*
 * Enters a /dev/shm of this process alone, mounted with @options. Returns false if that is not
 * allowed.
 */
static bool folder_of_our_own(const char *options)
{
	if (enter_dev_shm(options))
		return true;
	fprintf(stderr, "skipped: a /dev/shm of our own: %s\n", strerror(errno));
	return false;
}

Test(shm_files, without_room_there_is_an_error_and_no_signal)
{
	char name[DOFI_SHM_NAME];
	void *at;
	int fd;

	if (!folder_of_our_own("size=4096"))
		return;
	fd = open(path_of("full", ""), O_CREAT | O_WRONLY, 0600);
	cr_assert_eq(write(fd, "x", 1), 1);
	cr_expect_eq(dofi_shm_file_make(name, &at), -ENOSPC);
	cr_expect_eq(count("dat-ofi-"), 0);
	unlink(path_of("full", ""));
	close(fd);
	fd = dofi_shm_file_make(name, &at);
	cr_expect(fd >= 0);
}

/* The check leaves no file. */
static int fits(const char *name)
{
	int ret = dofi_shm_file_fits(name);

	cr_expect(!is_there(name, ""));
	return ret;
}

Test(shm_files, an_endpoint_fits_where_its_file_does)
{
	static const char name[] = "endpoint";
	int fd;

	cr_expect_eq(fits(name), 0);
	if (!folder_of_our_own("size=8m,nr_inodes=2"))
		return;
	cr_expect_eq(fits(name), 0);
	fd = open(path_of("other", ""), O_CREAT | O_WRONLY, 0600);
	cr_assert(fd >= 0);
	cr_expect_eq(fits(name), -ENOSPC, "no inode is free");
	unlink(path_of("other", ""));
	cr_assert_eq(posix_fallocate(fd, 0, 5 << 20), 0);
	cr_expect_eq(fits(name), -ENOSPC, "3 MiB are free");
	close(fd);
	cr_expect_eq(fits(name), 0);
}

Test(shm_files, an_endpoint_fits_in_a_folder_without_a_limit)
{
	if (folder_of_our_own("size=0"))
		cr_expect_eq(fits("endpoint"), 0);
}

Test(shm_files, an_endpoint_fits_only_within_the_limit_of_files)
{
	struct rlimit limit = { .rlim_cur = 8 << 20, .rlim_max = RLIM_INFINITY };

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_eq(fits("endpoint"), -EFBIG);
}

Test(shm_files, thousands_are_gone_through_in_no_time)
{
	int64_t begin;
	struct owned o;
	char name[64];
	int i;

	if (!folder_of_our_own(NULL))
		return;
	o = own();
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "dat-ofi-%016x.%d", i, i);
		put(name, "");
		put(o.name, name + 24);
		snprintf(name, sizeof(name), "another%d", i);
		put(name, "");
	}
	begin = dofi_now();
	dofi_shm_files_reap();
	fprintf(stderr, "9000 files, of these 3000 orphans: %.1f ms\n",
		(double)(dofi_now() - begin) / 1e6);
	cr_expect_eq(count("another"), 3000);
	cr_expect_eq(count(o.name), 3001);
	cr_expect_eq(count("dat-ofi-"), 3001);
	disown(&o);
	cr_expect_eq(count("dat-ofi-"), 0);
}
