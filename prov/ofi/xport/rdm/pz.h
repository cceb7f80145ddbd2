/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PZs: what a PZ has of the connectionless transport, and its connections by their ids. */
#ifndef DOFI_XPORT_RDM_PZ_H
#define DOFI_XPORT_RDM_PZ_H

#include "xport/rdm/rdm.h"

/* The PZ's part of @pz, made if there is none. Progress thread, as for the next three. */
int rdm_pz_open(struct dofi_pz *pz, struct rdm_pz **rpz);
/* The end of @pz: dofi_xport.pz_close. */
void rdm_pz_close(struct dofi_pz *pz);
/* Gives @conn an id, by which frames find it. */
int rdm_pz_add(struct rdm_pz *rpz, struct rdm_conn *conn);
/* Neither a frame nor a completion finds @conn any more. */
void rdm_pz_remove(struct rdm_conn *conn);
/*
 * The id of the connection of this process that has @id, in memory that stays mapped; NULL if there
 * is none. Any thread.
 */
const _Atomic uint64_t *rdm_conn_here(uint64_t id);

#endif
