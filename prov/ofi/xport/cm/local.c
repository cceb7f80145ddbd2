/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CM connections within a host: sockets of AF_UNIX, whose kernel says who is at the other end. */

#include "xport/cm/local.h"

#include "base/log.h"
#include "fab/grant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Addresses */

static uint16_t *port_of(struct sockaddr_storage *address)
{
	return &((struct sockaddr_in *)address)->sin_port;	/* in the same place in both */
}

static const void *ip_of(const struct sockaddr_storage *a, socklen_t *len)
{
	if (a->ss_family == AF_INET6) {
		*len = sizeof(struct in6_addr);
		return &((const struct sockaddr_in6 *)a)->sin6_addr;
	}
	*len = sizeof(struct in_addr);
	return &((const struct sockaddr_in *)a)->sin_addr;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* What is sent to an address of our own is sent from that address. */
static bool ends_are_one(int fd)
{
	struct sockaddr_storage here, there;
	socklen_t here_len = sizeof(here), there_len = sizeof(there), ip_len;
	const void *a, *b;

	if (getsockname(fd, (struct sockaddr *)&here, &here_len) ||
	    getpeername(fd, (struct sockaddr *)&there, &there_len))
		return false;
	a = ip_of(&here, &ip_len);
	b = ip_of(&there, &ip_len);
	return is_loopback(&there) || !memcmp(a, b, ip_len);
}

/* The kernel looks for the route; nothing is sent. */
bool dofi_local_has(const struct sockaddr_storage *address)
{
	struct sockaddr_storage to = *address;
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has;

	if (fd < 0)
		return false;
	*port_of(&to) = htons(9);
	has = !connect(fd, (struct sockaddr *)&to, dofi_cm_address_len((struct sockaddr *)&to)) &&
	      ends_are_one(fd);
	close(fd);
	return has;
}

/* Names */

#define FROM "dat-ofi/from/"

socklen_t dofi_local_len(const struct sockaddr_un *name)
{
	return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name->sun_path + 1);
}

static void listener_name(struct sockaddr_un *name, uint64_t conn_qual)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dat-ofi/side/%" PRIu64, conn_qual);
}

#define PORT_TRIES 16

/* Without a name it can connect, too. */
static void socket_name(int fd, const struct sockaddr_storage *to)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	char ip[INET6_ADDRSTRLEN] = "";
	socklen_t ip_len;
	int i;

	inet_ntop(to->ss_family, ip_of(to, &ip_len), ip, sizeof(ip));
	for (i = 0; i < PORT_TRIES; i++) {
		snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, FROM "%s:%u", ip,
			 0x8000 | (dofi_random() & 0x7fff));
		if (!bind(fd, (struct sockaddr *)&name, dofi_local_len(&name)) ||
		    errno != EADDRINUSE)
			return;
	}
}

/* "ADDRESS:PORT", from which the last colon is taken away. */
static bool address_read(char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	char *colon = strrchr(text, ':');

	if (!colon)
		return false;
	*colon = 0;
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		address->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		address->ss_family = AF_INET6;
	else
		return false;
	*port_of(address) = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	return true;
}

void dofi_local_show(struct sockaddr_storage *peer, socklen_t len)
{
	const struct sockaddr_un *name = (const struct sockaddr_un *)peer;
	const size_t first = offsetof(struct sockaddr_un, sun_path) + 1;
	char text[sizeof(name->sun_path)] = "";

	if (len > first && len <= sizeof(*name))
		memcpy(text, name->sun_path + 1, len - first);
	if (!strncmp(text, FROM, strlen(FROM)) && address_read(text + strlen(FROM), peer))
		return;
	memset(peer, 0, sizeof(*peer));
	peer->ss_family = AF_INET;
	((struct sockaddr_in *)peer)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

/* Users */

bool dofi_local_is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

/* Any user may take any name, and a program with many service points meets it many times. */
static void report_taken(const struct sockaddr_un *name)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	enum dofi_log_level level = atomic_flag_test_and_set(&reported) ? DOFI_INFO : DOFI_WARN;

	dofi_log(level, DOFI_CM, "@%s is taken, see ss -xlp: peers on this host use the network, "
		 "not shared memory", name->sun_path + 1);
}

/* Connections */

int dofi_local_listen(struct dofi_progress *progress, uint64_t conn_qual,
		      const struct dofi_cm_ops *ops, void *owner,
		      struct dofi_cm_listener **listener)
{
	struct sockaddr_un name;
	int ret;

	listener_name(&name, conn_qual);
	ret = dofi_cm_listen(progress, (struct sockaddr *)&name, ops, owner, listener);
	if (ret == -EADDRINUSE)
		report_taken(&name);
	return ret;
}

int dofi_local_connect(struct dofi_progress *progress, uint64_t conn_qual,
		       const struct sockaddr_storage *to, const struct dofi_cm_ops *ops,
		       void *owner, const struct dofi_cm_msg *first, struct dofi_cm_conn **conn)
{
	struct sockaddr_un name;
	int fd;

	listener_name(&name, conn_qual);
	fd = dofi_cm_socket((struct sockaddr *)&name);
	if (fd < 0)
		return fd;
	socket_name(fd, to);
	return dofi_cm_connect_by(progress, fd, (struct sockaddr *)&name, ops, owner, first, conn);
}
