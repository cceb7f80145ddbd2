/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages in several frames, at either end. EP lock held. */
#ifndef DOFI_XPORT_RDM_EAGER_H
#define DOFI_XPORT_RDM_EAGER_H

#include "xport/rdm/rdm.h"

/* Sends @dto in several frames; as rdm_submit(). When it is done no memory of the program's is in use. */
int rdm_eager_send(struct rdm_conn *conn, struct dofi_dto *dto, uint64_t cq_data);
/* A message whose first frame is @f has met the receive @dto, which has room for it. */
void rdm_eager_begin(struct rdm_conn *conn, struct dofi_dto *dto, const struct rdm_frame *f);
/* Takes the next bytes of the message that has begun. */
void rdm_eager_take(struct rdm_conn *conn, const struct rdm_frame *f, struct dofi_sink *sink);

#endif
