/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Qualifiers and ports: which port to listen at, and which to try next. Progress thread only. */
#ifndef DOFI_XPORT_PORTS_H
#define DOFI_XPORT_PORTS_H

#include "obj/sp/sp.h"

/*
 * A port with a listener, the first member of a transport's listener. Service points share it if
 * their qualifiers map to one port. It stays open while it has unanswered requests.
 */
struct dofi_port {
	struct dofi_ia *ia;
	uint16_t number;
	int users;			/* number of service points and unanswered requests */
	TAILQ_HEAD(, dofi_sp) sps;
	TAILQ_ENTRY(dofi_port) link;
};

struct dofi_ports_ops {
	/* Listens at @number, or at any if 0; sets ia, number. -EADDRINUSE, -EACCES: taken. */
	int (*open)(struct dofi_ia *ia, uint16_t number, struct dofi_port **port);
	/* Closes the listener; the caller frees the memory. Requests may still arrive meanwhile. */
	void (*close)(struct dofi_port *port);
};

/* The ports of an IA: the first member of a transport's part of it (dofi_ia.xport_ia). */
struct dofi_ports {
	const struct dofi_ports_ops *ops;
	TAILQ_HEAD(, dofi_port) list;
};

void dofi_ports_init(struct dofi_ports *ports, const struct dofi_ports_ops *ops);

/* dofi_xport.listen: listens at the first of the qualifier's ports that is available. */
int dofi_ports_listen(struct dofi_sp *sp);
/* dofi_xport.unlisten. */
void dofi_ports_unlisten(struct dofi_sp *sp);

/* Releases a use of @port. */
void dofi_port_put(struct dofi_port *port);

/* Returns the service point for @conn_qual at @port, where 0 is the port itself; or NULL. */
struct dofi_sp *dofi_port_sp(struct dofi_port *port, DAT_CONN_QUAL conn_qual);

/*
 * Sets @address to @base, or to the wildcard address of its family, with @port. Returns its size.
 */
size_t dofi_port_address(struct sockaddr_storage *address, const struct sockaddr_storage *base,
			 bool wildcard, uint16_t port);

/* Whether @address is of no single host. Hardware would take a minute to find no route to it. */
bool dofi_port_address_of_none(const struct sockaddr_storage *address);

/*
 * A connection attempt of @ep failed with a positive @err, because of @why, or if that is NULL for
 * the usual reason of this errno. Returns true if the next port of the qualifier, which ep->attempt
 * counts, is to be tried; else logs the reason and ends the attempt.
 */
bool dofi_port_next(struct dofi_ep *ep, int err, const char *why);
/* An attempt failed, and no other port may be tried: logs the reason and ends the attempt. */
void dofi_port_failed(struct dofi_ep *ep, int err, const char *why);

/*
 * The path to the peer of @ep is lost: ends an attempt, the active side's with @event because of
 * @why. Returns false if @ep is connected.
 */
bool dofi_port_attempt_lost(struct dofi_ep *ep, DAT_EVENT_NUMBER event, const char *why);

/* Reasons for which an attempt fails. */
#define DOFI_NO_LISTENER "the peer's provider refused: no service point takes the request"
#define DOFI_NO_ANSWER "another program or fabric listens there: it does not answer"
#define DOFI_FOREIGN_ANSWER "another program or fabric listens there: its protocol differs"

#endif
