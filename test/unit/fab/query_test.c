/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The query to libfabric, which of the offered fabrics is chosen, and the list of all. */

#include "fab/offer.h"

#include <stdio.h>

TestSuite(query, .fini = done);
TestSuite(query_list, .fini = done);

Test(query, hardware_before_software)
{
	offer("nosuch", "10.0.0.1");
	offer("sockets", "10.0.0.1");
	offer("tcp", "10.0.0.1");
	offer("verbs", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "verbs");
}

Test(query, better_software_before_worse)
{
	offer("nosuch", "10.0.0.1");
	offer("sockets", "10.0.0.1");
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "tcp");
}

/* libfabric 1.17 offers net besides tcp. */
Test(query, the_preview_of_tcp_is_not_used)
{
	char names[64];

	offer("net", "10.0.0.1");
	offer_rdm("net");
	offer("sockets", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "sockets");
	dofi_fabric_list(false, names, sizeof(names));
	cr_expect_str_eq(names, "sockets");
	dofi_fabric_list(true, names, sizeof(names));
	cr_expect_str_eq(names, "");
}

Test(query, an_unknown_fabric_serves_if_alone)
{
	offer("nosuch", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "nosuch");
}

Test(query, the_first_of_equals)
{
	offer("tcp", "10.0.0.1");
	free(offer("tcp", "10.0.0.2")->domain_attr->name);
	offered->next->domain_attr->name = strdup("second");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(choice.info->domain_attr->name, "fake0");
}

static const char *chosen_address(void)
{
	return inet_ntoa(((struct sockaddr_in *)choice.info->src_addr)->sin_addr);
}

Test(query, loopback_comes_after_interfaces)
{
	offer("tcp", "127.0.0.1");
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen_address(), "10.0.0.1");
}

Test(query, loopback_alone_is_logged_unless_the_user_chose_it)
{
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect(strstr(capture.text, "fabric tcp has a loopback address only"), "%s",
		  capture.text);
	dofi_fabric_release(&choice);
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_str_eq(capture.text, "");
}

Test(query, all_of_network_127_is_loopback)
{
	offer("tcp", "127.3.2.1");
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen_address(), "10.0.0.1");
}

Test(query, loopback_of_the_better_fabric_wins)
{
	offer("sockets", "10.0.0.1");
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "tcp");
}

/* Distances of domains, set by the test, by the linker's --wrap. */

static struct {
	const char *domain;
	unsigned distance;		/* 0: unknown */
} locality_of[4];
static bool located;

bool __real_dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality);
bool __wrap_dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality);
bool __wrap_dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality)
{
	size_t i;

	if (!located)
		return __real_dofi_topo_locate(info, locality);
	for (i = 0; locality_of[i].domain; i++)
		if (!strcmp(locality_of[i].domain, info->domain_attr->name) &&
		    locality_of[i].distance) {
			locality->distance = locality_of[i].distance;
			return true;
		}
	return false;
}

static void offer_located(const char *provider, const char *ip, const char *domain,
			 unsigned distance, uint64_t speed)
{
	struct fi_info *info = offer(provider, ip);
	size_t i = 0;

	while (locality_of[i].domain)
		i++;
	located = true;
	locality_of[i].domain = domain;
	locality_of[i].distance = distance;
	free(info->domain_attr->name);
	info->domain_attr->name = strdup(domain);
	if (speed)
		fake_nic(info, 0, speed);
}

static void expect_domain(const char *domain)
{
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(choice.info->domain_attr->name, domain);
}

Test(query, the_nearest_of_equals)
{
	offer_located("tcp", "10.0.0.1", "far0", 21, 0);
	offer_located("tcp", "10.0.0.2", "near0", 10, 0);
	offer_located("tcp", "10.0.0.3", "farther0", 31, 0);
	expect_domain("near0");
	cr_expect(choice.located);
	cr_expect_eq(choice.locality.distance, 10);
}

Test(query, the_first_of_equally_near)
{
	offer_located("tcp", "10.0.0.1", "a0", 10, 0);
	offer_located("tcp", "10.0.0.2", "b0", 10, 0);
	expect_domain("a0");
}

Test(query, a_better_fabric_before_a_nearer)
{
	offer_located("tcp", "10.0.0.1", "near0", 10, 0);
	offer_located("verbs", "10.0.0.2", "far0", 31, 0);
	expect_domain("far0");
}

Test(query, an_interface_before_loopback_however_far)
{
	offer_located("tcp", "127.0.0.1", "near0", 10, 0);
	offer_located("tcp", "10.0.0.2", "far0", 31, 0);
	expect_domain("far0");
}

/* libfabric lists the fastest first. */
Test(query, a_faster_device_before_a_nearer)
{
	offer_located("verbs", "10.0.0.1", "fast0", 21, 200000000000);
	offer_located("verbs", "10.0.0.2", "slow0", 10, 100000000000);
	expect_domain("fast0");
}

Test(query, the_nearest_of_the_equally_fast)
{
	offer_located("verbs", "10.0.0.1", "fast0", 21, 200000000000);
	offer_located("verbs", "10.0.0.2", "fast1", 10, 200000000000);
	expect_domain("fast1");
}

Test(query, what_is_at_no_known_place_keeps_its_turn)
{
	offer_located("tcp", "10.0.0.1", "bond0", 0, 0);
	offer_located("tcp", "10.0.0.2", "near0", 10, 0);
	expect_domain("bond0");
	cr_expect(!choice.located);
}

Test(query, a_known_place_is_no_worse_than_an_unknown)
{
	offer_located("tcp", "10.0.0.1", "far0", 31, 0);
	offer_located("tcp", "10.0.0.2", "bond0", 0, 0);
	expect_domain("far0");
}

Test(query, ipv4_before_ipv6)
{
	make_ipv6(offer("tcp", ""));
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen_address(), "127.0.0.1");
}

Test(query, ipv6_serves_if_alone)
{
	make_ipv6(offer("tcp", ""));
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(((struct sockaddr *)choice.info->src_addr)->sa_family, AF_INET6);
}

Test(query, a_fabric_without_address_serves_if_alone)
{
	offer("tcp", "");
	cr_expect_eq(choose(""), 0);
}

Test(query, layered_fabrics_are_not_used)
{
	offer("tcp;ofi_rxm", "10.0.0.1");
	cr_expect_eq(choose(""), -FI_ENODATA);
}

Test(query, endpoints_of_other_kinds_are_not_used)
{
	offer("tcp", "10.0.0.1")->ep_attr->type = FI_EP_DGRAM;
	cr_expect_eq(choose(""), -FI_ENODATA);
	cr_expect(strstr(capture.text, "no usable fabric"), "%s", capture.text);
}

/* Endpoints that do not connect */

Test(query, connected_endpoints_come_first)
{
	offer_rdm("efa");
	offer("sockets", "127.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "sockets");
	cr_expect(!choice.rdm && !choice.target_rdma && choice.write_ordered);
}

Test(query, without_them_the_others_serve)
{
	offer_rdm("tcp");
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.rdm);
}

Test(query, connected_ones_alone_if_asked_for)
{
	offer_rdm("tcp");
	cr_expect_eq(choose("endpoint=msg"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "endpoint=msg"), "%s", capture.text);
}

Test(query, the_others_alone_if_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_expect_eq(choose("endpoint=rdm"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "endpoint=rdm"), "%s", capture.text);
	offer_rdm("sockets");
	cr_assert_eq(choose("endpoint=rdm"), 0);
	cr_expect(choice.rdm);
}

Test(query, of_those_the_best)
{
	offer_rdm("nosuch");	/* unknown whether it checks keys */
	offer_rdm("tcp;ofi_rxm");
	offer_rdm("shm");
	offer_rdm("sockets");
	offer_rdm("tcp");
	cr_assert_eq(choose("endpoint=rdm"), 0);
	cr_expect_str_eq(chosen(), "tcp");
}

/* It only has to move messages in order. */
Test(query, an_unmeasured_one_serves_with_rdma_by_the_target)
{
	offer_rdm("nosuch");
	cr_assert_eq(choose("provider=nosuch endpoint=rdm"), 0);
	cr_expect(choice.rdm && choice.target_rdma);
	cr_expect_eq(choice.frame_size, 4096 + 64);
	cr_expect_eq(asked->mode, (FI_CONTEXT | FI_CONTEXT2));
}

Test(query, a_layer_is_used_if_named)
{
	offer_rdm("tcp;ofi_rxm");
	cr_expect_eq(choose("endpoint=rdm"), -FI_ENODATA);
	cr_assert_eq(choose("provider=tcp;ofi_rxm"), 0);
	cr_expect(choice.rdm);
	dofi_fabric_release(&choice);
	setenv("FI_PROVIDER", "^tcp;ofi_rxm", 1);
	cr_expect_eq(choose(""), -FI_ENODATA);
	setenv("FI_PROVIDER", "tcp;ofi_rxm", 1);
	cr_expect_eq(choose(""), 0);
}

Test(query, a_refused_layer_has_one_line)
{
	offer_rdm("udp;ofi_rxd");
	cr_expect_eq(choose("provider=udp;ofi_rxd"), -FI_EOPNOTSUPP);
	cr_expect(!strstr(capture.text, "searching"), "%s", capture.text);
	cr_expect(strstr(capture.text, "udp;ofi_rxd is not used: a refused RDMA operation"), "%s",
		  capture.text);
	cr_expect(!strstr(capture.text, "no usable"), "%s", capture.text);
	cr_expect(!choice.info);
}

Test(query, a_named_domain_is_taken)
{
	offer("verbs", "10.0.0.1");
	free(offer("sockets", "10.0.0.2")->domain_attr->name);
	offered->next->domain_attr->name = strdup("mlx5_0");
	cr_assert_eq(choose("domain=mlx5_0"), 0);
	cr_expect_str_eq(chosen(), "sockets");
}

Test(query, a_domain_that_is_not_there_is_logged)
{
	offer("tcp", "10.0.0.1");
	cr_expect_eq(choose("domain=mlx5_9"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "domain=mlx5_9"), "%s", capture.text);
	cr_expect(!choice.info);
}

Test(query, fi_getinfo_failing_is_passed_on)
{
	offer("tcp", "10.0.0.1");
	answer = -FI_ENOMEM;
	cr_expect_eq(choose(""), -FI_ENOMEM);
	cr_expect(strstr(capture.text, "searching a usable fabric"), "%s", capture.text);
}

Test(query, the_provider_is_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose("provider=tcp"), 0);
	cr_expect_str_eq(asked->fabric_attr->prov_name, "tcp");
	cr_expect_eq(asked_flags, 0);
}

Test(query, any_provider_is_not_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect(!asked->fabric_attr->prov_name);
}

Test(query, the_address_is_asked_for_as_source)
{
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_str_eq(asked_node, "127.0.0.1");
	cr_expect_eq(asked_flags, FI_SOURCE);
}

static unsigned without_node;

static int getinfo_counted(const char *node, uint64_t flags, const struct fi_info *hints,
			   struct fi_info **info)
{
	without_node += !node;
	return getinfo(node, flags, hints, info);
}

Test(query, all_addresses_are_asked_for_only_if_the_address_is_not_found)
{
	offer("tcp", "127.0.0.1");
	fake.getinfo = getinfo_counted;
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_eq(without_node, 0);
}

Test(query, what_a_connection_needs_is_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(asked->ep_attr->type, FI_EP_MSG);
	cr_expect_eq(asked->caps, FI_MSG | FI_RMA);
	cr_expect_eq(asked->domain_attr->threading, FI_THREAD_SAFE);
	cr_expect(asked->tx_attr->msg_order & FI_ORDER_SAW);
}

/* libfabric 2.6, where FI_TCP_IFACE names no interface. */
Test(query, connectionless_tcp_without_an_address_is_refused)
{
	struct fi_info *info = offer_rdm("tcp;ofi_rxm");

	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	setenv("FI_TCP_IFACE", "nosuch0", 1);
	cr_expect_eq(choose("provider=tcp;ofi_rxm"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "FI_TCP_IFACE=nosuch0 is not an interface"), "%s",
		  capture.text);
}

/* Such as rxm of libfabric 2.7 with several connections to a peer. */
Test(query, a_fabric_that_does_not_keep_messages_in_order_is_refused)
{
	offer_rdm("shm")->rx_attr->msg_order = 0;
	cr_expect_eq(choose("provider=shm endpoint=rdm"), -FI_EOPNOTSUPP);
	cr_expect(strstr(capture.text, "shm is not used: it does not keep messages in order"), "%s",
		  capture.text);
	cr_expect(asked->tx_attr->msg_order & asked->rx_attr->msg_order & FI_ORDER_SAS);
	offered->rx_attr->msg_order = FI_ORDER_SAS;
	offered->tx_attr->msg_order = FI_ORDER_SAW;
	cr_expect_eq(choose("provider=shm endpoint=rdm"), -FI_EOPNOTSUPP);
	offered->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
	cr_expect_eq(choose("provider=shm endpoint=rdm"), 0);
}

/* Connected endpoints have the order of their connection, so they need not report any. */
Test(query, connected_endpoints_need_not_say_what_they_keep)
{
	offer("tcp", "10.0.0.1")->tx_attr->msg_order = 0;
	cr_expect_eq(choose(""), 0);
}

/* With the real libfabric. */

Test(query, an_unknown_provider_is_logged)
{
	cr_expect_eq(choose("provider=nosuch"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "provider=nosuch"), "%s", capture.text);
}

Test(query, fi_provider_filters)
{
	setenv("FI_PROVIDER", "sockets", 1);
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "sockets");
}

Test(query, a_filter_that_leaves_nothing_is_logged)
{
	setenv("FI_PROVIDER", "nosuch", 1);
	cr_expect(choose("") < 0);
	cr_expect(strstr(capture.text, "FI_PROVIDER=nosuch"), "%s", capture.text);
}

Test(query, an_empty_filter_is_logged)
{
	setenv("FI_PROVIDER", "", 1);
	cr_expect(choose("provider=tcp") < 0);
	cr_expect(strstr(capture.text, "FI_PROVIDER is set, but empty"), "%s", capture.text);
}

Test(query, the_filter_and_the_entry_may_contradict)
{
	setenv("FI_PROVIDER", "sockets", 1);
	cr_expect(choose("provider=tcp") < 0);
}

Test(query, a_foreign_address_is_no_interface)
{
	setenv("FI_PROVIDER", "tcp", 1);
	cr_expect(choose("address=203.0.113.7") < 0);
	cr_expect(strstr(capture.text, "address=203.0.113.7"), "%s", capture.text);
}

/* verbs does so for the loopback address. */
Test(query, a_device_of_another_address_is_not_taken)
{
	offer("verbs", "10.0.0.1");
	cr_expect_eq(choose("address=127.0.0.1"), -FI_ENODATA);
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_str_eq(chosen(), "tcp");
}

Test(query, an_address_that_is_none_is_logged)
{
	offer("tcp", "10.0.0.1");
	cr_expect_eq(choose("address=eth0"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "address=eth0"), "%s", capture.text);
}

Test(query, a_link_local_address_without_its_interface_is_logged)
{
	offer("tcp", "10.0.0.1");
	cr_expect_eq(choose("address=fe80::1"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "address=fe80::1 is link-local: append its interface, as in "
			 "fe80::1%eth0"), "%s", capture.text);
}

Test(query, loopback_can_be_asked_for)
{
	setenv("FI_PROVIDER", "tcp", 1);
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_str_eq(chosen_address(), "127.0.0.1");
}

/* Why no fabric fits, of a libfabric with verbs, which finds no device, and the offered tcp. */

static const struct {
	const char *filter, *params, *logged;
	bool is_error;		/* logged at level 0 */
} reasons[] = {
	{ "tpc", "", "FI_PROVIDER=tpc: libfabric 1.17 has no provider tpc, but verbs tcp", true },
	{ "tcp,tpc", "provider=verbs", "has no provider tpc, but", true },
	{ "verbs", "", "FI_PROVIDER=verbs leaves no provider", true },
	{ NULL, "provider=verbs", "libfabric offers none for provider=verbs (", false },
	{ NULL, "provider=net", "provider=net: net, libfabric 1.17's preview of tcp, is not "
	  "supported: use tcp", true },
	{ NULL, "provider=net endpoint=rdm", "is not supported: use tcp", true },
	{ NULL, "provider=tcp endpoint=rdm", "none for provider=tcp endpoint=rdm (datinfo --doctor",
	  false },
	{ NULL, "domain=ib9", "domain=ib9: the domains of provider=any here are fake", true },
	{ NULL, "address=203.0.113.7", "address=203.0.113.7 is not an address of this machine",
	  true },
	{ NULL, "provider=verbs address=127.0.0.1", "none for provider=verbs address=127.0.0.1 (",
	  false },
};

/* Like getinfo(), with regard to the requested provider and FI_PROVIDER. */
static int getinfo_of(const char *node, uint64_t flags, const struct fi_info *hints,
		      struct fi_info **info)
{
	const char *wanted = hints ? hints->fabric_attr->prov_name : NULL;
	const char *filter = getenv("FI_PROVIDER");

	if (hints && ((wanted && strcmp(wanted, "tcp")) || (filter && strcmp(filter, "tcp"))))
		return -FI_ENODATA;
	return getinfo(node, flags, hints, info);
}

Test(query, the_reason_for_no_fabric_is_logged)
{
	size_t i;

	offer("tcp", "10.0.0.1");
	offer("shm", "")->ep_attr->type = FI_EP_DGRAM;
	fake.getinfo = getinfo_of;
	fake.version = FI_VERSION(1, 17);
	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].filter)
			setenv("FI_PROVIDER", reasons[i].filter, 1);
		else
			unsetenv("FI_PROVIDER");
		cr_expect(choose(reasons[i].params) < 0, "%s", reasons[i].params);
		cr_expect(strstr(capture.text, reasons[i].logged), "%s, not: %s", capture.text,
			  reasons[i].logged);
		cr_expect_eq(!!strstr(capture.text, "error: no usable fabric: "),
			     reasons[i].is_error, "%s", capture.text);
	}
}

Test(query, without_a_requested_kind_of_endpoint_the_kind_is_no_reason)
{
	offer_rdm("tcp");
	cr_expect_eq(choose("domain=ib9"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "domain=ib9: the domains of"), "%s", capture.text);
}

Test(query, a_kind_of_endpoint_is_no_reason_where_the_other_kind_is_missing_too)
{
	offer("tcp", "10.0.0.1")->ep_attr->type = FI_EP_DGRAM;
	cr_expect_eq(choose("endpoint=rdm"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "none for provider=any endpoint=rdm ("), "%s",
		  capture.text);
}

/* Leaves bytes on the stack, as any call may. */
static __attribute__((noinline)) int getinfo_with_garbage(const char *node, uint64_t flags,
							  const struct fi_info *hints,
							  struct fi_info **info)
{
	volatile char bytes[4096];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = 'x';
	return getinfo_of(node, flags, hints, info);
}

Test(query, the_reason_names_the_providers_and_nothing_else)
{
	offer("tcp", "10.0.0.1");
	fake.getinfo = getinfo_with_garbage;
	fake.version = FI_VERSION(1, 17);
	setenv("FI_PROVIDER", "tpc", 1);
	cr_expect_eq(choose(""), -FI_ENODATA);
	cr_expect(strstr(capture.text, "has no provider tpc, but verbs tcp [cause 1]\n"), "%s",
		  capture.text);
}

/* Returns whether choosing with ia_params @text fails for net, with @setting of the user. */
static bool refuses_preview(const char *text, const char *setting)
{
	char line[160];

	snprintf(line, sizeof(line), "error: no usable fabric: %s: net, libfabric 1.17's "
		 "preview of tcp, is not supported: use tcp", setting);
	return choose(text) == -FI_ENODATA && strstr(capture.text, line);
}

Test(query, the_preview_of_tcp_alone_is_refused)
{
	static const char *const params[] = { "", "provider=tcp", "provider=tcp endpoint=rdm",
					      "endpoint=msg" };
	size_t i;

	offer("net", "10.0.0.1");
	offer_rdm("net");
	offer_rdm("net;ofi_rxm");
	setenv("FI_PROVIDER", "net,udp", 1);
	for (i = 0; i < sizeof(params) / sizeof(params[0]); i++)
		cr_expect(refuses_preview(params[i], "FI_PROVIDER=net,udp"), "%s: %s", params[i],
			  capture.text);
	unsetenv("FI_PROVIDER");
	cr_expect(refuses_preview("provider=net", "provider=net"), "%s", capture.text);
	cr_expect(refuses_preview("provider=net;ofi_rxm", "provider=net;ofi_rxm"), "%s",
		  capture.text);
}

/* The list of fabrics */

Test(query_list, names_each_fabric_once)
{
	char names[64];

	offer("tcp", "10.0.0.1");
	offer("tcp", "127.0.0.1");
	offer("sockets", "10.0.0.1");
	dofi_fabric_list(false, names, sizeof(names));
	cr_expect_str_eq(names, "tcp sockets");
}

Test(query_list, a_name_within_another_counts)
{
	char names[64];

	offer("tcpx", "10.0.0.1");
	offer("xtcp", "10.0.0.1");
	offer("tcp", "10.0.0.1");
	dofi_fabric_list(false, names, sizeof(names));
	cr_expect_str_eq(names, "tcpx xtcp tcp");
}

Test(query_list, what_cannot_be_used_is_left_out)
{
	char names[64];

	offer("tcp;ofi_rxm", "10.0.0.1");
	offer_rdm("udp;ofi_rxd");
	offer_rdm("nosuch")->tx_attr->msg_order = 0;
	dofi_fabric_list(false, names, sizeof(names));
	cr_expect_str_eq(names, "");
	dofi_fabric_list(true, names, sizeof(names));
	cr_expect_str_eq(names, "");
}

/* libfabric may offer less than requested. */
Test(query, an_offer_that_lacks_an_attribute_is_refused_with_it)
{
	struct fi_info *info = offer_rdm("nosuch");

	info->tx_attr->msg_order = FI_ORDER_ATOMIC_RAW;
	cr_expect_eq(choose("provider=nosuch"), -FI_EOPNOTSUPP);
	cr_expect(strstr(capture.text, "FI_ORDER_SAS"), "%s", capture.text);
	info->tx_attr->msg_order = FI_ORDER_SAS;
	info->caps = FI_TAGGED | FI_RMA;
	cr_expect_eq(choose("provider=nosuch"), -FI_EOPNOTSUPP);
	cr_expect(strstr(capture.text, "FI_MSG"), "%s", capture.text);
	info->caps = FI_TAGGED | FI_MSG;
	info->mode = FI_CONTEXT | FI_ASYNC_IOV;
	cr_expect_eq(choose("provider=nosuch"), -FI_EOPNOTSUPP);
	cr_expect(strstr(capture.text, "fi_info.mode"), "%s", capture.text);
	info->mode = FI_CONTEXT;
	cr_expect_eq(choose("provider=nosuch"), 0);
}

Test(query_list, connectionless_and_connected_ones_are_listed_apart)
{
	char names[64];

	offer("tcp", "10.0.0.1");
	offer_rdm("tcp");
	offer_rdm("tcp;ofi_rxm");
	offer_rdm("shm");
	dofi_fabric_list(true, names, sizeof(names));
	cr_expect_str_eq(names, "tcp tcp;ofi_rxm shm");
	dofi_fabric_list(false, names, sizeof(names));
	cr_expect_str_eq(names, "tcp");
}

Test(query_list, nothing_is_an_empty_text)
{
	char names[64] = "old";

	fake.getinfo = getinfo;
	dofi_fabric_list(false, names, sizeof(names));
	cr_expect_str_eq(names, "");
}

Test(query_list, is_cut_to_its_buffer)
{
	char names[8] = "";

	offer("tcp", "10.0.0.1");
	offer("sockets", "10.0.0.1");
	dofi_fabric_list(false, names, 7);
	cr_expect(strlen(names) <= 6);
	cr_expect(!strncmp(names, "tcp", 3));
}
