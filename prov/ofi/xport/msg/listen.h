/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport, passive side: listeners, arriving requests, rejections. */
#ifndef DOFI_XPORT_MSG_LISTEN_H
#define DOFI_XPORT_MSG_LISTEN_H

#include "obj/cr.h"
#include "xport/ports.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

/* A listener at a port. Rejecting a request needs the passive endpoint that it came through. */
struct msg_listener {
	struct dofi_port port;
	struct fid_pep *pep;
	struct fi_info *info;		/* sockets goes on reading what it was opened with */
};

/* Endpoints that are being opened, or are pending: see open.c. */
struct msg_openings {
	TAILQ_HEAD(, msg_opening) list;
	unsigned threads;
};

/* The transport's part of an IA. */
struct msg_ia {
	struct dofi_ports ports;
	DAT_COUNT request_size;		/* bytes for a qualifier and private data in a request */
	struct msg_openings openings;	/* of all PZs */
	void *endpoints;		/* tsearch tree of struct msg_conn, by fid */
};

extern const struct dofi_ports_ops msg_ports_ops;

/* The transport's part of a connection request. */
struct msg_request {
	struct fi_info *info;		/* the endpoint that accepts the request is opened with it */
	struct msg_listener *listener;	/* that the request came through */
};

int msg_listen(struct dofi_sp *sp);
void msg_unlisten(struct dofi_sp *sp);

/* Processes a connection request with @size bytes of private data. Takes over @info. */
void msg_arrived(struct dofi_ia *ia, struct fid *pep, struct fi_info *info,
		 const void *data, size_t size);

/* Rejects @request, and frees it. */
void msg_refuse(struct msg_request *request, enum dofi_reject why, const void *data,
		size_t size);
void msg_request_free(struct msg_request *request);

#endif
