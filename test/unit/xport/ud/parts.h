/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An IA with the datagram service on a real fabric. The peers are PZs of the IA itself. A test sees
 * the address handles and the numbers that the service gives them, and can make the fabric refuse
 * sends.
 */
#ifndef UNIT_XPORT_UD_PARTS_H
#define UNIT_XPORT_UD_PARTS_H

#include "xport/peer.h"

#include "base/clock.h"
#include "obj/ep/datagram.h"
#include "obj/ep/ep_post.h"
#include "obj/mem/srq.h"
#include "xport/ud/frame.h"
#include "xport/ud/ud.h"

#define UD_MEMORY 65536			/* of a side */
#define UD_HALF (UD_MEMORY / 2)
#define UD_GRH DOFI_DATAGRAM_HEADER

/* A PZ with a datagram EP. */
struct ud_side {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;		/* for all streams */
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	unsigned char *memory;		/* of UD_MEMORY bytes */
};

extern struct ud_side ud_near, ud_far, ud_third;

/* Opens the IA with the sides near and far: on libfabric's shm; on tcp, with datagrams on udp. */
void ud_init(void);
void ud_init_tcp(void);
/* On the provider's own choice, with rings within the host. */
void ud_init_both(void);
/* The IA alone. */
void ud_init_alone(void);
void ud_fini(void);
/* Makes another side. */
void ud_side_open(struct ud_side *s);
void ud_side_close(struct ud_side *s);

DAT_EP_ATTR ud_attr(void);
DAT_RETURN ud_ep_try(DAT_PZ_HANDLE in, DAT_EVD_HANDLE with, DAT_EP_HANDLE *out);
DAT_EP_HANDLE ud_ep_make(struct ud_side *s);

/* The service's parts. */
struct ud_pz *ud_part(const struct ud_side *s);
uint32_t ud_number(DAT_EP_HANDLE ep);
/* The EP of @s as its peer knows it. */
struct ud_intro ud_intro_of(const struct ud_side *s);
/* Runs ud_peer_get() on the progress thread. */
int ud_get(const struct ud_side *s, struct ud_intro *intro, struct ud_peer **peer);
void ud_put(struct ud_peer *peer);
/* How many peers the table of @s has. */
unsigned ud_in_table(const struct ud_side *s);
/* An address handle of @from for @to, with one more use. */
struct ud_peer *ud_meet(const struct ud_side *from, const struct ud_side *to);

/* Posts. @offset is one of the side's memory. */
DAT_LMR_TRIPLET ud_segment(const struct ud_side *s, size_t offset, size_t length);
void ud_recv(const struct ud_side *s, size_t offset, size_t length, uint64_t cookie);
struct dofi_post ud_post(const struct ud_side *from, struct ud_peer *ah, DAT_EP_HANDLE to,
			 const DAT_LMR_TRIPLET *segment);
void ud_send(const struct ud_side *from, struct ud_peer *ah, const struct ud_side *to,
	     size_t offset, size_t length, uint64_t cookie);
/* Sends any bytes from the endpoint of @from. */
void ud_send_bytes(const struct ud_side *from, const struct ud_peer *ah, const void *bytes,
		   size_t len);

/* Waits for the next completion at @s, which must be this. Returns its event. */
DAT_EVENT ud_done(const struct ud_side *s, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status,
		  DAT_IB_DTOS operation);
/* Like ud_done(), for an operation of @ep, which was freed. */
void ud_flushed(const struct ud_side *s, DAT_EP_HANDLE ep, uint64_t cookie);
/* A receive completes with @length bytes of data behind the header. */
void ud_received(const struct ud_side *s, uint64_t cookie, size_t length);
void ud_sent_one(const struct ud_side *s, uint64_t cookie);
const DAT_IB_EXTENSION_EVENT_DATA *ud_extension(const DAT_EVENT *event);
/* Sends @length bytes of near, which arrive at far. */
void ud_works(const struct ud_side *from, struct ud_peer *ah, const struct ud_side *to,
	      size_t length);

/* The progress thread reads the CQ of @s, and sends queued datagrams. */
void ud_sweep(const struct ud_side *s);
/* Sweeps @s until *@counter has @n. */
void ud_counts(const struct ud_side *s, const uint64_t *counter, uint64_t n);

/* Exchanges */

/*
 * Reserves the first datagram port of @qual among the tests of this host, until the process ends:
 * the kernel gives a port that a test frees to another test, which calls of the first then reach;
 * and two qualifiers can share one.
 */
bool ud_port_reserve(DAT_CONN_QUAL qual);

/* A PSP of @s at any qualifier; no other test uses its first datagram port. */
DAT_PSP_HANDLE ud_listen_any(const struct ud_side *s, DAT_CONN_QUAL *qual);
/* Requests the address at @qual of this host, with the string @data. */
DAT_RETURN ud_call_at(const struct ud_side *s, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
		      const char *data);
/* Waits for a request at @s, which must have this private data. */
DAT_CR_HANDLE ud_request(const struct ud_side *s, const char *data);
/* Waits for the end of an exchange, which must have this private data. */
DAT_EVENT ud_ended(const struct ud_side *s, DAT_EVENT_NUMBER number, DAT_IB_EXT_TYPE type,
		   const char *data);
/* The address handle of an ESTABLISHED event. */
struct ud_peer *ud_ah_of(const DAT_EVENT *event);
/* The message of an honest peer that has the address of @s. */
struct dofi_cm_msg ud_message(const struct ud_side *s, enum dofi_cm_kind kind);
/* How many exchanges have begun, and are not answered. */
unsigned ud_calls(void);

/* The progress thread handles all that sockets to @qual have now: bytes, and ends. */
void ud_sockets_settle(DAT_CONN_QUAL qual);

/* The fabric's result for sends from ud_near. */
struct ud_fault {
	_Atomic int ret;		/* 0: it takes them */
	_Atomic fi_addr_t only;		/* FI_ADDR_UNSPEC: to all peers */
	_Atomic unsigned calls;		/* sends that reached the fabric, refused or not */
};

extern struct ud_fault ud_fault;
void ud_fault_open(void);
/* The peer has been stuck for longer than UD_PATIENCE_NS. */
void ud_make_patience_end(struct ud_peer *peer);

#endif
