/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rings in place of a fabric, between peers on one host. All on the progress thread. */
#ifndef DOFI_XPORT_RDM_RINGS_H
#define DOFI_XPORT_RDM_RINGS_H

#include "xport/rdm/rdm.h"

struct dofi_cm_msg;
struct rdm_peer;

/* The link to @peer, made if this end asks, for a connection that is not in its PZ yet. */
int rdm_rings_open(struct rdm_conn *conn, struct rdm_peer *peer);
/*
 * What the request or answer @msg has with it: the link, or the peer's doorbell. 0 or a
 * negative errno.
 */
int rdm_rings_learn(struct rdm_peer *peer, const struct dofi_cm_msg *msg);
/* Our own, for the peer. */
void rdm_rings_introduce(const struct rdm_conn *conn, struct dofi_cm_msg *msg);
/* As struct dofi_progress_ops has it, for all PZs. */
void rdm_rings_rest(struct rdm_ia *ria);
void rdm_rings_rise(struct rdm_ia *ria);

#endif
