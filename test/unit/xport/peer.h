/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An IA with the connectionless transport on a real fabric; and peers of it that are the test's
 * own: a side connection and an endpoint, which say what the test wants, true or not.
 */
#ifndef UNIT_XPORT_PEER_H
#define UNIT_XPORT_PEER_H

#include "obj/fixture.h"

#include "xport/cm/listen.h"
#include "xport/rdm/direct.h"
#include "xport/rdm/endpoint.h"
#include "xport/rdm/link.h"
#include "xport/rdm/recv.h"
#include "xport/rdm/send.h"
#include "xport/rdm/pz.h"

#include <semaphore.h>

/* A frame as it came to a peer. */
struct peer_frame {
	struct rdm_frame frame;		/* its data is below */
	unsigned char data[4096];
};

#define PEER_FRAMES 128

struct peer {
	uint64_t id;			/* its connection; others may read it here, so it is the word, too */
	int fd;				/* its side connection, */
	size_t in_len, in_used;
	unsigned char in[DOFI_CM_MAX]; /* what came there, */
	struct dofi_cm_msg heard;	/* and the last message of it */

	/* the EP, as it told */
	uint64_t conn;
	uint32_t secret;
	fi_addr_t to;

	bool blind;			/* it says that it cannot read our memory */
	bool bare;			/* it says that it takes bare frames */
	uint32_t sent, seen;		/* frames */
	sem_t came;
	_Atomic unsigned n_came, n_taken;
	struct peer_frame got[PEER_FRAMES];
};

/* IA, PZ, EVD and LMR of obj/fixture.h, on libfabric's shm; and the endpoint of all peers. */
void rdm_init(void);
void rdm_fini(void);
/* The same on another fabric; if libfabric has it not, the test ends. */
void rdm_init_on(const char *provider);

/* More memory with an LMR of all privileges: what no frame has room for. */
#define BIG 40000
extern unsigned char big[BIG];
extern DAT_LMR_HANDLE big_lmr;
extern DAT_LMR_CONTEXT big_context;
extern DAT_RMR_CONTEXT big_remote;

/* A segment of it; and any memory, named by a context, as the peer's. */
DAT_LMR_TRIPLET big_segment(size_t offset, size_t length);
DAT_RMR_TRIPLET there(DAT_RMR_CONTEXT context, const void *at, size_t length);

/* The next event, waited for, must be @number; it is of @with. */
DAT_EVENT event_await(DAT_EVD_HANDLE with, DAT_EVENT_NUMBER number);
/* The next is a completion of this status; its cookie. */
uint64_t done_await(DAT_EVD_HANDLE with, DAT_DTO_COMPLETION_STATUS status);
/* How many bytes the last of them had. */
extern uint64_t done_length;

/* A PSP on any port, */
DAT_PSP_HANDLE listen_any(DAT_CONN_QUAL *conn_qual);
DAT_CR_HANDLE request_await(void);
/* and EPs of the IA that are connected to each other. */
void pair_connect(DAT_EP_HANDLE active, DAT_EP_HANDLE passive);
/* A message goes from one to the other as it should. */
void pair_works(DAT_EP_HANDLE from, DAT_EP_HANDLE to);

/* Peers: */

/* What an honest one says. The addresses that it has are valid until the next call. */
struct dofi_cm_msg peer_msg(struct peer *p, enum dofi_cm_kind kind);
void peer_tell(struct peer *p, const struct dofi_cm_msg *msg);
void peer_dial(struct peer *p, DAT_CONN_QUAL port);
/* The socket of one that connected to @p. */
void peer_adopt(struct peer *p, int fd);
void peer_hang_up(struct peer *p);
/* Waits for a message other than a bell: its kind, or 0 when the other end has closed. */
int peer_hear(struct peer *p);
/* From what it heard last it knows the EP; from here on it can send frames. */
void peer_learn(struct peer *p);

/* @ep accepts a request of @p, and both are connected; what they tell each other is checked. */
void peer_couple(struct peer *p, DAT_EP_HANDLE ep);
/* The same with any request; whether @p's memory is found to be @readable. */
void peer_couple_as(struct peer *p, DAT_EP_HANDLE ep, const struct dofi_cm_msg *request,
		    bool readable);

/* A frame of @kind, as it is sent next. */
struct rdm_frame peer_frame(const struct peer *p, enum rdm_frame_kind kind);
void peer_send(struct peer *p, const struct rdm_frame *f, const void *data, size_t size);
/* Sends @size bytes at @data as a bare frame, whose remote CQ data is @bits. */
void peer_send_bare(struct peer *p, uint64_t bits, const void *data, size_t size);
/* Any bytes. */
void peer_send_bytes(struct peer *p, const void *bytes, size_t size);
/* Waits for the next frame, which must be of @kind; those of credits alone are passed over. */
const struct peer_frame *peer_take(struct peer *p, enum rdm_frame_kind kind);
/* Whether there is none, once all that the IA had to do is done. */
bool peer_has_none(struct peer *p);

/* The next and last event is that the connection is broken; @p hears it, too. */
void peer_sees_break(struct peer *p);

#endif
