/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations of one connected endpoint, for tests of posting, queueing and completing them. */
#ifndef UNIT_OBJ_OPS_H
#define UNIT_OBJ_OPS_H

#include "obj/fixture.h"

#define CONSUMER_FLAGS(f) ((DAT_COMPLETION_FLAGS)(f))

extern DAT_EP_HANDLE ep;

/* For .init: objects_init() and the endpoint, without and with a connection. */
void ops_init_unconnected(void);
void ops_init(void);
/* ops_init() over objects_init_serial(). */
void ops_init_serial(void);
/* ops_init(), and the operations posted below take the general path: they have a flag. */
void ops_init_general(void);

/* Two tests of one body: on the fast path in suite ops, and on the general path. */
#define BOTH_PATHS(name)                   \
	static void name(void);            \
	Test(ops, name)                    \
	{                                  \
		name();                    \
	}                                  \
	Test(ops_general, name)            \
	{                                  \
		name();                    \
	}                                  \
	static void name(void)
#define OPS_SUITES                                              \
	TestSuite(ops, .init = ops_init, .fini = ia_fini);      \
	TestSuite(ops_general, .init = ops_init_general, .fini = ia_fini)

/* So many operations took the fast path, or none in suite ops_general. */
void expect_plain(unsigned n);
/* The flag of each operation. */
DAT_COMPLETION_FLAGS path_flags(void);

/* Replaces ep by an EP of these EVDs and @attr, and connects it. */
void make_with(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, const DAT_EP_ATTR *attr);
DAT_EP_ATTR attr_of_depth(DAT_COUNT depth);

struct dofi_ep *inside(void);

/* Each call posts one operation with cookie @n, at the start of memory[]. */
DAT_RETURN send_flags(uint64_t n, int flags);
DAT_RETURN post_send(uint64_t n);
DAT_RETURN post_recv(uint64_t n);
DAT_RETURN post_read(uint64_t n, size_t local, size_t remote, int flags);
DAT_RETURN post_write(uint64_t n, size_t local, size_t remote);
DAT_RETURN send_segment(DAT_LMR_TRIPLET s);

/* The operations of one segment. */
extern const struct op {
	DAT_RETURN (*post)(uint64_t n);
	uint8_t kind;
	bool remote;
	size_t length;			/* that the fabric gets */
	size_t moved;			/* that the event reports */
	int operation;			/* that the event names, since uDAPL 2.0 */
} ops[];
#define N_OPS 4

/* Takes the event of operation @n, a successful @op. */
void take_op(const struct op *op, uint64_t n);

/* Takes the next event, which must report that operation @n ended with @status. */
DAT_DTO_COMPLETION_EVENT_DATA take(uint64_t n, DAT_DTO_COMPLETION_STATUS status);

/*
 * Threads that post sends at the same time. The @i-th send of a thread has the cookie thread *
 * POSTS + i.
 */
#define POSTERS 4
#define POSTS 100

/* Replaces ep by an EP with room for all of them, and evd by its EVD. */
void make_roomy(void);
void posters_start(void);
void posters_join(void);
/* The context of the @i-th operation at the fabric, or NULL if there is none yet. */
void *submitted(unsigned i);

#endif
