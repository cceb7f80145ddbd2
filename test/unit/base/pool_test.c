/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pools and blocks: which addresses are objects, growth, reuse, threads. */

#include "base/pool.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct thing {
	uint64_t mark;
	char rest[100];
};

static unsigned constructed;

static void thing_ctor(void *obj)
{
	((struct thing *)obj)->mark = 0xfeed;
	constructed++;
}

static struct dofi_pool pool = DOFI_POOL_INIT("thing", struct thing, thing_ctor);
static struct dofi_pool other = DOFI_POOL_INIT("other", struct thing, NULL);

/* aligned_alloc() fails while this is set. */
static bool no_memory;
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return no_memory ? NULL : __real_aligned_alloc(align, size);
}

#define THREE_CHUNKS (DOFI_POOL_FIRST * 7)

static struct thing *thing[THREE_CHUNKS + 1];

static void get_all(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		thing[i] = dofi_pool_get(&pool);
		cr_assert(thing[i]);
	}
}

static uint64_t random_state = 42;

static uint64_t random_next(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state ^ random_state >> 29;
}

Test(pool, empty_pool_owns_nothing)
{
	int here;
	uintptr_t i;

	for (i = 0; i < 4096; i++)
		cr_expect(!dofi_pool_owns(&pool, (void *)i));
	cr_expect(!dofi_pool_owns(&pool, (void *)UINTPTR_MAX));
	cr_expect(!dofi_pool_owns(&pool, &here));
	cr_expect(!dofi_pool_at(&pool, 0));
}

Test(pool, owns_every_object)
{
	unsigned i;

	get_all(THREE_CHUNKS);
	for (i = 0; i < THREE_CHUNKS; i++)
		cr_expect(dofi_pool_owns(&pool, thing[i]));
}

Test(pool, owns_objects_that_are_free)
{
	struct thing *t = dofi_pool_get(&pool);

	dofi_pool_put(&pool, t);
	cr_expect(dofi_pool_owns(&pool, t));
}

Test(pool, no_address_inside_is_an_object)
{
	char *base;
	size_t off, objects = 0;

	get_all(1);
	base = pool.chunk[0].first;
	for (off = 0; off < pool.chunk[0].span; off++)
		objects += dofi_pool_owns(&pool, base + off);
	cr_expect_eq(objects, DOFI_POOL_FIRST);
}

Test(pool, a_tag_is_seen_with_the_address)
{
	unsigned tag;

	get_all(2);
	cr_expect_eq(dofi_pool_tag(thing[0]), 0);
	for (tag = 1; tag < DOFI_POOL_TAGS; tag++) {
		cr_expect_eq(dofi_pool_tag_set(thing[0], tag), tag - 1);
		cr_expect_eq(dofi_pool_tag(thing[0]), tag);
		cr_expect(dofi_pool_first_tagged(&pool, thing[0], tag));
		cr_expect(!dofi_pool_first_tagged(&pool, thing[0], tag - 1));
		cr_expect(!dofi_pool_first_tagged(&pool, thing[1], tag));
		cr_expect(!dofi_pool_first_tagged(&other, thing[0], tag));
		cr_expect(!dofi_pool_first_tagged(&pool, (char *)thing[0] + tag, tag));
		cr_expect(dofi_pool_owns(&pool, thing[0]));
	}
	cr_expect_eq(dofi_pool_tag_set(thing[0], 0), DOFI_POOL_TAGS - 1);
}

Test(pool, a_copy_of_an_object_is_none)
{
	char *raw = aligned_alloc(64, 512);

	get_all(2);
	/* copy an object's head into another object's memory, as a program could */
	memcpy((char *)thing[1], (char *)thing[0] - sizeof(struct dofi_pool_head),
	       sizeof(struct dofi_pool_head));
	cr_expect(!dofi_pool_owns(&pool, (char *)thing[1] + sizeof(struct dofi_pool_head)));
	memcpy(raw, (char *)thing[0] - sizeof(struct dofi_pool_head),
	       sizeof(struct dofi_pool_head));
	cr_expect(!dofi_pool_owns(&pool, raw + sizeof(struct dofi_pool_head)));
	free(raw);
}

Test(pool, ends_of_a_chunk_are_no_objects)
{
	char *first;
	size_t span;

	get_all(1);
	first = pool.chunk[0].first;
	span = pool.chunk[0].span;
	cr_expect(dofi_pool_owns(&pool, first));
	cr_expect(!dofi_pool_owns(&pool, (void *)((uintptr_t)first - 64)));
	cr_expect(!dofi_pool_owns(&pool, (void *)((uintptr_t)first - 128)));
	cr_expect(!dofi_pool_owns(&pool, first + span));
	cr_expect(!dofi_pool_owns(&pool, (void *)((uintptr_t)first + span + 64)));
}

static bool is_thing(const void *p)
{
	unsigned i;

	for (i = 0; i < THREE_CHUNKS; i++)
		if (p == thing[i])
			return true;
	return false;
}

/* A million random addresses of 32 bits hit one of the 448 objects in one run of ten. */
Test(pool, wild_pointers_are_no_objects)
{
	unsigned i;

	get_all(THREE_CHUNKS);
	for (i = 0; i < 1000000; i++) {
		void *p = (void *)(uintptr_t)random_next();

		cr_assert(!dofi_pool_owns(&pool, p) || is_thing(p), "%p", p);
	}
}

Test(pool, another_pools_object_is_none)
{
	void *mine = dofi_pool_get(&pool), *its = dofi_pool_get(&other);

	cr_expect(!dofi_pool_owns(&pool, its));
	cr_expect(!dofi_pool_owns(&other, mine));
}

Test(pool, grows_and_doubles)
{
	unsigned i, j;

	get_all(THREE_CHUNKS);
	cr_expect_eq(pool.n_chunks, 3);
	get_all(1);
	cr_expect_eq(pool.n_chunks, 4);
	cr_expect_eq(pool.chunk[2].span + sizeof(struct dofi_pool_head),
		     4 * (pool.chunk[0].span + sizeof(struct dofi_pool_head)));
	for (i = 1; i < THREE_CHUNKS; i++) {
		cr_assert_eq((uintptr_t)thing[i] % 64, 0);
		for (j = 0; j < i; j++)
			cr_assert(thing[i] != thing[j]);
	}
}

/* The rest of a chunk has no pages yet and no objects. */
Test(pool, a_chunk_is_made_part_by_part)
{
	const unsigned most = THREE_CHUNKS + DOFI_POOL_FIRST;

	get_all(THREE_CHUNKS);
	get_all(1);
	cr_expect_eq(constructed, most);
	cr_expect_eq(pool.chunk[3].span, pool.chunk[0].span);
	cr_expect(dofi_pool_at(&pool, most - 1));
	cr_expect(!dofi_pool_at(&pool, most));
	get_all(DOFI_POOL_FIRST);
	cr_expect_eq(constructed, most + DOFI_POOL_FIRST);
	cr_expect(dofi_pool_owns(&pool, dofi_pool_at(&pool, most)));
	cr_expect_eq(pool.n_chunks, 4);
}

Test(pool, growing_moves_nothing)
{
	struct thing *first = dofi_pool_get(&pool);

	first->mark = 1;
	get_all(THREE_CHUNKS);
	cr_expect(dofi_pool_owns(&pool, first));
	cr_expect_eq(dofi_pool_at(&pool, dofi_pool_index(first)), first);
	cr_expect_eq(first->mark, 1);
}

Test(pool, every_index_leads_to_its_object)
{
	unsigned i;

	get_all(THREE_CHUNKS);
	for (i = 0; i < THREE_CHUNKS; i++) {
		struct thing *t = dofi_pool_at(&pool, i);

		cr_assert(t);
		cr_assert_eq(dofi_pool_index(t), i);
		cr_assert(dofi_pool_owns(&pool, t));
	}
}

Test(pool, no_index_beyond_the_last)
{
	unsigned bit;

	get_all(THREE_CHUNKS);
	cr_expect(!dofi_pool_at(&pool, THREE_CHUNKS));
	cr_expect(!dofi_pool_at(&pool, UINT32_MAX));
	cr_expect(!dofi_pool_at(&pool, UINT32_MAX - 1));
	for (bit = 9; bit < 32; bit++)
		cr_expect(!dofi_pool_at(&pool, 1u << bit));
}

Test(pool, oldest_free_object_comes_first)
{
	unsigned i;

	get_all(DOFI_POOL_FIRST);
	for (i = DOFI_POOL_FIRST; i-- > 0;)
		dofi_pool_put(&pool, thing[i]);
	for (i = DOFI_POOL_FIRST; i-- > 0;)
		cr_assert_eq(dofi_pool_get(&pool), thing[i]);
	cr_expect_eq(pool.n_chunks, 1);
}

Test(pool, constructor_runs_once_per_object)
{
	unsigned i;

	get_all(DOFI_POOL_FIRST);
	cr_expect_eq(constructed, DOFI_POOL_FIRST);
	for (i = 0; i < DOFI_POOL_FIRST; i++) {
		cr_assert_eq(thing[i]->mark, 0xfeed);
		thing[i]->mark = i;
		dofi_pool_put(&pool, thing[i]);
	}
	for (i = 0; i < DOFI_POOL_FIRST; i++)
		cr_assert_eq(((struct thing *)dofi_pool_get(&pool))->mark, i);
	cr_expect_eq(constructed, DOFI_POOL_FIRST);
}

Test(pool, counts_what_is_used)
{
	get_all(3);
	dofi_pool_put(&pool, thing[1]);
	cr_expect_eq(pool.used, 2);
}

Test(pool, without_memory_there_is_no_object)
{
	no_memory = true;
	cr_expect(!dofi_pool_get(&pool));
	cr_expect_eq(pool.used, 0);
	no_memory = false;
	cr_expect(dofi_pool_get(&pool));
}

Test(pool, a_full_pool_gives_nothing)
{
	pool.n_chunks = DOFI_POOL_CHUNKS;
	cr_expect(!dofi_pool_get(&pool));
	cr_expect(!dofi_pool_owns(&pool, &pool));
}

/* Some threads get and put objects while others look them up: no object is given out twice. */

enum { THREADS = 4, ROUNDS = 2000, HELD = 90 };

static _Atomic bool over;
static _Atomic unsigned wrong;

static void *get_and_put(void *arg)
{
	struct thing *held[HELD];
	unsigned round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < HELD; i++) {
			held[i] = dofi_pool_get(&pool);
			held[i]->mark = (uintptr_t)arg;
		}
		for (i = 0; i < HELD; i++) {
			wrong += held[i]->mark != (uintptr_t)arg;
			dofi_pool_put(&pool, held[i]);
		}
	}
	return NULL;
}

static void *look(void *arg)
{
	uint32_t i = 0;

	while (!over) {
		void *p = dofi_pool_at(&pool, i++ % (THREADS * HELD));

		wrong += p && !dofi_pool_owns(&pool, p);
	}
	return NULL;
}

Test(pool, threads_share_it)
{
	pthread_t thread[THREADS], looker;
	uintptr_t i;

	pthread_create(&looker, NULL, look, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, get_and_put, (void *)(i + 1));
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	over = true;
	pthread_join(looker, NULL);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(pool.used, 0);
}

/* Blocks */

static const size_t sizes[] = { 0, 1, 63, 64, 65, 128, 129, 4095, 4096, 4097, 1 << 20 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static bool zeroed(const char *p, size_t n)
{
	while (n--)
		if (p[n])
			return false;
	return true;
}

Test(block, is_aligned_and_zeroed)
{
	size_t i;

	for (i = 0; i < N_SIZES; i++) {
		char *b = dofi_block_get(sizes[i]);

		cr_assert(b);
		cr_expect_eq((uintptr_t)b % 64, 0);
		cr_expect(zeroed(b, sizes[i]));
		memset(b, 0xff, sizes[i]);
		dofi_block_put(b, sizes[i]);
	}
}

Test(block, is_reused_and_zeroed_again)
{
	size_t i;

	for (i = 0; i < N_SIZES; i++) {
		char *b = dofi_block_get(sizes[i]);

		memset(b, 0xff, sizes[i]);
		dofi_block_put(b, sizes[i]);
		cr_assert_eq(dofi_block_get(sizes[i]), b);
		cr_assert(zeroed(b, sizes[i]));
		dofi_block_put(b, sizes[i]);
	}
}

Test(block, a_smaller_one_is_not_given_for_a_larger)
{
	char *small = dofi_block_get(64), *large;

	dofi_block_put(small, 64);
	large = dofi_block_get(65);
	cr_expect(large != small);
	memset(large, 1, 65);
	dofi_block_put(large, 65);
}

Test(block, impossible_sizes_give_nothing)
{
	cr_expect(!dofi_block_get(SIZE_MAX / 2));
	cr_expect(!dofi_block_get(SIZE_MAX));
	cr_expect(!dofi_block_get(SIZE_MAX / 2 + 2));
}

static void block_get_and_put(size_t size)
{
	void *block = dofi_block_get(size);

	cr_expect(block);
	dofi_block_put(block, size);
}

Test(block, without_memory_there_is_none)
{
	no_memory = true;
	cr_expect(!dofi_block_get(64));
	no_memory = false;
	block_get_and_put(64);
}

Test(block, nothing_can_be_put_back)
{
	dofi_block_put(NULL, 64);
	block_get_and_put(64);
}

static void *look_up(void *stop)
{
	int here;

	while (!atomic_load((atomic_bool *)stop))
		cr_assert(!dofi_pool_owns(&pool, &here));
	return NULL;
}

/* Returns the status of the child, which exits with 0 if all is right. */
static int in_a_child(bool (*is_right)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		alarm(60);
		_exit(!is_right());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static bool only_new_objects(void)
{
	uint32_t number = 0;
	struct thing *t;
	unsigned i;

	for (i = 0; i < THREE_CHUNKS; i++)
		if (dofi_pool_owns(&pool, thing[i]) ||
		    dofi_pool_at(&pool, dofi_pool_index(thing[i])) ||
		    dofi_pool_first_tagged(&pool, thing[i], 0))
			return false;
	if (dofi_pool_next(&pool, &number))
		return false;
	t = dofi_pool_get(&pool);
	if (!t || dofi_pool_next(&pool, &number) != t || number != dofi_pool_index(t))
		return false;
	return dofi_pool_owns(&pool, t) && dofi_pool_at(&pool, dofi_pool_index(t)) == t;
}

Test(pool, each_object_is_the_next_once)
{
	const struct thing *t;
	uint32_t i, n = 0;

	get_all(THREE_CHUNKS);
	for (i = 0; (t = dofi_pool_next(&pool, &i)); i++, n++)
		cr_assert_eq(dofi_pool_index(t), n);
	cr_expect(n >= THREE_CHUNKS);
	cr_expect_eq(i, n);
}

Test(pool, a_forked_child_has_new_objects_alone)
{
	get_all(THREE_CHUNKS);
	cr_expect_eq(in_a_child(only_new_objects), 0);
	cr_expect(dofi_pool_owns(&pool, thing[0]), "the parent keeps its objects");
}

static bool locks_are_free(void)
{
	dofi_block_put(dofi_block_get(64), 64);
	return dofi_pool_get(&pool) != NULL;
}

Test(pool, a_forked_child_waits_for_no_thread_of_its_parent)
{
	get_all(1);
	dofi_mutex_lock(&pool.lock);
	cr_expect_eq(in_a_child(locks_are_free), 0);
	dofi_mutex_unlock(&pool.lock);
}

/* For ThreadSanitizer: a lookup without the lock races with growth. */
Test(pool, may_be_asked_while_it_grows)
{
	atomic_bool stop = false;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, look_up, &stop), 0);
	get_all(THREE_CHUNKS);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}
