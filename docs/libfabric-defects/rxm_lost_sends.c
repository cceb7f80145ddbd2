/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp;ofi_rxm: pending sends to a peer that dies never complete, neither successfully nor with an
 * error.
 *
 * The messages are too long for the eager protocol, and the peer has posted no receive.
 */
#include "defect.h"

#define SENDS 4
#define LONG (1 << 20)

static struct shared {
	char name[128];
	volatile size_t size;
	volatile int got;
} * s;

static void peer(void)
{
	size_t size = sizeof(s->name);
	struct fi_cq_data_entry entry;
	char data[64];
	struct node n;

	rdm_open(&n, "tcp;ofi_rxm", NULL, FI_MSG);
	must(fi_recv(n.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, NULL));
	must(fi_getname(&n.ep->fid, s->name, &size));
	s->size = size;
	for (;;)
		if (cq_one(&n, &entry) == 1)
			s->got = 1;
}

static void send_to_dying(void)
{
	static char data[LONG];
	int64_t until = now_ms() + 10000;
	struct fi_cq_data_entry entry;
	int i, ended = 0, ret;
	struct node n;
	fi_addr_t to;
	pid_t pid = start(peer, getpgrp());

	while (!s->size)
		if (is_late(until))
			end(FAILED, "the peer did not start");
	rdm_open(&n, "tcp;ofi_rxm", NULL, FI_MSG);
	if (fi_av_insert(n.av, s->name, 1, &to, 0, NULL) != 1)
		end(FAILED, "the address is not taken");
	if (!inject(&n, to, data, 1, 5000))
		end(FAILED, "no connection");
	while (!s->got) {
		cq_one(&n, &entry);
		if (is_late(until))
			end(FAILED, "nothing comes");
	}
	for (i = 0; i < SENDS; i++)
		must(fi_send(n.ep, data, LONG, NULL, to, NULL));
	until = now_ms() + 200;
	while (!is_late(until))
		ended += cq_one(&n, &entry) != -FI_EAGAIN;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	until = now_ms() + 5000;
	while (ended < SENDS && !is_late(until)) {
		ret = cq_one(&n, &entry);
		ended += ret != -FI_EAGAIN;
	}
	if (ended < SENDS)
		end(SHOWS, "%d sends of %d have not ended 5 s after the peer's death",
		    SENDS - ended, SENDS);
	end(ABSENT, "all sends to the dead peer end");
}

int main(void)
{
	s = shared(sizeof(*s));
	return bounded(send_to_dying, 30);
}
