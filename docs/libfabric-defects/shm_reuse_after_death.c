/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shm: a process that outlives its peers crashes when it reuses their entries in the address
 * vector.
 *
 * The program starts one peer after the other, sends to it, kills it while idle, and removes it
 * from the address vector. So at most two of the 256 entries are in use.
 */
#include "defect.h"

#define PEERS 300

static struct shared {
	char peer[NAME_SIZE], survivor[NAME_SIZE];
	volatile int peers, got;
	volatile unsigned round;
} * s;

static void peer(void)
{
	struct fi_cq_data_entry entry;
	char part[32], data[64];
	struct node n;

	snprintf(part, sizeof(part), "p%d", getpid());
	rdm_open(&n, "shm", part, FI_MSG);
	shm_insert(&n, s->survivor);
	must(fi_recv(n.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, NULL));
	shm_name(&n, s->peer);
	s->peers++;
	for (;;)
		if (cq_one(&n, &entry) == 1)
			s->got++;
}

static void survive(void)
{
	struct fi_cq_data_entry entry;
	char data[64] = "";
	fi_addr_t address;
	int64_t until;
	struct node n;
	pid_t pid;

	rdm_open(&n, "shm", "survivor", FI_MSG);
	shm_name(&n, s->survivor);
	for (s->round = 1; s->round <= PEERS; s->round++) {
		until = now_ms() + 10000;
		pid = start(peer, getpgrp());
		while (s->peers < (int)s->round)
			if (is_late(until))
				end(FAILED, "peer %u did not start", s->round);
		address = shm_insert(&n, s->peer);
		if (address == FI_ADDR_NOTAVAIL)
			end(SHOWS, "peer %u is not inserted though the others were removed",
			    s->round);
		if (!inject(&n, address, data, sizeof(data), 10000))
			end(SHOWS, "peer %u cannot be sent to", s->round);
		while (s->got < (int)s->round) {
			cq_one(&n, &entry);
			if (is_late(until))
				end(SHOWS, "peer %u gets nothing", s->round);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		must(fi_av_remove(n.av, &address, 1, 0));
	}
	end(ABSENT, "%d peers, one after the other, were sent to", PEERS);
}

int main(void)
{
	s = shared(sizeof(*s));
	rounds = &s->round;
	return bounded(survive, 60);
}
