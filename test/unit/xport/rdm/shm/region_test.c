/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a dead process leaves in an endpoint's memory, for each known layout. */

#include "xport/rdm/shm/region.h"

#include "xport/rdm/shm/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN 65536
#define QUEUE 4096		/* offset of the command queue */
#define SIZE 16

/* The layouts, independent of the table under test. */
static const struct known {
	uint8_t version;
	unsigned lock, queue, entry;
} known[] = {
	{ 4, 24, 0, 0 }, { 7, 56, 80, 576 }, { 8, 56, 80, 576 }, { 10, 64, 128, 384 },
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static unsigned char *region;

static pthread_spinlock_t *lock_of(const struct known *k)
{
	return (pthread_spinlock_t *)(region + k->lock);
}

static int64_t *write_pos(void)
{
	return (int64_t *)(region + QUEUE);
}

static int64_t *read_pos(void)
{
	return (int64_t *)(region + QUEUE + 64);
}

static int32_t *queue_size(void)
{
	return (int32_t *)(region + QUEUE + 128);
}

static unsigned char *entry_at(const struct known *k, int64_t pos)
{
	return region + QUEUE + 192 + (size_t)(pos % SIZE) * k->entry;
}

static int64_t *seq(const struct known *k, int64_t pos)
{
	return (int64_t *)entry_at(k, pos);
}

static bool is_noop(const struct known *k, int64_t pos)
{
	return entry_at(k, pos)[8];
}

/* Makes an empty queue that has been used for @pos commands. */
static void lay_out(const struct known *k, int64_t pos)
{
	const size_t queue = QUEUE;
	int64_t i;

	memset(region, 0, LEN);
	region[0] = k->version;
	pthread_spin_init(lock_of(k), PTHREAD_PROCESS_SHARED);
	if (!k->queue)
		return;
	memcpy(region + k->queue, &queue, sizeof(queue));
	queue_size()[0] = SIZE;
	queue_size()[1] = SIZE - 1;
	*write_pos() = *read_pos() = pos;
	for (i = pos; i < pos + SIZE; i++)
		*seq(k, i) = i;
}

static void init(void)
{
	region = aligned_alloc(64, LEN);
	cr_assert(region);
}

static void fini(void)
{
	free(region);
}

TestSuite(region, .init = init, .fini = fini);

Test(region, a_lock_that_is_taken_is_opened)
{
	size_t i;

	for (i = 0; i < KNOWN; i++) {
		lay_out(&known[i], 3);
		pthread_spin_lock(lock_of(&known[i]));
		cr_expect_eq(dofi_region_repair(region, LEN), 0);
		cr_expect_eq(pthread_spin_trylock(lock_of(&known[i])), 0);
		pthread_spin_unlock(lock_of(&known[i]));
		cr_expect_eq(dofi_region_repair(region, LEN), 0);
		cr_expect_eq(pthread_spin_trylock(lock_of(&known[i])), 0,
			     "nor is an open one shut");
	}
}

Test(region, a_claimed_command_is_skipped_and_no_other)
{
	size_t i;

	for (i = 1; i < KNOWN; i++) {
		const struct known *k = &known[i];

		lay_out(k, 30);		/* the positions wrap around the end of the array */
		*write_pos() = 34;
		*seq(k, 30) = 31;
		*seq(k, 32) = 33;
		*seq(k, 33) = 34;
		cr_expect_eq(dofi_region_repair(region, LEN), 0);
		cr_expect(!is_noop(k, 30) && is_noop(k, 31) && !is_noop(k, 32) && !is_noop(k, 33));
		cr_expect_eq(*seq(k, 31), 32, "committed");
		cr_expect_eq(*seq(k, 30), 31);
		cr_expect_eq(*seq(k, 34), 34, "free");
		cr_expect(!is_noop(k, 34));
	}
}

Test(region, another_layout_is_left_alone)
{
	unsigned version;

	lay_out(&known[0], 0);
	pthread_spin_lock(lock_of(&known[0]));
	for (version = 0; version < 256; version++) {
		region[0] = version;
		if (version == 4 || version == 7 || version == 8 || version == 10)
			continue;
		cr_expect_eq(dofi_region_repair(region, LEN), -ENOTSUP);
		cr_expect(pthread_spin_trylock(lock_of(&known[0])));
	}
	region[0] = 4;
	cr_expect_eq(dofi_region_repair(region, 100), -ENOTSUP, "too short");
	cr_expect_eq(dofi_region_repair(region, 0), -ENOTSUP);
}

static void no_queue(const struct known *k)
{
	cr_expect_eq(dofi_region_repair(region, LEN), -ENOTSUP);
	lay_out(k, 5);
}

Test(region, what_is_no_queue_is_not_repaired)
{
	const struct known *k = &known[2];
	static const size_t wrong[] = {
		0, 64, QUEUE + 8, LEN, LEN - 64, SIZE_MAX, (size_t)1 << 40
	};
	size_t i;

	lay_out(k, 5);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(region + k->queue, &wrong[i], sizeof(wrong[i]));
		no_queue(k);
	}
	queue_size()[0] = 0;
	no_queue(k);
	queue_size()[0] = -16;
	no_queue(k);
	queue_size()[0] = 24;
	no_queue(k);
	queue_size()[1] = SIZE;
	no_queue(k);
	queue_size()[0] = 1024;		/* extends beyond the memory */
	queue_size()[1] = 1023;
	no_queue(k);
	*write_pos() = 4;		/* less than the read position */
	no_queue(k);
	*write_pos() = 5 + SIZE + 1;
	no_queue(k);
	cr_expect_eq(dofi_region_repair(region, LEN), 0);
}

#define NAME "dat-ofi-00000000region00"

/* Maps a file that has no name any more. */
static unsigned char *mapped(const char *path, uint8_t version)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	unsigned char *at;

	cr_assert(fd >= 0, "%s", strerror(errno));
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(at != MAP_FAILED);
	close(fd);
	at[0] = version;
	pthread_spin_init((pthread_spinlock_t *)(at + 24), PTHREAD_PROCESS_SHARED);
	pthread_spin_lock((pthread_spinlock_t *)(at + 24));
	return at;
}

static bool is_locked(unsigned char *at)
{
	if (pthread_spin_trylock((pthread_spinlock_t *)(at + 24)))
		return true;
	pthread_spin_unlock((pthread_spinlock_t *)(at + 24));
	return false;
}

Test(region, all_of_one_owner_are_repaired)
{
	unsigned char *one = mapped(DOFI_SHM_FOLDER "/" NAME ".0:0:0", 4);
	unsigned char *two = mapped(DOFI_SHM_FOLDER "/" NAME ".1:0:1", 4);
	unsigned char *other = mapped(DOFI_SHM_FOLDER "/" NAME "1.0:0:0", 4);

	cr_expect_eq(dofi_regions_repair(NAME), 0);
	cr_expect(!is_locked(one) && !is_locked(two) && is_locked(other));
	two[0] = 5;
	pthread_spin_lock((pthread_spinlock_t *)(one + 24));
	cr_expect_eq(dofi_regions_repair(NAME), -ENOTSUP);
	cr_expect(!is_locked(one), "those that are known all the same");
	cr_expect_eq(dofi_regions_repair("dat-ofi-nobody"), 0);
	munmap(one, 4096);
	munmap(two, 4096);
	munmap(other, 4096);
}
