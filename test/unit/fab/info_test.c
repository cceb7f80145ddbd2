/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params, the choice of a fabric, and what is read from its fi_info. */

#include "fab/info.h"

#include "base/log.h"
#include "capture.h"
#include "fab/fake.h"
#include "fab/quirks.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

static struct capture capture;
static struct dofi_params params;
static char why[160];

static int parse(const char *text)
{
	memset(&params, 'x', sizeof(params));
	memset(why, 0, sizeof(why));
	return dofi_params_parse(text, &params, why, sizeof(why));
}

/* ia_params */

static void empty(const char *text)
{
	cr_expect_eq(parse(text), 0);
	cr_expect_str_eq(params.provider, "");
	cr_expect_str_eq(params.domain, "");
	cr_expect_str_eq(params.address, "");
}

Test(params, none_is_any) { empty(NULL); }
Test(params, empty_is_any) { empty(""); }
Test(params, blanks_are_any) { empty(" \t  \t"); }

Test(params, all_keys)
{
	cr_assert_eq(parse("\tprovider=tcp  domain=eth0 address=10.0.0.1 "), 0);
	cr_expect_str_eq(params.provider, "tcp");
	cr_expect_str_eq(params.domain, "eth0");
	cr_expect_str_eq(params.address, "10.0.0.1");
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

/* @text is refused, and the reason has @word in it. */
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
Test(params, known_keys_are_listed) { refused("a=b", "provider, domain, address"); }
Test(params, an_empty_value_is_refused) { refused("domain=", "\"domain\" has 0 characters"); }
Test(params, a_later_word_is_checked) { refused("provider=tcp  oops", "\"oops\""); }

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

/* The choice. fi_getinfo answers with copies of this list. */

static struct fi_info *offered, **offered_end = &offered;
static struct fi_info *asked;		/* a copy of the first hints */
static char asked_node[64];
static uint64_t asked_flags;
static int answer;			/* to any question */
static int delivery_answer;		/* to the question for FI_DELIVERY_COMPLETE */

static int getinfo(const char *node, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	struct fi_info **end = info;
	const struct fi_info *i;

	if (answer)
		return answer;
	if (!asked) {
		asked = fi_dupinfo(hints);
		strncpy(asked_node, node ? node : "", sizeof(asked_node) - 1);
		asked_flags = flags;
	}
	if (hints->tx_attr->op_flags & FI_DELIVERY_COMPLETE && delivery_answer)
		return delivery_answer;
	*info = NULL;
	for (i = offered; i; i = i->next, end = &(*end)->next)
		*end = fi_dupinfo(i);
	return *info ? 0 : -FI_ENODATA;
}

static struct fi_info *offer(const char *provider, const char *ip)
{
	struct fi_info *info = fake_info(provider, ip);

	fake.getinfo = getinfo;
	*offered_end = info;
	offered_end = &info->next;
	return info;
}

static struct dofi_fabric_choice choice;

/* Chooses with ia_params @text; the log in capture.text. */
static int choose(const char *text)
{
	int ret;

	cr_assert_eq(parse(text), 0);
	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	ret = dofi_fabric_choose(&params, &choice);
	capture_end(&capture);
	return ret;
}

static const char *chosen(void)
{
	return choice.info->fabric_attr->prov_name;
}

static void done(void)
{
	fi_freeinfo(offered);
	fi_freeinfo(asked);
	if (choice.info)
		dofi_fabric_release(&choice);
	offered = asked = NULL;
}

TestSuite(choose, .fini = done);

Test(choose, hardware_before_software)
{
	offer("nosuch", "10.0.0.1");
	offer("sockets", "10.0.0.1");
	offer("net", "10.0.0.1");
	offer("tcp", "10.0.0.1");
	offer("verbs", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "verbs");
}

Test(choose, better_software_before_worse)
{
	offer("nosuch", "10.0.0.1");
	offer("sockets", "10.0.0.1");
	offer("tcp", "10.0.0.1");
	offer("net", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "tcp");
}

Test(choose, an_unknown_fabric_serves_if_alone)
{
	offer("nosuch", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "nosuch");
}

Test(choose, the_first_of_equals)
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

Test(choose, loopback_comes_after_interfaces)
{
	offer("tcp", "127.0.0.1");
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen_address(), "10.0.0.1");
}

Test(choose, all_of_network_127_is_loopback)
{
	offer("tcp", "127.3.2.1");
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen_address(), "10.0.0.1");
}

Test(choose, loopback_of_the_better_fabric_wins)
{
	offer("sockets", "10.0.0.1");
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "tcp");
}

/* Nearness: by the linker's --wrap, domains have the distances that a test gives them. */

static struct {
	const char *domain;
	unsigned distance;		/* 0: unknown */
} place_of[4];
static bool placed;

bool __real_dofi_topo_place(const struct fi_info *info, struct dofi_place *place);
bool __wrap_dofi_topo_place(const struct fi_info *info, struct dofi_place *place);
bool __wrap_dofi_topo_place(const struct fi_info *info, struct dofi_place *place)
{
	size_t i;

	if (!placed)
		return __real_dofi_topo_place(info, place);
	for (i = 0; place_of[i].domain; i++)
		if (!strcmp(place_of[i].domain, info->domain_attr->name) && place_of[i].distance) {
			place->distance = place_of[i].distance;
			return true;
		}
	return false;
}

static void offer_placed(const char *provider, const char *ip, const char *domain,
			 unsigned distance, uint64_t speed)
{
	struct fi_info *info = offer(provider, ip);
	size_t i = 0;

	while (place_of[i].domain)
		i++;
	placed = true;
	place_of[i].domain = domain;
	place_of[i].distance = distance;
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

Test(choose, the_nearest_of_equals)
{
	offer_placed("tcp", "10.0.0.1", "far0", 21, 0);
	offer_placed("tcp", "10.0.0.2", "near0", 10, 0);
	offer_placed("tcp", "10.0.0.3", "farther0", 31, 0);
	expect_domain("near0");
	cr_expect(choice.placed);
	cr_expect_eq(choice.place.distance, 10);
}

Test(choose, the_first_of_equally_near)
{
	offer_placed("tcp", "10.0.0.1", "a0", 10, 0);
	offer_placed("tcp", "10.0.0.2", "b0", 10, 0);
	expect_domain("a0");
}

Test(choose, a_better_fabric_before_a_nearer)
{
	offer_placed("tcp", "10.0.0.1", "near0", 10, 0);
	offer_placed("verbs", "10.0.0.2", "far0", 31, 0);
	expect_domain("far0");
}

Test(choose, an_interface_before_loopback_however_far)
{
	offer_placed("tcp", "127.0.0.1", "near0", 10, 0);
	offer_placed("tcp", "10.0.0.2", "far0", 31, 0);
	expect_domain("far0");
}

/* libfabric lists the fast ones first. */
Test(choose, a_faster_device_before_a_nearer)
{
	offer_placed("verbs", "10.0.0.1", "fast0", 21, 200000000000);
	offer_placed("verbs", "10.0.0.2", "slow0", 10, 100000000000);
	expect_domain("fast0");
}

Test(choose, the_nearest_of_the_equally_fast)
{
	offer_placed("verbs", "10.0.0.1", "fast0", 21, 200000000000);
	offer_placed("verbs", "10.0.0.2", "fast1", 10, 200000000000);
	expect_domain("fast1");
}

Test(choose, what_is_at_no_known_place_keeps_its_turn)
{
	offer_placed("tcp", "10.0.0.1", "bond0", 0, 0);
	offer_placed("tcp", "10.0.0.2", "near0", 10, 0);
	expect_domain("bond0");
	cr_expect(!choice.placed);
}

Test(choose, a_known_place_is_no_worse_than_an_unknown)
{
	offer_placed("tcp", "10.0.0.1", "far0", 31, 0);
	offer_placed("tcp", "10.0.0.2", "bond0", 0, 0);
	expect_domain("far0");
}

static void make_ipv6(struct fi_info *info)
{
	struct sockaddr_in6 *in6 = calloc(1, sizeof(*in6));

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(7);
	in6->sin6_addr = in6addr_loopback;
	free(info->src_addr);
	info->src_addr = in6;
	info->src_addrlen = sizeof(*in6);
	info->addr_format = FI_SOCKADDR_IN6;
}

Test(choose, ipv4_before_ipv6)
{
	make_ipv6(offer("tcp", ""));
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen_address(), "127.0.0.1");
}

Test(choose, ipv6_serves_if_alone)
{
	make_ipv6(offer("tcp", ""));
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(((struct sockaddr *)choice.info->src_addr)->sa_family, AF_INET6);
}

Test(choose, a_fabric_without_address_serves_if_alone)
{
	offer("tcp", "");
	cr_expect_eq(choose(""), 0);
}

Test(choose, layered_fabrics_are_not_used)
{
	offer("tcp;ofi_rxm", "10.0.0.1");
	cr_expect_eq(choose(""), -FI_ENODATA);
}

Test(choose, unconnected_endpoints_are_not_used)
{
	offer("tcp", "10.0.0.1")->ep_attr->type = FI_EP_RDM;
	cr_expect_eq(choose(""), -FI_ENODATA);
	cr_expect(strstr(capture.text, "no connected fabric"), "%s", capture.text);
}

Test(choose, a_named_domain_is_taken)
{
	offer("verbs", "10.0.0.1");
	free(offer("sockets", "10.0.0.2")->domain_attr->name);
	offered->next->domain_attr->name = strdup("mlx5_0");
	cr_assert_eq(choose("domain=mlx5_0"), 0);
	cr_expect_str_eq(chosen(), "sockets");
}

Test(choose, a_domain_that_is_not_there_is_logged)
{
	offer("tcp", "10.0.0.1");
	cr_expect_eq(choose("domain=mlx5_9"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "domain=mlx5_9"), "%s", capture.text);
	cr_expect(!choice.info);
}

Test(choose, fi_getinfo_failing_is_passed_on)
{
	offer("tcp", "10.0.0.1");
	answer = -FI_ENOMEM;
	cr_expect_eq(choose(""), -FI_ENOMEM);
}

Test(choose, the_provider_is_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose("provider=tcp"), 0);
	cr_expect_str_eq(asked->fabric_attr->prov_name, "tcp");
	cr_expect_eq(asked_flags, 0);
}

Test(choose, any_provider_is_not_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect(!asked->fabric_attr->prov_name);
}

Test(choose, the_address_is_asked_for_as_source)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_str_eq(asked_node, "127.0.0.1");
	cr_expect_eq(asked_flags, FI_SOURCE);
}

Test(choose, what_a_connection_needs_is_asked_for)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(asked->ep_attr->type, FI_EP_MSG);
	cr_expect_eq(asked->caps, FI_MSG | FI_RMA);
	cr_expect_eq(asked->domain_attr->threading, FI_THREAD_SAFE);
	cr_expect(asked->tx_attr->msg_order & FI_ORDER_SAW);
}

Test(choose, delivery_complete_where_it_is_offered)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.write_flags, FI_DELIVERY_COMPLETE);
}

Test(choose, no_delivery_complete_where_it_is_refused)
{
	offer("verbs", "10.0.0.1");
	delivery_answer = -FI_ENODATA;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.write_flags, 0);
}

/* All of it is used, and writes must not need receives for it. */
Test(choose, data_beside_messages_where_there_are_64_bits)
{
	struct fi_info *info = offer("tcp", "10.0.0.1");

	info->domain_attr->cq_data_size = 8;
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.cq_data);
	dofi_fabric_release(&choice);
	info->domain_attr->cq_data_size = 4;
	cr_assert_eq(choose(""), 0);
	cr_expect(!choice.cq_data);
	dofi_fabric_release(&choice);
	info->domain_attr->cq_data_size = 8;
	info->mode |= FI_RX_CQ_DATA;
	cr_assert_eq(choose(""), 0);
	cr_expect(!choice.cq_data);
}

Test(choose, a_fabric_of_virtual_addresses_keeps_its_mode)
{
	offer("verbs", "10.0.0.1")->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.mr_style, DOFI_MR_NATIVE);
	cr_expect_eq(choice.info->domain_attr->mr_mode, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
}

Test(choose, a_fabric_of_offsets_is_told_to_take_addresses)
{
	offer("tcp", "10.0.0.1")->domain_attr->mr_mode = 0;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.mr_style, DOFI_MR_VIRTUAL);
	cr_expect_eq(choice.info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
}

Test(choose, what_keys_and_addresses_can_do_follows_from_their_style)
{
	struct fi_info *info = offer("tcp", "10.0.0.1");

	cr_assert_eq(choose(""), 0);
	cr_expect(choice.zero_based && choice.scoped_keys && choice.cq_data);
	dofi_fabric_release(&choice);
	info->domain_attr->mr_key_size = 4;
	info->domain_attr->cq_data_size = 4;
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.zero_based && !choice.scoped_keys && !choice.cq_data);
	dofi_fabric_release(&choice);
	info->domain_attr->mr_key_size = 8;
	info->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	cr_assert_eq(choose(""), 0);
	cr_expect(!choice.zero_based && !choice.scoped_keys);
}

/* That it adds the offset is known of those alone that were measured. */
Test(choose, an_unknown_fabric_counts_by_addresses)
{
	offer("nosuch", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.mr_style, DOFI_MR_VIRTUAL);
	cr_expect(!choice.zero_based);
}

Test(choose, software_listens_everywhere)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.wildcard);
}

Test(choose, a_named_domain_listens_for_itself)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose("domain=fake0"), 0);
	cr_expect(!choice.wildcard);
}

Test(choose, a_named_address_listens_for_itself)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect(!choice.wildcard);
}

Test(choose, the_quirk_of_the_chosen_comes_along)
{
	offer("sockets", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.quirk, dofi_quirk_of("sockets"));
}

/* With libfabric itself. */

Test(choose, an_unknown_provider_is_logged)
{
	cr_expect_eq(choose("provider=nosuch"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "provider=nosuch"), "%s", capture.text);
}

Test(choose, fi_provider_filters)
{
	setenv("FI_PROVIDER", "sockets", 1);
	cr_assert_eq(choose(""), 0);
	cr_expect_str_eq(chosen(), "sockets");
}

Test(choose, a_filter_that_leaves_nothing_is_logged)
{
	setenv("FI_PROVIDER", "nosuch", 1);
	cr_expect(choose("") < 0);
	cr_expect(strstr(capture.text, "FI_PROVIDER=nosuch"), "%s", capture.text);
}

Test(choose, the_filter_and_the_entry_may_contradict)
{
	setenv("FI_PROVIDER", "sockets", 1);
	cr_expect(choose("provider=tcp") < 0);
}

Test(choose, a_foreign_address_is_no_interface)
{
	setenv("FI_PROVIDER", "tcp", 1);
	cr_expect(choose("address=203.0.113.7") < 0);
	cr_expect(strstr(capture.text, "address=203.0.113.7"), "%s", capture.text);
}

Test(choose, an_address_that_is_none_is_logged)
{
	offer("tcp", "10.0.0.1");
	cr_expect_eq(choose("address=eth0"), -FI_ENODATA);
	cr_expect(strstr(capture.text, "address=eth0"), "%s", capture.text);
}

Test(choose, loopback_can_be_asked_for)
{
	setenv("FI_PROVIDER", "tcp", 1);
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect_str_eq(chosen_address(), "127.0.0.1");
}

/* The list of fabrics */

TestSuite(list, .fini = done);

Test(list, names_each_fabric_once)
{
	char names[64];

	offer("tcp", "10.0.0.1");
	offer("tcp", "127.0.0.1");
	offer("sockets", "10.0.0.1");
	dofi_fabric_list(names, sizeof(names));
	cr_expect_str_eq(names, "tcp sockets");
}

Test(list, a_name_within_another_counts)
{
	char names[64];

	offer("tcpx", "10.0.0.1");
	offer("xtcp", "10.0.0.1");
	offer("tcp", "10.0.0.1");
	dofi_fabric_list(names, sizeof(names));
	cr_expect_str_eq(names, "tcpx xtcp tcp");
}

Test(list, what_cannot_be_used_is_left_out)
{
	char names[64];

	offer("tcp;ofi_rxm", "10.0.0.1");
	offer("shm", "10.0.0.1")->ep_attr->type = FI_EP_RDM;
	dofi_fabric_list(names, sizeof(names));
	cr_expect_str_eq(names, "");
}

Test(list, nothing_is_an_empty_text)
{
	char names[64] = "old";

	fake.getinfo = getinfo;
	dofi_fabric_list(names, sizeof(names));
	cr_expect_str_eq(names, "");
}

Test(list, is_cut_to_its_buffer)
{
	char names[8] = "";

	offer("tcp", "10.0.0.1");
	offer("sockets", "10.0.0.1");
	dofi_fabric_list(names, 7);
	cr_expect(strlen(names) <= 6);
	cr_expect(!strncmp(names, "tcp", 3));
}

/* Addresses */

static struct sockaddr_storage address_of(struct fi_info *info)
{
	struct sockaddr_storage address;

	memset(&address, 'x', sizeof(address));
	dofi_info_address(info, &address);
	fi_freeinfo(info);
	return address;
}

static void expect_ipv4(const struct sockaddr_storage *address, uint32_t ip)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	cr_expect_eq(in->sin_family, AF_INET);
	cr_expect_eq(ntohl(in->sin_addr.s_addr), ip);
	cr_expect_eq(in->sin_port, 0);
}

Test(address, is_the_interfaces_without_port)
{
	struct sockaddr_storage a = address_of(fake_info("tcp", "10.0.0.9"));

	expect_ipv4(&a, 0x0a000009);
}

Test(address, ipv6_is_kept)
{
	struct fi_info *info = fake_info("tcp", "");
	struct sockaddr_storage a;

	make_ipv6(info);
	a = address_of(info);
	cr_expect_eq(a.ss_family, AF_INET6);
	cr_expect_eq(((struct sockaddr_in6 *)&a)->sin6_port, 0);
	cr_expect(IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&a)->sin6_addr));
}

Test(address, none_is_loopback)
{
	struct sockaddr_storage a = address_of(fake_info("tcp", ""));

	expect_ipv4(&a, INADDR_LOOPBACK);
}

Test(address, a_foreign_family_is_loopback)
{
	struct fi_info *info = fake_info("verbs", "");
	struct sockaddr_storage a;

	info->src_addr = malloc(48);	/* as large as an InfiniBand address */
	memset(info->src_addr, 0x1b, 48);
	info->src_addrlen = 48;
	a = address_of(info);
	expect_ipv4(&a, INADDR_LOOPBACK);
}

Test(address, an_oversized_one_is_loopback)
{
	struct fi_info *info = fake_info("verbs", "");
	struct sockaddr_storage a;

	info->src_addr = calloc(1, sizeof(a) + 1);
	info->src_addrlen = sizeof(a) + 1;
	a = address_of(info);
	expect_ipv4(&a, INADDR_LOOPBACK);
}

/* Limits */

static struct dofi_limits limits_of(struct fi_info *info)
{
	const struct dofi_fabric_choice choice = { .info = info };
	struct dofi_limits limits;

	dofi_info_limits(&choice, 100, &limits);
	fi_freeinfo(info);
	return limits;
}

Test(limits, segments_are_the_least_of_all)
{
	struct fi_info *info = fake_info("tcp", "");
	struct dofi_limits l;

	info->tx_attr->iov_limit = 3;
	info->rx_attr->iov_limit = 2;
	l = limits_of(info);
	cr_expect_eq(l.max_iov, 2);
	cr_expect_eq(l.max_rdma_iov, 3);
}

Test(limits, segments_have_room_in_a_slot)
{
	struct fi_info *info = fake_info("tcp", "");
	struct dofi_limits l;

	info->tx_attr->iov_limit = info->rx_attr->iov_limit = 1000;
	l = limits_of(info);
	cr_expect_eq(l.max_iov, 8);
	cr_expect_eq(l.max_rdma_iov, 8);
}

Test(limits, an_unlimited_size_leaves_room_for_an_offset)
{
	struct fi_info *info = fake_info("sockets", "");
	struct dofi_limits l;

	info->ep_attr->max_msg_size = SIZE_MAX;
	l = limits_of(info);
	cr_expect_eq(l.max_message_size, INT64_MAX);
	cr_expect_eq(l.max_rdma_size, INT64_MAX);
}

Test(limits, a_size_is_kept)
{
	struct fi_info *info = fake_info("verbs", "");

	info->ep_attr->max_msg_size = 1 << 30;
	cr_expect_eq(limits_of(info).max_message_size, 1 << 30);
}

Test(limits, a_small_number_of_endpoints_is_no_limit)
{
	struct fi_info *info = fake_info("tcp", "");

	info->domain_attr->ep_cnt = 1;
	cr_expect_eq(limits_of(info).max_eps, 8192);
}

Test(limits, counts_are_bounded)
{
	struct fi_info *info = fake_info("verbs", "");
	struct dofi_limits l;

	info->domain_attr->ep_cnt = info->domain_attr->mr_cnt = 1 << 24;
	l = limits_of(info);
	cr_expect_eq(l.max_eps, 65536);
	cr_expect_eq(l.max_lmrs, 65536);
}

Test(limits, unknown_counts_have_a_default)
{
	struct dofi_limits l = limits_of(fake_info("tcp", ""));

	cr_expect(l.max_eps > 0 && l.max_lmrs > 0 && l.max_pzs > 0);
}

Test(limits, shared_receive_queues_need_injection)
{
	struct fi_info *info = fake_info("tcp", "");
	struct dofi_limits l;

	info->tx_attr->inject_size = 19;
	l = limits_of(fi_dupinfo(info));
	cr_expect(!l.max_srqs && !l.max_srq_eps);
	info->tx_attr->inject_size = 20;
	l = limits_of(info);
	cr_expect(l.max_srqs > 0);
	cr_expect_eq(l.max_srq_eps, l.max_eps);
	cr_expect_eq(l.inject_size, 20);
}

Test(limits, private_data_is_what_was_asked)
{
	cr_expect_eq(limits_of(fake_info("tcp", "")).cm_data_size, 100);
}
