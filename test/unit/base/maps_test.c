/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which memory is shared with other processes, and that it is identified alike wherever it is
 * mapped.
 */

#include "base/maps.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

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
