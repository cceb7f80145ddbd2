/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that two processes share, and which descriptors are refused as such. */

#include "base/sealed.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SIZE 16384
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert(fd >= 0);
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	if (seals)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void expect_refused(int fd)
{
	void *at = NULL;

	cr_expect_eq(dofi_sealed_map(fd, SIZE, &at), -EPROTO);
	cr_expect_eq(dofi_sealed_map_to_read(fd, SIZE, &at), -EPROTO);
	cr_expect(!at);
	close(fd);
}

Test(sealed, both_ends_see_the_same)
{
	unsigned char *mine, *theirs;
	void *at;
	int fd = dofi_sealed_make(SIZE, &at);

	cr_assert(fd >= 0);
	mine = at;
	cr_expect_eq(mine[SIZE - 1], 0);
	cr_assert_eq(dofi_sealed_map(fd, SIZE, &at), 0);
	theirs = at;
	mine[SIZE - 1] = 7;
	cr_expect_eq(theirs[SIZE - 1], 7);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	dofi_sealed_unmap(mine, SIZE);
	dofi_sealed_unmap(theirs, SIZE);
	close(fd);
}

Test(sealed, only_the_owner_writes_to_its_own)
{
	unsigned char *mine, *theirs;
	void *at;
	int fd = dofi_sealed_make_own(SIZE, &at);

	if (fd == -ENOTSUP)
		return;		/* Linux before 5.1 */
	cr_assert(fd >= 0);
	mine = at;
	cr_assert_eq(dofi_sealed_map_to_read(fd, SIZE, &at), 0);
	theirs = at;
	mine[SIZE - 1] = 7;
	cr_expect_eq(theirs[SIZE - 1], 7);
	cr_expect_eq(dofi_sealed_map(fd, SIZE, &at), -EPERM);
	cr_expect(mprotect(theirs, SIZE, PROT_READ | PROT_WRITE) && errno == EACCES);
	cr_expect(pwrite(fd, "", 1, 0) < 0 && errno == EPERM);
	dofi_sealed_unmap(mine, SIZE);
	dofi_sealed_unmap(theirs, SIZE);
	close(fd);
}

Test(sealed, its_size_cannot_change)
{
	void *at;
	int fd = dofi_sealed_make(SIZE, &at);

	cr_assert(fd >= 0);
	cr_expect(ftruncate(fd, 0) && errno == EPERM);
	cr_expect(ftruncate(fd, 2 * SIZE) && errno == EPERM);
	cr_expect(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	dofi_sealed_unmap(at, SIZE);
	close(fd);
}

Test(sealed, sealed_memory_has_no_name)
{
	char link[64], path[64];
	struct stat st;
	void *at;
	int fd = dofi_sealed_make(SIZE, &at);

	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_nlink, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	cr_assert(readlink(link, path, sizeof(path)) > 0);
	cr_expect(strncmp(path, "/dev/shm", 8));
	dofi_sealed_unmap(at, SIZE);
	close(fd);
}

Test(sealed, what_can_shrink_or_grow_is_refused)
{
	expect_refused(memfd(SIZE, 0));
	expect_refused(memfd(SIZE, F_SEAL_SHRINK));
	expect_refused(memfd(SIZE, F_SEAL_GROW));
}

Test(sealed, another_size_is_refused)
{
	expect_refused(memfd(SIZE - 1, SEALS));
	expect_refused(memfd(SIZE + 4096, SEALS));
	expect_refused(memfd(0, SEALS));
}

Test(sealed, what_cannot_be_sealed_is_refused)
{
	char path[] = "/tmp/sealed-XXXXXX";
	int fd = mkstemp(path), end[2];

	cr_assert(fd >= 0);
	unlink(path);
	cr_assert_eq(ftruncate(fd, SIZE), 0);
	expect_refused(fd);
	cr_assert_eq(pipe(end), 0);
	expect_refused(end[0]);
	close(end[1]);
	expect_refused(-1);
}

/* An access to a huge page fails if the system has none left. */
Test(sealed, huge_pages_are_refused)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	struct statfs fs;
	void *at = NULL;

	if (fd < 0)
		return;
	cr_assert_eq(fstatfs(fd, &fs), 0);
	cr_assert_eq(ftruncate(fd, fs.f_bsize), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	cr_expect_eq(dofi_sealed_map(fd, (size_t)fs.f_bsize, &at), -EPROTO);
	close(fd);
}

Test(sealed, without_descriptors_it_fails)
{
	struct rlimit limit, none = { 0, 0 };
	void *at = NULL;
	int ret;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = dofi_sealed_make(SIZE, &at);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(ret, -EMFILE);
	cr_expect(!at);
}
