/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the progress thread serves a completion queue: when it reads it, arms it, or leaves it to the
 * program.
 */
#ifndef DOFI_FAB_CQ_SERVE_H
#define DOFI_FAB_CQ_SERVE_H

#include <stdint.h>

struct dofi_cq;

/* All on the progress thread. */

/* Lets epoll report what arrives. 0 or a negative errno. */
int dofi_cq_serve_open(struct dofi_cq *cq);

/*
 * The progress thread serves the CQ from dofi_cq_serve_begin(), which arms it in the next round, to
 * dofi_cq_serve_end().
 */
void dofi_cq_serve_begin(struct dofi_cq *cq);
void dofi_cq_serve_end(struct dofi_cq *cq);

/* Takes cq->fd out of epoll, before that descriptor changes. */
void dofi_cq_forget(struct dofi_cq *cq);

/*
 * Serves the CQ if it is due: reads and arms it, or leaves it to the program until it is due again.
 */
void dofi_cq_serve(struct dofi_cq *cq, int64_t now);

/*
 * If the CQ is left to the program, checks whether the program still polls after the short time
 * that a polling program takes between two polls, not after the pause.
 */
void dofi_cq_probe(struct dofi_cq *cq, int64_t now);

/*
 * When dofi_cq_serve() is due if nothing happens before; DOFI_NEVER if only an event makes it due.
 */
int64_t dofi_cq_due(const struct dofi_cq *cq);

#endif
