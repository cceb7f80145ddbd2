/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: a sender that is killed during a send leaves its receiver's queue blocked for ever.
 *
 * Senders run one after the other and are killed at random times in a loop of fi_inject().
 * Each must deliver messages before it is killed, which fails if the previous sender left the queue
 * blocked.
 */
#include "defect.h"

#define DEATHS 400
#define DEATHS_OF_ONE 100 /* a receiver has 256 entries for peers */
#define SECONDS 100

static struct shared {
	volatile unsigned long got; /* messages at the receiver */
	volatile int ready;	    /* the receiver is open */
	char receiver[NAME_SIZE];
	unsigned deaths;
} * s;

static void receiver(void)
{
	static char data[64][64];
	struct fi_cq_data_entry entry;
	struct node n;
	char part[32];
	int i;

	snprintf(part, sizeof(part), "r%d", getpid());
	rdm_open(&n, "shm", part, FI_MSG);
	shm_name(&n, s->receiver);
	for (i = 0; i < 64; i++)
		must(fi_recv(n.ep, data[i], sizeof(data[i]), NULL, FI_ADDR_UNSPEC, data[i]));
	s->ready = 1;
	for (;;) {
		if (cq_one(&n, &entry) != 1)
			continue;
		s->got++;
		must(fi_recv(n.ep, entry.op_context, 64, NULL, FI_ADDR_UNSPEC, entry.op_context));
	}
}

static void sender(void)
{
	char part[32], data[64] = "";
	fi_addr_t to;
	struct node n;

	snprintf(part, sizeof(part), "s%d", getpid());
	rdm_open(&n, "shm", part, FI_MSG);
	to = shm_insert(&n, s->receiver);
	if (to == FI_ADDR_NOTAVAIL)
		end(FAILED, "the receiver has no address");
	while (inject(&n, to, data, sizeof(data), 20000))
		;
}

/* Starts a sender, and kills it after it has sent. */
static void kill_one(void)
{
	const unsigned long before = s->got;
	const int64_t until = now_ms() + 5000;
	pid_t pid = start(sender, getpgrp());
	int status;

	while (s->got < before + 100)
		if (is_late(until))
			end(s->deaths ? SHOWS : FAILED,
			    "nothing arrives after %u deaths of senders", s->deaths);
	usleep((useconds_t)(rand() % 500));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	s->deaths++;
}

static void survive(void)
{
	const int64_t until = now_ms() + SECONDS * 1000;
	pid_t pid;
	int i;

	srand((unsigned)owner);
	while (s->deaths < DEATHS && !is_late(until)) {
		s->ready = 0;
		pid = start(receiver, getpgrp());
		while (!s->ready)
			if (waitpid(pid, NULL, WNOHANG) || is_late(until))
				end(SKIP, "the receiver did not start");
		for (i = 0; i < DEATHS_OF_ONE && !is_late(until); i++)
			kill_one();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	end(ABSENT, "%u senders were killed, and the next could always send", s->deaths);
}

int main(void)
{
	s = shared(sizeof(*s));
	return bounded(survive, SECONDS + 10);
}
