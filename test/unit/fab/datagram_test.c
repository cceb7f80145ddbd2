/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric of datagrams: its choice among offers, and datagrams over udp of this libfabric. */

#include "fab/info.h"

#include "base/env.h"
#include "fab/endpoint.h"
#include "fab/offer.h"
#include "fab/offers.h"
#include "fab/quirks.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>

static struct dofi_fabric_choice beside, found;
static struct sockaddr_storage address;
static const struct dofi_params any;

static void main_is(const char *provider, const char *ip)
{
	beside = (struct dofi_fabric_choice){
		.info = fake_info(provider, ip), .quirk = dofi_quirk_of(provider),
	};
	dofi_fabric_address(&beside, &any, &address);
}

static void fini(void)
{
	if (found.info)
		dofi_fabric_release(&found);
	if (beside.info)
		dofi_fabric_release(&beside);
	done();
}

TestSuite(datagram, .fini = fini);

static int find(void)
{
	return dofi_datagram_choose(&beside, &address, &found);
}

static struct fi_info *offer_datagrams(const char *provider, const char *ip, size_t longest)
{
	struct fi_info *info = offer(provider, ip);

	info->ep_attr->type = FI_EP_DGRAM;
	info->ep_attr->max_msg_size = longest;
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->caps = FI_MSG | FI_SOURCE;
	return info;
}

static struct fi_info *offer_device(const char *domain)
{
	struct fi_info *info = offer_datagrams("verbs", "", 4096);

	free(info->domain_attr->name);
	info->domain_attr->name = strdup(domain);
	info->mode = info->rx_attr->mode = FI_MSG_PREFIX;
	info->ep_attr->msg_prefix_size = 40;
	info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY;
	info->addr_format = FI_ADDR_IB_UD;
	return info;
}

Test(datagram, software_has_udp_at_the_address)
{
	static const char *const software[] = { "tcp", "sockets" };
	size_t i;

	offer_datagrams("udp", "10.0.0.1", 1472);
	offer_datagrams("udp", "10.0.0.2", 1472);
	for (i = 0; i < sizeof(software) / sizeof(software[0]); i++) {
		main_is(software[i], "10.0.0.2");
		cr_assert_eq(find(), 0, "%s", software[i]);
		cr_expect_str_eq(found.info->fabric_attr->prov_name, "udp");
		cr_expect_eq(((struct sockaddr_in *)found.info->src_addr)->sin_addr.s_addr,
			     inet_addr("10.0.0.2"));
		dofi_fabric_release(&found);
		dofi_fabric_release(&beside);
	}
	cr_expect_str_eq(asked_node, "10.0.0.2");
	cr_expect_eq(asked_flags, FI_SOURCE);
	cr_expect_eq(asked->ep_attr->type, FI_EP_DGRAM);
	cr_expect_eq(asked->domain_attr->threading, FI_THREAD_SAFE);
	cr_expect_str_eq(asked->fabric_attr->prov_name, "udp");
}

Test(datagram, the_choice_is_for_an_endpoint_that_does_not_connect)
{
	offer_datagrams("udp", "10.0.0.1", 1472);
	main_is("tcp", "10.0.0.1");
	cr_assert_eq(find(), 0);
	cr_expect(found.rdm && !found.shared_memory && !found.target_rdma);
	cr_expect_eq(found.frame_size, 1472);
	cr_expect_eq(found.quirk, dofi_quirk_of_datagrams("udp"));
	cr_expect(!(found.info->caps & FI_SOURCE) && found.info->caps & FI_MSG);
}

Test(datagram, software_has_none_at_another_address)
{
	offer_datagrams("udp", "10.0.0.1", 1472);
	main_is("tcp", "10.0.0.2");
	cr_expect_eq(find(), -ENODATA);
}

Test(datagram, ipv6_has_udp_as_well)
{
	offer_datagrams("udp", "10.0.0.1", 1472);
	make_ipv6(offer_datagrams("udp", "10.0.0.1", 1472));
	main_is("tcp", "");
	make_ipv6(beside.info);
	dofi_fabric_address(&beside, &any, &address);
	cr_assert_eq(find(), 0);
	cr_expect_eq(((struct sockaddr *)found.info->src_addr)->sa_family, AF_INET6);
	cr_expect_str_eq(asked_node, "::1");
}

Test(datagram, a_device_has_its_own)
{
	offer_device("rxe1-dgram");
	offer_device("rxe0-dgram");
	offer_datagrams("udp", "10.0.0.1", 1472);
	main_is("verbs", "10.0.0.1");
	free(beside.info->domain_attr->name);
	beside.info->domain_attr->name = strdup("rxe0");
	cr_assert_eq(find(), 0);
	cr_expect_str_eq(found.info->domain_attr->name, "rxe0-dgram");
	cr_expect_eq(found.frame_size, 4096);
	cr_expect_eq(found.info->domain_attr->mr_mode, FI_MR_LOCAL | FI_MR_PROV_KEY);
	cr_expect_str_eq(asked_node, "");
	cr_expect(asked->mode & FI_MSG_PREFIX);
	dofi_fabric_release(&found);
	beside.info->domain_attr->name[3] = '2';
	cr_expect_eq(find(), -ENODATA);
}

/* Its datagrams do not move by themselves: the CQ is read as often as one of software. */
Test(datagram, a_device_is_not_offloaded_here)
{
	const struct dofi_quirk *q = dofi_quirk_of_datagrams("verbs");

	cr_expect(q != dofi_quirk_of("verbs") && q->wc_errors && q->fixed_queues);
	cr_expect(!q->offloaded && dofi_quirk_of("verbs")->offloaded);
}

Test(datagram, other_fabrics_have_none)
{
	offer_datagrams("udp", "10.0.0.1", 1472);
	main_is("efa", "10.0.0.1");
	cr_expect_eq(find(), -ENODATA);
	dofi_fabric_release(&beside);
	main_is("tcp", "10.0.0.1");
	beside.rdm = true;
	cr_expect_eq(find(), -ENODATA);
}

Test(datagram, an_offer_must_be_of_use)
{
	struct fi_info *info = offer_datagrams("udp", "10.0.0.1", 511);

	main_is("tcp", "10.0.0.1");
	cr_expect_eq(find(), -ENODATA);
	info->ep_attr->max_msg_size = 512;
	info->tx_attr->mode = FI_MSG_PREFIX;
	cr_expect_eq(find(), -ENODATA);
	info->tx_attr->mode = 0;
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup("udp;ofi_hook");
	cr_expect_eq(find(), -ENODATA);
	cr_expect(!found.info);
}

Test(datagram, an_error_of_libfabric_is_returned)
{
	main_is("tcp", "10.0.0.1");
	offer_datagrams("udp", "10.0.0.1", 1472);
	answer = -FI_ENOMEM;
	cr_expect_eq(find(), -ENOMEM);
}

Test(datagram, the_fabric_may_fail_to_open)
{
	struct fid_fabric *fabric = NULL;

	main_is("udp", "10.0.0.1");
	fake.replace_fabric = true;
	fake.fault.fabric = -FI_EMFILE;
	cr_expect_eq(dofi_datagram_start(&beside, &fabric), -EMFILE);
	cr_expect(!fabric);
	fake.fault.fabric = 0;
	cr_expect_eq(dofi_datagram_start(&beside, &fabric), 0);
	cr_expect_eq(fabric, &fake.fabric);
}

/* On libfabric itself */

#define BUFFERS 32

/* A PZ. All have one progress thread, of tcp. */
struct side {
	struct dofi_domain domain;
	struct dofi_rdm rdm;
	unsigned char got[2048];
	size_t len;
	unsigned errors;
	sem_t came, sent;
};

static struct {
	struct dofi_progress progress;
	struct fid_fabric *fabric;
	struct side side[2];
	fi_addr_t peer;
	int ret;
} udp;

static unsigned char message[2048];
static struct dofi_rdm_buffer sent;	/* for the context of a send */

static void arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry, int err,
		    struct dofi_sink *sink)
{
	struct side *s = (struct side *)((char *)buffer->rdm - offsetof(struct side, rdm));

	if (buffer == &sent) {
		sem_post(&s->sent);
		return;
	}
	s->errors += err && err != FI_ECANCELED;
	s->len = err ? 0 : entry->len;
	memcpy(s->got, buffer->data, s->len);
	dofi_rdm_repost(buffer);
	if (!err)
		sem_post(&s->came);
}

static void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	cr_assert(dofi_rdm_is_buffer(entry->op_context));
	dofi_rdm_completed(entry, err, sink);
}

static void failed(struct dofi_progress *p, int err)
{
	cr_assert(!err, "%d", err);
}

static const struct dofi_progress_ops tcp_ops = { .failed = failed };
static const struct dofi_progress_ops udp_ops = {
	.completed = completed, .foreign_contexts = true,
};

static void side_open(void *arg)
{
	const struct dofi_rdm_options options = { .n_buffers = BUFFERS, .arrived = arrived };
	struct side *s = arg;

	sem_init(&s->came, 0, 0);
	sem_init(&s->sent, 0, 0);
	dofi_cq_init(&s->domain.cq);
	udp.ret = dofi_domain_open(&s->domain, &udp.progress, udp.fabric, &udp_ops, &found);
	if (!udp.ret)
		udp.ret = dofi_rdm_open(&s->rdm, &s->domain, &found, &options);
}

static void side_close(void *arg)
{
	struct side *s = arg;

	dofi_rdm_close(&s->rdm);
	dofi_domain_close(&s->domain);
}

static void peer_add(void *arg)
{
	const struct dofi_rdm *to = &udp.side[1].rdm;

	udp.ret = dofi_rdm_peer_add(&udp.side[0].rdm, to->address, to->address_len, &udp.peer);
}

static void udp_start(const char *text)
{
	struct dofi_params params;
	char why[160];
	int i;

	dofi_settings_read();
	cr_assert_eq(dofi_params_parse(text, &params, why, sizeof(why)), 0);
	cr_assert_eq(dofi_fabric_choose(&params, &beside), 0);
	dofi_fabric_address(&beside, &any, &address);
	cr_assert_eq(find(), 0);
	cr_assert_eq(dofi_fabric_start(&udp.progress, &tcp_ops, beside.info), 0);
	cr_assert_eq(dofi_datagram_start(&found, &udp.fabric), 0);
	for (i = 0; i < 2; i++) {
		dofi_progress_call(&udp.progress, side_open, &udp.side[i]);
		cr_assert_eq(udp.ret, 0, "%d", udp.ret);
	}
	dofi_progress_call(&udp.progress, peer_add, NULL);
	cr_assert_eq(udp.ret, 0);
}

static void udp_stop(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		dofi_progress_call(&udp.progress, side_close, &udp.side[i]);
		cr_expect_eq(udp.side[i].errors, 0);
	}
	cr_expect_eq(fi_close(&udp.fabric->fid), 0);
	dofi_progress_stop(&udp.progress);
}

static void await(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* The progress thread receives it, as no other thread polls. */
static void message_came(size_t len)
{
	struct side *to = &udp.side[1];

	await(&to->came);
	cr_expect_eq(to->len, len);
	cr_expect(!memcmp(to->got, message, len), "%zu bytes", len);
}

static void message_fill(size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		message[i] = (unsigned char)(i * 7 + len);
}

static void inject(size_t len)
{
	message_fill(len);
	cr_assert_eq(fi_inject(udp.side[0].rdm.fid, message, len, udp.peer), 0);
	message_came(len);
}

/* A send that is not injected completes with its context. */
static void send_whole(size_t len)
{
	struct side *from = &udp.side[0];

	message_fill(len);
	dofi_rdm_buffer_init(&sent, &from->rdm, NULL);
	cr_assert_eq(fi_send(from->rdm.fid, message, len, NULL, udp.peer, &sent), 0);
	message_came(len);
	await(&from->sent);
}

TestSuite(datagram_real, .fini = fini, .timeout = 60);

Test(datagram_real, udp_is_beside_tcp)
{
	size_t len;
	int i;

	udp_start("provider=tcp address=127.0.0.1");
	cr_expect_eq(found.frame_size, 1472);
	cr_expect(!udp.side[0].rdm.prefix && !udp.side[0].rdm.mr);
	for (len = 0; len <= found.frame_size; len += 92)
		inject(len);
	inject(found.frame_size);
	send_whole(found.frame_size);
	for (i = 0; i < 10 * BUFFERS; i++)
		inject(100);
	udp_stop();
}

/* The address of an interface is of use to peers on other hosts. */
Test(datagram_real, an_ia_of_every_interface_has_udp_at_its_address)
{
	udp_start("provider=tcp");
	cr_expect(beside.wildcard);
	cr_expect(!dofi_offer_has_address(found.info, "0.0.0.0"));
	inject(found.frame_size);
	udp_stop();
}

/* The threads of the program receive as well. */
Test(datagram_real, a_thread_that_polls_receives)
{
	struct side *to = &udp.side[1];
	int i;

	udp_start("provider=tcp address=127.0.0.1");
	message_fill(700);
	for (i = 0; i < 1000; i++) {
		cr_assert_eq(fi_inject(udp.side[0].rdm.fid, message, 700, udp.peer), 0);
		while (sem_trywait(&to->came))
			dofi_cq_poll(&to->domain.cq, NULL);
		cr_assert(to->len == 700 && !memcmp(to->got, message, 700));
	}
	udp_stop();
}

Test(datagram_real, a_user_can_exclude_udp)
{
	setenv("FI_PROVIDER", "tcp", 1);
	main_is("tcp", "127.0.0.1");
	cr_expect_eq(find(), -ENODATA);
}
