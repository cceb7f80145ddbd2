/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport: an FI_EP_MSG endpoint per connection, libfabric's connection manager. */
#ifndef DOFI_XPORT_MSG_MSG_H
#define DOFI_XPORT_MSG_MSG_H

#include "loop/progress.h"
#include "obj/ep/ep.h"
#include "obj/sp/cr.h"
#include "obj/xport.h"
#include "sock/watch.h"
#include "xport/ports.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

extern const struct dofi_xport dofi_msg_xport;

struct msg_preamble_rx;
struct msg_mail;
struct msg_opening;

/* The transport's part of an EP. */
struct msg_ep {
	struct msg_mail *mail;		/* atomics over a connection without them, or NULL */
	struct msg_preamble_rx *preamble_rx; /* receives the next preamble for an SRQ, or NULL */
	struct msg_opening *opening;	/* of an endpoint that a thread is opening, or NULL */
	struct dofi_watch watch;	/* on the endpoint's socket; progress thread */
	/* EP lock: the peer sends a BYE before an orderly end; it did */
	bool sends_bye, got_bye;
};

_Static_assert(sizeof(struct msg_ep) <= DOFI_EP_PART, "fits into an EP");

static inline struct msg_ep *msg_part(const struct dofi_ep *ep)
{
	return (struct msg_ep *)(uintptr_t)ep->part;
}

static inline struct dofi_ep *msg_watch_owner(struct dofi_watch *watch)
{
	void *part = DOFI_CONTAINER_OF(watch, struct msg_ep, watch);

	return DOFI_CONTAINER_OF(part, struct dofi_ep, part);
}

/* connect.c: connecting, accepting and closing: members of dofi_xport. Progress thread only. */

void msg_connect(struct dofi_ep *ep);
void msg_accept(struct dofi_ep *ep);
void msg_reject(struct dofi_cr *cr, enum dofi_reject why, const void *data, size_t size);
void msg_close(struct dofi_ep *ep);
/*
 * Tries the next port of the qualifier, if there is one, after the endpoint has been closed; else
 * the attempt ends because of @why, or if that is NULL for the usual reason of @err.
 */
void msg_connect_failed(struct dofi_ep *ep, int err, const char *why);
/* Reports the local port of @ep, which some fabrics choose after resolving the peer's address. */
void msg_show_port(struct dofi_ep *ep);

/* endpoint.c: the fabric's endpoints, from fi_endpoint() to fi_close(). Progress thread only. */

/* Returns the EP of @fid; NULL if @fid was closed after the event was queued. */
struct dofi_ep *msg_ep_of(struct dofi_ia *ia, const struct fid *fid);
/*
 * Returns the fabric's info with the @len bytes of @address, as the address of the endpoint's own
 * end or of its peer. NULL without memory.
 */
struct fi_info *msg_info_with(const struct dofi_ia *ia, const struct sockaddr_storage *address,
			      size_t len, bool own);
/* Sets the traffic class in @info, and fixed queue sizes: as long as @ep needs them. */
void msg_info_fit(const struct dofi_ep *ep, struct fi_info *info);
/* Takes over @fid, opened with @info, and posts pending receives. Sets @own for the peer. */
int msg_endpoint_take(struct dofi_ep *ep, const struct fi_info *info, struct fid_ep *fid,
		      struct dofi_mailbox *own);
/* Closes the endpoint of @ep, if it has one, or cancels its opening. */
void msg_endpoint_close(struct dofi_ep *ep);
/* dofi_xport.finish */
bool msg_endpoint_finish(struct dofi_ep *ep);

/* dofi_xport.ep_init */
void msg_ep_init(struct dofi_ep *ep);
/* The watched socket of @ep, or -1; for checks. Progress thread. */
static inline int msg_watched(const struct dofi_ep *ep)
{
	return ep->obj.ia->xport->ep_init == msg_ep_init ? msg_part(ep)->watch.fd : -1;
}

/*
 * open.c: opening endpoints where that takes time.
 *
 * Verbs resolves the route to the peer within fi_endpoint, and waits up to two seconds for it. Such
 * calls have threads of their own, so that the progress thread can serve the IA meanwhile; it
 * continues when the call has returned. Progress thread only.
 */

/* Callback: fi_endpoint returned @ret, and @fid if that is 0. Does not own @info. */
typedef void msg_opened(struct dofi_ep *ep, struct fi_info *info, struct fid_ep *fid, int ret);
/* Opens an endpoint for @ep with @info, which it takes over; @opened is called at once or later. */
void msg_open(struct dofi_ep *ep, struct fi_info *info, msg_opened *opened);
/* Cancels the opening for @ep, if there is one; its endpoint will be closed. */
void msg_open_cancel(struct dofi_ep *ep);
/* dofi_xport.pz_close: waits for openings in @pz, which were all cancelled. */
void msg_open_pz_close(struct dofi_pz *pz);

/* listen.c: listeners, arriving requests, rejections. */

/* A listener at a port. Rejecting a request needs the passive endpoint that it came through. */
struct msg_listener {
	struct dofi_port port;
	struct fid_pep *pep;
	struct fi_info *info;		/* sockets goes on reading the info it was opened with */
};

/* Endpoints that are being opened, or are pending: see open.c. */
struct msg_openings {
	TAILQ_HEAD(, msg_opening) list;
	unsigned threads;
};

/* The transport's part of an IA. */
struct msg_ia {
	struct dofi_ports ports;	/* first, see xport/ports.h */
	DAT_COUNT request_size;		/* bytes for a qualifier and private data in a request */
	struct msg_openings openings;	/* of all PZs */
	void *endpoints;		/* tsearch tree of struct msg_conn, by fid */
};

_Static_assert(offsetof(struct msg_ia, ports) == 0, "dofi_ia.xport_ia is the ports");

extern const struct dofi_ports_ops msg_ports_ops;

/* The transport's part of a connection request. */
struct msg_request {
	struct fi_info *info;		/* opens the endpoint that accepts the request */
	struct msg_listener *listener;	/* that the request came through */
};

/* Processes a connection request with @size bytes of private data. Takes over @info. */
void msg_arrived(struct dofi_ia *ia, struct fid *pep, struct fi_info *info,
		 const void *data, size_t size);
/* Rejects @request, and frees it. */
void msg_refuse(struct msg_request *request, enum dofi_reject why, const void *data, size_t size);
void msg_request_free(struct msg_request *request);

/* event.c: dofi_progress_ops.cm_event and .cm_error. */

void msg_event(struct dofi_progress *p, uint32_t event, struct fi_eq_cm_entry *entry, size_t len);
void msg_error(struct dofi_progress *p, const struct fi_eq_err_entry *e);
/* The watch has noticed that the peer ended the connection, or that its host does not respond. */
void msg_peer_ended(struct dofi_source *source);

/* op.c: operations and completions. */

/* dofi_xport.submit, .write, .read and .probe. */
int msg_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
ssize_t msg_write(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr,
		  uint64_t key, void *context);
ssize_t msg_read(struct dofi_ep *ep, void *buf, size_t len, void *desc, uint64_t addr, uint64_t key,
		 void *context);
int msg_probe(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
/* dofi_xport.holds and .cancel. */
bool msg_holds(const struct dofi_ep *ep, const struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
void msg_cancel(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
/* dofi_progress_ops.completed */
void msg_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);
/* Variants for fabrics that lose FI_REMOTE_CQ_DATA: all messages have CQ data, which is not 0. */
int msg_marked_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
void msg_marked_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/*
 * native.c: dofi_xport.submit and dofi_progress_ops.completed of hardware, which has its own
 * immediate data (dofi_fabric_choice.immed), atomics and fences. CQs are serial there.
 */
int msg_native_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
dofi_send msg_native_send;
dofi_recv msg_native_recv;
dofi_rdma msg_native_write, msg_native_read;
void msg_native_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink);

/*
 * srq.c: how an endpoint of an SRQ receives where the fabric matches messages to receives. The peer
 * sends a preamble in front of each message: a short message follows it in the same message of the
 * fabric, a longer one in the next.
 *
 *	byte 0     magic
 *	byte 1     1: the message is behind it; 2: it is the next message of the fabric
 *	byte 2-3   zero
 *	byte 4-11  length of the message, big-endian
 *	byte 12-19 the remote CQ data of the message (obj/cq_data.h), big-endian
 *
 * A fabric's own shared receive context names the buffer in its completions but not the endpoint
 * that took it (measured on tcp and sockets of 1.17). It takes buffers without regard to
 * watermarks, and gives none back. A preamble arrives at its endpoint, which takes a buffer only
 * when it knows that there is a message, and how long it is. The private data of a connection asks
 * the peer to send preambles; other peers send none.
 */

#define MSG_PREAMBLE_SIZE 20
#define MSG_PREAMBLE_MAX 128		/* with its message; software fabrics can inject it */

struct msg_preamble {
	uint64_t length;		/* of the message */
	uint64_t cq_data;		/* the remote CQ data of the message */
	bool whole;			/* the message is behind it; else it is the next one */
};

void msg_preamble_pack(unsigned char buf[MSG_PREAMBLE_SIZE], const struct msg_preamble *preamble);
/* Parses @len bytes of an untrusted peer. 0, or -EPROTO when they are no preamble. */
int msg_preamble_unpack(const void *buf, size_t len, struct msg_preamble *preamble);

/* The functions of dofi_xport with these names. */
int msg_srq_open(struct dofi_ep *ep);
void msg_srq_close(struct dofi_ep *ep);
void msg_srq_listen(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);
void msg_srq_arrived(struct dofi_ep *ep, struct dofi_dto *dto, size_t len, int err,
		     struct dofi_sink *sink) DOFI_NEEDS(ep->lock);
void msg_srq_fed(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);
void msg_srq_clear(struct dofi_ep *ep);
/* Whether a message has arrived, and the SRQ has no buffer for it. */
bool msg_srq_waits(const struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/*
 * mail.c: atomic operations over connections that lack them: each end has a mailbox, memory into
 * which its peer writes.
 *
 * A request is an RDMA write into the target's mailbox, with the number of its EP as remote CQ
 * data. It completes no receive, but the thread that polls the target's CQ gets the number. That
 * thread carries out the request, and writes a reply into the requester's mailbox in return.
 * Requests are numbered, and each number has its slot. A write without a request of the next number
 * has no effect.
 */

#define MSG_MAIL_SLOTS 16		/* most outstanding requests of each end */

/* Whether connections of @ia have mailboxes. */
bool msg_mail_offered(const struct dofi_ia *ia);
/* Makes the mailbox of @ep, if offered, and @own for the peer. 0 or -errno. No lock held. */
int msg_mail_open(struct dofi_ep *ep, struct msg_mail **mail, struct dofi_mailbox *own);
/* Frees @mail, which no connection uses; NULL is ignored. Progress thread, no lock held. */
void msg_mail_close(struct msg_mail *mail);
/* dofi_xport.submit of an atomic. */
int msg_mail_submit(struct dofi_ep *ep, struct dofi_dto *dto) DOFI_NEEDS(ep->lock);
/* Processes a write with remote CQ data @data: a goodbye, or mail. Any thread, no EP lock held. */
void msg_mail_arrived(uint64_t data, struct dofi_sink *sink);
/* dofi_xport.resume: sends replies that the fabric did not take before. EP lock held. */
void msg_mail_resume(struct dofi_ep *ep) DOFI_NEEDS(ep->lock);

/*
 * Goodbyes, also in mail.c: how an orderly end differs from a lost connection.
 *
 * On stream fabrics the stream ends without a reason, whether the peer disconnects, is killed, or
 * refuses an RDMA operation. So an orderly end sends a goodbye last: an RDMA write of no bytes to
 * no memory. Its remote CQ data identifies the connection. It needs no receive and no key. A stream
 * that ends without a goodbye was broken.
 *
 * The number of a mailbox reports that its owner sends a goodbye (MSG_SENDS_BYE). A peer of an
 * older version does not; its end counts as orderly, as in that version, and it ignores our
 * goodbye.
 */

/* A flag in the number of a mailbox. */
#define MSG_SENDS_BYE (1u << 31)

/* Processes the peer's mailbox for @ep, which connects. EP lock held. */
void msg_bye_learn(struct dofi_ep *ep, const struct dofi_mailbox *peers) DOFI_NEEDS(ep->lock);
/* Sends a goodbye on @fid, the endpoint of @ep, before it is shut down. Progress thread. */
void msg_bye_send(struct dofi_ep *ep, struct fid_ep *fid);

#endif
