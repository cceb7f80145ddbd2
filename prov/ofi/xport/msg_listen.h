/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The connected transport's passive side: listeners, arriving requests, rejections. */
#ifndef DOFI_XPORT_MSG_LISTEN_H
#define DOFI_XPORT_MSG_LISTEN_H

#include "obj/cr.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

/*
 * A port that is listened on. Several service points share one when their qualifiers
 * map to it. It stays open while requests that came through it are unanswered:
 * rejecting one takes the passive endpoint. Progress thread only.
 */
struct msg_listener {
	struct dofi_ia *ia;
	struct fid_pep *pep;
	struct fi_info *info;		/* sockets goes on reading what it was opened with */
	uint16_t port;
	int users;			/* service points and unanswered requests */
	TAILQ_HEAD(, dofi_sp) sps;
	TAILQ_ENTRY(msg_listener) link;
};

/* The IA's state of this transport. */
struct msg_ia {
	TAILQ_HEAD(, msg_listener) listeners;
	void *endpoints;		/* tsearch tree of struct msg_conn, by fid */
};

int msg_listen(struct dofi_sp *sp);
void msg_unlisten(struct dofi_sp *sp);
void msg_listener_put(struct msg_listener *listener);

/* A connection request of @size private bytes came in. Takes over @info. */
void msg_request(struct dofi_ia *ia, struct fid *pep, struct fi_info *info,
		 const void *data, size_t size);

/* Tells the peer no, and releases @info. */
void msg_turn_down(struct msg_listener *listener, struct fi_info *info, enum dofi_reject why,
		   const void *data, size_t size);

/* @base with @port; the wildcard address of its family if @wildcard. */
size_t msg_address(struct sockaddr_storage *address, const struct sockaddr_storage *base,
		   bool wildcard, uint16_t port);

#endif
