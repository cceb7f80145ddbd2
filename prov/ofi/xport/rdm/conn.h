/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lifecycle of a connection. Progress thread, with no lock held, unless stated otherwise. */
#ifndef DOFI_XPORT_RDM_CONN_H
#define DOFI_XPORT_RDM_CONN_H

#include "obj/sp/cr.h"
#include "xport/rdm/rdm.h"

#define RDM_ACCEPTOR_LEFT "the acceptor ended the connection at once"

/* Makes a connection of @ep, which owns @peer if that succeeds. */
int rdm_conn_open(struct dofi_ep *ep, struct rdm_peer *peer);
/*
 * Makes the peer, which has reported its address, reachable, and accepts its frames. Returns 0;
 * -ECONNRESET if the peer has withdrawn its inbox, as it ended the connection; or another negative
 * errno.
 */
int rdm_conn_reach(struct rdm_conn *conn);
/* HELLO is sent. Without a HELLO_BACK the attempt ends, whatever the program's time-out is. */
void rdm_conn_expect_hello_back(struct rdm_conn *conn);
/*
 * The peer has left, after frame @last, or after the last one that arrived if @last is NULL. When
 * these frames have been processed, the connection ends, with @event; or as one that was never
 * made.
 */
void rdm_conn_gone(struct rdm_conn *conn, const uint32_t *last, DAT_EVENT_NUMBER event);
/* Closes the connection of @ep, if any. The peer may not read our memory from here on. */
void rdm_conn_close(struct dofi_ep *ep);

/* pz.c: returns the transport's part of @pz, made if there is none. 0 or a negative errno. */
int rdm_pz_open(struct dofi_pz *pz, struct rdm_pz **rpz);
/* Opens the PZ's endpoint, unless it is open or there are rings. 0 or a negative errno. */
int rdm_pz_open_endpoint(struct rdm_pz *rpz);
/* dofi_xport.pz_close. */
void rdm_pz_close(struct dofi_pz *pz);
/* Gives @conn an id, by which frames find it. */
int rdm_pz_add(struct rdm_pz *rpz, struct rdm_conn *conn);
/* Hides @conn from frames and completions. */
void rdm_pz_remove(struct rdm_conn *conn);

/* request.c: requests and their answers, active and passive side: members of dofi_xport. */
extern const struct dofi_ports_ops rdm_ports_ops;

int rdm_listen_local(struct dofi_sp *sp);
void rdm_unlisten_local(struct dofi_sp *sp);
void rdm_connect(struct dofi_ep *ep);
void rdm_accept(struct dofi_ep *ep);
void rdm_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);
void rdm_close(struct dofi_ep *ep);

#endif
