/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cost of connections between all pairs of N processes: the time until all
 * connections of a process are there, and until the first message of each has arrived, the memory
 * of a connection at one end, and the time of the close. Prints a line with the longest time of
 * any process, and the mean of the memory.
 *
 *	mesh2 [N]
 */

#include "robust.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIP 77
#define MOST 1000
#define SPARE 32		/* events in addition to one for each process */
#define SLOT 64			/* a buffer: the number of a process */

/* In shared memory: the messages of a process to the others, and the first one in the end. */
struct member {
	struct listener listener;
	int64_t connections_us, messages_us, close_us;
	double own, shared;	/* bytes for each connection */
};

struct mesh {
	pthread_barrier_t barrier;
	unsigned n;
	struct member member[MOST];
};

/* One process. */
struct self {
	struct mesh *mesh;
	unsigned number;
	struct node n;
	struct mem in, out;
	DAT_EVD_HANDLE cr, conn, req, recv;
	DAT_EP_HANDLE ep[MOST];
};

static void await(const struct self *s, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
		  DAT_EVENT *event)
{
	expect_event_in(evd, number, PAIR_LIMIT + 100 * s->mesh->n, event);
}

static void objects_make(struct self *s)
{
	const DAT_COUNT n = (DAT_COUNT)s->mesh->n + SPARE;
	unsigned i;

	s->conn = node_evd(&s->n, 2 * n, DAT_EVD_CONNECTION_FLAG);
	s->req = node_evd(&s->n, n, DAT_EVD_DTO_FLAG);
	s->recv = node_evd(&s->n, n, DAT_EVD_DTO_FLAG);
	mem_get(&s->n, &s->in, s->mesh->n * SLOT);
	mem_get(&s->n, &s->out, SLOT);
	memcpy(s->out.base, &s->number, sizeof(s->number));
	for (i = 0; i < s->mesh->n; i++) {
		if (i == s->number)
			continue;
		OK(dat_ep_create(s->n.ia, s->n.pz, s->recv, s->req, s->conn, NULL, &s->ep[i]));
		post_recv(s->ep[i], &s->in, i * SLOT, SLOT, i);
	}
}

static void listen_at(struct self *s)
{
	struct listener *l = &s->mesh->member[s->number].listener;
	DAT_PSP_HANDLE psp;

	s->cr = node_evd(&s->n, (DAT_COUNT)s->mesh->n + SPARE, DAT_EVD_CR_FLAG);
	OK(dat_psp_create_any(s->n.ia, &l->qual, s->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	l->address = s->n.address;
}

/* Accepts the request of a process, which has its number in the private data. */
static void accept_one(struct self *s)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;
	unsigned from;

	await(s, s->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	CHECK(param.private_data_size >= (DAT_COUNT)sizeof(from), "no number");
	memcpy(&from, param.private_data, sizeof(from));
	CHECK(from < s->number, "a request of %u", from);
	OK(dat_cr_accept(cr, s->ep[from], 0, NULL));
}

/* Requests connections to the processes with higher numbers, and accepts requests of lower ones. */
static void connect_all(struct self *s)
{
	DAT_EVENT event;
	unsigned i;

	for (i = s->number + 1; i < s->mesh->n; i++)
		connect_with(s->ep[i], &s->mesh->member[i].listener,
			     pair_scaled(PAIR_LIMIT + 100 * s->mesh->n), sizeof(s->number),
			     &s->number);
	for (i = 0; i < s->number; i++)
		accept_one(s);
	for (i = 1; i < s->mesh->n; i++)
		await(s, s->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

static void exchange(struct self *s)
{
	DAT_LMR_TRIPLET segment = mem_segment(&s->out, 0, sizeof(s->number));
	const DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	unsigned i, from, number;
	DAT_EVENT event;

	for (i = 0; i < s->mesh->n; i++)
		if (i != s->number)
			OK(dat_ep_post_send(s->ep[i], 1, &segment, cookie,
					    DAT_COMPLETION_SUPPRESS_FLAG));
	for (i = 1; i < s->mesh->n; i++) {
		await(s, s->recv, DAT_DTO_COMPLETION_EVENT, &event);
		SAME(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		from = (unsigned)event.event_data.dto_completion_event_data.user_cookie.as_64;
		memcpy(&number, s->in.base + from * SLOT, sizeof(number));
		SAME(number, from);
	}
}

static void barrier(struct self *s)
{
	pthread_barrier_wait(&s->mesh->barrier);
}

static void member_run(struct mesh *mesh, unsigned number)
{
	struct member *m = &mesh->member[number];
	struct self s = { .mesh = mesh, .number = number };
	struct resources before, after;
	int64_t begin;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	node_open(&s.n);
	listen_at(&s);
	before = resources_settled();
	objects_make(&s);
	barrier(&s);
	begin = pair_now();
	connect_all(&s);
	m->connections_us = pair_now() - begin;
	exchange(&s);
	m->messages_us = pair_now() - begin;
	barrier(&s);
	after = resources_settled();
	m->own = ((double)after.own - (double)before.own) / (mesh->n - 1);
	m->shared = ((double)after.shared - (double)before.shared) / (mesh->n - 1);
	barrier(&s);
	begin = pair_now();
	OK(dat_ia_close(s.n.ia, DAT_CLOSE_ABRUPT_FLAG));
	m->close_us = pair_now() - begin;
	exit(EXIT_SUCCESS);
}

/* Runs the processes. If one fails, the others end with this process. */
static void mesh_run(struct mesh *mesh)
{
	unsigned i;
	int status;
	pid_t pid;

	for (i = 0; i < mesh->n; i++) {
		pid = fork();
		CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			member_run(mesh, i);
	}
	alarm(pair_scaled(4 * PAIR_LIMIT) / 1000);
	for (i = 0; i < mesh->n; i++) {
		CHECK(wait(&status) > 0, "%s", strerror(errno));
		CHECK(!status, "a process ended with status %#x", (unsigned)status);
	}
	alarm(0);
}

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void print(const struct mesh *mesh)
{
	struct member all = { .own = 0 };
	const struct member *m;

	for (m = mesh->member; m < mesh->member + mesh->n; m++) {
		all.connections_us = longer(all.connections_us, m->connections_us);
		all.messages_us = longer(all.messages_us, m->messages_us);
		all.close_us = longer(all.close_us, m->close_us);
		all.own += m->own / mesh->n;
		all.shared += m->shared / mesh->n;
	}
	printf("%s: %u processes, %u connections: %.1f ms, first messages %.1f ms; memory of an "
	       "end %.2f KiB, shared %.2f KiB; closed in %.1f ms\n", pair_ia_name(), mesh->n,
	       mesh->n * (mesh->n - 1) / 2, (double)all.connections_us / 1000,
	       (double)all.messages_us / 1000, all.own / 1024, all.shared / 1024,
	       (double)all.close_us / 1000);
}

static struct mesh *mesh_make(unsigned n)
{
	pthread_barrierattr_t shared;
	struct mesh *mesh = mmap(NULL, sizeof(*mesh), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(mesh != MAP_FAILED, "no memory");
	pthread_barrierattr_init(&shared);
	CHECK(!pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) &&
	      !pthread_barrier_init(&mesh->barrier, &shared, n), "no barrier");
	mesh->n = n;
	return mesh;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 8;
	struct mesh *mesh;
	sigset_t mask;

	setenv("DAT_OFI_LOG", "1", 0);
	if (!pair_init(&mask))
		return EXIT_FAILURE;
	if (argc > 2 || n < 2 || n > MOST) {
		fprintf(stderr, "usage: mesh2 [processes, 2 to %d]\n", MOST);
		return 2;
	}
	if (pair_fabric_missing())
		return EXIT_SKIP;
	mesh = mesh_make((unsigned)n);
	mesh_run(mesh);
	print(mesh);
	return EXIT_SUCCESS;
}
