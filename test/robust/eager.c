/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small MPI: processes, connected each with each, exchange short messages by RDMA writes into
 * rings of slots. The reader polls a flag near the end of the slot, clears it, and returns the slot
 * with its next message. So each byte of a write must be stored once, and the flag must not be
 * stored before the rest: a flag that is set again would be an old message that is taken for a new
 * one.
 *
 *	eager2 [MESSAGES]	from each process to each other one
 */

#include "crew.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_SKIP 77
#define PROCESSES 3
#define SLOTS 16
#define SLOT 128
#define RING (SLOTS * SLOT)
/* The program rarely reads its EVD, so that most writes arrive while another thread reads it. */
#define READ_EACH 16

struct header {
	uint32_t number;
	uint32_t returned;	/* slots that the sender's peer may fill again */
};

/* The end of a message is the end of its slot. */
struct trailer {
	uint32_t size;
	_Atomic uint8_t full;
	uint8_t unused[3];
};

struct shared {
	struct crew crew;
	struct grant grant[PROCESSES];
};

/* A peer, with a ring in each direction. */
struct peer {
	DAT_EP_HANDLE ep;
	unsigned char *in, *out;
	struct grant to;		/* the peer's memory */
	size_t to_offset;		/* of the ring there */
	unsigned sent, free, due;	/* messages, slots, messages that may be sent */
	unsigned read, unreturned;	/* messages, read slots that the peer may not yet fill */
	bool busy[SLOTS];		/* by a write that has not completed */
};

struct mpi {
	struct member *m;
	struct mem mem;
	struct peer peer[PROCESSES];
};

static unsigned n_messages = 10000;

static struct trailer *trailer_of(unsigned char *ring, unsigned number)
{
	return (struct trailer *)(ring + (number % SLOTS + 1) * SLOT) - 1;
}

/* Sizes that glibc's memcpy() stores twice, and others. */
static uint32_t size_of(unsigned number)
{
	static const uint32_t size[] = { 32, 24, 64, 16, 32, 40, 120 };

	return size[number % (sizeof(size) / sizeof(size[0]))];
}

static unsigned char byte_of(unsigned number, size_t i)
{
	return (unsigned char)(number * 7 + i + 1);
}

/* No flag of a slot that was read is set before the slot has been returned. */
static void slots_check(const struct mpi *mpi, struct peer *p)
{
	unsigned k;

	for (k = p->read - p->unreturned; k != p->read; k++)
		CHECK(!trailer_of(p->in, k)->full,
		      "message %u from %td to %u was stored again after it had been read; %u were "
		      "read since", k, p - mpi->peer, mpi->m->number, p->read - k - 1);
}

static bool message_take(const struct mpi *mpi, struct peer *p)
{
	struct trailer *t = trailer_of(p->in, p->read);
	struct header h;
	unsigned char *begin;
	size_t i;

	if (!t->full)
		return false;
	CHECK(t->size == size_of(p->read), "message %u from %td to %u has %u bytes", p->read,
	      p - mpi->peer, mpi->m->number, t->size);
	begin = (unsigned char *)(t + 1) - t->size;
	memcpy(&h, begin, sizeof(h));
	CHECK(h.number == p->read, "message %u from %td to %u is message %u", p->read,
	      p - mpi->peer, mpi->m->number, h.number);
	for (i = sizeof(h); begin + i < (unsigned char *)t; i++)
		CHECK(begin[i] == byte_of(p->read, i), "byte %zu of message %u is wrong", i,
		      p->read);
	p->free += h.returned;
	t->full = 0;
	p->read++;
	p->unreturned++;
	p->due++;
	return true;
}

static void message_send(const struct mpi *mpi, struct peer *p)
{
	const unsigned slot = p->sent % SLOTS;
	struct trailer *t = trailer_of(p->out, p->sent);
	const uint32_t size = size_of(p->sent);
	unsigned char *begin = (unsigned char *)(t + 1) - size;
	const size_t end = (size_t)(slot + 1) * SLOT;
	struct header h = { .number = p->sent, .returned = p->unreturned };
	size_t i;

	slots_check(mpi, p);
	p->unreturned = 0;
	memcpy(begin, &h, sizeof(h));
	for (i = sizeof(h); begin + i < (unsigned char *)t; i++)
		begin[i] = byte_of(p->sent, i);
	t->size = size;
	t->full = 1;
	p->busy[slot] = true;
	post_write(p->ep, &mpi->mem, (size_t)(begin - mpi->mem.base), size,
		   (uint64_t)(p - mpi->peer) * SLOTS + slot, &p->to, p->to_offset + end - size);
	p->free--;
	p->due--;
	p->sent++;
}

static void completions_read(struct mpi *mpi)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	while (dat_evd_dequeue(mpi->m->req, &event) == DAT_SUCCESS) {
		dto = &event.event_data.dto_completion_event_data;
		SAME(dto->status, DAT_DTO_SUCCESS);
		mpi->peer[dto->user_cookie.as_64 / SLOTS].busy[dto->user_cookie.as_64 % SLOTS] =
			false;
	}
}

/* Returns whether the peer has anything left to send or to receive. */
static bool peer_serve(struct mpi *mpi, struct peer *p, bool *idle)
{
	while (message_take(mpi, p))
		*idle = false;
	while (p->due && p->free && p->sent < n_messages && !p->busy[p->sent % SLOTS])
		message_send(mpi, p);
	slots_check(mpi, p);
	return p->sent < n_messages || p->read < n_messages || p->busy[(p->sent - 1) % SLOTS];
}

/*
 * An idle process sleeps: on processors that others keep busy, a process that yields waits for
 * its next slice, 5 ms and more.
 */
static void exchange(struct mpi *mpi)
{
	const struct timespec pause = { .tv_nsec = 10000 };
	unsigned turn, i, open;
	bool idle;

	for (turn = 0, open = 1; open; turn++) {
		for (i = 0, open = 0, idle = true; i < PROCESSES; i++)
			if (mpi->peer[i].ep && peer_serve(mpi, &mpi->peer[i], &idle))
				open++;
		if (turn % READ_EACH == 0)
			completions_read(mpi);
		if (idle)
			nanosleep(&pause, NULL);
	}
}

/* The rings for messages from each process, then the buffers for messages to each. */
static void peers_make(struct mpi *mpi)
{
	const struct shared *shared = (struct shared *)mpi->m->crew;
	struct peer *p;
	unsigned i;

	for (i = 0; i < PROCESSES; i++) {
		p = &mpi->peer[i];
		if (i == mpi->m->number)
			continue;
		p->ep = mpi->m->ep[i];
		p->in = mpi->mem.base + i * RING;
		p->out = mpi->mem.base + (PROCESSES + i) * RING;
		p->to = shared->grant[i];
		p->to_offset = mpi->m->number * RING;
		p->free = SLOTS;
		p->due = SLOTS / 2;
	}
}

static void run(struct member *m)
{
	struct shared *shared = (struct shared *)m->crew;
	struct mpi mpi = { .m = m };
	unsigned i;

	node_open(&m->n);
	crew_listen(m);
	crew_objects(m);
	mem_get(&m->n, &mpi.mem, 2 * PROCESSES * RING);
	shared->grant[m->number] = (struct grant){
		.address = (uintptr_t)mpi.mem.base, .size = mpi.mem.size,
		.rmr_context = mpi.mem.rmr_context,
	};
	crew_barrier(m);
	crew_connect(m);
	peers_make(&mpi);
	crew_barrier(m);
	exchange(&mpi);
	crew_barrier(m);
	for (i = 0; i < PROCESSES; i++)
		if (mpi.peer[i].ep)
			slots_check(&mpi, &mpi.peer[i]);
	OK(dat_ia_close(m->n.ia, DAT_CLOSE_ABRUPT_FLAG));
}

int main(int argc, char **argv)
{
	struct shared *shared;
	sigset_t mask;

	setenv("DAT_OFI_LOG", "1", 0);
	if (!pair_init(&mask))
		return EXIT_FAILURE;
	if (argc > 1)
		n_messages = (unsigned)atoi(argv[1]);
	if (argc > 2 || !n_messages) {
		fprintf(stderr, "usage: eager2 [messages from each process to each other one]\n");
		return 2;
	}
	if (pair_fabric_missing())
		return EXIT_SKIP;
	shared = crew_make(PROCESSES, sizeof(*shared));
	crew_run(&shared->crew, run);
	printf("%s: %u messages\n", pair_ia_name(), PROCESSES * (PROCESSES - 1) * n_messages);
	return EXIT_SUCCESS;
}
