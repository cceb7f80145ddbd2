/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A model of DAT: the objects of one IA, what each call may return, how it changes the objects, and
 * the events that it causes. The model makes no DAT calls.
 *
 * A call may violate several clauses, and DAT does not fix the order of checks: the model permits
 * the error of each. A call that violates none must succeed.
 *
 * All effects of a call have happened before the next one starts: the driver waits for them. The
 * events of one call form a batch. An EVD has its batches in order; within a batch only the events
 * of one EP are ordered, see event_precedes().
 */
#ifndef MODEL_H
#define MODEL_H

#include "dat_select.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { PZ, CNO, EVD, LMR, RMR, EP, PSP, RSP, CR, KINDS, IA = KINDS };

/* The EVDs of an EP. */
enum ep_evd { RECVS, REQUESTS, CONNECTS, EP_EVDS };

#define MOST_OBJECTS 12u	/* of a kind */
#define MOST_EVENTS 80u		/* of an EVD */
#define MOST_RECVS 16u		/* posted to an EP */
#define MOST_SEGS 5u
#define HALF (128u * 1024)	/* of the memory: the first half is read, the second one written */

/* A set of event numbers or of completion statuses: bits. */
enum what {
	SOFTWARE = 1, REQUEST = 2, DTO = 4, BIND = 8, ESTABLISHED = 0x10, PEER_REJECTED = 0x20,
	NON_PEER_REJECTED = 0x40, ACCEPT_ERROR = 0x80, DISCONNECTED = 0x100, BROKEN = 0x200,
	CONNECTIONS = 0x3f0
};
#define STATUS(name) (1u << DAT_DTO_##name)
#define ANY_FAILURE (STATUS(ERR_FLUSHED) | STATUS(ERR_REMOTE_RESPONDER))

/* Bytes of private data, which fill() generates from the seed. */
struct private {
	int64_t size;
	unsigned seed;
	bool lost;	/* the EP has been reset since */
};

struct object;

struct event {
	unsigned what;		/* enum what, one of them */
	unsigned batch;		/* the number of the call that caused it */
	struct object *object;	/* EP, CR or RMR */
	unsigned generation;	/* of the object: it may have been freed since */
	DAT_HANDLE handle;	/* of the object; of a REQUEST, the service point */
	uint64_t cookie;
	unsigned status;	/* DTO and BIND: one of these */
	uint64_t length;	/* of a successful DTO */
	enum ep_evd of;		/* DTO and BIND: RECVS or REQUESTS */
	bool optional;		/* the fabric decides whether the event comes */
	struct private private;
};

struct seg {
	struct object *lmr;	/* NULL: the context is not one of a live LMR */
	unsigned generation;
	uint64_t context;
	int64_t at, length;	/* offset in the memory of the program */
};

struct receive {
	struct seg seg[MOST_SEGS];
	int segs;
	uint64_t cookie;
};

enum trigger { NO, MAYBE, YES };

/* Each kind of object has some of these members. */
struct object {
	enum kind kind;
	unsigned generation;	/* counts the objects that had this place */
	bool live;
	bool known;		/* the program has the handle */
	DAT_HANDLE handle;
	unsigned users;		/* objects that need this one */
	struct object *pz;	/* LMR, RMR, EP */
	struct object *evd;	/* PSP, RSP */
	bool spent;		/* RSP: has had its request */
	DAT_CONN_QUAL qual;	/* PSP, RSP, CR; EP: of its own request, 0 if it accepted */
	/* CNO */
	enum trigger trigger;
	/* EVD */
	int flags, qlen;	/* PSP: flags */
	bool disabled, unwaitable;
	struct object *cno;
	struct event q[MOST_EVENTS];
	unsigned n;
	/* LMR, and RMR while it is bound to an LMR */
	int64_t at, length;
	int privileges;
	uint64_t context;	/* of an LMR in local segments */
	uint64_t rmr_context;
	struct object *lmr;
	/* EP */
	DAT_EP_STATE state;
	struct object *evds[EP_EVDS];
	DAT_EP_ATTR attr;
	struct receive recv[MOST_RECVS];
	unsigned recvs;			/* posted */
	int held[EP_EVDS];		/* operations with undequeued events */
	struct object *peer;		/* of a connection */
	struct object *cr;		/* the request that it sent, or came with */
	/* CR */
	struct object *requester;	/* NULL: it has given up */
	struct object *sp;		/* where it came first, until that is freed */
	struct object *local;		/* the EP that came with it; RSP: the reserved EP */
	struct private private;
};

/* An argument: @object is NULL unless the handle is one of a live object of the right kind. */
struct ref {
	struct object *object;
	DAT_HANDLE handle;
};

enum op {
	PZ_CREATE, CNO_CREATE, CNO_WAIT, CNO_MODIFY_AGENT, EVD_CREATE, EVD_DEQUEUE, EVD_WAIT,
	EVD_POST_SE, EVD_RESIZE, EVD_ENABLE, EVD_DISABLE, EVD_SET_UNWAITABLE,
	EVD_CLEAR_UNWAITABLE, EVD_MODIFY_CNO, LMR_CREATE, RMR_CREATE, RMR_BIND, PSP_CREATE,
	PSP_CREATE_ANY, RSP_CREATE, EP_CREATE, EP_MODIFY, EP_CONNECT, EP_DUP_CONNECT,
	EP_DISCONNECT, EP_RESET, POST_RECV, POST_SEND, POST_WRITE, POST_READ, CR_ACCEPT,
	CR_REJECT, CR_HANDOFF, FREE, QUERY, OPS
};

/* A call with its arguments. Each call uses the members that its parameters are named after. */
struct call {
	enum op op;
	enum kind kind;		/* FREE, QUERY */
	bool bad_ia, bad_family;
	bool no_out;		/* a null pointer for the result */
	bool no_data;		/* one for private data, attributes or segments */
	bool no_more;		/* EVD_WAIT: one for n_more_events; RMR_BIND: for the triplet */
	bool no_address, no_remote;
	bool no_function;	/* an agent with data alone */
	struct ref object;	/* of which the call is a method */
	struct ref pz, cno, evds[EP_EVDS], lmr, ep;
	int64_t flags, number, mask, type, qlen, threshold, qual, timeout, qos, privileges;
	int64_t at, length;	/* of an LMR, in the memory of the program */
	uint64_t cookie;
	struct private private;
	DAT_EP_ATTR attr;
	int64_t segs;
	struct seg seg[MOST_SEGS];
	struct object *target;	/* of RDMA: an LMR or RMR; NULL: none has this context */
	uint64_t remote_context;
	int64_t remote_at, remote_length;
};

/* The result: one of the returns, or success. */
struct outcome {
	DAT_RETURN permitted[24];
	unsigned n;
	bool untimely;		/* the result depends on time: the driver makes no such call */
	struct object *made;
	bool takes;		/* an event, which the driver compares */
	bool data_lost;		/* the contents of memory are not determined */
};

struct limits {
	bool strict;
	bool goodbye;		/* the peer learns whether a program ended the connection */
	bool refusal_unnamed;	/* a refused RDMA operation is flushed */
	DAT_COUNT max_evd_qlen, max_private, max_dtos, max_iov, max_read_iov, max_write_iov;
	uint64_t max_message;
};

struct model {
	struct object objects[KINDS][MOST_OBJECTS];
	struct limits limits;
	unsigned calls;
	unsigned char memory[2 * HALF];
};

extern struct model model;

/* A loop over the live objects of a kind. */
#define FOR_EACH(object, kind_)                                                      \
	for (object = model.objects[kind_];                                          \
	     object < model.objects[kind_] + MOST_OBJECTS; object++)                 \
		if ((object)->live)

/* Makes an object, or returns NULL if there are MOST_OBJECTS of the kind. */
struct object *object_make(enum kind kind);

/* Applies a call that violates no clause; else only permits the returns of these. */
void model_call(const struct call *c, struct outcome *o);

/* Whether the events that may still come can overflow an EVD. */
bool model_may_overflow(void);

/* Whether of two events of one batch @a, caused first, must be queued before @b. */
bool event_precedes(const struct event *a, const struct event *b);

/* Removes an event that the program has taken. */
void event_remove(struct object *evd, unsigned i);

#endif
