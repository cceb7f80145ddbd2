/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An EP in each of its states, for clauses that are about states. */

#ifndef STAGE_H
#define STAGE_H

#include "conform.h"

/* The states that a consumer can find an EP in. */
struct stage_row {
	DAT_EP_STATE state;
	const char *name;
	DAT_RETURN_SUBTYPE subtype;	/* of DAT_INVALID_STATE in it */
	bool fleeting;			/* it may be over at any time */
	bool has_peer;			/* a query of it tells the peer's address */
};

#define N_STAGES 9
extern const struct stage_row stage_rows[N_STAGES];

struct stage {
	struct node *n;
	const struct stage_row *row;
	struct end e;			/* the EP in this state, and its EVDs */
	struct end peer;		/* the other end of its connection, if it has one */
	struct mem m;			/* all privileges */
	DAT_CR_HANDLE cr;		/* the unanswered request, if there is one */
	DAT_PSP_HANDLE psp;		/* where it came to, or */
	DAT_RSP_HANDLE rsp;
};

#define STAGE_MEMORY (1u << 20)

/* Brings an EP of @n into the state of @row. Skips the clause if the provider cannot. */
void stage_set(struct node *n, const struct stage_row *row, struct stage *s);

/* A qualifier of 64 bits that was not used before. */
DAT_CONN_QUAL fresh_qualifier(void);
/* Begins to connect @e to @qual of the same IA. */
void end_connect(struct node *n, struct end *e, DAT_CONN_QUAL qual);
/* EVDs and a zone for an EP that the provider made. */
void end_adopt(struct node *n, struct end *e, DAT_CR_HANDLE cr);


/* An end that may be connected, one to accept with, and a service point of the IA. */
struct call {
	struct end a, b;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
};

void call_open(struct node *n, struct call *c);
/* And begins to connect; returns the request. */
DAT_CR_HANDLE call_make(struct node *n, struct call *c);
void expect_established(struct call *c);
struct place place_of(const struct node *n, DAT_CONN_QUAL qual);

#endif
