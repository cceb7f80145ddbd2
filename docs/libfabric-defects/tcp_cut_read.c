/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp: fi_close() of an endpoint that has received a part of the reply to an RDMA read frees the
 * read twice. Two later operations on the completion queue, of any endpoint, share its memory.
 */
#include "defect.h"

#define SIZE (32u << 20)

static void *taken_by(struct node *n)
{
	struct fi_cq_data_entry entry;

	if (wait_one(n, &entry, 2000))
		end(SHOWS, "a receive of the other endpoint does not complete");
	return entry.op_context;
}

static void cut(void)
{
	struct fid_ep *active, *passive, *reader, *served;
	char *from = calloc(1, SIZE), *to = calloc(1, SIZE), one, two;
	struct fi_cq_data_entry entry;
	const int64_t until = now_ms() + 5000;
	struct node a, b;
	struct fid_mr *mr;
	uint16_t port;

	msg_open(&a, "tcp", FI_MSG | FI_RMA);
	msg_open(&b, "tcp", FI_MSG | FI_RMA);
	port = msg_listen(&b);
	msg_pair(&a, &b, port, &active, &passive);
	msg_pair(&a, &b, port, &reader, &served);
	memset(from, 'x', SIZE);
	must(fi_mr_reg(b.domain, from, SIZE, FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
	must(fi_read(reader, to, SIZE, NULL, 0,
		     b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)from : 0,
		     fi_mr_key(mr), NULL));
	while (!*(volatile char *)to && !is_late(until)) {
		cq_one(&b, &entry);
		if (cq_one(&a, &entry) != -FI_EAGAIN)
			end(FAILED, "the read ended at once");
	}
	must(fi_close(&reader->fid));
	while (cq_one(&a, &entry) != -FI_EAGAIN)
		;
	must(fi_recv(active, &one, 1, NULL, 0, &one));
	must(fi_recv(active, &two, 1, NULL, 0, &two));
	must(fi_inject(passive, "1", 1, 0));
	must(fi_inject(passive, "2", 1, 0));
	if (taken_by(&a) != &one || taken_by(&a) != &two || one != '1' || two != '2')
		end(SHOWS, "two receives of the other endpoint shared one entry");
	end(ABSENT, "both receives of the other endpoint completed");
}

int main(void)
{
	return bounded(cut, 20);
}
