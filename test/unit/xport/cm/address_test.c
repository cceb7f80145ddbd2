/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of this host and of others, and socket names, which any process may choose. */

#include "xport/cm/address.h"

#include "child.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <sys/un.h>

static struct sockaddr_storage address(const char *ip, uint16_t port)
{
	struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a;
	struct sockaddr_in *in = (struct sockaddr_in *)&a;

	if (inet_pton(AF_INET, ip, &in->sin_addr) == 1)
		a.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1)
		a.ss_family = AF_INET6;
	cr_assert(a.ss_family);
	in->sin_port = htons(port);
	return a;
}

static bool has(const char *ip)
{
	const struct sockaddr_storage a = address(ip, 4711);

	return dofi_cm_is_here(&a);
}

Test(cm_address, loopback_is_here)
{
	cr_expect(has("127.0.0.1"));
	cr_expect(has("127.1.2.3"));
	cr_expect(has("0.0.0.0"));
}

/* The interface of loopback is down in a new network namespace. */
static void say_without_interfaces(int fd)
{
	bool here;

	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "skipped: a network namespace: %s\n", strerror(errno));
		_exit(77);
	}
	here = has("127.0.0.1") && has("::1") && !has("192.0.2.1");
	say(fd, &here, sizeof(here));
}

Test(cm_address, loopback_needs_no_interface)
{
	struct child c = child_start(say_without_interfaces);
	bool here = false, said = recv(c.fd, &here, sizeof(here), MSG_WAITALL) == sizeof(here);

	cr_expect_eq(child_end(&c), said ? 0 : 77 << 8);
	cr_expect(here || !said);
}

Test(cm_address, what_no_interface_has_is_elsewhere)
{
	cr_expect(!has("192.0.2.1"));
	cr_expect(!has("255.255.255.255"));
	cr_expect(!has("2001:db8::1"));
	cr_expect(!has("ff02::1"));
	cr_expect(!has("fe80::1"));
}

/* How dofi_cm_show_name() shows an abstract name, or any bytes. */
static struct sockaddr_storage shown(const char *name, size_t len)
{
	struct sockaddr_storage peer;
	struct sockaddr_un *un = (struct sockaddr_un *)&peer;

	memset(&peer, 0x5a, sizeof(peer));
	un->sun_family = AF_UNIX;
	un->sun_path[0] = 0;
	cr_assert(len < sizeof(un->sun_path));
	memcpy(un->sun_path + 1, name, len);
	dofi_cm_show_name(&peer, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
	return peer;
}

static void expect_shown(const char *name, const char *ip, uint16_t port)
{
	const struct sockaddr_storage got = shown(name, strlen(name)), want = address(ip, port);

	cr_expect_eq(memcmp(&got, &want, dofi_cm_address_len((const struct sockaddr *)&want)), 0,
		     "%s", name);
}

Test(cm_address, a_name_has_its_address)
{
	expect_shown("dat-ofi/from/10.1.2.3:40000", "10.1.2.3", 40000);
	expect_shown("dat-ofi/from/::1:65535", "::1", 65535);
	expect_shown("dat-ofi/from/2001:db8::7:1", "2001:db8::7", 1);
}

Test(cm_address, other_names_have_no_address)
{
	static const char *const names[] = {
		"",
		"x",
		"dat-ofi/from/",
		"dat-ofi/from/:",
		"dat-ofi/from/:1",
		"dat-ofi/from/1.2.3.4",
		"dat-ofi/from/1.2.3:4",
		"dat-ofi/from/1.2.3.4.5:6",
		"dat-ofi/from/somebody:1",
		"dat-ofi/side/1.2.3.4:5",
		"DAT-OFI/FROM/1.2.3.4:5",
		"dat-ofi/from/::::::::::::1",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect_shown(names[i], "127.0.0.1", 0);
}

/* The longest possible name, without a terminating NUL. */
Test(cm_address, the_longest_name_is_read_within_its_bounds)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) - 1];
	struct sockaddr_storage got;

	memset(name, '1', sizeof(name));
	memcpy(name, "dat-ofi/from/", strlen("dat-ofi/from/"));
	got = shown(name, sizeof(name));
	cr_expect_eq(got.ss_family, AF_INET);
	memset(name, 0, sizeof(name));
	got = shown(name, sizeof(name));
	cr_expect_eq(got.ss_family, AF_INET);
}

Test(cm_address, without_a_name_there_is_no_address)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNIX };

	dofi_cm_show_name(&peer, sizeof(sa_family_t));
	cr_expect_eq(peer.ss_family, AF_INET);
	peer.ss_family = AF_UNIX;
	dofi_cm_show_name(&peer, 0);
	cr_expect_eq(peer.ss_family, AF_INET);
}

Test(cm_address, the_kernel_reports_the_user)
{
	int fd[2], tcp = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	cr_expect(dofi_cm_is_same_user(fd[0]));
	cr_expect(!dofi_cm_is_same_user(tcp), "the socket has no peer");
	cr_expect(!dofi_cm_is_same_user(-1));
	close(tcp);
	close(fd[0]);
	close(fd[1]);
}

Test(cm_address, another_user_is_recognized)
{
	int fd[2], status;
	pid_t pid;

	if (geteuid())
		return;
	pid = fork();
	if (!pid) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) || seteuid(65534))
			_exit(2);
		_exit(dofi_cm_is_same_user(fd[0]));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}
