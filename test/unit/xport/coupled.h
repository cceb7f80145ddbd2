/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An EP that is connected to a peer of the test, and the frames between them. */
#ifndef UNIT_XPORT_COUPLED_H
#define UNIT_XPORT_COUPLED_H

#include "xport/peer.h"

extern struct peer peer;
extern DAT_EP_HANDLE ep;
extern unsigned char theirs[BIG];	/* memory of the peer */

/* Fills theirs or big with bytes that depend on their position, and on the buffer through @step. */
void fill(unsigned char bytes[BIG], unsigned step);

/* Connects ep and peer on shm, where they read each other's memory. */
void coupled_init(void);
/* Like coupled_init(), but neither can read the other's memory. */
void coupled_init_apart(void);
/* Like coupled_init(), on a fabric that does RDMA itself and has peers on any host. */
void coupled_init_sockets(void);
/* Connects ep, on an open IA, to a peer with a window of @window frames. */
void couple_narrow(uint32_t window);

bool all_zero(const void *bytes, size_t n);
/* Whether segment @i of a frame has this address and length. */
bool names(const struct rdm_frame *f, uint32_t i, const void *at, size_t length);

extern const DAT_COMPLETION_FLAGS plain;

/* Calls of the program, with memory of big from @offset on: */

void receive_with(DAT_EP_HANDLE with, size_t offset, size_t length, uint64_t cookie);
void receive(size_t offset, size_t length, uint64_t cookie);
/* The next event is of the receive @cookie, with @length bytes. */
void got(uint64_t cookie, uint64_t length);

void post_send(size_t offset, size_t length, uint64_t cookie);
/* RDMA from or to theirs. THEIR_KEY is the peer's key for it. */
#define THEIR_KEY 77
void post_write(size_t offset, size_t length, uint64_t cookie);
void post_read(size_t offset, size_t length, uint64_t cookie);
/* The next completion is of @cookie. */
void done(uint64_t cookie);

/* A receive posted before is flushed, and the connection is broken. */
void breaks(void);

/* Actions of the peer: */

/* Sends a frame that returns @n credits. */
void give_credits(uint16_t n);
/* Sends a message. */
void say(const void *bytes, size_t n);
/* An RTS with the address of its message. */
struct rdm_frame announcement(uint32_t number, const void *at, size_t length);
/* A frame about the program's request @number. */
struct rdm_frame about(enum rdm_frame_kind kind, uint32_t number);
/* Sends the ACK of that request, with data or without. */
void answer(uint32_t number, const void *data, size_t size);

/* The peer's request @number is acknowledged with @result. */
const struct peer_frame *answered(uint32_t number, enum rdm_result result);
/* Resets the state of a connection after a refused request, so that the test can go on with it. */
void forgive(DAT_EP_HANDLE handle);

#endif
