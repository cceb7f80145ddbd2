/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The contract of a transport: how endpoints reach their peers. */
#ifndef DOFI_OBJ_XPORT_H
#define DOFI_OBJ_XPORT_H

#include "obj/dat.h"
#include "obj/mailbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dofi_cr;
struct dofi_datagrams;
struct dofi_dto;
struct dofi_ep;
struct dofi_exchange;
struct dofi_fast;
struct dofi_ia;
struct dofi_progress_ops;
struct dofi_pz;
struct dofi_sink;
struct dofi_sp;
struct fid_ep;

/* Most bytes of an RDMA write with immediate data. */
#define DOFI_WRITE_IMMED_MAX ((1u << 29) - 1)

/* Why a connection request is rejected. */
enum dofi_reject {
	DOFI_REJECT_CONSUMER,	/* dat_cr_reject: the peer sees PEER_REJECTED */
	DOFI_REJECT_PROVIDER,	/* no listener, or no memory: NON_PEER_REJECTED */
};

/* The result of dofi_xport.submit(), dofi_send and dofi_rdma for an operation that is done. */
#define DOFI_DONE 1

/*
 * Sends @len bytes at @buf; the completion will have @context. Returns 0; DOFI_DONE if no
 * completion comes; or a negative errno if nothing was sent, and submit() has to decide. The type
 * is fi_ops_msg.send's, so that the fabric's function can be called directly: @to is
 * ep->fast.to, and @unused 0.
 */
typedef ssize_t dofi_send(struct fid_ep *to, const void *buf, size_t len, void *desc,
			  uint64_t unused, void *context);

/*
 * Receives up to @len bytes at @buf; the completion will have @context. Returns 0, or a negative
 * errno if nothing was posted, and submit() has to decide. The type is fi_ops_msg.recv's.
 */
typedef ssize_t dofi_recv(struct fid_ep *to, void *buf, size_t len, void *desc, uint64_t unused,
			  void *context);

/*
 * Writes to the peer's memory at @addr, of which @key is the fabric's key, or reads it. Returns
 * what dofi_send does.
 */
typedef ssize_t dofi_rdma(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
			  uint64_t key, void *context);

/* Runs under the EP lock, on any thread, unless a comment says otherwise. */
struct dofi_xport_srq {
	/*
	 * Makes or frees the transport's state for an EP that has its SRQ and PZ and is not
	 * published; close() also after a failed open(). Progress thread, no lock held. Returns 0
	 * or a negative errno. The IA's transport is called, as the EP may be connected later.
	 */
	int (*open)(struct dofi_ep *ep);
	void (*close)(struct dofi_ep *ep);
	/* Posts a receive for the next message of @ep, if there is room for one. */
	void (*listen)(struct dofi_ep *ep);
	/* The receive @dto of kind DOFI_DTO_PREAMBLE ended, with @len bytes, or a positive @err. */
	void (*arrived)(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
			struct dofi_sink *sink);
	/*
	 * The connection, or an attempt, has ended: the fabric has no receive of @ep. The IA's
	 * transport is called.
	 */
	void (*clear)(struct dofi_ep *ep);
};

struct dofi_xport {
	const char *name;
	/* For the progress thread; the member completed ends the operation, by dofi_dto_end(). */
	const struct dofi_progress_ops *progress_ops;
	/* Bytes that the transport adds to private data. */
	size_t header_size;
	/*
	 * Bytes of data that the transport itself carries with a request; 0: the fabric carries it,
	 * and its limit is queried.
	 */
	size_t cm_data_size;
	/*
	 * How much of ia->max_private_data a request for @conn_qual carries. Any thread. NULL:
	 * all of it.
	 */
	DAT_COUNT (*request_data_max)(const struct dofi_ia *ia, DAT_CONN_QUAL conn_qual);
	/*
	 * EPs with an SRQ, where the fabric matches messages to receives. NULL: the transport
	 * matches them itself, and takes an SRQ's buffers with dofi_srq_receive().
	 */
	const struct dofi_xport_srq *srq;

	/*
	 * The functions below run on the progress thread with no lock held, unless a comment says
	 * otherwise.
	 */

	/*
	 * Makes and frees the transport's state of the IA: first and last of all calls. 0 or a
	 * negative errno.
	 */
	int (*ia_init)(struct dofi_ia *ia);
	void (*ia_fini)(struct dofi_ia *ia);

	/* Initializes ep->part of a new EP. May be NULL. Any thread. */
	void (*ep_init)(struct dofi_ep *ep);
	/* Ends the transport's state of a PZ, before its domain closes. May be NULL. */
	void (*pz_close)(struct dofi_pz *pz);

	/*
	 * Listens for @sp->conn_qual, or picks one and stores it when that is 0.
	 * -EADDRINUSE when the qualifier is taken.
	 */
	int (*listen)(struct dofi_sp *sp);
	/* Ends that. Requests that were delivered stay answerable. */
	void (*unlisten)(struct dofi_sp *sp);

	/* Starts to connect @ep as its request says; ends in dofi_ep_established or dofi_ep_end. */
	void (*connect)(struct dofi_ep *ep);
	/*
	 * Accepts ep->accepting with @ep, and takes it over; ends in dofi_ep_established or
	 * dofi_ep_end.
	 */
	void (*accept)(struct dofi_ep *ep);
	/*
	 * Where an IA has two transports: @ep, which is connecting, has not reached its peer by the
	 * first transport, has nothing open there, and tries the second. NULL: it has one.
	 */
	void (*connect_otherwise)(struct dofi_ep *ep);
	/* Rejects @cr; cr->request is freed on return. */
	void (*reject)(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);

	/*
	 * Closes @ep's objects at the fabric, and the request that it has not accepted yet;
	 * idempotent. On return every completion that the fabric had was handed to
	 * dofi_dto_complete().
	 */
	void (*close)(struct dofi_ep *ep);
	/*
	 * Ends the connection of @ep, of which all requests are done, once the peer has taken all
	 * that they sent. Returns true if the transport waits for the peer: it then queues
	 * DOFI_EP_CLOSE, and is called again. close() follows in any case, at any time. NULL: an
	 * operation that is done here is done at the peer.
	 */
	bool (*finish)(struct dofi_ep *ep);

	/*
	 * Hands one operation to the fabric. EP lock held; no allocation. Returns 0; -FI_EAGAIN to
	 * be called again after a completion; another negative errno if the operation failed; or
	 * DOFI_DONE if it has ended well, and no completion comes.
	 */
	int (*submit)(struct dofi_ep *ep, struct dofi_dto *dto);
	/*
	 * submit() may return -FI_EAGAIN while nothing is in flight that completes, as the fabric
	 * may lack memory: a sweep calls it again. close() ends ep->stall. Other transports
	 * continue by themselves.
	 */
	bool retries;

	/*
	 * Sets fast->send, fast->recv and fast->to of an EP with plain operations: messages of one
	 * segment without immediate data, and receives into one segment. NULL in send or recv, and
	 * fast itself: submit() is as simple. fast(), send, recv, write and read are called with
	 * the EP lock held.
	 */
	void (*fast)(struct dofi_ep *ep, struct dofi_fast *fast);
	/* RDMA with one local segment; NULL if that is not simpler than submit(). */
	dofi_rdma *write, *read;
	/*
	 * Posts a write of no bytes to no memory, with the context of @dto: it completes when the
	 * peer has acknowledged it. EP lock held. 0 or a negative errno. NULL: the transport loses
	 * no answers (dofi_quirk.loses_answers).
	 */
	int (*probe)(struct dofi_ep *ep, struct dofi_dto *dto);

	/*
	 * Whether the fabric, or the peer, may still use the memory of @dto, which is not done. If
	 * not, the slot alone decides the operation's end. EP lock held.
	 */
	bool (*holds)(const struct dofi_ep *ep, const struct dofi_dto *dto);
	/*
	 * Cancels the receive @dto at the fabric: if the fabric returns it, a completion with
	 * FI_ECANCELED is in the CQ on return. NULL if holds() is false for each receive that could
	 * be cancelled. EP lock held.
	 */
	void (*cancel)(struct dofi_ep *ep, struct dofi_dto *dto);

	/*
	 * Continues pending frames, or replies that the fabric refused: resume_pending. Called
	 * after an operation has completed or a receive was posted. EP lock held. NULL: the
	 * transport never sets resume_pending.
	 */
	void (*resume)(struct dofi_ep *ep);

	/*
	 * The SRQ has a buffer for @ep, which is first in the line. The transport takes the buffer,
	 * by dofi_srq_receive() or dofi_srq_buffer(), or leaves the line, by dofi_srq_leave(). EP
	 * lock held, any thread. NULL: no EP stays in the line after the EP lock is dropped.
	 */
	void (*srq_fed)(struct dofi_ep *ep);
};

/*
 * The service as a transport implements it. All functions run on the progress thread with no lock
 * held, unless a comment says otherwise.
 */
struct dofi_datagrams {
	/*
	 * The transport of its EPs and of requests for them. Of its members only name, reject,
	 * close, submit, fast and holds (which is false for all operations) are used. close() also
	 * gives up the exchanges in ep->exchanges, with dofi_exchange_end() or without: no event
	 * comes.
	 */
	const struct dofi_xport *xport;

	/*
	 * Finds the fabric of @ia's datagrams, and sets ia->datagram_size. Returns 0 or a negative
	 * errno if there is none. Called once @ia has its transport; ia_fini() ends that.
	 */
	int (*ia_init)(struct dofi_ia *ia);
	void (*ia_fini)(struct dofi_ia *ia);
	/*
	 * Ends the state of a PZ, and its address handles, before its domain closes. Called if
	 * pz->datagrams_pz is not NULL.
	 */
	void (*pz_close)(struct dofi_pz *pz);

	/*
	 * Opens @ep, which has its parts and is not published: sets ep->conn, ep->fid and the CQ.
	 * The caller opens the queues. Returns 0 or a negative errno. ep->xport->close() ends that.
	 */
	int (*open)(struct dofi_ep *ep);

	/* @sp listens, or ends; also called while the IA has no datagram EP. */
	void (*listen)(struct dofi_sp *sp);
	void (*unlisten)(struct dofi_sp *sp);

	/* Requests the peer's address as x->request says; ends in dofi_exchange_end(). */
	void (*connect)(struct dofi_exchange *x);
	/*
	 * Accepts @request, of a CR, with x->ep, and takes @request over; ends in
	 * dofi_exchange_end().
	 */
	void (*accept)(struct dofi_exchange *x, void *request);

	/* Whether @ah, any value but NULL, is an address handle of the PZ of @ep. Any thread. */
	bool (*ah_valid)(const struct dofi_ep *ep, const void *ah);
	/*
	 * Gives up a reference to @ah, any value but NULL. Returns false if it is no address handle
	 * of the PZ of @ep.
	 */
	bool (*ah_free)(struct dofi_ep *ep, void *ah);
};

/* The transports of the kinds of endpoints that fabrics have; local: of shared memory alone. */
struct dofi_xports {
	const struct dofi_xport *connected, *connectionless, *local;
	/*
	 * Adds a second fabric, ia->local, to an IA with an open connected transport. Returns 0,
	 * or a negative errno, and the IA has none. Progress thread. NULL: there is no such fabric.
	 */
	int (*add_local)(struct dofi_ia *ia);
	/* The datagram service; NULL in a provider of 1.2. */
	const struct dofi_datagrams *datagrams;
};

#endif
