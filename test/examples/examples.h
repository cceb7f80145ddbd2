/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the programs in the EXAMPLES of the manual pages, with the runner of the conformance
 * suite.
 *
 * A clause has the name of a page and calls every function that the page's example defines, with
 * handles of real objects and over a connection where the example needs one, and checks the
 * effects. test/examples/extract takes the examples from the pages, and they are included.
 * test/man.sh reports pages with an example and no clause.
 */
#ifndef EXAMPLES_H
#define EXAMPLES_H

#include "../conform/stage.h"

/* Captures the output to @fd, 1 or 2, until captured(), which returns it as text. */
void capture(int fd);
const char *captured(void);

/* The IA's address in digits, as the examples take it. Skips the clause if it is not IPv4. */
const char *host_of(const struct node *n);

/* start_thread() starts a thread for @function, which may wait; join_thread() joins it. */
pthread_t start_thread(void *(*function)(void *), void *arg);
void join_thread(pthread_t thread);

/* Like attempt_start(), but also accepts the request; the events are still to come. */
void attempt_accept(struct node *n, struct attempt *c);
/* Connects @e to @qual, repeatedly until there is a listener, and waits until it is accepted. */
void connect_when_listening(struct node *n, struct end *e, DAT_CONN_QUAL qual);

#endif
