/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory of each kind, with and without write access. */

#include "base/mapped.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

TestSuite(mapped);

/* madvise() as of Linux before 5.14, or of an emulator, if the test wants that. */
static bool old_kernel, ignored;

int madvise(void *addr, size_t len, int advice)
{
	if (old_kernel)
		errno = EINVAL;
	return old_kernel ? -1 : ignored ? 0 : (int)syscall(SYS_madvise, addr, len, advice);
}

static size_t page;

/* Maps @n pages for @access: of @fd, or anonymous and private if that is -1. */
static char *map(unsigned n, int access, int fd)
{
	void *at;

	page = (size_t)sysconf(_SC_PAGESIZE);
	at = mmap(NULL, n * page, access, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	cr_assert(at != MAP_FAILED);
	return at;
}

static int file_of(unsigned n)
{
	int fd = memfd_create("mapped", MFD_CLOEXEC);

	cr_assert(fd >= 0);
	cr_assert_eq(ftruncate(fd, (off_t)(n * (size_t)sysconf(_SC_PAGESIZE))), 0);
	return fd;
}

static void check_kinds(void)
{
	int fd = file_of(2);
	char *rw = map(3, PROT_READ | PROT_WRITE, -1), *ro = map(3, PROT_READ, -1);
	char *none = map(3, PROT_NONE, -1);
	char *shared = map(2, PROT_READ | PROT_WRITE, fd), *shared_ro = map(2, PROT_READ, fd);

	cr_expect(dofi_mapped_to_write(rw, 1));
	cr_expect(dofi_mapped_to_write(rw + page - 1, 2));
	cr_expect(dofi_mapped_to_write(rw, 3 * page));
	cr_expect(dofi_mapped_to_write(shared, 2 * page));
	cr_expect(!dofi_mapped_to_write(ro, 1));
	cr_expect(!dofi_mapped_to_write(ro + page, page));
	cr_expect(!dofi_mapped_to_write(none, 3 * page));
	cr_expect(!dofi_mapped_to_write(shared_ro, page));
	cr_expect(!dofi_mapped_to_write("a constant", 4));
}

Test(mapped, the_access_of_a_mapping_decides)
{
	check_kinds();
}

Test(mapped, an_older_kernel_lists_it)
{
	old_kernel = true;
	check_kinds();
}

Test(mapped, an_emulator_lists_it)
{
	ignored = true;
	check_kinds();
	check_kinds();
}

Test(mapped, the_first_and_the_last_page_count)
{
	char *at = map(4, PROT_READ | PROT_WRITE, -1);

	cr_assert_eq(mprotect(at, page, PROT_READ), 0);
	cr_expect(!dofi_mapped_to_write(at, 4 * page));
	cr_expect(!dofi_mapped_to_write(at + page - 1, 2));
	cr_expect(dofi_mapped_to_write(at + page, 3 * page));
	cr_assert_eq(mprotect(at + 3 * page, page, PROT_READ), 0);
	cr_expect(!dofi_mapped_to_write(at + page, 2 * page + 1));
	cr_expect(dofi_mapped_to_write(at + page, 2 * page));
}

static void check_unmapped(void)
{
	char *at = map(3, PROT_READ | PROT_WRITE, -1);

	cr_assert_eq(munmap(at + page, page), 0);
	cr_expect(!dofi_mapped_to_write(at + page, 1));
	cr_expect(!dofi_mapped_to_write(at, 2 * page));
	cr_expect(!dofi_mapped_to_write(at + page, 2 * page));
	cr_expect(dofi_mapped_to_write(at, page));
}

Test(mapped, memory_that_is_not_mapped_is_not)
{
	check_unmapped();
	old_kernel = true;
	check_unmapped();
}

/* A write would be SIGBUS, but the mapping is for writing: the file may grow. */
Test(mapped, a_page_behind_the_end_of_its_file_is)
{
	int fd = file_of(1);
	char *at = map(2, PROT_READ | PROT_WRITE, fd);

	cr_expect(dofi_mapped_to_write(at, 2 * page));
}

Test(mapped, no_byte_changes_and_no_other_page_is_made)
{
	unsigned char resident[64];
	unsigned i, n = 0;
	char *at = map(64, PROT_READ | PROT_WRITE, -1);

	memset(at, 7, page);
	cr_expect(dofi_mapped_to_write(at, 64 * page));
	for (i = 0; i < page; i++)
		cr_assert_eq(at[i], 7);
	cr_assert_eq(mincore(at, 64 * page, resident), 0);
	for (i = 1; i < 63; i++)
		n += resident[i] & 1;
	cr_expect_eq(n, 0);
}
