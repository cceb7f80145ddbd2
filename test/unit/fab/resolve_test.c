/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Host names and their addresses, with a resolver that the tests replace. */

#include "fab/params.h"

#include "base/clock.h"
#include "fab/offer.h"
#include "fab/reach.h"
#include "nomem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <ifaddrs.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#define MS INT64_C(1000000)

/* The only name that the replaced resolver knows, and its addresses; NULL: the real resolver. */
static const char *known, *addresses[3];
static bool blocks;
static sem_t release, released;

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	struct addrinfo **end = list;
	size_t i;

	if (!known || hints->ai_flags & AI_NUMERICHOST)
		return __real_getaddrinfo(name, service, hints, list);
	if (blocks)
		sem_wait(&release);
	*list = NULL;
	for (i = 0; !strcmp(name, known) && i < 3 && addresses[i]; i++) {
		cr_assert_eq(__real_getaddrinfo(addresses[i], NULL, hints, end), 0);
		end = &(*end)->ai_next;
	}
	if (blocks)
		sem_post(&released);
	return *list ? 0 : EAI_NONAME;
}

static char text[64], why[160];

static int find(const char *name)
{
	struct dofi_params params;
	int ret;

	snprintf(text, sizeof(text), "%s 0", name);
	cr_assert_eq(dofi_params_parse(text, &params, why, sizeof(why)), 0);
	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	ret = dofi_named_find(&params, "/nonexistent", why, sizeof(why));
	capture_end(&capture);
	strcpy(text, params.address);
	return ret;
}

Test(resolve, name_of_the_hosts_file)
{
	struct addrinfo *list;

	cr_assert_eq(dofi_resolve("localhost", 10000 * MS, &list), 0);
	cr_expect(list != NULL);
	freeaddrinfo(list);
}

Test(resolve, unknown_name)
{
	struct addrinfo *list;

	known = "node1";
	cr_expect_eq(dofi_resolve("node2", 10000 * MS, &list), -ENOENT);
}

/* The thread frees what the lookup has when the resolver answers at last. */
Test(resolve, resolver_that_does_not_answer_in_time)
{
	const int64_t begun = dofi_now();
	struct addrinfo *list;

	known = "node1";
	addresses[0] = "127.0.0.1";
	blocks = true;
	sem_init(&release, 0, 0);
	sem_init(&released, 0, 0);
	cr_expect_eq(dofi_resolve("node1", 20 * MS, &list), -ETIMEDOUT);
	cr_expect(dofi_now() - begun >= 20 * MS);
	sem_post(&release);
	sem_wait(&released);
}

/* Writes an IPv4 address of this host that is not of loopback. Returns false if there is none. */
static bool global_address(char *to, size_t size)
{
	struct ifaddrs *list, *a;
	bool found = false;

	cr_assert_eq(getifaddrs(&list), 0);
	for (a = list; a && !found; a = a->ifa_next)
		found = a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
			!dofi_reach_is_loopback(a->ifa_addr) &&
			!getnameinfo(a->ifa_addr, sizeof(struct sockaddr_in), to, size, NULL, 0,
				     NI_NUMERICHOST);
	freeifaddrs(list);
	return found;
}

Test(resolve, name_of_an_address_of_this_host)
{
	char own[64] = "";

	known = "node1-ib";
	addresses[0] = "127.0.0.1";
	addresses[1] = "192.0.2.77";
	if (global_address(own, sizeof(own)))
		addresses[2] = own;
	cr_expect_eq(find("node1-ib"), 0, "%s", why);
	cr_expect_str_eq(text, own);
}

Test(resolve, no_memory)
{
	struct addrinfo *list;
	int n;

	known = "node1";
	for (n = 0; n < 2; n++) {
		nomem_after(n);
		cr_expect_eq(dofi_resolve("node1", 10000 * MS, &list), -ENOMEM);
		cr_expect(nomem_failed());
	}
}

/* Debian gives the host's own name the address 127.0.1.1. */
Test(resolve, name_with_a_loopback_address_alone)
{
	known = "node1";
	addresses[0] = "127.0.1.1";
	cr_expect_eq(find("node1"), 0, "%s", why);
	cr_expect_str_eq(text, "");
	cr_expect(strstr(capture.text, "\"node1\" is 127.0.1.1, which other hosts cannot reach"),
		  "%s", capture.text);
}

Test(resolve, localhost_is_loopback)
{
	known = "localhost";
	addresses[0] = "127.0.0.1";
	cr_expect_eq(find("localhost"), 0, "%s", why);
	cr_expect_str_eq(text, "127.0.0.1");
}

Test(resolve, name_of_another_host)
{
	known = "node2";
	addresses[0] = "192.0.2.77";
	addresses[1] = "2001:db8::77";
	cr_expect_eq(find("node2"), -ENODATA);
	cr_expect_str_eq(why, "\"node2\" is the name of another host");
	cr_expect_str_eq(text, "");
}

Test(resolve, name_that_no_host_has)
{
	known = "node1";
	cr_expect_eq(find("ib7"), -ENODATA);
	cr_expect_str_eq(why, "this machine has no network interface \"ib7\", and no host has that "
			 "name");
}
