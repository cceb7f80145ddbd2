/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp (since 1.18, xnet): data makes the descriptor of the event queue readable although
 * there is no event.
 *
 * Each message that another thread receives wakes a thread that sleeps for connection events.
 * fi_eq_read() then runs the domain's progress and contends with the receiving thread.
 */
#include "defect.h"

#define MESSAGES 100

static void count(void)
{
	struct fi_cq_data_entry entry;
	struct fid_ep *active, *passive;
	const int64_t until = now_ms() + 10000;
	int i, fd, woken = 0;
	struct fi_eq_cm_entry event;
	struct fid *fids[1];
	struct node a, b;
	char data[64];

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	msg_pair(&a, &b, msg_listen(&b), &active, &passive);
	fids[0] = &b.eq->fid;
	must(fi_control(&b.eq->fid, FI_GETWAIT, &fd));
	for (i = 0; i < MESSAGES; i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		must(fi_recv(passive, data, sizeof(data), NULL, 0, NULL));
		/* drain the CQ and the EQ until a thread may sleep */
		while (fi_trywait(b.fabric, fids, 1) || poll(&p, 1, 0)) {
			fi_cq_read(b.cq, NULL, 0);
			if (eq_wait(&b, &event, 0) != -FI_EAGAIN || is_late(until))
				end(SHOWS,
				    "the EQ's descriptor is readable without event or message");
		}
		must(fi_inject(active, "", 1, 0));
		/* progress of the sender only; the receiver sleeps on its EQ */
		fi_cq_read(a.cq, NULL, 0);
		if (poll(&p, 1, 20) == 1) {
			if (eq_wait(&b, &event, 0) != -FI_EAGAIN)
				end(FAILED, "an event");
			woken++;
		}
		must(wait_one(&b, &entry, 5000));
	}
	if (woken)
		end(SHOWS, "%d messages of %d made the EQ's descriptor readable without an event",
		    woken, MESSAGES);
	end(ABSENT, "%d messages left the EQ's descriptor alone", MESSAGES);
}

int main(void)
{
	return bounded(count, 20);
}
