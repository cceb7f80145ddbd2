/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two EPs of one IA that are connected to each other, as many clauses need them. */

#include "conform.h"

#include <string.h>

#define END_QLEN 64

void end_open(struct node *n, struct end *e, const DAT_EP_ATTR *attr)
{
	e->recv = node_evd(n, END_QLEN, DAT_EVD_DTO_FLAG);
	e->req = node_evd(n, END_QLEN, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	e->conn = node_evd(n, END_QLEN, DAT_EVD_CONNECTION_FLAG);
	OK(dat_ep_create(n->ia, n->pz, e->recv, e->req, e->conn, attr, &e->ep));
}

void couple_make(struct node *n, struct couple *c, const DAT_EP_ATTR *attr_a,
		 const DAT_EP_ATTR *attr_b)
{
	static unsigned char memory[COUPLE_MEMORY] __attribute__((aligned(4096)));

	end_open(n, &c->a, attr_a);
	end_open(n, &c->b, attr_b);
	memset(memory, 0, sizeof(memory));
	c->m.base = memory;
	c->m.size = sizeof(memory);
	OK(lmr_create(n->ia, memory, sizeof(memory), n->pz, DAT_MEM_PRIV_ALL_FLAG, &c->m.lmr,
		      &c->m.lmr_context, &c->m.rmr_context));
}

DAT_CR_HANDLE end_request(struct node *n, struct end *e, DAT_PSP_HANDLE *psp)
{
	struct listener listener = { .address = n->address };

	*psp = node_listen(n, &listener.qual);
	ep_connect(e->ep, &listener);
	return node_request(n);
}

void couple_connect(struct node *n, struct couple *c)
{
	DAT_PSP_HANDLE psp;

	OK(dat_cr_accept(end_request(n, &c->a, &psp), c->b.ep, 0, NULL));
	expect_conn(c->a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c->a.ep);
	expect_conn(c->b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c->b.ep);
	OK(dat_psp_free(psp));
}

void couple_open(struct node *n, struct couple *c)
{
	couple_make(n, c, NULL, NULL);
	couple_connect(n, c);
}

void couple_disconnect(struct couple *c, struct end *first)
{
	OK(dat_ep_disconnect(first->ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_conn(c->a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c->a.ep);
	expect_conn(c->b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, c->b.ep);
}

DAT_RMR_TRIPLET mem_remote(const struct mem *m, size_t offset, size_t length)
{
	const struct grant g = {
		.address = (uintptr_t)m->base,
		.size = m->size,
		.rmr_context = m->rmr_context,
	};

	return remote_segment(&g, offset, length);
}

void put_se(DAT_EVD_HANDLE evd, uintptr_t pointer)
{
	OK(post_se(evd, pointer));
}

unsigned drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	unsigned number;

	for (number = 0; dat_evd_dequeue(evd, &event) == DAT_SUCCESS; number++)
		;
	return number;
}
