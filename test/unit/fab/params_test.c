/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params: keys and values, and the errors for wrong ones. */

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
#include <stdlib.h>
#include <string.h>

static struct dofi_params params;
static char why[160];

static int parse(const char *text)
{
	memset(&params, 'x', sizeof(params));
	memset(why, 0, sizeof(why));
	return dofi_params_parse(text, &params, why, sizeof(why));
}

static void empty(const char *text)
{
	cr_expect_eq(parse(text), 0);
	cr_expect_str_eq(params.provider, "");
	cr_expect_str_eq(params.domain, "");
	cr_expect_str_eq(params.address, "");
	cr_expect_str_eq(params.endpoint, "");
	cr_expect_str_eq(params.strict, "");
}

Test(params, none_is_any) { empty(NULL); }
Test(params, empty_is_any) { empty(""); }
Test(params, blanks_are_any) { empty(" \t  \t"); }

Test(params, all_keys)
{
	cr_assert_eq(parse("\tprovider=tcp  domain=eth0 endpoint=rdm address=10.0.0.1 strict=0 "),
		     0);
	cr_expect_str_eq(params.provider, "tcp");
	cr_expect_str_eq(params.domain, "eth0");
	cr_expect_str_eq(params.address, "10.0.0.1");
	cr_expect_str_eq(params.endpoint, "rdm");
	cr_expect_str_eq(params.strict, "0");
}

Test(params, an_ipv6_address_may_have_brackets)
{
	cr_assert_eq(parse("address=[2001:db8::1] domain=[a]"), 0);
	cr_expect_str_eq(params.address, "2001:db8::1");
	cr_expect_str_eq(params.domain, "[a]");
	cr_assert_eq(parse("address=[]"), 0);
	cr_expect_str_eq(params.address, "[]", "it is not any address");
}

Test(params, a_value_may_have_equal_signs)
{
	cr_assert_eq(parse("domain=a=b="), 0);
	cr_expect_str_eq(params.domain, "a=b=");
}

Test(params, the_last_of_a_key_counts)
{
	cr_assert_eq(parse("provider=sockets provider=tcp"), 0);
	cr_expect_str_eq(params.provider, "tcp");
}

/* @text is refused, and the reason contains @word. */
static void refused(const char *text, const char *word)
{
	cr_expect_eq(parse(text), -EINVAL, "%s", text);
	cr_expect(strstr(why, word), "%s: %s", text, why);
}

Test(params, a_bare_word_is_named) { refused("tcp", "\"tcp\""); }
Test(params, a_missing_key_is_named) { refused("=tcp", "\"=tcp\""); }
Test(params, an_unknown_key_is_named) { refused("fabric=tcp", "\"fabric\""); }
Test(params, a_shortened_key_is_unknown) { refused("prov=tcp", "\"prov\""); }
Test(params, a_longer_key_is_unknown) { refused("providers=tcp", "\"providers\""); }
Test(params, keys_have_small_letters) { refused("Provider=tcp", "\"Provider\""); }
Test(params, known_keys_are_listed) { refused("a=b", "address, endpoint, strict"); }
Test(params, an_empty_value_is_refused) { refused("domain=", "\"domain\" has 0 characters"); }
Test(params, an_unknown_endpoint_is_named) { refused("endpoint=dgram", "=dgram is neither msg"); }
Test(params, endpoints_have_small_letters) { refused("endpoint=RDM domain=a", "endpoint=RDM"); }
Test(params, strict_is_0_or_1) { refused("strict=yes", "strict=yes is neither 0 nor 1"); }
Test(params, a_later_word_is_checked) { refused("provider=tcp  oops", "\"oops\""); }

static void named(const char *text, const char *name, unsigned port)
{
	cr_assert_eq(parse(text), 0, "%s: %s", text, why);
	cr_expect_str_eq(params.name, name);
	cr_expect_eq(params.port, port);
	cr_expect_str_eq(params.domain, "");
}

Test(params, device_and_port) { named("mlx4_0 1", "mlx4_0", 1); }
Test(params, interface_and_no_port) { named("ib0 0", "ib0", 0); }
Test(params, name_and_port_between_blanks) { named("\t hfi1_0 \t 255 ", "hfi1_0", 255); }
Test(params, name_with_a_colon) { named("mic0:ib 1", "mic0:ib", 1); }
Test(params, words_have_no_name) { named("provider=tcp", "", 0); }

Test(params, port_above_a_byte_is_refused) { refused("mlx4_0 256", "port 256 of \"mlx4_0\""); }
Test(params, endless_port_is_refused) { refused("a 99999999999999999999", "above 255"); }
Test(params, word_after_the_port_is_refused) { refused("mlx4_0 1 x", "\"x\" follows"); }
Test(params, port_that_is_a_word_is_refused) { refused("mlx4_0 one", "\"mlx4_0\" is neither"); }
Test(params, negative_port_is_refused) { refused("mlx4_0 -1", "\"mlx4_0\" is neither"); }
Test(params, name_without_a_port_is_refused) { refused("mlx4_0", "\"mlx4_0\" is neither"); }
Test(params, path_is_no_name) { refused("../net/lo 1", "not the name"); }

Test(params, longer_name_is_refused)
{
	char text[128];

	memset(text, 'n', 64);
	strcpy(text + 64, " 1");
	refused(text, "not the name");
}

Test(params, the_longest_value_fits)
{
	char text[128] = "provider=";

	memset(text + 9, 'p', 63);
	cr_assert_eq(parse(text), 0);
	cr_expect_eq(strlen(params.provider), 63);
}

Test(params, a_longer_value_is_refused)
{
	char text[128] = "provider=";

	memset(text + 9, 'p', 64);
	refused(text, "\"provider\" has 64 characters, not 1 to 63");
}

Test(params, the_reason_fits_any_buffer)
{
	char small[9] = "........";

	cr_expect_eq(dofi_params_parse("nosuch=1", &params, small, 8), -EINVAL);
	cr_expect_eq(strlen(small), 7);
	cr_expect_eq(small[8], 0);
}

Test(params, any_text_is_safe)
{
	static const char letter[] = "provider=domain \tadrs;%\n";
	unsigned seed = 7;
	int i, n;

	for (i = 0; i < 200000; i++) {
		char text[100];
		int len = rand_r(&seed) % (int)sizeof(text);

		for (n = 0; n < len; n++)
			text[n] = letter[rand_r(&seed) % (sizeof(letter) - 1)];
		text[len ? len - 1 : 0] = 0;
		if (parse(text))
			cr_assert(*why, "%s", text);
		else
			cr_assert(strlen(params.provider) < 64 && strlen(params.domain) < 64);
	}
}

/* Host names and their addresses, with a resolver that the tests replace. */

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

/* A minimal system has no hosts file, and no other source of names. */
Test(resolve, name_of_the_hosts_file)
{
	struct addrinfo *list = NULL, *same = NULL;
	const int err = getaddrinfo("localhost", NULL, NULL, &same);

	cr_expect_eq(!dofi_resolve("localhost", 10000 * MS, &list), !err);
	cr_expect_eq(list != NULL, same != NULL);
	if (list)
		freeaddrinfo(list);
	if (same)
		freeaddrinfo(same);
}

Test(resolve, unknown_name)
{
	struct addrinfo *list;

	known = "node1";
	cr_expect_eq(dofi_resolve("node2", 10000 * MS, &list), -ENOENT);
}

/* The thread frees the lookup's memory when the resolver answers at last. */
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
