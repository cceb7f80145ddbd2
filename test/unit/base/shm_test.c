/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that two processes share, and which descriptors are refused as such. */

#include "base/shm.h"

#include "child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/*
 * Which memory is shared with other processes, and that it is identified alike wherever it is
 * mapped.
 */

static struct dofi_shared at, there;
static size_t page;

static void init(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
}

static char *map(size_t pages, int flags, int fd, size_t first)
{
	void *p =
		mmap(NULL, pages * page, PROT_READ | PROT_WRITE, flags, fd, (off_t)(first * page));

	cr_assert(p != MAP_FAILED);
	return p;
}

static bool same(const struct dofi_shared *a, const struct dofi_shared *b)
{
	return a->major == b->major && a->minor == b->minor && a->inode == b->inode &&
	       a->offset == b->offset;
}

TestSuite(maps, .init = init);

Test(maps, heap_and_stack_are_private)
{
	int local = 0;

	cr_expect_eq(dofi_shared_find(&local, sizeof(local), &at), -EPERM);
	cr_expect_eq(dofi_shared_find(map(1, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), page, &at),
		     -EPERM);
}

Test(maps, unmapped_memory_is_an_error)
{
	char *p = map(3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	munmap(p + page, page);
	cr_expect_eq(dofi_shared_find(p, page, &at), 0);
	cr_expect_eq(dofi_shared_find(p, page + 1, &at), -EFAULT);
	cr_expect_eq(dofi_shared_find(p + page, 1, &at), -EFAULT);
	cr_expect_eq(dofi_shared_find((void *)page, 8, &at), -EFAULT);
	cr_expect_eq(dofi_shared_find((void *)(UINTPTR_MAX - 8), 8, &at), -EFAULT);
}

Test(maps, all_of_it_must_be_shared)
{
	char *p = map(2, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert(mmap(p + page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		  MAP_FAILED);
	cr_expect_eq(dofi_shared_find(p, page, &at), 0);
	cr_expect_eq(dofi_shared_find(p, page + 1, &at), -EPERM);
}

Test(maps, pieces_of_one_region_are_one)
{
	char *p = map(3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_eq(mprotect(p + page, page, PROT_READ), 0);
	cr_expect_eq(dofi_shared_find(p + 8, 2 * page + 8, &at), 0);
	cr_expect_eq(dofi_shared_find(p + page, page, &there), 0);
	cr_expect_eq(there.offset - at.offset, page - 8);
}

Test(maps, a_file_is_itself_wherever_it_is_mapped)
{
	int fd = memfd_create("maps_test", 0), other = memfd_create("maps_test", 0);

	cr_assert(!ftruncate(fd, (off_t)(4 * page)) && !ftruncate(other, (off_t)(4 * page)));
	cr_assert_eq(dofi_shared_find(map(4, MAP_SHARED, fd, 0) + 2 * page + 5, 1, &at), 0);
	cr_assert_eq(dofi_shared_find(map(1, MAP_SHARED, fd, 2) + 5, 1, &there), 0);
	cr_expect(same(&at, &there));
	cr_assert_eq(dofi_shared_find(map(1, MAP_SHARED, fd, 2) + 6, 1, &there), 0);
	cr_expect(!same(&at, &there));
	cr_assert_eq(dofi_shared_find(map(4, MAP_SHARED, other, 0) + 2 * page + 5, 1, &there), 0);
	cr_expect(!same(&at, &there));
	cr_expect_eq(dofi_shared_find(map(4, MAP_PRIVATE, fd, 0), page, &there), -EPERM);
	close(fd);
	close(other);
}

Test(maps, system_v_memory_is_shared)
{
	int id = shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
	void *a, *b;

	cr_assert(id >= 0);
	a = shmat(id, NULL, 0);
	b = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	cr_assert_eq(dofi_shared_find(a, page, &at), 0);
	cr_assert_eq(dofi_shared_find(b, page, &there), 0);
	cr_expect(same(&at, &there));
}

/* The word that shows whether a thread lives: until the thread ends, by any cause. */

static struct dofi_alive *alive;	/* shared with children */

static void alive_init(void)
{
	alive = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(alive != MAP_FAILED);
}

static void alive_fini(void)
{
	munmap(alive, 4096);
}

TestSuite(alive, .init = alive_init, .fini = alive_fini, .timeout = 30);

Test(alive, from_the_beginning_to_the_end)
{
	cr_expect(!dofi_alive_is(alive));
	cr_assert_eq(dofi_alive_begin(alive), 0);
	cr_expect(dofi_alive_is(alive));
	dofi_alive_end(alive);
	cr_expect(!dofi_alive_is(alive));
}

static void *live(void *arg)
{
	cr_assert_eq(dofi_alive_begin(alive), 0);
	cr_expect(dofi_alive_is(alive));
	return arg;
}

Test(alive, until_the_thread_ends)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, live, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect(!dofi_alive_is(alive));
}

static void run(int fd)
{
	live(NULL);
	say(fd, "", 1);
	child_rest(fd);
}

Test(alive, until_the_process_is_killed)
{
	struct child c = child_start_ready(run);

	cr_expect(dofi_alive_is(alive));
	child_kill(&c);
	cr_expect(!dofi_alive_is(alive));
}

/* The new program holds the process's number, and ends when the test closes the socket. */
static void run_and_exec(int fd)
{
	cr_assert_eq(dup2(fd, 0), 0);
	cr_assert_eq(dup2(fd, 1), 1);
	live(NULL);
	execl("/bin/sh", "sh", "-c", "echo; read line", (char *)NULL);
}

Test(alive, until_the_process_runs_another_program)
{
	struct child c = child_start_ready(run_and_exec);

	cr_expect(!dofi_alive_is(alive));
	cr_expect(!kill(c.pid, 0));
	child_end(&c);
}

static void end_in_child(int fd)
{
	dofi_alive_end(alive);
	say(fd, "", 1);
}

Test(alive, whatever_a_forked_child_does)
{
	struct child c;

	cr_assert_eq(dofi_alive_begin(alive), 0);
	c = child_start_ready(end_in_child);
	child_end(&c);
	cr_expect(dofi_alive_is(alive));
	dofi_alive_end(alive);
}

/* The kernel would not change the word of a thread that has ended. */
Test(alive, not_without_the_kernels_list)
{
	syscall(SYS_set_robust_list, NULL, sizeof(struct robust_list_head));
	cr_expect_eq(dofi_alive_begin(alive), -ENOTSUP);
	cr_expect(!dofi_alive_is(alive));
}

/* A hostile process wrote it. */
Test(alive, an_index_beyond_the_words_is_not_followed)
{
	alive->value = 1;
	alive->at = DOFI_ALIVE_WORDS;
	cr_expect(!dofi_alive_is(alive));
	alive->at = UINT32_MAX;
	cr_expect(!dofi_alive_is(alive));
	alive->at = 0;
	alive->value = 0;
	cr_expect(!dofi_alive_is(alive), "0 is the word of a mutex that nobody holds");
}
