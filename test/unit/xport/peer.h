/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An IA with the connectionless transport on a real fabric, and peers of the test. A peer is a CM
 * socket and an endpoint that send the test's messages, true or false.
 */
#ifndef UNIT_XPORT_PEER_H
#define UNIT_XPORT_PEER_H

#include "obj/fixture.h"

#include "xport/cm/listen.h"
#include "xport/rdm/conn.h"
#include "xport/rdm/rdm.h"
#include "xport/rdm/rndv.h"
#include "xport/rdm/send.h"
#include "xport/rdm/transmit.h"

#include <semaphore.h>

/* A frame as it arrived at a peer. */
struct peer_frame {
	struct rdm_frame frame;		/* its data is below */
	unsigned char data[16384];	/* the longest frame of sockets */
};

#define PEER_FRAMES 128

struct peer {
	/* The id of the peer's connection. It is also the word that other processes read. */
	uint64_t id;
	int fd;				/* its CM socket */
	size_t in_len, in_used;
	unsigned char in[DOFI_CM_MAX]; /* bytes read from fd */
	struct dofi_cm_msg received;	/* the last message in them */

	/* the EP, as reported by its messages */
	uint64_t conn;
	uint32_t secret;
	fi_addr_t to;

	bool blind;			/* reports that it cannot read our memory */
	uint32_t sent, seen;		/* counts of frames */
	sem_t came;
	_Atomic unsigned n_came, n_taken;
	struct peer_frame got[PEER_FRAMES];
};

/* IA, PZ, EVD and LMR of obj/fixture.h on libfabric's shm, and the endpoint of all peers. */
void rdm_init(void);
void rdm_fini(void);
/* rdm_init() on another fabric. The test ends if libfabric lacks it. */
void rdm_init_on(const char *provider);

/* If not @takes, each injection of @with's endpoint returns EAGAIN, until the next call. */
void fabric_takes(DAT_EP_HANDLE with, bool takes);

/* More memory than a frame can carry, with an LMR of all privileges. */
#define BIG 40000
extern unsigned char big[BIG];
extern DAT_LMR_HANDLE big_lmr;
extern DAT_LMR_CONTEXT big_context;
extern DAT_RMR_CONTEXT big_remote;

DAT_LMR_TRIPLET big_segment(size_t offset, size_t length);

/* A PZ, an EVD of 256 events, and LMRs over memory and big. */
void rdm_objects_make(void);

/* Waits for the next event, which must be @number, of EVD @with. */
DAT_EVENT event_await(DAT_EVD_HANDLE with, DAT_EVENT_NUMBER number);
/* Waits for the next completion, which must have this status. Returns its cookie. */
uint64_t done_await(DAT_EVD_HANDLE with, DAT_DTO_COMPLETION_STATUS status);
/* The length in the last completion of done_await(). */
extern uint64_t done_length;

/* A PSP on any port. */
DAT_PSP_HANDLE listen_any(DAT_CONN_QUAL *conn_qual);
DAT_CR_HANDLE request_await(void);
/* Connects two EPs of the IA to each other. */
void pair_connect(DAT_EP_HANDLE active, DAT_EP_HANDLE passive);
/* Checks that a message goes from one EP to the other. */
void pair_works(DAT_EP_HANDLE from, DAT_EP_HANDLE to);

/* Peers: */

/* A message of an honest peer. Its addresses are valid until the next call. */
struct dofi_cm_msg peer_msg(struct peer *p, enum dofi_cm_kind kind);
void peer_send_cm(struct peer *p, const struct dofi_cm_msg *msg);
void peer_dial(struct peer *p, DAT_CONN_QUAL port);
/* Gives @p the socket of a connection that @p accepted. */
void peer_adopt(struct peer *p, int fd);
void peer_hang_up(struct peer *p);
/* Waits for a message other than a WAKEUP. Returns its kind, or 0 when the other end has closed. */
int peer_recv_cm(struct peer *p);
/* Learns the EP from the last message. From here on the peer can send frames. */
void peer_learn(struct peer *p);

/* Connects @p to @ep, which accepts the request. Checks the messages and frames. */
void peer_couple(struct peer *p, DAT_EP_HANDLE ep);
/* Like peer_couple(), with any request. @readable: whether @p's memory is found to be readable. */
void peer_couple_as(struct peer *p, DAT_EP_HANDLE ep, const struct dofi_cm_msg *request,
		    bool readable);

/* The next frame to send, of @kind. */
struct rdm_frame peer_frame(const struct peer *p, enum rdm_frame_kind kind);
void peer_send(struct peer *p, const struct rdm_frame *f, const void *data, size_t size);
/* Sends any bytes. */
void peer_send_bytes(struct peer *p, const void *bytes, size_t size);
/* Waits for the next frame, which must be of @kind. Frames that only return credits are skipped. */
const struct peer_frame *peer_take(struct peer *p, enum rdm_frame_kind kind);
/* Whether no frame is left, after the IA has handled everything. */
bool peer_has_none(struct peer *p);

/* The next and last event reports a broken connection, and @p receives a BYE. */
void peer_sees_break(struct peer *p);

#endif
