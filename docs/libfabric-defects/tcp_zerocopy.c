/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tcp: with FI_TCP_ZEROCOPY_SIZE a connection over IPv6 ends at the first long message. */
#include "defect.h"

#define SIZE (1 << 20)

static void open_ipv6(struct node *n)
{
	struct fi_info *hints = hints_for("tcp", FI_EP_MSG, FI_MSG);
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = 1024 };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_FD };
	int ret;

	memset(n, 0, sizeof(*n));
	ret = fi_getinfo(FI_VERSION(1, 17), "::1", NULL, FI_SOURCE, hints, &n->info);
	if (ret)
		end(SKIP, "no tcp with IPv6 here: %s", fi_strerror(-ret));
	must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	must(fi_domain(n->fabric, n->info, &n->domain, NULL));
	cq.wait_obj = FI_WAIT_FD;
	must(fi_cq_open(n->domain, &cq, &n->cq, NULL));
	must(fi_eq_open(n->fabric, &eq, &n->eq, NULL));
}

static struct fid_ep *connected(struct node *from, struct node *to, struct fid_ep **passive)
{
	const int64_t until = now_ms() + 5000;
	struct sockaddr_in6 address = { .sin6_port = 0 };
	size_t size = sizeof(address);
	struct fid_ep *ep;
	int n = 0;

	must(fi_passive_ep(to->fabric, to->info, &to->pep, NULL));
	must(fi_pep_bind(to->pep, &to->eq->fid, 0));
	must(fi_listen(to->pep));
	must(fi_getname(&to->pep->fid, &address, &size));
	ep = msg_endpoint(from, from->info);
	must(fi_connect(ep, &address, NULL, 0));
	while (n < 2) {
		pair_step(from, passive, &n);
		pair_step(to, passive, &n);
		if (is_late(until))
			end(FAILED, "no connection within 5 s");
	}
	return ep;
}

static void send_long(void)
{
	const int64_t until = now_ms() + 5000;
	char *out = malloc(SIZE), *in = malloc(SIZE);
	struct fid_ep *active, *passive = NULL;
	struct fi_cq_data_entry entry;
	int sent = -FI_EAGAIN, received = -FI_EAGAIN;
	struct node a, b;

	setenv("FI_TCP_ZEROCOPY_SIZE", "1", 1);
	open_ipv6(&a);
	open_ipv6(&b);
	active = connected(&a, &b, &passive);
	must(fi_recv(passive, in, SIZE, NULL, 0, NULL));
	must(fi_send(active, out, SIZE, NULL, 0, NULL));
	while (sent == -FI_EAGAIN || received == -FI_EAGAIN) {
		if (sent == -FI_EAGAIN)
			sent = cq_one(&a, &entry);
		if (received == -FI_EAGAIN)
			received = cq_one(&b, &entry);
		if (is_late(until))
			end(SHOWS, "no completion within 5 s: %d, %d", sent, received);
	}
	end(sent < 0 || received < 0 ? SHOWS : ABSENT, "the send returns %d, the receive %d", sent,
	    received);
}

int main(void)
{
	return bounded(send_long, 20);
}
