/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of CM sockets. */

#include "xport/cm/address.h"

#include "fab/grant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* The size of an abstract name that ends with a NUL. */
static socklen_t name_len(const struct sockaddr_un *name)
{
	return offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name->sun_path + 1);
}

socklen_t dofi_cm_address_len(const struct sockaddr *address)
{
	if (address->sa_family == AF_UNIX)
		return name_len((const struct sockaddr_un *)address);
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
}

int dofi_cm_socket(const struct sockaddr *address)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
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

bool dofi_cm_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	socklen_t len;
	const void *ip_a = ip_of(a, &len), *ip_b = ip_of(b, &len);

	return a->ss_family == b->ss_family && !memcmp(ip_a, ip_b, len);
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* The kernel looks up the route; nothing is sent. Loopback may be down in a namespace. */
bool dofi_cm_is_here(const struct sockaddr_storage *address)
{
	struct sockaddr_storage to = *address, from;
	socklen_t from_len = sizeof(from), to_len = sizeof(to);
	bool has;
	int fd;

	if (is_loopback(address))
		return true;
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	*dofi_cm_port(&to) = htons(9);
	has = !connect(fd, (struct sockaddr *)&to, dofi_cm_address_len((struct sockaddr *)&to)) &&
	      !getsockname(fd, (struct sockaddr *)&from, &from_len) &&
	      !getpeername(fd, (struct sockaddr *)&to, &to_len) &&
	      (is_loopback(&to) || dofi_cm_same_ip(&from, &to));
	close(fd);
	return has;
}

/* Names of local sockets that connect */

#define FROM "dat-ofi/from/"

#define PORT_TRIES 16

void dofi_cm_name_socket(int fd, const struct sockaddr_storage *to)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	char ip[INET6_ADDRSTRLEN] = "";
	socklen_t ip_len;
	int i;

	inet_ntop(to->ss_family, ip_of(to, &ip_len), ip, sizeof(ip));
	for (i = 0; i < PORT_TRIES; i++) {
		snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, FROM "%s:%u", ip,
			 0x8000 | (dofi_random() & 0x7fff));
		if (!bind(fd, (struct sockaddr *)&name, name_len(&name)) || errno != EADDRINUSE)
			return;
	}
}

void dofi_cm_show_name(struct sockaddr_storage *peer, socklen_t len)
{
	const struct sockaddr_un *name = (const struct sockaddr_un *)peer;
	const size_t first = offsetof(struct sockaddr_un, sun_path) + 1;
	char text[sizeof(name->sun_path)] = "", *ip = text + strlen(FROM), *colon;

	if (len > first && len <= sizeof(*name))
		memcpy(text, name->sun_path + 1, len - first);
	colon = strncmp(text, FROM, strlen(FROM)) ? NULL : strrchr(ip, ':');
	memset(peer, 0, sizeof(*peer));
	if (colon) {
		*colon = 0;
		if (inet_pton(AF_INET, ip, &((struct sockaddr_in *)peer)->sin_addr) == 1)
			peer->ss_family = AF_INET;
		else if (inet_pton(AF_INET6, ip, &((struct sockaddr_in6 *)peer)->sin6_addr) == 1)
			peer->ss_family = AF_INET6;
	}
	if (peer->ss_family) {
		*dofi_cm_port(peer) = htons((uint16_t)strtoul(colon + 1, NULL, 10));
		return;
	}
	memset(peer, 0, sizeof(*peer));
	peer->ss_family = AF_INET;
	((struct sockaddr_in *)peer)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

bool dofi_cm_is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}
