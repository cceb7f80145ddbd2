/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints of the fake fabric. Each step of an endpoint's life can be made to fail, notes its
 * arguments, and counts in fake.open. There is no peer: the test answers through fake_event_add().
 * The fields belong to the progress thread: read them only while it has nothing to do.
 */
#ifndef UNIT_FAB_FAKE_EP_H
#define UNIT_FAB_FAKE_EP_H

#include "fab/fake.h"

#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <semaphore.h>

struct fake_pep {
	struct fid_pep fid;
	uint16_t port;
	bool bound, listens;
};

struct fake_ep {
	struct fid_ep fid;
	bool eq_bound, cq_bound, enabled;
};

enum fake_op {
	FAKE_NONE,
	FAKE_SEND,
	FAKE_SENDV,
	FAKE_RECV,
	FAKE_RECVV,
	FAKE_READ,
	FAKE_READV,
	FAKE_WRITE,
	FAKE_INJECT,
	FAKE_SENDMSG,
	FAKE_LETTER,
	FAKE_READMSG,
	FAKE_WRITE_NOW,
	FAKE_FETCH_ADD,
	FAKE_CMP_SWAP };

/* Set by tests. All zero is endpoints that work. */
struct fake_ep_faults {
	int endpoint, bind_eq, bind_cq, enable, connect, accept, reject, close;
	int pep_bind, listen, getname, op, sendmsg;
	_Atomic int letter;	/* also read by the progress thread */
	enum fake_op op_only;		/* if set, only operations of this kind fail */
	unsigned op_times;		/* if set, only so many operations fail */
	uint16_t busy[8];		/* ports that are in use */
	int busy_passive_ep, busy_listen;	/* errors at a busy port */
	int busy_family;		/* the address family in which ports are busy; 0: all */
	bool endpoint_waits;		/* fi_endpoint() blocks until the test posts fake_eps.go */
	uint16_t forbidden;		/* a port that may not be bound */
};

struct fake_eps {
	struct fake_ep_faults fault;

	sem_t waits, go;		/* fi_endpoint() posts waits and blocks until go */
	struct fid_ep *last;		/* the last endpoint that was opened */
	struct fid_pep *last_pep;
	uint16_t any_port;		/* given to a passive endpoint that requests port 0 */
	_Atomic int opened, open;	/* endpoints; written by any thread, like last */
	int shutdowns;
	size_t source_len;		/* the length of last's source address; 0: none */
	uint32_t tclass;		/* last's traffic class */
	const struct fid *pep_eq;	/* the event queue of the last passive endpoint */
	int peps_opened, peps_open;
	uint16_t tried[32];		/* ports of fi_passive_ep(), in order */
	struct sockaddr_storage listened;	/* the address of the last passive endpoint */

	_Atomic int connects;		/* read while more calls are made */
	int accepts, rejects;
	bool connects_at_accept;	/* fi_accept() adds the event of the connection */
	struct sockaddr_storage peer;	/* of the last fi_connect() */
	uint16_t connected_to[32];	/* ports of fi_connect(), in order */
	int open_at_connect;		/* endpoints that were open at fi_connect() */
	int ops_at_connect;		/* operations posted before fi_connect() or fi_accept() */
	fid_t handle;			/* of the request that was rejected */
	unsigned char data[512];	/* private data of the last connect, accept or reject */
	size_t len;

	/* operations */
	int ops;
	int cancels;
	enum fake_op op;		/* the last operation, and its arguments */
	struct iovec iov[8];
	unsigned char injected[128];	/* copy of an injected message */
	size_t count;
	uint64_t remote_addr, remote_key, remote_len, flags, cq_data;
	void *context;
	const void *operand, *compare;	/* of an atomic, as they were passed */
	unsigned char letter[64];	/* the message of fi_inject_writedata() */
};

extern struct fake_eps fake_eps;

/* Call after fake_init(). */
void fake_ep_init(void);

#endif
