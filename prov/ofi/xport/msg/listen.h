/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport's passive side: listeners, arriving requests, rejections. */
#ifndef DOFI_XPORT_MSG_LISTEN_H
#define DOFI_XPORT_MSG_LISTEN_H

#include "obj/cr.h"
#include "xport/ports.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

/* A port that is listened on: rejecting a request takes the passive endpoint that it came to. */
struct msg_listener {
	struct dofi_port port;
	struct fid_pep *pep;
	struct fi_info *info;		/* sockets goes on reading what it was opened with */
};

/* Endpoints that are being opened, or wait for that: see msg_open.c. */
struct msg_openings {
	TAILQ_HEAD(, msg_opening) list;
	unsigned threads;
};

/* The IA's state of this transport. */
struct msg_ia {
	struct dofi_ports ports;
	DAT_COUNT room;			/* for a qualifier and private data in a request */
	struct msg_openings openings;	/* of all PZs */
	void *endpoints;		/* tsearch tree of struct msg_conn, by fid */
};

extern const struct dofi_ports_ops msg_ports_ops;

/* This transport's part of a connection request. */
struct msg_request {
	struct fi_info *info;		/* what the endpoint that accepts it is made from */
	struct msg_listener *listener;	/* what it came through */
};

int msg_listen(struct dofi_sp *sp);
void msg_unlisten(struct dofi_sp *sp);

/* A connection request of @size private bytes came in. Takes over @info. */
void msg_arrived(struct dofi_ia *ia, struct fid *pep, struct fi_info *info,
		 const void *data, size_t size);

/* Tells the peer no, and frees @request. */
void msg_refuse(struct msg_request *request, enum dofi_reject why, const void *data,
		size_t size);
void msg_request_free(struct msg_request *request);

#endif
