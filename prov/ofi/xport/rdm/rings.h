/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rings in place of a fabric, between peers on one host. All on the progress thread. */
#ifndef DOFI_XPORT_RDM_RINGS_H
#define DOFI_XPORT_RDM_RINGS_H

#include "xport/rdm/rdm.h"

struct dofi_cm_msg;

/*
 * Sets the ring of @conn, which has no id yet, to *@ring. Makes *@ring if it is NULL, as this end
 * connects then.
 */
int rdm_rings_open(struct rdm_conn *conn, struct dofi_link **ring);
/*
 * Takes the ring, unless there is one, and the peer's doorbell and grants from the request or
 * answer @msg. Returns 0 or a negative errno.
 */
int rdm_rings_learn(struct dofi_link **ring, const struct dofi_cm_msg *msg);
/* Adds our ring, doorbell and grants to @msg. */
void rdm_rings_introduce(const struct rdm_conn *conn, struct dofi_cm_msg *msg);
/* Lets peers read the grants of @rpz, so that they can write by themselves. */
void rdm_rings_publish(struct rdm_pz *rpz);
/* The peer, process @pid, may write from now on. */
void rdm_rings_reach(struct rdm_conn *conn, pid_t pid);
/* Waits until the peer is not writing, and from now on it does not. */
void rdm_rings_leave(struct rdm_conn *conn);
/* dofi_progress_ops.rest and .rise, for all PZs. */
void rdm_rings_rest(struct rdm_ia *ria);
void rdm_rings_rise(struct rdm_ia *ria);

#endif
