/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lookups of a table, compared with the entries put into it. */

#include "base/table.h"

#include "base/layout.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>

#define OBJECTS 1000

struct object {
	struct dofi_table_link link;
	bool seen;
};

static struct dofi_table table;
static struct object object[OBJECTS];

static void fini(void)
{
	dofi_table_fini(&table);
}

TestSuite(table, .fini = fini);

static struct object *object_of(struct dofi_table_link *link)
{
	return DOFI_CONTAINER_OF(link, struct object, link);
}

static void add(unsigned i, uint32_t hash)
{
	cr_assert_eq(dofi_table_add(&table, &object[i].link, hash), 0);
}

static bool finds(unsigned i, uint32_t hash)
{
	struct dofi_table_link *link = dofi_table_find(&table, hash);

	while (link && object_of(link) != &object[i])
		link = dofi_table_next(link);
	return link;
}

static unsigned number_with(uint32_t hash)
{
	struct dofi_table_link *link;
	unsigned n = 0;

	for (link = dofi_table_find(&table, hash); link; link = dofi_table_next(link))
		n++;
	return n;
}

Test(table, an_empty_table_finds_nothing)
{
	cr_expect(!dofi_table_find(&table, 0));
	cr_expect_eq(table.n, 0);
}

Test(table, finds_all_that_are_in_it)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++)
		add(i, dofi_hash(&i, sizeof(i)));
	cr_expect_eq(table.n, OBJECTS);
	for (i = 0; i < OBJECTS; i += 2)
		dofi_table_remove(&table, &object[i].link);
	cr_expect_eq(table.n, OBJECTS / 2);
	for (i = 0; i < OBJECTS; i++)
		cr_expect_eq(finds(i, dofi_hash(&i, sizeof(i))), i % 2 == 1);
}

Test(table, has_as_many_buckets_as_objects)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++) {
		add(i, i);
		cr_expect(table.n <= table.n_buckets);
	}
}

/* Objects of one bucket, of one hash, and of others. */
Test(table, tells_hashes_apart)
{
	unsigned i;

	for (i = 0; i < 30; i++)
		add(i, i % 3 << 20);
	for (i = 0; i < 3; i++)
		cr_expect_eq(number_with(i << 20), 10);
	cr_expect_eq(number_with(3 << 20), 0);
	dofi_table_remove(&table, &object[4].link);
	cr_expect_eq(number_with(1 << 20), 9);
	cr_expect(!finds(4, 1 << 20));
}

static void see(struct dofi_table_link *link, void *arg)
{
	cr_expect(!object_of(link)->seen);
	object_of(link)->seen = true;
	dofi_table_remove(arg, link);
}

Test(table, shows_each_object_once_while_they_are_removed)
{
	unsigned i;

	for (i = 0; i < OBJECTS; i++)
		add(i, i / 2);
	dofi_table_each(&table, see, &table);
	for (i = 0; i < OBJECTS; i++)
		cr_expect(object[i].seen);
	cr_expect_eq(table.n, 0);
}

/* Addresses of one subnet and neighbouring ports. */
Test(table, spreads_similar_bytes)
{
	unsigned char address[6] = { 10, 0, 0, 0, 0, 0 };
	unsigned i, n[64] = { 0 }, most = 0;

	for (i = 0; i < 6400; i++) {
		address[3] = (unsigned char)(i / 50);
		address[5] = (unsigned char)(i % 50);
		n[dofi_hash(address, sizeof(address)) % 64]++;
	}
	for (i = 0; i < 64; i++)
		if (n[i] > most)
			most = n[i];
	cr_expect(most <= 200, "%u of 6400 in one of 64", most);
}

/* The results of a heap, compared with a search through all its nodes. */

#define NODES 500

static struct dofi_heap heap;
static struct dofi_heap_node node[NODES];
static bool held[NODES];

static void insert(unsigned i, int64_t key)
{
	dofi_heap_insert(&heap, &node[i], key);
	held[i] = true;
}

static void take(unsigned i)
{
	dofi_heap_remove(&heap, &node[i]);
	held[i] = false;
}

static struct dofi_heap_node *searched(void)
{
	struct dofi_heap_node *least = NULL;
	unsigned i;

	for (i = 0; i < NODES; i++)
		if (held[i] && (!least || node[i].key < least->key ||
				(node[i].key == least->key && node[i].order < least->order)))
			least = &node[i];
	return least;
}

Test(heap, an_empty_one_has_no_top)
{
	cr_expect(!heap.top);
	insert(0, 5);
	take(0);
	cr_expect(!heap.top);
}

Test(heap, the_least_comes_first)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		insert(i, (int64_t)i * 7919 % NODES);
	for (i = 0; i < NODES; i++) {
		cr_assert(heap.top && heap.top->key == i);
		take(heap.top - node);
	}
	cr_expect(!heap.top);
}

Test(heap, equal_keys_come_as_inserted)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		insert(i, -1);
	for (i = 0; i < NODES; i++) {
		cr_assert(heap.top == &node[i]);
		take(i);
	}
}

Test(heap, any_may_be_removed_at_any_time)
{
	unsigned step;

	srandom(4711);
	for (step = 0; step < 20000; step++) {
		const unsigned i = random() % NODES;

		if (held[i])
			take(i);
		else
			insert(i, random() % 100);
		if (step % 16 == 0)
			take(searched() - node);
		cr_assert(heap.top == searched(), "step %u", step);
	}
}

/* Each of many connections restarts its timeout again and again. */
Test(heap, a_removed_node_may_be_inserted_again)
{
	unsigned i;

	for (i = 0; i < NODES; i++)
		insert(i, i);
	for (i = 0; i < NODES; i++) {
		take(i);
		insert(i, NODES + i);
	}
	for (i = 0; i < NODES; i++) {
		cr_assert(heap.top == &node[i]);
		take(i);
	}
}
