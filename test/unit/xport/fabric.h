/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA with the connected transport on the fake fabric. The test acts as the peers. */
#ifndef UNIT_XPORT_FABRIC_H
#define UNIT_XPORT_FABRIC_H

#include "obj/fixture.h"

#include "fab/fake_ep.h"
#include "xport/msg/msg.h"
#include "xport/wire.h"

extern const char *fabric_name;		/* its quirks apply to the fake; default tcp */
extern uint32_t peer_secret;		/* the secret that wire() packs; 0: none */
extern size_t fabric_cm_data;		/* bytes of private data that the fabric carries */
extern size_t fabric_key_size;		/* bytes of a remote key; default 8 */
extern size_t fabric_cq_data;		/* bytes of remote CQ data; default 0 */
extern uint64_t fabric_mode;		/* the fabric's mode bits; default 0 */

/* Opens the IA with a PZ, an EVD and an LMR; closes all of it. */
void xport_init(void);
void xport_fini(void);

/*
 * Returns when the progress thread has handled all queued events, the work that they started, and
 * so on. Work runs in order, so a call on the thread runs after all work before it.
 */
void quiesce(void);

/* Work that keeps the progress thread busy until thread_release(). */
void thread_hold(void);
void thread_release(void);

/* A message as the peer sends it. Valid until the next one. */
struct bytes {
	const void *data;
	size_t len;
};

struct bytes wire(enum dofi_wire_kind kind, DAT_CONN_QUAL conn_qual, const void *data, size_t size);

/* The fabric reports this for @fid. It has been handled on return. */
void cm_event(uint32_t event, const void *fid, struct bytes bytes);
void cm_error(const void *fid, int err, struct bytes bytes);
/* The fabric reports a timeout for @fid, with its own reason. */
void cm_error_with_reason(const void *fid, int prov_errno);
/* A request arrives through a passive endpoint, with request_handle as its handle. */
extern struct fid request_handle;
void cm_request(const void *pep, struct bytes bytes);
void cm_request_from(const void *pep, const void *address, size_t size, struct bytes bytes);

/* The last message that our end sent. */
struct dofi_wire sent(void);

/* Starts to connect. The attempt may have failed on return. */
void connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL conn_qual);

DAT_PSP_HANDLE psp_make(DAT_CONN_QUAL conn_qual);
DAT_CR_HANDLE cr_take(void);

/* The next event is @number, and it is the last. */
DAT_EVENT event_only(DAT_EVENT_NUMBER number);

#define NO_BYTES ((struct bytes){ NULL, 0 })

#endif
