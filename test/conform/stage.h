/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Brings an EP into each of its states, for clauses about states. */

#ifndef STAGE_H
#define STAGE_H

#include "conform.h"

/* The states in which a consumer can find an EP. */
struct stage_row {
	DAT_EP_STATE state;
	const char *name;
	DAT_RETURN_SUBTYPE subtype;	/* of DAT_INVALID_STATE in this state */
	bool transient;			/* the state may end at any time */
	bool has_peer;			/* dat_ep_query() reports the peer's address */
};

#define N_STAGES 9
extern const struct stage_row stage_rows[N_STAGES];

struct stage {
	struct node *n;
	const struct stage_row *row;
	struct end e;			/* the EP in this state, and its EVDs */
	struct end peer;		/* the other end of the connection, if there is one */
	struct mem m;			/* with all privileges */
	DAT_CR_HANDLE cr;		/* the unanswered request, if there is one */
	DAT_PSP_HANDLE psp;		/* the service point of @cr: this or @rsp */
	DAT_RSP_HANDLE rsp;
};

#define STAGE_MEMORY (1u << 20)

/* Brings an EP of @n into the state of @row. Skips the clause if the provider cannot. */
void stage_set(struct node *n, const struct stage_row *row, struct stage *s);

/* A 64-bit qualifier that has not been used before. */
DAT_CONN_QUAL fresh_qualifier(void);
/* Begins to connect @e to @qual of the same IA. */
void end_connect(struct node *n, struct end *e, DAT_CONN_QUAL qual);
/* Sets EVDs and a PZ for an EP that the provider created. */
void end_adopt(struct node *n, struct end *e, DAT_CR_HANDLE cr);


/* An end to connect, an end to accept with, and a service point of the IA. */
struct attempt {
	struct end a, b;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
};

void attempt_open(struct node *n, struct attempt *c);
/* Begins to connect and returns the request. */
DAT_CR_HANDLE attempt_start(struct node *n, struct attempt *c);
void expect_established(struct attempt *c);
struct listener listener_of(const struct node *n, DAT_CONN_QUAL qual);

#endif
