/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs in the manual pages' EXAMPLES, run by the runner of the conformance suite.
 *
 * A clause has the name of a page, and calls all that the page's example defines: with handles of
 * real objects, over a connection if there is one to it, and looks at what came of it. The
 * examples are included as test/examples/extract takes them from the pages; test/man.sh finds
 * pages that have an example and no clause.
 */
#ifndef EXAMPLES_H
#define EXAMPLES_H

#include "../conform/stage.h"

/* What is written to @fd, 1 or 2, from here to the next captured(), which returns it as text. */
void capture(int fd);
const char *captured(void);

/* The IA's address as the examples take it: in digits. Skips the clause if it is not IPv4. */
const char *host_of(const struct node *n);

/* A thread that runs @function, which makes calls that wait; and its end. */
pthread_t apart(void *(*function)(void *), void *arg);
void rejoin(pthread_t thread);

/* As call_make(), with the request accepted; the events are to come. */
void call_accept(struct node *n, struct call *c);
/* Connects @e to @qual as soon as somebody listens there, and waits until it is accepted. */
void connect_when_heard(struct node *n, struct end *e, DAT_CONN_QUAL qual);

#endif
