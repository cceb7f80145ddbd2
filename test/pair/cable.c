/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two roles as two hosts: network namespaces, and a veth pair as the cable between them. */

#include "cable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NETWORK 0xc6120000	/* 198.18.0.0/15, reserved for network tests */

void command(const char *format, ...)
{
	static bool works; /* this process may set up networks */
	char text[200];
	va_list ap;
	int status;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	status = system(text);
	/* the kernel may lack the module of a queue discipline */
	if (status && (!works || !strncmp(text, "tc ", 3)))
		pair_skip("this command fails: %s", text);
	CHECK(!status, "this command fails: %s", text);
	works = true;
}

static void interface_ioctl(unsigned long what, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(!ioctl(fd, what, ifr), "%s: %s", ifr->ifr_name, strerror(errno));
	close(fd);
}

void network_make(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (unshare(CLONE_NEWNET))
		pair_skip("unshare: %s", strerror(errno));
	interface_ioctl(SIOCSIFFLAGS, &lo);
}

struct sockaddr_in cable_address(unsigned number)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(NETWORK | number) };
}

/* libfabric ignores the interface until the kernel has seen its other end, so wait for that. */
static void wait_running(void)
{
	struct ifreq ifr = { .ifr_name = "cable" };
	int64_t deadline = pair_deadline(PAIR_LIMIT);

	for (;;) {
		interface_ioctl(SIOCGIFFLAGS, &ifr);
		if (ifr.ifr_flags & IFF_RUNNING)
			return;
		CHECK(pair_now() < deadline, "the cable does not come up");
		poll(NULL, 0, 1);
	}
}

static void end_up(unsigned number)
{
	const struct sockaddr_in a = cable_address(number);
	char ip[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &a.sin_addr, ip, sizeof(ip));
	command("ip addr add %s/24 dev cable && ip link set cable up", ip);
	wait_running();
}

void cable_lay(struct pair *p)
{
	network_make();
	pair_sync(p);
	if (p->server)
		command("ip link add cable type veth peer name cable netns %d", (int)p->peer);
	pair_sync(p);
	end_up(p->server ? 1 : 2);
	pair_sync(p);
}

void cable_lay_alone(void)
{
	network_make();
	command("ip link add cable type veth peer name end && ip link set end up");
	end_up(1);
}

void cable_pull(void)
{
	command("ip link set cable down");
}

/* Flushes the neighbor table, because the kernel keeps a failed address resolution for seconds. */
void cable_mend(struct pair *p)
{
	if (p->server)
		command("ip link set cable up");
	wait_running();
	pair_sync(p);
	command("ip neigh flush dev cable");
}
