/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations of one connected endpoint, for the tests of posting, queueing and ending them. */
#ifndef UNIT_OBJ_OPS_H
#define UNIT_OBJ_OPS_H

#include "obj/fixture.h"

#define CONSUMER_FLAGS(f) ((DAT_COMPLETION_FLAGS)(f))

extern DAT_EP_HANDLE ep;

/* For .init: with the endpoint, and that connected; both over objects_init(). */
void ops_init_unconnected(void);
void ops_init(void);
/* As ops_init(), over objects_init_serial(). */
void ops_init_serial(void);

/* Replaces ep by an EP of these EVDs and @attr, and connects it. */
void make_with(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, const DAT_EP_ATTR *attr);
DAT_EP_ATTR attr_of_depth(DAT_COUNT depth);

struct dofi_ep *inside(void);
DAT_DTO_COOKIE cookie_of(uint64_t n);

/* Each posts one operation with cookie @n, at the start of memory[]. */
DAT_RETURN send_flags(uint64_t n, int flags);
DAT_RETURN post_send(uint64_t n);
DAT_RETURN post_recv(uint64_t n);
DAT_RETURN post_read(uint64_t n, size_t local, size_t remote, int flags);
DAT_RETURN post_write(uint64_t n, size_t local, size_t remote);
DAT_RETURN send_segment(DAT_LMR_TRIPLET s);

/* Takes the next event, which must be of the operation @n that ended with @status. */
DAT_DTO_COMPLETION_EVENT_DATA take(uint64_t n, DAT_DTO_COMPLETION_STATUS status);

/* Threads that post sends at once; the cookie of the @i-th send is thread * POSTS + i. */
#define POSTERS 4
#define POSTS 100

/* Replaces ep by an EP with room for all of them, and evd by its EVD. */
void make_roomy(void);
void posters_start(void);
void posters_join(void);
/* The context of the @i-th operation at the fabric, NULL while there is none. */
void *submitted(unsigned i);

#endif
