/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that are connected each with each. */

#include "crew.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPARE 32		/* events in addition to one for each process */

void *crew_make(unsigned n, size_t size)
{
	pthread_barrierattr_t shared;
	struct crew *crew = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0);

	CHECK(crew != MAP_FAILED, "no memory");
	pthread_barrierattr_init(&shared);
	CHECK(!pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) &&
	      !pthread_barrier_init(&crew->barrier, &shared, n), "no barrier");
	crew->n = n;
	return crew;
}

static void member_run(struct crew *crew, unsigned number, void (*run)(struct member *m))
{
	struct member m = { .crew = crew, .number = number };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run(&m);
	exit(EXIT_SUCCESS);
}

void crew_run(struct crew *crew, void (*run)(struct member *m))
{
	unsigned i;
	int status;
	pid_t pid;

	for (i = 0; i < crew->n; i++) {
		pid = fork();
		CHECK(pid >= 0, "fork: %s", strerror(errno));
		if (!pid)
			member_run(crew, i, run);
	}
	alarm(pair_scaled(4 * PAIR_LIMIT) / 1000);
	for (i = 0; i < crew->n; i++) {
		CHECK(wait(&status) > 0, "%s", strerror(errno));
		CHECK(!status, "a process ended with status %#x", (unsigned)status);
	}
	alarm(0);
}

void crew_barrier(struct member *m)
{
	pthread_barrier_wait(&m->crew->barrier);
}

void crew_await(const struct member *m, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
		DAT_EVENT *event)
{
	expect_event_in(evd, number, PAIR_LIMIT + 100 * m->crew->n, event);
}

void crew_listen(struct member *m)
{
	struct listener *l = &m->crew->listener[m->number];
	DAT_PSP_HANDLE psp;

	m->cr = node_evd(&m->n, (DAT_COUNT)m->crew->n + SPARE, DAT_EVD_CR_FLAG);
	OK(dat_psp_create_any(m->n.ia, &l->qual, m->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	l->address = m->n.address;
}

void crew_objects(struct member *m)
{
	const DAT_COUNT n = (DAT_COUNT)m->crew->n + SPARE;
	unsigned i;

	m->conn = node_evd(&m->n, 2 * n, DAT_EVD_CONNECTION_FLAG);
	m->req = node_evd(&m->n, n, DAT_EVD_DTO_FLAG);
	m->recv = node_evd(&m->n, n, DAT_EVD_DTO_FLAG);
	for (i = 0; i < m->crew->n; i++)
		if (i != m->number)
			OK(dat_ep_create(m->n.ia, m->n.pz, m->recv, m->req, m->conn, NULL,
					 &m->ep[i]));
}

/* Accepts the request of a process, which has its number in the private data. */
static void accept_one(struct member *m)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;
	unsigned from;

	crew_await(m, m->cr, DAT_CONNECTION_REQUEST_EVENT, &event);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	CHECK(param.private_data_size >= (DAT_COUNT)sizeof(from), "no number");
	memcpy(&from, param.private_data, sizeof(from));
	CHECK(from < m->number, "a request of %u", from);
	OK(dat_cr_accept(cr, m->ep[from], 0, NULL));
}

/* Requests connections to the processes with higher numbers, and accepts requests of lower ones. */
void crew_connect(struct member *m)
{
	DAT_EVENT event;
	unsigned i;

	for (i = m->number + 1; i < m->crew->n; i++)
		connect_with(m->ep[i], &m->crew->listener[i],
			     pair_scaled(PAIR_LIMIT + 100 * m->crew->n), sizeof(m->number),
			     &m->number);
	for (i = 0; i < m->number; i++)
		accept_one(m);
	for (i = 1; i < m->crew->n; i++)
		crew_await(m, m->conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}
