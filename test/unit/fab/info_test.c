/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The use of the fi_info of the chosen fabric. */

#include "fab/offer.h"

#include "base/env.h"
#include "base/log.h"
#include "capture.h"
#include "fab/fake.h"
#include "fab/info.h"
#include "fab/quirks.h"
#include "fab/reach.h"
#include "loop/progress.h"

#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <string.h>

TestSuite(info, .fini = done);

static const struct dofi_params any;

Test(info, an_open_fabric_of_another_ia_is_not_shared)
{
	static struct fid_fabric fabric;
	static struct fid_domain domain;

	offer_rdm("shm");
	offered->fabric_attr->fabric = &fabric;
	offered->domain_attr->domain = &domain;
	cr_assert_eq(choose("provider=shm"), 0);
	cr_expect(!choice.info->fabric_attr->fabric);
	cr_expect(!choice.info->domain_attr->domain);
}

/* Endpoints that do not connect */

Test(info, without_writes_ordered_it_says_so)
{
	offer_efa()->tx_attr->msg_order = FI_ORDER_SAS;
	order_answer = -FI_ENODATA;
	cr_assert_eq(choose("provider=efa"), 0);
	cr_expect(!choice.write_ordered);
	cr_expect_eq(choice.frame_size, 4096);
	dofi_fabric_release(&choice);
	order_answer = 0;
	cr_assert_eq(choose("provider=efa"), 0);
	cr_expect(choice.write_ordered);
}

/* libfabric's emulation aborts the process of the target at a wrong key. */
Test(info, emulated_rdma_is_not_used)
{
	offer_efa();
	order_answer = -FI_ENODATA;
	for (efa_rdma = EFA_DEVICE; efa_rdma <= EFA_SILENT; efa_rdma++) {
		cr_assert_eq(choose("provider=efa"), 0);
		cr_expect_eq(choice.target_rdma, efa_rdma != EFA_DEVICE, "%d", efa_rdma);
		cr_expect_eq(!strcmp(dofi_fabric_name(&choice), "efa"), efa_rdma == EFA_DEVICE);
		cr_expect_eq(efa_open, 0);
		dofi_fabric_release(&choice);
	}
	efa_rdma = EFA_DEVICE;
	/* without an endpoint nothing is known: the peer may have found one */
	fake.endpoint = NULL;
	cr_assert_eq(choose("provider=efa"), -FI_ENOSYS);
}

/* 64 KiB and a header */
#define LONG_FRAME (65536 + 64)

/* Up to libfabric 1.17 rxm over tcp needs no buffers for long frames. */
static bool has_long_rxm_frames(void)
{
	return FI_VERSION_GE(FI_VERSION(1, 17), fi_version());
}

Test(info, frames_are_no_longer_than_the_fabric_keeps_in_order)
{
	offer_rdm("tcp");
	cr_assert_eq(choose("provider=tcp"), 0);
	cr_expect_eq(choice.frame_size, LONG_FRAME);
	dofi_fabric_release(&choice);
	offered->ep_attr->max_msg_size = 1000;
	cr_assert_eq(choose("provider=tcp"), 0);
	cr_expect_eq(choice.frame_size, 1000);
	dofi_fabric_release(&choice);
	free(offered->fabric_attr->prov_name);
	offered->fabric_attr->prov_name = strdup("shm");
	offered->ep_attr->max_msg_size = SIZE_MAX;
	offered->tx_attr->inject_size = 1024;
	cr_assert_eq(choose("provider=shm"), 0);
	cr_expect_eq(choice.frame_size, 1024);
}

/*
 * Frames of @layer have @most bytes, or fewer if @variable is less: the fabric would reorder longer
 * ones.
 */
static void expect_frames(const char *layer, const char *variable, size_t most)
{
	char params[64];

	offer_rdm(layer);
	snprintf(params, sizeof(params), "provider=%s", layer);
	setenv(variable, "1048576", 1);
	cr_assert_eq(choose(params), 0);
	cr_expect_eq(choice.frame_size, most);
	dofi_fabric_release(&choice);
	setenv(variable, "2048", 1);
	cr_assert_eq(choose(params), 0);
	cr_expect_eq(choice.frame_size, 2048);
	dofi_fabric_release(&choice);
	setenv(variable, "100", 1);
	cr_expect_eq(choose(params), -FI_EOPNOTSUPP);
	cr_expect(strstr(capture.text, "messages of 100 bytes"), "%s", capture.text);
	cr_expect(!choice.info);
}

Test(info, frames_fit_the_buffers_that_the_user_gave_a_layer)
{
	expect_frames("verbs;ofi_rxm", "FI_OFI_RXM_BUFFER_SIZE", 16384);
}

Test(info, frames_fit_the_limit_where_a_layer_needs_no_buffers)
{
	if (has_long_rxm_frames())
		expect_frames("tcp;ofi_rxm", "FI_OFI_RXM_EAGER_LIMIT", LONG_FRAME);
	else
		expect_frames("tcp;ofi_rxm", "FI_OFI_RXM_BUFFER_SIZE", 16384);
}

static void name_endpoint(struct fi_info *info)
{
	free(info->src_addr);
	info->src_addr = strdup("fi_shm://4711-and-more");
	info->src_addrlen = strlen(info->src_addr) + 1;
	info->dest_addr = strdup("fi_shm://4711");
	info->dest_addrlen = strlen(info->dest_addr) + 1;
	info->addr_format = FI_ADDR_STR;
}

Test(info, a_fabric_of_names_keeps_its_name_and_has_the_loopback_address)
{
	struct sockaddr_storage address;

	name_endpoint(offer_rdm("shm"));
	cr_assert_eq(choose("provider=shm endpoint=rdm"), 0);
	cr_expect_str_eq((char *)choice.info->src_addr, "fi_shm://4711-and-more");
	dofi_fabric_address(&choice, &any, &address);
	cr_expect_eq(((struct sockaddr_in *)&address)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	dofi_fabric_release(&choice);
}

Test(info, delivery_complete_where_it_is_offered)
{
	offer("verbs", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.write_flags, FI_DELIVERY_COMPLETE);
}

Test(info, software_that_delivers_is_queried_once)
{
	offer("tcp", "10.0.0.1");
	delivery_answer = -FI_ENODATA;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.write_flags, FI_DELIVERY_COMPLETE);
	cr_expect_eq(queries, 1);
}

Test(info, a_layer_is_not_queried_for_connected_endpoints)
{
	offer_rdm("tcp;ofi_rxm");
	cr_assert_eq(choose("provider=tcp;ofi_rxm"), 0);
	cr_expect_eq(queries, 2);
}

Test(info, no_delivery_complete_where_it_is_refused)
{
	offer("verbs", "10.0.0.1");
	delivery_answer = -FI_ENODATA;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.write_flags, 0);
}

/* All 64 bits are used, and a write with remote CQ data must not consume a receive. */
Test(info, cq_data_where_there_are_64_bits)
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

/*
 * Remote CQ data of a write completes a receive, so immediate data and atomics are left to the
 * fabric.
 */
Test(info, hardware_does_by_itself_what_it_can)
{
	struct fi_info *info = offer("verbs", "10.0.0.1");

	info->domain_attr->cq_data_size = 4;
	info->domain_attr->threading = FI_THREAD_SAFE;
	cr_assert_eq(choose(""), 0);
	cr_expect(asked->mode & FI_RX_CQ_DATA);
	cr_expect(!choice.immed && !choice.atomics && !choice.fences);
	cr_expect_eq(choice.info->domain_attr->threading, FI_THREAD_SAFE);
	dofi_fabric_release(&choice);
	info->mode |= FI_RX_CQ_DATA;
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.immed && choice.atomics && choice.fences && !choice.cq_data);
	cr_expect(choice.info->caps & FI_ATOMIC);
	cr_expect_eq(choice.info->domain_attr->threading, FI_THREAD_COMPLETION);
	cr_expect(dofi_fabric_has_immed(&choice) && dofi_fabric_has_atomics(&choice));
	dofi_fabric_release(&choice);
	atomics_answer = -FI_ENODATA;
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.immed && !choice.atomics && !dofi_fabric_has_atomics(&choice));
	dofi_fabric_release(&choice);
	info->domain_attr->cq_data_size = 0;
	cr_assert_eq(choose(""), 0);
	cr_expect(!choice.immed && !dofi_fabric_has_immed(&choice));
}

Test(info, a_fabric_of_virtual_addresses_keeps_its_mode)
{
	offer("verbs", "10.0.0.1")->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.mr_style, DOFI_MR_NATIVE);
	cr_expect_eq(choice.info->domain_attr->mr_mode, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
}

Test(info, a_fabric_of_offsets_is_asked_to_take_addresses)
{
	offer("tcp", "10.0.0.1")->domain_attr->mr_mode = 0;
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.mr_style, DOFI_MR_VIRTUAL);
	cr_expect_eq(choice.info->domain_attr->mr_mode, FI_MR_VIRT_ADDR);
}

Test(info, what_keys_and_addresses_can_do_follows_from_their_style)
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

/* Only for measured fabrics is it known that they add the offset. */
Test(info, an_unknown_fabric_counts_by_addresses)
{
	offer("nosuch", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.mr_style, DOFI_MR_VIRTUAL);
	cr_expect(!choice.zero_based);
}

Test(info, software_listens_everywhere)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect(choice.wildcard);
}

Test(info, a_named_domain_listens_for_itself)
{
	offer("tcp", "10.0.0.1");
	cr_assert_eq(choose("domain=fake0"), 0);
	cr_expect(!choice.wildcard);
}

Test(info, a_named_address_listens_for_itself)
{
	offer("tcp", "127.0.0.1");
	cr_assert_eq(choose("address=127.0.0.1"), 0);
	cr_expect(!choice.wildcard);
}

Test(info, the_quirk_of_the_chosen_comes_along)
{
	offer("sockets", "10.0.0.1");
	cr_assert_eq(choose(""), 0);
	cr_expect_eq(choice.quirk, dofi_quirk_of("sockets"));
}

/* With the real libfabric. */

/*
 * The expectations for each connectionless fabric of libfabric. A fabric that this libfabric lacks
 * is only logged.
 */
static const struct {
	const char *provider;
	bool shared_memory, target_rdma, write_ordered;
	enum dofi_mr_style style;
	uint64_t write_flags;
	int mr_mode;
	size_t frame_size;
} real[] = {
	{ "shm", true, true, true, DOFI_MR_VIRTUAL, 0, 0, 4096 },
	{ "tcp;ofi_rxm", false, true, true, DOFI_MR_VIRTUAL, 0, 0, LONG_FRAME },
	{ "tcp", false, true, true, DOFI_MR_VIRTUAL, 0, 0, LONG_FRAME },
	{ "sockets", false, false, false, DOFI_MR_VIRTUAL, FI_DELIVERY_COMPLETE, FI_MR_VIRT_ADDR,
	  16384 },
};

Test(info, real_fabrics_are_what_they_are)
{
	struct sockaddr_storage address;
	struct dofi_limits l;
	char text[64];
	bool is_short;
	size_t i;

	for (i = 0; i < sizeof(real) / sizeof(real[0]); i++) {
		snprintf(text, sizeof(text), "provider=%s endpoint=rdm", real[i].provider);
		is_short = strchr(real[i].provider, ';') && !has_long_rxm_frames();
		if (choose(text)) {
			dofi_log(DOFI_ERR, DOFI_FAB, "no %s in this libfabric", real[i].provider);
			continue;
		}
		cr_expect_str_eq(chosen(), real[i].provider);
		cr_expect(choice.rdm && choice.cq_data, "%s", text);
		cr_expect(choice.scoped_keys && choice.zero_based, "%s", text);
		cr_expect_eq(choice.shared_memory, real[i].shared_memory, "%s", text);
		cr_expect_eq(choice.write_ordered, real[i].write_ordered, "%s", text);
		cr_expect_eq(choice.target_rdma, real[i].target_rdma, "%s", text);
		cr_expect_eq(choice.mr_style, real[i].style, "%s", text);
		cr_expect_eq(choice.write_flags, real[i].write_flags, "%s", text);
		cr_expect_eq(choice.info->domain_attr->mr_mode, real[i].mr_mode, "%s", text);
		cr_expect_eq(choice.frame_size, is_short ? 16384 : real[i].frame_size, "%s", text);
		cr_expect(choice.info->domain_attr->av_type != FI_AV_MAP, "%s", text);
		dofi_fabric_address(&choice, &any, &address);
		cr_expect_eq(address.ss_family, AF_INET, "%s", text);
		dofi_info_limits(&choice, 100, &l);
		cr_expect(l.max_message_size >= INT64_MAX - 4096, "%s", text);
		cr_expect(l.max_iov >= 4 && l.max_rdma_iov >= 4, "%s", text);
		cr_expect(l.max_srqs && l.inject_size, "%s", text);
		dofi_fabric_release(&choice);
	}
}

Test(info, the_real_rxd_is_refused)
{
	int ret = choose("provider=udp;ofi_rxd");

	cr_expect(ret == -FI_EOPNOTSUPP || ret == -FI_ENODATA, "%d", ret);
	cr_expect(strstr(capture.text, ret == -FI_ENODATA ? "no usable" : "is not used"), "%s",
		  capture.text);
}

/* Addresses */

static struct sockaddr_storage address_by(struct fi_info *info, bool shared_memory,
					  const struct dofi_params *params)
{
	const struct dofi_fabric_choice choice = {
		.info = info, .quirk = dofi_quirk_of(shared_memory ? "shm" : "nosuch"),
	};
	struct sockaddr_storage address;

	memset(&address, 'x', sizeof(address));
	dofi_fabric_address(&choice, params, &address);
	fi_freeinfo(info);
	return address;
}

static struct sockaddr_storage address_of(struct fi_info *info)
{
	return address_by(info, true, &any);
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

/* Its address looks like one of IPv4, which only the format denies. */
static struct fi_info *with_own_address(void)
{
	struct fi_info *info = fake_info("psm3", "10.0.0.9");

	info->addr_format = FI_ADDR_PSMX3;
	return info;
}

Test(address, of_a_fabric_with_its_own_is_the_hosts)
{
	struct sockaddr_storage host = { 0 }, a = address_by(with_own_address(), false, &any);

	cr_assert(dofi_reach_host(&host));
	cr_expect(!memcmp(&a, &host, sizeof(a)));
}

Test(address, of_a_fabric_with_its_own_is_the_requested_one)
{
	const struct dofi_params v4 = { .address = "10.0.0.7" }, v6 = { .address = "fd00::7" };
	struct sockaddr_storage a = address_by(with_own_address(), false, &v4);

	expect_ipv4(&a, 0x0a000007);
	a = address_by(with_own_address(), false, &v6);
	cr_expect_eq(a.ss_family, AF_INET6);
}

Test(address, a_foreign_family_is_loopback)
{
	struct fi_info *info = fake_info("verbs", "");
	struct sockaddr_storage a;

	info->src_addr = malloc(48);	/* as long as an InfiniBand address */
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
	cr_expect_eq(limits_of(info).max_eps, 65536);
}

Test(limits, a_device_has_shorter_queues_than_software)
{
	struct fi_info *info = fake_info("verbs", "");
	struct fid_nic nic = { .fid.fclass = FI_CLASS_NIC };
	struct dofi_limits l;

	dofi_info_limits(&(struct dofi_fabric_choice){ .info = info }, 100, &l);
	cr_expect_eq(l.max_dtos, 65536);
	info->nic = &nic;
	dofi_info_limits(&(struct dofi_fabric_choice){ .info = info }, 100, &l);
	cr_expect_eq(l.max_dtos, 8192);
	info->nic = NULL;
	fi_freeinfo(info);
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

Test(limits, connectionless_eps_share_an_endpoint_and_grants_are_no_registrations)
{
	struct fid_nic nic = { .fid.fclass = FI_CLASS_NIC };
	struct dofi_fabric_choice c = { .rdm = true, .target_rdma = true };
	struct dofi_limits l;

	c.info = fake_info("cxi", "");
	c.info->nic = &nic;
	c.info->domain_attr->ep_cnt = 128;
	c.info->domain_attr->mr_cnt = 100;
	dofi_info_limits(&c, 100, &l);
	cr_expect(l.max_eps == 65536 && l.max_srq_eps == 65536 && l.max_pzs == 128);
	cr_expect_eq(l.max_lmrs, 65536);
	c.info->domain_attr->mr_mode = FI_MR_LOCAL;
	dofi_info_limits(&c, 100, &l);
	cr_expect_eq(l.max_lmrs, 100);
	c.rdm = c.target_rdma = false;
	c.info->domain_attr->mr_mode = 0;
	dofi_info_limits(&c, 100, &l);
	cr_expect(l.max_eps == 128 && l.max_lmrs == 100 && l.max_pzs == 1024);
	c.info->nic = NULL;
	fi_freeinfo(c.info);
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

Test(limits, what_is_gathered_here_has_as_many_segments_as_there_is_room_for)
{
	struct dofi_fabric_choice c = {
		.rdm = true, .target_rdma = true,
	};
	struct dofi_limits l;

	c.info = fake_info("shm", "");
	c.info->tx_attr->iov_limit = c.info->rx_attr->iov_limit = 1;
	dofi_info_limits(&c, 100, &l);
	cr_expect(l.max_iov == 8 && l.max_rdma_iov == 8);
	cr_expect(l.max_srqs > 0);	/* our own messages need no injection */
	fi_freeinfo(c.info);
}

Test(limits, private_data_is_what_was_asked)
{
	cr_expect_eq(limits_of(fake_info("tcp", "")).cm_data_size, 100);
}

Test(limits, two_fabrics_promise_what_both_can)
{
	struct dofi_limits l = {
		.max_message_size = 100, .max_rdma_size = 2, .max_iov = 3, .max_rdma_iov = 400,
		.max_eps = 5, .max_dtos = 60, .max_pzs = 600, .max_lmrs = 7, .max_srqs = 800,
		.max_srq_eps = 9,
		.inject_size = 10, .cm_data_size = 11,
	};
	const struct dofi_limits other = {
		.max_message_size = 1, .max_rdma_size = 200, .max_iov = 300, .max_rdma_iov = 4,
		.max_eps = 500, .max_dtos = 12, .max_pzs = 6, .max_lmrs = 700, .max_srqs = 8,
		.max_srq_eps = 900,
	};

	dofi_limits_lower(&l, &other);
	cr_expect(l.max_message_size == 1 && l.max_rdma_size == 2 && l.max_iov == 3);
	cr_expect(l.max_rdma_iov == 4 && l.max_eps == 5 && l.max_pzs == 6 && l.max_lmrs == 7);
	cr_expect(l.max_srqs == 8 && l.max_srq_eps == 9 && l.max_dtos == 12);
	/* not reported to programs */
	cr_expect(l.inject_size == 10 && l.cm_data_size == 11);
}

/* How the version of libfabric is shown, and that an untested version is logged. */

TestSuite(version);

static const char *text_of(uint32_t version)
{
	static char text[48];

	dofi_version_text(version, text, sizeof(text));
	return text;
}

Test(version, a_tested_one_is_shown_as_it_is)
{
	cr_expect_str_eq(text_of(FI_VERSION(1, 17)), "1.17");
	cr_expect_str_eq(text_of(FI_VERSION(2, 6)), "2.6");
}

Test(version, a_newer_one_is_shown_as_untested)
{
	char short_text[4];

	cr_expect_str_eq(text_of(FI_VERSION(2, 7)), "2.7, untested (tested up to 2.6)");
	cr_expect_str_eq(text_of(FI_VERSION(3, 0)), "3.0, untested (tested up to 2.6)");
	dofi_version_text(FI_VERSION(2, 17), short_text, sizeof(short_text));
	cr_expect_str_eq(short_text, "2.1", "cut off, with its end");
}

static unsigned lines(void (*check)(void))
{
	struct capture c;
	const char *at;
	unsigned n = 0;

	dofi_log_max = DOFI_WARN;
	dofi_log_dest = DOFI_LOG_STDERR;
	capture_begin(&c);
	check();
	for (at = capture_end(&c); (at = strstr(at, "2.6, the newest")); at++)
		n++;
	return n;
}

static void tested(void)
{
	dofi_version_check(FI_VERSION(1, 17));
	dofi_version_check(FI_VERSION(2, 6));
}

static void untested(void)
{
	dofi_version_check(FI_VERSION(2, 7));
	dofi_version_check(FI_VERSION(2, 7));
}

Test(version, an_untested_one_is_logged_once)
{
	cr_expect_eq(lines(tested), 0);
	cr_expect_eq(lines(untested), 1);
	cr_expect_eq(lines(untested), 0);
}

/* The traits of event queues that dofi_fabric_start() passes for a fabric. */

static struct dofi_progress progress;
static const struct dofi_progress_ops ops;

static void init(void)
{
	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
}

static void fini(void)
{
	dofi_progress_stop(&progress);
	cr_expect_eq(fake.open, 0);
}

TestSuite(fabric_start, .init = init, .fini = fini);

static const struct dofi_eq_traits *traits_of(const char *provider)
{
	struct fi_info *info = fake_info(provider, "");

	cr_assert_eq(dofi_fabric_start(&progress, &ops, info), 0);
	fi_freeinfo(info);
	return &progress.traits;
}

Test(fabric_start, tcp_needs_a_second_event_queue_for_passive_endpoints)
{
	const struct dofi_eq_traits *t;

	fake.version = FI_VERSION(2, 1);
	t = traits_of("tcp");
	cr_expect(t->data_in_eq && !t->fails_for_one);
	cr_expect(progress.listen_eq.fid);
}

Test(fabric_start, verbs_fails_for_one_connection)
{
	const struct dofi_eq_traits *t = traits_of("verbs");

	cr_expect(t->fails_for_one && !t->data_in_eq);
	cr_expect(!progress.listen_eq.fid);
}

Test(fabric_start, an_unknown_fabric_has_no_traits)
{
	const struct dofi_eq_traits *t = traits_of("fake");

	cr_expect(!t->data_in_eq && !t->fails_for_one);
}
