/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An EP that is connected to a peer of the test's own, and what the two say to each other. */
#ifndef UNIT_XPORT_COUPLED_H
#define UNIT_XPORT_COUPLED_H

#include "xport/peer.h"

extern struct peer peer;
extern DAT_EP_HANDLE ep;
extern unsigned char theirs[BIG];	/* memory of the peer's */

/* Gives it, or @big, bytes that tell where they stand, and in which of the two. */
void fill(unsigned char bytes[BIG], unsigned step);

/* The two on shm, where they read each other's memory; */
void coupled_init(void);
/* where neither can read the other's; */
void coupled_init_apart(void);
/* and on a fabric that does RDMA itself, and whose peers may be anywhere. */
void coupled_init_sockets(void);
/* Connects @ep, on an IA that is open, to a peer that has room for @window frames. */
void couple_narrow(uint32_t window);

bool all_zero(const void *bytes, size_t n);
/* Whether segment @i of a frame is that. */
bool names(const struct rdm_frame *f, uint32_t i, const void *at, size_t length);

extern const DAT_COMPLETION_FLAGS plain;
DAT_DTO_COOKIE cookie_of(uint64_t cookie);

/* The program, with memory of @big from @offset on: */

void receive_with(DAT_EP_HANDLE with, size_t offset, size_t length, uint64_t cookie);
void receive(size_t offset, size_t length, uint64_t cookie);
/* The next event is that of the receive @cookie, which got @length bytes. */
void got(uint64_t cookie, uint64_t length);

void post_send(size_t offset, size_t length, uint64_t cookie);
/* RDMA from or to @theirs, which the peer named so: */
#define THEIR_KEY 77
void post_write(size_t offset, size_t length, uint64_t cookie);
void post_read(size_t offset, size_t length, uint64_t cookie);
/* The next completion is of @cookie. */
void done(uint64_t cookie);

/* A receive, posted before, is flushed; then the connection is broken. */
void breaks(void);

/* The peer: */

/* A frame that gives back @n credits. */
void give_credits(uint16_t n);
/* A message; */
void say(const void *bytes, size_t n);
/* one that is announced, and where it is; */
struct rdm_frame announcement(uint32_t number, const void *at, size_t length);
/* a frame about the program's request @number, */
struct rdm_frame about(enum rdm_frame_kind kind, uint32_t number);
/* and the answer to it, with data or none. */
void answer(uint32_t number, const void *data, size_t size);

/* It is told how its own request @number ended. */
const struct peer_frame *answered(uint32_t number, enum rdm_result result);
/* What was refused stops the connection: for the test it is as if it had not been. */
void forgive(DAT_EP_HANDLE handle);

#endif
