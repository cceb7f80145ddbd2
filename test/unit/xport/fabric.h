/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA with the connected transport on the fake fabric. The test plays the peers. */
#ifndef UNIT_XPORT_FABRIC_H
#define UNIT_XPORT_FABRIC_H

#include "obj/fixture.h"

#include "fab/fake_ep.h"
#include "xport/msg/msg.h"
#include "xport/wire.h"

extern const char *fabric_name;		/* whose quirks the fake has: tcp */
extern uint32_t peer_secret;		/* what wire() tells as such; 0 is none */
extern size_t fabric_cm_data;		/* bytes of private data that it carries */
extern size_t fabric_key_size;		/* bytes of a remote key: 8 */
extern size_t fabric_cq_data;		/* bytes of remote CQ data: none */
extern uint64_t fabric_mode;		/* what it asks of us: nothing */

/* The IA with a PZ, an EVD and an LMR; and all of it gone again. */
void xport_init(void);
void xport_fini(void);

/*
 * Returns when the progress thread has handled the events that are there, the work that came
 * of them, and so on: work runs in order, so a call that it ran came after all before it.
 */
void quiesce(void);

/* Work that keeps the progress thread busy until the gate is opened. */
void shut_gate(void);
void open_gate(void);

/* A message as the peer sends it; valid until the next. */
struct bytes {
	const void *data;
	size_t len;
};

struct bytes wire(enum dofi_wire_kind kind, DAT_CONN_QUAL conn_qual, const void *data, size_t size);

/* What the fabric tells of @fid; handled on return. */
void cm_event(uint32_t event, const void *fid, struct bytes bytes);
void cm_error(const void *fid, int err, struct bytes bytes);
/* That time was up, with the fabric's own reason beside it. */
void cm_error_beside(const void *fid, int prov_errno);
/* A request that came in through the last passive endpoint; @handle is what it is known by. */
extern struct fid request_handle;
void cm_request(const void *pep, struct bytes bytes);
void cm_request_from(const void *pep, const void *address, size_t size, struct bytes bytes);

/* What our side sent last. */
struct dofi_wire sent(void);

/* Starts to connect, which may have failed on return. */
void connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL conn_qual);

DAT_PSP_HANDLE psp_make(DAT_CONN_QUAL conn_qual);
DAT_CR_HANDLE cr_take(void);

/* The next event is @number, and there is no other. */
DAT_EVENT event_only(DAT_EVENT_NUMBER number);

DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

#define NO_BYTES ((struct bytes){ NULL, 0 })

#endif
