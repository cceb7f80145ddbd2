/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Peers' uses of our memory: which uses are admitted, until when, and that no other is. */

#include "fab/grant.h"

#include "fab/draw.h"
#include "fab/grant_book.h"
#include "nomem.h"
#include "thread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fabric.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define SIZE 64
#define SECRET 0x12345678u
#define BOTH (FI_REMOTE_READ | FI_REMOTE_WRITE)

static struct dofi_grants grants;
static char memory[SIZE];
static struct dofi_mr_request request = { .addr = memory, .len = SIZE, .remote = BOTH };
static struct dofi_grant *grant;
static uint32_t key;

static int open_one(void)
{
	return dofi_grant_open(&grants, &request, &grant, &key);
}

static void init(void)
{
	dofi_grants_init(&grants);
}

static void init_open(void)
{
	init();
	cr_assert_eq(open_one(), 0);
}

static void fini_empty(void)
{
	cr_expect_eq(grants.table.n, 0);
	dofi_grants_fini(&grants);
}

static void fini(void)
{
	dofi_grant_close(grant);
	fini_empty();
}

TestSuite(grant, .init = init_open, .fini = fini);
TestSuite(grants, .init = init, .fini = fini_empty);

/* A use of the whole grant, which any peer of the PZ may make. */
static struct dofi_access good(void)
{
	return (struct dofi_access){ .key = key, .addr = (uintptr_t)memory, .len = SIZE,
				  .access = FI_REMOTE_WRITE };
}

/* Whether @use is admitted by both calls, and at @where. */
static bool admitted(const struct dofi_access *use, const void *where)
{
	struct dofi_grant_word word = { .value = 7 };
	void *entered = &word, *named = &word;
	const int ret = dofi_grant_enter(&grants, use, &entered);

	if (!ret)
		dofi_grant_leave(&grants);
	cr_expect_eq(dofi_grant_word(&grants, use, &named, &word), ret);
	cr_expect(ret == 0 || ret == -EACCES);
	if (ret) {
		cr_expect(entered == &word && named == &word && word.value == 7,
			  "outputs are written on success only");
		return false;
	}
	cr_expect(entered == where && named == where);
	cr_expect_eq(*word.at, word.value);
	return true;
}

static bool allowed(const struct dofi_access *use)
{
	return admitted(use, memory + (use->addr - (uintptr_t)memory));
}

Test(grant, all_of_it_may_be_used)
{
	struct dofi_access use = good();

	cr_expect(allowed(&use));
	use.access = FI_REMOTE_READ;
	cr_expect(allowed(&use));
	use.access = BOTH;
	cr_expect(allowed(&use));
}

/* A grant may request a certain key: the one that a fabric has chosen for the memory. */
Test(grant, a_wanted_key_is_had_by_one)
{
	struct dofi_access use = good();
	struct dofi_grant *second = NULL;

	use.key = key ^ 1;
	cr_expect(!allowed(&use));
	cr_expect_eq(dofi_grant_open_as(&grants, &request, key, &second), -EEXIST);
	cr_expect(!second, "outputs are written on success only");
	cr_assert_eq(dofi_grant_open_as(&grants, &request, key ^ 1, &second), 0);
	cr_expect(allowed(&use));
	cr_expect_eq(dofi_grant_open_as(&grants, &request, key ^ 1, &second), -EEXIST);
	dofi_grant_close(second);
	cr_expect(!allowed(&use));
	cr_assert_eq(dofi_grant_open_as(&grants, &request, key ^ 1, &second), 0);
	dofi_grant_close(second);
}

/* Offset from the first byte, length, and whether that range is all inside. */
static const struct {
	uint64_t offset, len;
	bool inside;
} ranges[] = {
	{ 0, SIZE, true }, { 0, 0, true }, { 0, 1, true }, { 1, SIZE - 1, true },
	{ SIZE - 1, 1, true }, { SIZE - 1, 0, true },
	{ SIZE, 0, false }, { SIZE, 1, false }, { 0, SIZE + 1, false }, { 1, SIZE, false },
	{ SIZE - 1, 2, false }, { SIZE + 1, 0, false },
	{ -1, 0, false }, { -1, 1, false }, { -1, 2, false }, { -1, SIZE, false },
	{ 1, -1, false }, { 1, -2, false }, { 0, -1, false }, { 8, -8, false }, { -8, 16, false },
	{ 1ull << 63, 0, false }, { 1ull << 63, 1ull << 63, false }, { 0, 1ull << 63, false },
	{ 1ull << 32, 1, false }, { 0, 1ull << 32 | 1, false },
};

static void expect_ranges(uint64_t first)
{
	struct dofi_access use = good();
	char *place;
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		use.addr = first + ranges[i].offset;
		use.len = ranges[i].len;
		place = (char *)((uintptr_t)memory + (uintptr_t)ranges[i].offset);
		cr_expect_eq(admitted(&use, place), ranges[i].inside, "row %zu", i);
	}
}

Test(grant, only_what_is_all_inside)
{
	expect_ranges((uintptr_t)memory);
}

Test(grant, counted_from_its_first_byte)
{
	dofi_grant_close(grant);
	request.zero_based = true;
	cr_assert_eq(open_one(), 0);
	expect_ranges(0);
}

Test(grant, what_was_not_granted_is_refused)
{
	static const uint64_t accesses[] = { 0, FI_REMOTE_READ, FI_REMOTE_WRITE, BOTH };
	struct dofi_access use;
	int given, wanted;

	for (given = 0; given < 4; given++) {
		dofi_grant_close(grant);
		request.remote = accesses[given];
		cr_assert_eq(open_one(), 0);
		use = good();
		for (wanted = 0; wanted < 4; wanted++) {
			use.access = accesses[wanted];
			/* no use has access 0, so it is never allowed */
			cr_expect_eq(allowed(&use), wanted && (given & wanted) == wanted,
				     "%d of %d", wanted, given);
		}
		use.access = FI_SEND;
		cr_expect(!allowed(&use));
	}
}

Test(grant, another_key_is_refused)
{
	struct dofi_access use = good();
	int bit;

	for (bit = 0; bit < 32; bit++) {
		use.key = key ^ 1u << bit;
		cr_expect(!allowed(&use));
	}
	use.key = 0;
	cr_expect(!allowed(&use));
}

Test(grant, any_endpoint_may_use_the_pzs_key)
{
	struct dofi_access use = good();

	use.secret = SECRET;
	cr_expect(allowed(&use));
}

Test(grant, a_connections_key_is_of_that_alone)
{
	struct dofi_access use;

	dofi_grant_close(grant);
	request.scoped = true;
	request.secret = SECRET;
	cr_assert_eq(open_one(), 0);
	cr_expect(key & DOFI_KEY_SCOPED);
	use = good();
	cr_expect(!allowed(&use));
	use.secret = SECRET ^ 1;
	cr_expect(!allowed(&use));
	use.secret = SECRET;
	cr_expect(allowed(&use));
	use.key &= ~DOFI_KEY_SCOPED;
	cr_expect(!allowed(&use));
}

Test(grants, of_none_there_is_no_use)
{
	struct dofi_access use = good();

	cr_expect(!allowed(&use));
	use.key = 1;
	cr_expect(!allowed(&use));
}

Test(grants, end_when_they_are_closed)
{
	struct dofi_grant *first;
	struct dofi_access use;
	uint32_t first_key;

	cr_assert_eq(dofi_grant_open(&grants, &request, &first, &first_key), 0);
	cr_assert_eq(open_one(), 0);
	dofi_grant_close(first);
	use = good();
	cr_expect(allowed(&use), "the other stands");
	use.key = first_key;
	cr_expect(!allowed(&use));
	dofi_grant_close(grant);
	use.key = key;
	cr_expect(!allowed(&use));
}

/* Keys */

/* All bits but the scope's occur in both values. */
Test(grants, keys_cannot_be_guessed)
{
	uint32_t all_or = 0, all_and = UINT32_MAX, last = 0;
	int i;

	for (i = 0; i < 64; i++) {
		cr_assert_eq(open_one(), 0);
		dofi_grant_close(grant);
		all_or |= key;
		all_and &= key;
		cr_expect(key && key != last && key != last + 1);
		last = key;
	}
	cr_expect_eq(all_or, ~DOFI_KEY_SCOPED);
	cr_expect_eq(all_and, 0);
}

Test(grant, a_key_that_is_taken_is_drawn_again)
{
	const uint32_t taken = key;
	struct dofi_grant *other;

	draw.number = taken;
	draw.fixed = 10;
	cr_assert_eq(dofi_grant_open(&grants, &request, &other, &key), 0);
	cr_expect(key && key != taken);
	cr_expect_eq(draw.fixed, 0);
	dofi_grant_close(other);
	/* 0 is no key, with or without the scope bit */
	draw.number = DOFI_KEY_SCOPED;
	draw.fixed = 3;
	cr_assert_eq(dofi_grant_open(&grants, &request, &other, &key), 0);
	cr_expect(key && key != DOFI_KEY_SCOPED);
	dofi_grant_close(other);
}

static void expect_refused(int err)
{
	struct dofi_grant *none = NULL;
	uint32_t no_key = 77;

	cr_expect_eq(dofi_grant_open(&grants, &request, &none, &no_key), err);
	cr_expect(!none && no_key == 77, "outputs are written on success only");
	cr_expect_eq(grants.table.n, 1);
}

Test(grant, no_key_is_free)
{
	draw.number = key;
	draw.fixed = 1000000;
	expect_refused(-EAGAIN);
	cr_expect(draw.fixed > 999000, "it gives up");
	draw.fixed = 0;
}

Test(grant, without_randomness_there_is_none)
{
	draw.none = true;
	expect_refused(-EIO);
	draw.none = false;
}

/* Many */

#define MANY 3000

static struct dofi_grant *many[MANY];
static uint32_t keys[MANY];
static char areas[MANY];

static void open_many(void)
{
	int i;

	request.len = 1;
	for (i = 0; i < MANY; i++) {
		request.addr = &areas[i];
		request.scoped = i & 1;
		cr_assert_eq(dofi_grant_open(&grants, &request, &many[i], &keys[i]), 0);
	}
}

/* Every @step-th grant is closed. The remaining ones are found. */
static void expect_many(int step)
{
	struct dofi_access use = { .len = 1, .access = FI_REMOTE_READ };
	int i;

	for (i = 0; i < MANY; i++) {
		use.key = keys[i];
		use.addr = (uintptr_t)&areas[i];
		cr_assert_eq(admitted(&use, &areas[i]), i % step != 0, "%d", i);
	}
}

static void close_many(int step)
{
	int i;

	for (i = 0; i < MANY; i += step)
		if (many[i]) {
			dofi_grant_close(many[i]);
			many[i] = NULL;
		}
}

Test(grants, all_of_many_are_found)
{
	open_many();
	close_many(3);
	expect_many(3);
	cr_expect(grants.table.n_buckets >= MANY / 2,
		  "and quickly: in %u places", grants.table.n_buckets);
	close_many(1);
}

Test(grants, without_memory_they_are_found_more_slowly)
{
	size_t n_buckets;
	int n;

	nomem_after(0);
	cr_expect_eq(open_one(), -ENOMEM, "not even the first");
	cr_assert(nomem_failed());
	cr_assert_eq(open_one(), 0);
	n_buckets = grants.table.n_buckets;
	for (n = 1; n < (int)n_buckets; n++)
		cr_assert_eq(dofi_grant_open(&grants, &request, &many[n], &keys[n]), 0);
	nomem_after(0);
	cr_assert_eq(dofi_grant_open(&grants, &request, &many[n], &keys[n]), 0);
	cr_assert(nomem_failed());
	cr_expect_eq(grants.table.n_buckets, n_buckets);
	while (n) {
		struct dofi_access use = good();

		use.key = keys[n];
		cr_expect(allowed(&use));
		dofi_grant_close(many[n--]);
	}
	dofi_grant_close(grant);
}

/* The end */

static uint64_t value_at(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

/* Repeated until each piece of memory has been used again. */
Test(grants, a_word_never_has_a_former_value)
{
	struct dofi_grant_word word, first = { .at = NULL };
	struct dofi_access use;
	void *where;
	int i, again = 0;

	for (i = 0; i < 1000; i++) {
		/* even under an identical key */
		draw.number = 4711;
		draw.fixed = 1;
		cr_assert_eq(open_one(), 0);
		use = good();
		cr_assert_eq(dofi_grant_word(&grants, &use, &where, &word), 0);
		cr_assert_eq(value_at(word.at), word.value);
		if (!first.at)
			first = word;
		again += i && word.at == first.at;
		cr_assert(!i || value_at(first.at) != first.value, "%d", i);
		dofi_grant_close(grant);
		cr_assert(value_at(word.at) != word.value);
	}
	cr_expect(again > 1, "its memory was used again %d times", again);
}

static _Atomic pid_t closer;
static atomic_bool closed;

static void *close_it(void *arg)
{
	atomic_store(&closer, (pid_t)syscall(SYS_gettid));
	dofi_grant_close(arg);
	atomic_store(&closed, true);
	return NULL;
}

Test(grants, an_end_waits_for_threads_that_have_entered)
{
	struct dofi_grant_word word;
	struct dofi_access use;
	pthread_t thread;
	void *where;

	cr_assert_eq(open_one(), 0);
	use = good();
	cr_assert_eq(dofi_grant_word(&grants, &use, &where, &word), 0);
	cr_assert_eq(dofi_grant_enter(&grants, &use, &where), 0);
	pthread_create(&thread, NULL, close_it, grant);
	while (!thread_rests(atomic_load(&closer)))
		usleep(100);
	cr_expect(!atomic_load(&closed));
	cr_expect_eq(value_at(word.at), word.value);
	dofi_grant_leave(&grants);
	pthread_join(thread, NULL);
	cr_expect(value_at(word.at) != word.value);
	cr_expect(!allowed(&use));
}

/* A peer writes whenever it is allowed, while grants are opened and closed */

#define ROUNDS 500

static _Atomic uint32_t shown;		/* the key of the open grant, or of the last one */
static atomic_int written;
static atomic_bool over;

static void *write_on(void *arg)
{
	struct dofi_access use = *(const struct dofi_access *)arg;
	void *where;

	while (!atomic_load(&over)) {
		use.key = atomic_load(&shown);
		if (!dofi_grant_enter(&grants, &use, &where)) {
			memset(where, 'w', SIZE);
			atomic_fetch_add(&written, 1);
			dofi_grant_leave(&grants);
		}
	}
	return arg;
}

static void wait_for_a_write(void)
{
	const int before = atomic_load(&written);

	while (atomic_load(&written) == before)
		sched_yield();
}

/*
 * Memory is written without atomics, so that ThreadSanitizer finds a write that is not ordered
 * before the end.
 */
Test(grants, after_its_end_no_write_is_admitted)
{
	static const char clean[SIZE];
	struct dofi_access use = good();
	pthread_t peer;
	int i;

	pthread_create(&peer, NULL, write_on, &use);
	for (i = 0; i < ROUNDS; i++) {
		cr_assert_eq(open_one(), 0);
		atomic_store(&shown, key);
		wait_for_a_write();
		dofi_grant_close(grant);
		memset(memory, 0, SIZE);
		cr_assert(!memcmp(memory, clean, SIZE));
	}
	atomic_store(&over, true);
	pthread_join(peer, NULL);
}

/* Peers that write by themselves */

static struct dofi_writing mark[DOFI_WRITINGS];
static _Atomic uint32_t writer_pid;
static struct dofi_writer writer = { .writing = mark, .pid = &writer_pid };
/* The grant has page 1 of its book, and the writer is at work there. */
Test(grants, a_peer_that_writes_is_waited_for)
{
	struct dofi_grant *other;
	uint64_t count = 0;
	pthread_t thread;
	uint32_t other_key;

	cr_assert_eq(open_one(), 0);
	cr_assert_eq(dofi_grants_publish(&grants), 0);
	cr_assert_eq(dofi_grant_open(&grants, &request, &other, &other_key), 0);
	writer_pid = (uint32_t)getpid();
	dofi_grants_add_writer(&grants, &writer);
	dofi_writing_begin(&mark[1], &count, 1);
	dofi_grant_close(other);
	closer = 0;
	closed = false;
	cr_assert_eq(pthread_create(&thread, NULL, close_it, grant), 0);
	while (!thread_rests(atomic_load(&closer)))
		usleep(100);
	cr_expect(!atomic_load(&closed));
	dofi_writing_end(&mark[1]);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	dofi_grants_remove_writer(&grants, &writer);
}
