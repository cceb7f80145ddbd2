/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A ring between two threads and two processes, and what either end does with a hostile peer. */

#include "base/ring.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct dofi_ring *ring;
static struct dofi_ring_out out;
static struct dofi_ring_in in;

static void init(void)
{
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(ring != MAP_FAILED);
	out = (struct dofi_ring_out){ .ring = ring };
	in = (struct dofi_ring_in){ .ring = ring };
	dofi_ring_seek(&in, 0);
}

static void fini(void)
{
	munmap(ring, sizeof(*ring));
}

TestSuite(ring, .init = init, .fini = fini, .timeout = 60);

static int put(size_t len, unsigned char fill)
{
	unsigned char *data;
	int ret = dofi_ring_reserve(&out, len, &data);

	if (ret)
		return ret;
	memset(data, fill, len);
	dofi_ring_publish(&out);
	return 0;
}

static bool is_all(const struct dofi_ring_record *record, unsigned char fill)
{
	size_t i;

	for (i = 0; i < record->len; i++)
		if (record->data[i] != fill)
			return false;
	return true;
}

static void expect_record(size_t len, unsigned char fill)
{
	struct dofi_ring_record record;

	cr_assert(dofi_ring_take(&in, &record));
	cr_expect_eq(record.len, len);
	cr_expect(is_all(&record, fill));
	dofi_ring_release(&in, record.end);
}

Test(ring, a_new_ring_is_empty)
{
	struct dofi_ring_record record;

	cr_expect(!dofi_ring_has(&in));
	cr_expect(!dofi_ring_take(&in, &record));
	cr_expect(!in.broken);
}

Test(ring, what_is_reserved_is_not_there_yet)
{
	struct dofi_ring_record record;
	unsigned char *data;

	cr_assert_eq(dofi_ring_reserve(&out, 100, &data), 0);
	memset(data, 0xff, 100);
	cr_expect(!dofi_ring_take(&in, &record));
	cr_assert_eq(dofi_ring_reserve(&out, 8, &data), 0);
	dofi_ring_publish(&out);
	cr_assert(dofi_ring_take(&in, &record));
	cr_expect_eq(record.len, 8, "the first was forgotten");
}

#define ONE_LINE (DOFI_RING_LINE - sizeof(uint64_t)) /* the bytes of a record of one line */

Test(ring, a_short_record_is_one_line)
{
	cr_expect_eq(dofi_ring_lines(0), 1);
	cr_expect_eq(dofi_ring_lines(ONE_LINE), 1);
	cr_expect_eq(dofi_ring_lines(ONE_LINE + 1), 2);
	cr_assert_eq(put(40, 1), 0);
	cr_expect_eq(out.tail, 1);
}

Test(ring, a_record_that_was_looked_at_stays_until_it_is_consumed)
{
	struct dofi_ring_record record, again;

	cr_expect(!dofi_ring_peek(&in, &record), "it is empty");
	cr_assert_eq(put(100, 3), 0);
	cr_assert(dofi_ring_peek(&in, &record) && dofi_ring_peek(&in, &again));
	cr_expect(record.len == 100 && again.data == record.data && is_all(&record, 3));
	cr_expect_eq(atomic_load(&ring->head), 0);
	dofi_ring_consume(&in, &record);
	cr_expect_eq(atomic_load(&ring->head), dofi_ring_lines(100));
	cr_expect(!dofi_ring_peek(&in, &record));
	cr_assert_eq(put(5, 4), 0);
	expect_record(5, 4);
}

Test(ring, only_the_record_that_is_next_is_looked_at)
{
	struct dofi_ring_record record;

	in.broken = true;
	cr_assert_eq(put(8, 1), 0);
	cr_expect(!dofi_ring_peek(&in, &record), "the ring is broken");
	in.broken = false;
	cr_expect(dofi_ring_peek(&in, &record));
	atomic_store(dofi_ring_word(ring, 0), DOFI_RING_SKIP);
	cr_expect(!dofi_ring_peek(&in, &record), "a record is behind a SKIP");
	atomic_store(dofi_ring_word(ring, 0), DOFI_RING_RECORD_MAX + 2);
	cr_expect(!dofi_ring_peek(&in, &record), "it is too long");
	cr_expect(!in.broken, "to be decided by the one that takes");
}

/* Each position that the consumer reads next holds old bytes. */
Test(ring, records_of_all_lengths_come_in_order)
{
	size_t len, laps;

	for (laps = 0; laps < 3; laps++)
		for (len = 0; len <= DOFI_RING_RECORD_MAX; len += 37) {
			cr_assert_eq(put(len, (unsigned char)(len | 0x81)), 0);
			expect_record(len, (unsigned char)(len | 0x81));
			cr_assert(!dofi_ring_has(&in), "after %zu bytes", len);
		}
	cr_expect(out.tail > 3 * DOFI_RING_LINES);
}

Test(ring, a_full_ring_takes_nothing_until_lines_are_released)
{
	struct dofi_ring_record record;
	unsigned n = 0, i;

	while (!put(1000, (unsigned char)n))
		n++;
	cr_expect_eq(put(1000, 0), -EAGAIN);
	cr_expect(n >= DOFI_RING_LINES / dofi_ring_lines(1000) - 1);
	cr_assert(dofi_ring_take(&in, &record));
	cr_expect_eq(put(1000, 0), -EAGAIN, "taken is not released");
	dofi_ring_release(&in, record.end);
	cr_expect_eq(put(1000, (unsigned char)n), 0);
	for (i = 1; i <= n; i++)
		expect_record(1000, (unsigned char)i);
	cr_expect(!dofi_ring_has(&in));
}

Test(ring, the_longest_record_fits_wherever_the_ring_stands)
{
	unsigned i;

	for (i = 0; i < DOFI_RING_LINES; i++) {
		cr_assert_eq(put(DOFI_RING_RECORD_MAX, (unsigned char)i), 0);
		expect_record(DOFI_RING_RECORD_MAX, (unsigned char)i);
		cr_assert_eq(put(1, 7), 0);
		expect_record(1, 7);
	}
}

/* A hostile producer */

static void word_set(uint64_t line, uint64_t word)
{
	atomic_store(dofi_ring_word(ring, line), word);
}

static void expect_broken(void)
{
	struct dofi_ring_record record;

	cr_expect(!dofi_ring_take(&in, &record));
	cr_expect(in.broken);
	word_set(in.next, 9);
	cr_expect(!dofi_ring_has(&in));
	cr_expect(!dofi_ring_take(&in, &record), "nothing is taken any more");
}

/* The consumer polls the line of the record, so the line of the next word is written before it. */
Test(ring, a_reservation_clears_the_word_after_the_record)
{
	unsigned char *data;

	word_set(dofi_ring_lines(100), 7);
	cr_assert_eq(dofi_ring_reserve(&out, 100, &data), 0);
	cr_expect_eq(atomic_load(dofi_ring_word(ring, dofi_ring_lines(100))), 0);
}

/* Whether anything was written to the ring beyond its first DOFI_RING_FIRST lines. */
static bool is_beyond_first(void)
{
	size_t i;

	for (i = DOFI_RING_FIRST + 1; i < DOFI_RING_LINES; i++)
		if (ring->line[i][0])
			return true;
	return false;
}

/* A record that takes half of the first lines may not fit before it begins again. */
Test(ring, with_little_in_it_only_its_first_lines_are_used)
{
	const size_t longest = (DOFI_RING_FIRST / 2 - 1) * DOFI_RING_LINE - sizeof(uint64_t);
	unsigned i;

	for (i = 0; i < 20000; i++) {
		const size_t len = i % 7 ? i % 100 : i % longest;

		cr_assert_eq(put(len, (unsigned char)(i | 1)), 0);
		expect_record(len, (unsigned char)(i | 1));
	}
	cr_expect(!is_beyond_first());
}

Test(ring, what_waits_in_the_first_lines_is_not_overtaken)
{
	unsigned i;

	for (i = 0; i < 2 * DOFI_RING_FIRST; i++)
		cr_assert_eq(put(8, (unsigned char)i), 0);
	cr_expect(is_beyond_first());
	for (i = 0; i < 2 * DOFI_RING_FIRST; i++)
		expect_record(8, (unsigned char)i);
}

/*
 * The free lines before its position are too few for the record, so it runs past the first lines.
 */
Test(ring, a_long_record_behind_few_lines_goes_on)
{
	cr_assert_eq(put(8, 1), 0);
	expect_record(8, 1);
	cr_assert_eq(put(DOFI_RING_RECORD_MAX, 2), 0);
	expect_record(DOFI_RING_RECORD_MAX, 2);
}

Test(ring, a_record_that_is_too_long_breaks_it)
{
	word_set(0, DOFI_RING_RECORD_MAX + 2);
	expect_broken();
}

Test(ring, a_word_of_no_meaning_breaks_it)
{
	word_set(0, DOFI_RING_SKIP - 1);
	expect_broken();
}

Test(ring, a_record_beyond_the_end_breaks_it)
{
	dofi_ring_seek(&in, DOFI_RING_LINES - 1);
	word_set(in.next, ONE_LINE + 2);
	expect_broken();
}

Test(ring, a_skip_at_the_first_line_breaks_it)
{
	word_set(0, DOFI_RING_SKIP);
	expect_broken();
}

Test(ring, a_skip_to_nothing_breaks_it)
{
	dofi_ring_seek(&in, 5);
	word_set(5, DOFI_RING_SKIP);
	expect_broken();
}

Test(ring, a_skip_to_a_skip_breaks_it)
{
	dofi_ring_seek(&in, 5);
	word_set(5, DOFI_RING_SKIP);
	word_set(0, DOFI_RING_SKIP);
	expect_broken();
}

static bool is_inside(const struct dofi_ring_record *record)
{
	const unsigned char *first = ring->line[0], *end = first + sizeof(ring->line);

	return record->data >= first && record->len <= DOFI_RING_RECORD_MAX &&
	       record->data + record->len <= end;
}

/* Returns a word that is almost valid, or an arbitrary one. */
static uint64_t some_word(unsigned *seed)
{
	static const uint64_t words[] = {
		1, 2, 57, 58, DOFI_RING_RECORD_MAX + 1, DOFI_RING_RECORD_MAX + 2, DOFI_RING_SKIP,
		DOFI_RING_SKIP - 1, 1ull << 63, 1ull << 32, UINT32_MAX,
	};
	const unsigned r = (unsigned)rand_r(seed);

	return r % 3 ? words[r / 3 % (sizeof(words) / sizeof(words[0]))] :
		       1 + r / 3 % (DOFI_RING_RECORD_MAX + 8);
}

Test(ring, any_bytes_are_records_within_it_or_break_it)
{
	struct dofi_ring_record record;
	unsigned seed = 1, broken = 0, taken = 0, i, n;
	uint64_t line;

	for (i = 0; i < 2000; i++) {
		in = (struct dofi_ring_in){ .ring = ring };
		dofi_ring_seek(&in, (unsigned)rand_r(&seed));
		for (line = 0; line < DOFI_RING_LINES; line++)
			word_set(line, some_word(&seed));
		for (n = 0; n < 100 && dofi_ring_take(&in, &record); n++)
			cr_assert(is_inside(&record));
		cr_assert(n == 100 || in.broken);
		broken += in.broken;
		taken += n;
	}
	cr_expect(broken > 100 && taken > 1000, "%u, %u", broken, taken);
}

/* A hostile consumer */

Test(ring, a_head_beyond_the_tail_is_noticed)
{
	unsigned n = 0;

	while (!put(1000, 1))
		n++;
	atomic_store(&ring->head, out.tail + 1);
	cr_expect_eq(put(1000, 1), -EPROTO);
	atomic_store(&ring->head, out.tail - DOFI_RING_LINES - 1);
	cr_expect_eq(put(1000, 1), -EPROTO);
	cr_expect(n > 0);
}

/* Ordering: a record is complete when it is taken, whatever the processors reorder */

#define STRESS 200000

static size_t stress_len(unsigned *seed)
{
	const unsigned r = (unsigned)rand_r(seed);

	return r % 16 ? r / 16 % 120 : r / 16 % DOFI_RING_RECORD_MAX;
}

static uint64_t sum_of(const unsigned char *data, size_t len)
{
	uint64_t sum = len;
	size_t i;

	for (i = 0; i < len; i++)
		sum = sum * 31 + data[i];
	return sum;
}

/* Fills the record from its number @i, and appends the sum of its bytes. */
static void record_fill(unsigned char *data, size_t len, unsigned i)
{
	uint64_t sum;

	memset(data, (int)(i * 7 + 1), len);
	memcpy(data, &i, sizeof(i));
	sum = sum_of(data, len);
	memcpy(data + len, &sum, sizeof(sum));
}

static bool record_is(const struct dofi_ring_record *record, size_t len, unsigned i)
{
	uint64_t sum;
	unsigned got;

	if (record->len != len + sizeof(sum))
		return false;
	memcpy(&got, record->data, sizeof(got));
	memcpy(&sum, record->data + len, sizeof(sum));
	return got == i && sum == sum_of(record->data, len);
}

static void *produce(void *arg)
{
	unsigned seed = 42, i;
	unsigned char *data;

	for (i = 0; i < STRESS; i++) {
		const size_t len = stress_len(&seed) % (DOFI_RING_RECORD_MAX - 16) + sizeof(i);

		while (dofi_ring_reserve(&out, len + sizeof(uint64_t), &data))
			sched_yield();
		record_fill(data, len, i);
		dofi_ring_publish(&out);
	}
	return arg;
}

/* Takes up to eight records before it releases the first of them. */
static void consume(void)
{
	unsigned seed = 42, i, held = 0;
	struct dofi_ring_record record;

	for (i = 0; i < STRESS; i++) {
		const size_t len = stress_len(&seed) % (DOFI_RING_RECORD_MAX - 16) + sizeof(i);

		while (!dofi_ring_take(&in, &record)) {
			cr_assert(!in.broken);
			sched_yield();
		}
		cr_assert(record_is(&record, len, i), "record %u", i);
		if (++held % 8 == 0 || !dofi_ring_has(&in))
			dofi_ring_release(&in, record.end);
	}
}

Test(ring, two_threads)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, produce, NULL), 0);
	consume();
	pthread_join(thread, NULL);
	cr_expect(!dofi_ring_has(&in));
}

Test(ring, two_processes)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(60);
		produce(NULL);
		_exit(0);
	}
	consume();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

/*
 * The consumer sets a flag before its last read. Either the producer sees the flag, or the read
 * finds the record.
 */
static _Atomic int flag, go;
static _Atomic unsigned round_number;

static void *publish_and_poll(void *arg)
{
	unsigned i;

	for (i = 1; i <= STRESS; i++) {
		while (atomic_load(&round_number) != i)
			sched_yield();
		while (put(8, 1))
			sched_yield();
		atomic_store(&go, atomic_load(&flag) ? 2 : 1);
	}
	return arg;
}

Test(ring, a_flag_and_a_record_do_not_miss_each_other)
{
	struct dofi_ring_record record;
	volatile unsigned pause;
	pthread_t thread;
	unsigned i;
	bool seen;

	cr_assert_eq(pthread_create(&thread, NULL, publish_and_poll, NULL), 0);
	for (i = 1; i <= STRESS; i++) {
		atomic_store(&go, 0);
		atomic_store(&flag, 0);
		atomic_store(&round_number, i);
		/* makes the two stores coincide now and then */
		for (pause = i % 256; pause; pause--)
			;
		atomic_exchange(&flag, 1);
		seen = dofi_ring_take(&in, &record);
		while (!atomic_load(&go))
			sched_yield();
		cr_assert(seen || atomic_load(&go) == 2, "round %u", i);
		if (!seen)
			cr_assert(dofi_ring_take(&in, &record));
		dofi_ring_release(&in, record.end);
	}
	pthread_join(thread, NULL);
}
