/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transport's part of a PZ, and its connections by id. Progress thread, unless stated
 * otherwise.
 */
#ifndef DOFI_XPORT_RDM_PZ_H
#define DOFI_XPORT_RDM_PZ_H

#include "xport/rdm/rdm.h"

/* Returns the transport's part of @pz, made if there is none. 0 or a negative errno. */
int rdm_pz_open(struct dofi_pz *pz, struct rdm_pz **rpz);
/* dofi_xport.pz_close. */
void rdm_pz_close(struct dofi_pz *pz);
/* Gives @conn an id, by which frames find it. */
int rdm_pz_add(struct rdm_pz *rpz, struct rdm_conn *conn);
/* Hides @conn from frames and completions. */
void rdm_pz_remove(struct rdm_conn *conn);
/*
 * Returns the address of the id of this process's connection @id, in memory that stays mapped; NULL
 * if there is none. Any thread.
 */
const _Atomic uint64_t *rdm_conn_here(uint64_t id);

#endif
