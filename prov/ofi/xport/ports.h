/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Qualifiers at ports: who listens where, and where to try next. Progress thread only. */
#ifndef DOFI_XPORT_PORTS_H
#define DOFI_XPORT_PORTS_H

#include "obj/sp.h"

/*
 * A port that is listened on; a transport has it first in its own kind of listener. Several
 * service points share one when their qualifiers map to it. It stays open while requests that
 * came through it are unanswered.
 */
struct dofi_port {
	struct dofi_ia *ia;
	uint16_t number;
	int users;			/* service points and unanswered requests */
	TAILQ_HEAD(, dofi_sp) sps;
	TAILQ_ENTRY(dofi_port) link;
};

struct dofi_ports_ops {
	/*
	 * Listens at @number, or at any free port if that is 0, with ia and number filled in.
	 * -EADDRINUSE or -EACCES when the port cannot be had.
	 */
	int (*open)(struct dofi_ia *ia, uint16_t number, struct dofi_port **port);
	/* Ends all but the memory, which is free()'d. Requests may still arrive meanwhile. */
	void (*close)(struct dofi_port *port);
};

/* Those of an IA. */
struct dofi_ports {
	const struct dofi_ports_ops *ops;
	TAILQ_HEAD(, dofi_port) list;
};

void dofi_ports_init(struct dofi_ports *ports, const struct dofi_ports_ops *ops);

/* dofi_xport.listen: at the first of the qualifier's ports that can be had. */
int dofi_ports_listen(struct dofi_ports *ports, struct dofi_sp *sp);
void dofi_ports_unlisten(struct dofi_ports *ports, struct dofi_sp *sp);

/* A user less. */
void dofi_port_put(struct dofi_ports *ports, struct dofi_port *port);

/* Who listens for @conn_qual there, 0 for that of the port itself; or NULL. */
struct dofi_sp *dofi_port_sp(struct dofi_port *port, DAT_CONN_QUAL conn_qual);

/* @base with @port; the wildcard address of its family if @wildcard. How long it is. */
size_t dofi_port_address(struct sockaddr_storage *address, const struct sockaddr_storage *base,
			 bool wildcard, uint16_t port);

/* Whether @address is of no single host: hardware would ask there in vain for a minute. */
bool dofi_port_address_of_none(const struct sockaddr_storage *address);

/*
 * An attempt of @ep to connect failed with a positive @err. True if it is to try the qualifier's
 * next port, which ep->attempt counts; else the attempt ends.
 */
bool dofi_port_next(struct dofi_ep *ep, int err);

#endif
