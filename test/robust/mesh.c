/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cost of connections between all pairs of N processes: the time until all
 * connections of a process are there, and until the first message of each has arrived, the memory
 * of a connection at one end, and the time of the close. Prints a line with the longest time of
 * any process, and the mean of the memory.
 *
 *	mesh2 [N]
 */

#include "crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_SKIP 77
#define SLOT 64			/* a buffer: the number of a process */

struct costs {
	int64_t connections_us, messages_us, close_us;
	double own, shared;	/* bytes for each connection */
};

struct mesh {
	struct crew crew;
	struct costs costs[CREW_MOST];	/* by the number of the process */
};

/* Each process sends its number to each other one. */
static void exchange(struct member *m, const struct mem *in, const struct mem *out)
{
	DAT_LMR_TRIPLET segment = mem_segment(out, 0, sizeof(m->number));
	const DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	unsigned i, from, number;
	DAT_EVENT event;

	for (i = 0; i < m->crew->n; i++)
		if (i != m->number)
			OK(dat_ep_post_send(m->ep[i], 1, &segment, cookie,
					    DAT_COMPLETION_SUPPRESS_FLAG));
	for (i = 1; i < m->crew->n; i++) {
		crew_await(m, m->recv, DAT_DTO_COMPLETION_EVENT, &event);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		from = (unsigned)event.event_data.dto_completion_event_data.user_cookie.as_64;
		memcpy(&number, in->base + from * SLOT, sizeof(number));
		SAME(number, from);
	}
}

static void run(struct member *m)
{
	struct costs *c = &((struct mesh *)m->crew)->costs[m->number];
	struct resources before, after;
	struct mem in, out;
	int64_t begin;
	unsigned i;

	node_open(&m->n);
	crew_listen(m);
	before = resources_settled();
	crew_objects(m);
	mem_get(&m->n, &in, m->crew->n * SLOT);
	mem_get(&m->n, &out, SLOT);
	memcpy(out.base, &m->number, sizeof(m->number));
	for (i = 0; i < m->crew->n; i++)
		if (i != m->number)
			post_recv(m->ep[i], &in, i * SLOT, SLOT, i);
	crew_barrier(m);
	begin = pair_now();
	crew_connect(m);
	c->connections_us = pair_now() - begin;
	exchange(m, &in, &out);
	c->messages_us = pair_now() - begin;
	crew_barrier(m);
	after = resources_settled();
	c->own = ((double)after.own - (double)before.own) / (m->crew->n - 1);
	c->shared = ((double)after.shared - (double)before.shared) / (m->crew->n - 1);
	crew_barrier(m);
	begin = pair_now();
	OK(dat_ia_close(m->n.ia, DAT_CLOSE_ABRUPT_FLAG));
	c->close_us = pair_now() - begin;
}

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void print(const struct mesh *mesh)
{
	const unsigned n = mesh->crew.n;
	struct costs all = { .own = 0 };
	const struct costs *c;

	for (c = mesh->costs; c < mesh->costs + n; c++) {
		all.connections_us = longer(all.connections_us, c->connections_us);
		all.messages_us = longer(all.messages_us, c->messages_us);
		all.close_us = longer(all.close_us, c->close_us);
		all.own += c->own / n;
		all.shared += c->shared / n;
	}
	printf("%s: %u processes, %u connections: %.1f ms, first messages %.1f ms; memory of an "
	       "end %.2f KiB, shared %.2f KiB; closed in %.1f ms\n", pair_ia_name(), n,
	       n * (n - 1) / 2, (double)all.connections_us / 1000,
	       (double)all.messages_us / 1000, all.own / 1024, all.shared / 1024,
	       (double)all.close_us / 1000);
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 8;
	struct mesh *mesh;
	sigset_t mask;

	setenv("DAT_OFI_LOG", "1", 0);
	if (!pair_init(&mask))
		return EXIT_FAILURE;
	if (argc > 2 || n < 2 || n > CREW_MOST) {
		fprintf(stderr, "usage: mesh2 [processes, 2 to %d]\n", CREW_MOST);
		return 2;
	}
	if (pair_fabric_missing())
		return EXIT_SKIP;
	mesh = crew_make((unsigned)n, sizeof(*mesh));
	crew_run(&mesh->crew, run);
	print(mesh);
	return EXIT_SUCCESS;
}
