/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connectionless endpoints, on a fake with faults and on each real fabric of this libfabric. */

#include "fab/endpoint.h"

#include "base/env.h"
#include "base/log.h"
#include "fab/cq.h"
#include "fab/fake.h"
#include "fab/info.h"
#include "fab/quirks.h"
#include "capture.h"
#include "nomem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BUFFERS 64

/* The fake endpoint and its addresses */

static struct {
	int ep_bind, enable, getname, av_open, endpoint, recv;	/* errors of these calls */
	int recv_after;			/* this many receives are posted before recv fails */
	int insert;			/* returned by fi_av_insert() if not 1 */
	bool no_selection;		/* the queue was bound without FI_SELECTIVE_COMPLETION */
} fault;

static struct dofi_domain domain;
static unsigned posted, cancelled, inserted, removed;
static void *context[1024];		/* of receives, in order */
static void *desc;
static size_t received_size;		/* of the last receive */
static const char *own_name;
static int names_taken;		/* so many endpoints have the name of a file that is there */
static struct sockaddr_in own_address;
static unsigned char last_inserted[DOFI_RDM_ADDRESS];

static int closed(struct fid *fid)
{
	fake.open--;
	return 0;
}

/*
 * Whether the CQ lock is held. A thread that reads the queue must not find an endpoint that is
 * bound and not enabled.
 */
static bool nobody_reads(void)
{
	if (!dofi_mutex_try(&domain.cq.lock))
		return true;
	dofi_mutex_unlock(&domain.cq.lock);
	return false;
}

static bool half_open;

static int ep_closed(struct fid *fid)
{
	cr_expect(!half_open || nobody_reads());
	half_open = false;
	return closed(fid);
}

static int bound(struct fid *fid, struct fid *to, uint64_t flags)
{
	if (to == &fake.cq.fid && flags & FI_TRANSMIT && !(flags & FI_SELECTIVE_COMPLETION))
		fault.no_selection = true;
	cr_expect(to != &fake.cq.fid || nobody_reads());
	half_open |= !fault.ep_bind && to == &fake.cq.fid;
	return fault.ep_bind;
}

static int control(struct fid *fid, int command, void *arg)
{
	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	cr_expect(nobody_reads());
	if (names_taken && names_taken--)
		return -FI_EBUSY;
	half_open = fault.enable;
	return fault.enable;
}

static int getname_of(fid_t fid, void *address, size_t *len)
{
	const void *name = own_name ? (const void *)own_name : &own_address;
	size_t size = own_name ? strlen(own_name) + 1 : sizeof(own_address);

	if (fault.getname || *len < size)
		return fault.getname ? fault.getname : -FI_ETOOSMALL;
	memcpy(address, name, size);
	*len = size;
	return 0;
}

static ssize_t recv_into(struct fid_ep *ep, void *buf, size_t len, void *d, fi_addr_t from, void *c)
{
	memset(buf, 0x5a, len);		/* all of the buffer is ours */
	if (fault.recv && !fault.recv_after)
		return fault.recv;
	if (fault.recv)
		fault.recv_after--;
	context[posted++ % 1024] = c;
	desc = d;
	received_size = len;
	return 0;
}

static ssize_t cancel(fid_t fid, void *c)
{
	cancelled++;
	fake_complete(c, FI_ECANCELED);
	return 0;
}

static int insert(struct fid_av *av, const void *address, size_t count, fi_addr_t *addr,
		  uint64_t flags, void *c)
{
	/* As many bytes as any fabric reads. */
	memcpy(last_inserted, address, sizeof(last_inserted));
	if (fault.insert != 1)
		return fault.insert;
	*addr = inserted++;
	return 1;
}

static int remove_from(struct fid_av *av, fi_addr_t *addr, size_t count, uint64_t flags)
{
	removed += count;
	return 0;
}

static struct fi_ops ep_fid_ops = { .size = sizeof(ep_fid_ops), .close = ep_closed, .bind = bound,
				    .control = control };
static struct fi_ops_cm cm_ops = { .size = sizeof(cm_ops), .getname = getname_of };
static struct fi_ops_msg msg_ops = { .size = sizeof(msg_ops), .recv = recv_into };
static struct fi_ops_ep ep_ops = { .size = sizeof(ep_ops), .cancel = cancel };
static struct fi_ops av_fid_ops = { .size = sizeof(av_fid_ops), .close = closed };
static struct fi_ops_av av_ops = { .size = sizeof(av_ops), .insert = insert,
				   .remove = remove_from };
static struct fid_ep ep = { .fid.ops = &ep_fid_ops, .ops = &ep_ops, .cm = &cm_ops,
			    .msg = &msg_ops };
static struct fid_av av = { .fid.ops = &av_fid_ops, .ops = &av_ops };

static int endpoint(struct fi_info *info, struct fid_ep **out)
{
	if (fault.endpoint)
		return fault.endpoint;
	fake.open++;
	*out = &ep;
	return 0;
}

static enum fi_av_type wanted_av = FI_AV_TABLE;

static int av_open(struct fi_av_attr *attr, struct fid_av **out)
{
	cr_expect_eq(attr->type, wanted_av);
	if (fault.av_open)
		return fault.av_open;
	fake.open++;
	*out = &av;
	return 0;
}

static struct dofi_progress progress;
static struct dofi_rdm rdm;
static struct dofi_fabric_choice choice = { .rdm = true, .frame_size = 1000 };
static unsigned seen, seen_failed;

/* Posts each buffer again, as the owner of the endpoint does. */
static void arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry, int err,
		    struct dofi_sink *sink)
{
	cr_assert(entry->op_context == buffer);
	cr_assert(buffer->rdm == &rdm);
	seen++;
	seen_failed += err != 0;
	dofi_rdm_repost(buffer);
}

static struct dofi_rdm_options options = { .n_buffers = BUFFERS, .arrived = arrived };

static void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	cr_assert(dofi_rdm_is_buffer(entry->op_context));
	dofi_rdm_completed(entry, err, sink);
}

static void swept(struct dofi_cq *cq)
{
	cr_assert(cq == &domain.cq);
	dofi_rdm_sweep(&rdm);
}

static const struct dofi_progress_ops ops = { .completed = completed, .swept = swept };

static void init(void)
{
	dofi_settings_read();
	fake_init();
	fault.insert = 1;
	own_address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(4711) };
	fake.endpoint = endpoint;
	fake.av_open = av_open;
	choice.info = fake_info("nosuch", "10.0.0.1");
	choice.quirk = dofi_quirk_of("nosuch");
	progress.ops = &ops;
	progress.fabric = &fake.fabric;
	progress.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.served);
	STAILQ_INIT(&progress.work);
	dofi_cq_init(&domain.cq);
	cr_assert_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), 0);
}

static void fini(void)
{
	dofi_domain_close(&domain);
	fi_freeinfo(choice.info);
	cr_expect_eq(fake.open, 0);
}

TestSuite(rdm, .init = init, .fini = fini);

static void open_rdm(void)
{
	cr_assert_eq(dofi_rdm_open(&rdm, &domain, &choice, &options), 0);
}

Test(rdm, a_name_that_is_taken_is_not_the_last)
{
	names_taken = 3;
	open_rdm();
	cr_expect_eq(names_taken, 0);
	dofi_rdm_close(&rdm);
	names_taken = 1000;
	cr_expect_eq(dofi_rdm_open(&rdm, &domain, &choice, &options), -FI_EBUSY);
}

Test(rdm, all_buffers_are_posted_and_come_back)
{
	unsigned i;

	open_rdm();
	cr_expect_eq(posted, BUFFERS);
	cr_expect(!fault.no_selection);
	for (i = 0; i < posted; i++)
		cr_expect(dofi_rdm_is_buffer(context[i]));
	cr_expect_eq(rdm.address_format, FI_SOCKADDR_IN);
	cr_expect_eq(rdm.address_len, sizeof(own_address));
	cr_expect(!memcmp(rdm.address, &own_address, sizeof(own_address)));
	cr_expect(!desc && !rdm.mr);
	dofi_rdm_close(&rdm);
	cr_expect_eq(seen_failed, BUFFERS);
	cr_expect_eq(posted, BUFFERS);
	cr_expect_eq(fake_unread(), 0);
}

Test(rdm, a_frame_at_the_end_is_seen_before_the_close_returns)
{
	open_rdm();
	fake_complete(context[3], 0);
	dofi_rdm_close(&rdm);
	cr_expect_eq(seen, BUFFERS + 1);
	cr_expect_eq(posted, BUFFERS);
}

Test(rdm, what_is_no_buffer_is_none)
{
	const struct dofi_rdm_context operation = { .is_buffer = false };

	cr_expect(!dofi_rdm_is_buffer(NULL));
	cr_expect(!dofi_rdm_is_buffer(&operation));
}

/* The first @n receives complete. */
static void receive(unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		fake_complete(context[i], 0);
	dofi_cq_drain(&domain.cq);
}

static void expect_reposted(unsigned n)
{
	unsigned i;

	cr_expect_eq(posted, BUFFERS + n);
	for (i = 0; i < n; i++)
		cr_expect_eq(context[BUFFERS + i], context[i]);
}

/* FI_CONTEXT, FI_CONTEXT2: the fabric writes to the contexts while operations are posted. */
Test(rdm, the_fabric_owns_its_part_of_a_context)
{
	unsigned i;

	open_rdm();
	for (i = 0; i < BUFFERS; i++)
		memset(context[i], 0xff, sizeof(struct fi_context2));
	receive(BUFFERS);
	cr_expect_eq(seen, BUFFERS);
	dofi_rdm_close(&rdm);
}

Test(rdm, a_map_of_addresses_where_the_fabric_has_no_table)
{
	wanted_av = choice.info->domain_attr->av_type = FI_AV_MAP;
	open_rdm();
	dofi_rdm_close(&rdm);
}

Test(rdm, buffers_are_posted_again_together)
{
	open_rdm();
	receive(DOFI_RDM_TOGETHER - 1);
	expect_reposted(0);
	fake_complete(context[DOFI_RDM_TOGETHER - 1], 0);
	dofi_cq_drain(&domain.cq);
	expect_reposted(DOFI_RDM_TOGETHER);
	cr_expect(STAILQ_EMPTY(&rdm.unposted));
	dofi_rdm_close(&rdm);
}

Test(rdm, buffers_that_are_not_taken_are_posted_later)
{
	open_rdm();
	fault.recv = -FI_EAGAIN;
	receive(DOFI_RDM_TOGETHER + 1);
	expect_reposted(0);
	cr_expect(dofi_cq_due(&domain.cq) != INT64_MAX);
	fault.recv_after = 1;
	dofi_cq_drain(&domain.cq);
	expect_reposted(1);
	fault.recv = 0;
	dofi_cq_poll(&domain.cq, NULL);
	expect_reposted(DOFI_RDM_TOGETHER + 1);
	cr_expect(STAILQ_EMPTY(&rdm.unposted));
	cr_expect_eq(progress.failure, 0);
	dofi_rdm_close(&rdm);
}

Test(rdm, a_buffer_that_is_refused_is_the_end)
{
	open_rdm();
	fault.recv = -FI_EIO;
	receive(DOFI_RDM_TOGETHER);
	cr_expect_eq(progress.failure, -FI_EIO);
	fault.recv = 0;
	dofi_rdm_close(&rdm);
}

/* Some programs want one buffer, some hundreds, and the fabric may take fewer. */
Test(rdm, any_number_of_buffers_is_posted)
{
	options.n_buffers = 1000;
	open_rdm();
	cr_expect_eq(posted, 1000);
	cr_expect_eq(rdm.n_buffers, 1000);
	dofi_rdm_close(&rdm);
	cr_expect_eq(seen_failed, 1000);

	posted = 0;
	choice.info->rx_attr->size = 384;
	open_rdm();
	cr_expect_eq(posted, 384);
	dofi_rdm_close(&rdm);
}

Test(rdm, twice_as_many_as_are_posted_together_wait_for_each_other)
{
	options.n_buffers = 2 * DOFI_RDM_TOGETHER;
	open_rdm();
	fake_complete(context[0], 0);
	dofi_cq_drain(&domain.cq);
	cr_expect_eq(posted, 2 * DOFI_RDM_TOGETHER);
	dofi_rdm_close(&rdm);
}

/* Otherwise all would be unposted before enough of them are. */
Test(rdm, few_buffers_are_posted_again_at_once)
{
	options.n_buffers = DOFI_RDM_TOGETHER - 1;
	open_rdm();
	fake_complete(context[0], 0);
	dofi_cq_drain(&domain.cq);
	cr_expect_eq(posted, DOFI_RDM_TOGETHER);
	cr_expect_eq(context[DOFI_RDM_TOGETHER - 1], context[0]);
	dofi_rdm_close(&rdm);
}

/* The prefix belongs to the fabric: a frame of full size fits behind it. */
Test(rdm, buffers_have_room_for_a_prefix)
{
	choice.info->ep_attr->msg_prefix_size = 40;
	open_rdm();
	cr_expect_eq(rdm.prefix, 0);
	cr_expect_eq(received_size, choice.frame_size);
	dofi_rdm_close(&rdm);

	choice.info->mode |= FI_MSG_PREFIX;
	open_rdm();
	cr_expect_eq(rdm.prefix, 40);
	cr_expect_eq(rdm.frame_size, choice.frame_size);
	cr_expect_eq(received_size, choice.frame_size + 40);
	dofi_rdm_close(&rdm);
}

static void domain_needs_local(void)
{
	dofi_domain_close(&domain);
	choice.info->domain_attr->mr_mode = FI_MR_LOCAL;
	cr_assert_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), 0);
}

Test(rdm, buffers_are_registered_where_the_fabric_wants_it)
{
	domain_needs_local();
	open_rdm();
	cr_expect_eq(fake.mrs, 1);
	cr_expect_eq(fake.mr_access, FI_RECV);
	cr_expect_eq(fake.mr_addr, rdm.memory);
	cr_expect(fake.mr_len >= BUFFERS * choice.frame_size);
	dofi_rdm_close(&rdm);
	fake.fault.mr_times = 1;
	fake.fault.mr = -FI_ENOMEM;
	cr_expect_eq(dofi_rdm_open(&rdm, &domain, &choice, &options), -FI_ENOMEM);
}

Test(rdm, frames_begin_at_a_cache_line)
{
	int i;

	open_rdm();
	for (i = 0; i < BUFFERS; i++)
		cr_expect_eq((uintptr_t)rdm.buffer[i].data % 64, 0);
	dofi_rdm_close(&rdm);
}

Test(rdm, buffers_of_a_frame_with_one_byte_more_than_lines_do_not_overlap)
{
	int i;

	choice.frame_size = 10 * 64 + 1;
	open_rdm();
	for (i = 1; i < BUFFERS; i++)
		cr_expect(rdm.buffer[i - 1].data + choice.frame_size <= rdm.buffer[i].data);
	dofi_rdm_close(&rdm);
}

static void fails(int *step)
{
	*step = -FI_EIO;
	cr_expect_eq(dofi_rdm_open(&rdm, &domain, &choice, &options), -FI_EIO);
	cr_expect(!rdm.fid);
	cr_expect_eq(fake.open, 2);	/* the domain and its queue */
	cr_expect_eq(fake_unread(), 0);
	*step = 0;
}

Test(rdm, each_step_may_fail)
{
	fails(&fault.av_open);
	fails(&fault.endpoint);
	fails(&fault.ep_bind);
	fails(&fault.enable);
	fails(&fault.getname);
	fails(&fault.recv);
	fault.recv_after = 5;
	fails(&fault.recv);
}

/* A CQ that is too long for the device is an EINVAL of the layer, at each attempt to connect. */
Test(rdm, a_layer_that_wants_a_long_queue_is_explained_once)
{
	struct capture capture;
	const char *text;

	choice.quirk = dofi_quirk_of("verbs;ofi_rxm");
	capture_begin(&capture);
	fails(&fault.enable);	/* EIO */
	cr_expect(!strstr(capture_end(&capture), "FI_UNIVERSE_SIZE"), "%s", capture.text);
	capture_begin(&capture);
	fault.enable = -FI_EINVAL;
	cr_expect_eq(dofi_rdm_open(&rdm, &domain, &choice, &options), -FI_EINVAL);
	cr_expect_eq(dofi_rdm_open(&rdm, &domain, &choice, &options), -FI_EINVAL);
	fault.enable = 0;
	text = strstr(capture_end(&capture), "FI_UNIVERSE_SIZE");
	cr_expect(text && !strstr(text + 1, "FI_UNIVERSE_SIZE"), "%s", capture.text);
}

/* Peers: their addresses come from the network */

static fi_addr_t peer;

static int add(const void *address, size_t len)
{
	unsigned char *exact = malloc(len ? len : 1);	/* exact size, for address checkers */
	int ret;

	memcpy(exact, address, len);
	ret = dofi_rdm_peer_add(&rdm, exact, len, &peer);
	free(exact);
	return ret;
}

static int add_text(const char *text)
{
	return add(text, strlen(text) + 1);
}

Test(rdm, a_socket_address_is_one_of_its_own_kind)
{
	struct sockaddr_in in = own_address;
	unsigned char long_one[300] = { 0 };

	open_rdm();
	cr_expect_eq(add(&in, sizeof(in)), 0);
	cr_expect(!memcmp(last_inserted, &in, sizeof(in)));
	cr_expect(!last_inserted[sizeof(in)] && !last_inserted[sizeof(last_inserted) - 1]);
	cr_expect_eq(add(&in, 0), -EINVAL);
	cr_expect_eq(add(&in, sizeof(in) - 1), -EINVAL);
	cr_expect_eq(add(long_one, sizeof(long_one)), -EINVAL);
	memcpy(long_one, &in, sizeof(in));
	cr_expect_eq(add(long_one, sizeof(struct sockaddr_in6)), -EINVAL);
	in.sin_family = AF_INET6;
	cr_expect_eq(add(&in, sizeof(in)), -EINVAL);
	in.sin_family = AF_UNIX;
	cr_expect_eq(add(&in, sizeof(in)), -EINVAL);
	cr_expect_eq(inserted, 1);
	dofi_rdm_close(&rdm);
}

Test(rdm, an_ipv6_address_is_one_of_its_own_kind)
{
	struct sockaddr_in in = own_address;

	choice.info->addr_format = FI_SOCKADDR_IN6;
	open_rdm();
	cr_expect_eq(add(&in, sizeof(in)), 0);
	in.sin_family = AF_UNIX;
	cr_expect_eq(add(&in, sizeof(in)), -EINVAL);
	dofi_rdm_close(&rdm);
}

Test(rdm, an_address_that_is_no_socket_address_has_any_bytes)
{
	struct sockaddr_in in = own_address;

	choice.info->addr_format = FI_ADDR_PSMX2;
	open_rdm();
	in.sin_family = AF_UNIX;
	cr_expect_eq(add(&in, sizeof(in)), 0);
	cr_expect_eq(add(&in, sizeof(in) - 1), -EINVAL);
	dofi_rdm_close(&rdm);
}

Test(rdm, a_name_is_one_of_its_own_kind)
{
	char text[300];

	own_name = "fi_shm://one-of-ours:0:1";
	choice.info->addr_format = FI_ADDR_STR;
	open_rdm();
	cr_expect_eq(add_text("fi_shm://another_of.Ours:0:0"), 0);
	cr_expect_str_eq((char *)last_inserted, "fi_shm://another_of.Ours:0:0");
	cr_expect_eq(add_text(""), -EINVAL);
	cr_expect_eq(add_text("fi_shm://"), -EINVAL);
	cr_expect_eq(add_text("fi_sm2://x"), -EINVAL);
	cr_expect_eq(add_text("fi_shm://../../etc/passwd"), -EINVAL);
	cr_expect_eq(add_text("fi_shm://a b"), -EINVAL);
	cr_expect_eq(add_text("fi_shm://%s%n"), -EINVAL);
	cr_expect_eq(add("fi_shm://x", 10), -EINVAL);		/* no NUL */
	cr_expect_eq(add("fi_shm://x\0y", 13), -EINVAL);	/* two NULs */
	cr_expect_eq(add("fi_shm:/", 8), -EINVAL);
	cr_expect_eq(add(&own_address, sizeof(own_address)), -EINVAL);
	memset(text, 'a', sizeof(text));
	memcpy(text, "fi_shm://", 9);
	text[DOFI_RDM_ADDRESS] = 0;
	cr_expect_eq(add_text(text), -EINVAL);
	text[DOFI_RDM_ADDRESS - 1] = 0;
	cr_expect_eq(add_text(text), 0);
	cr_expect_eq(inserted, 2);
	dofi_rdm_close(&rdm);
}

Test(rdm, any_bytes_are_safe)
{
	static const char letter[] = "fi_shm://:0.-%";
	unsigned char bytes[300];
	unsigned seed = 5, i, n;

	own_name = "fi_shm://one-of-ours:0:1";
	choice.info->addr_format = FI_ADDR_STR;
	open_rdm();
	for (i = 0; i < 20000; i++) {
		unsigned len = rand_r(&seed) % sizeof(bytes);

		for (n = 0; n < len; n++)
			bytes[n] = rand_r(&seed) % 8 ? letter[rand_r(&seed) % sizeof(letter)] :
						       rand_r(&seed);
		if (rand_r(&seed) % 2 && len > 9)
			memcpy(bytes, own_name, 9);
		if (!add(bytes, len))
			cr_assert(!bytes[len - 1] && strlen((char *)bytes) == len - 1);
	}
	dofi_rdm_close(&rdm);
}

Test(rdm, a_peer_that_is_added_twice_is_one_peer)
{
	struct sockaddr_in in = own_address;
	fi_addr_t first;

	open_rdm();
	cr_assert_eq(add(&in, sizeof(in)), 0);
	first = peer;
	cr_assert_eq(add(&in, sizeof(in)), 0);
	cr_expect_eq(peer, first);
	in.sin_port++;
	cr_assert_eq(add(&in, sizeof(in)), 0);
	cr_expect(peer != first);
	cr_expect_eq(inserted, 2);
	dofi_rdm_peer_remove(&rdm, first);
	cr_expect_eq(removed, 0);
	dofi_rdm_peer_remove(&rdm, first);
	cr_expect_eq(removed, 1);
	dofi_rdm_peer_remove(&rdm, first);	/* already removed */
	cr_expect_eq(removed, 1);
	dofi_rdm_close(&rdm);
}

Test(rdm, without_memory_the_fabric_keeps_no_peer)
{
	struct sockaddr_in in = own_address;
	int n, ret = -1;

	open_rdm();
	for (n = 0; ret && n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = dofi_rdm_peer_add(&rdm, &in, sizeof(in), &peer);
		cr_expect_eq(nomem_failed(), ret == -ENOMEM);
		cr_expect_eq(inserted - removed, !ret);
	}
	cr_expect_eq(ret, 0);
	cr_expect_eq(removed, 2, "one for each table of peers");
	dofi_rdm_peer_remove(&rdm, peer);
	cr_expect_eq(removed, inserted);
	dofi_rdm_close(&rdm);
}

/* Of shm, which crashes when it removes some addresses or uses an entry again. */
Test(rdm, a_peer_may_stay_with_the_fabric)
{
	struct sockaddr_in in = own_address;
	fi_addr_t first;

	choice.quirk = dofi_quirk_of("shm");
	open_rdm();
	cr_assert_eq(add(&in, sizeof(in)), 0);
	first = peer;
	dofi_rdm_peer_remove(&rdm, first);
	dofi_rdm_peer_remove(&rdm, first);	/* no use is left */
	cr_expect_eq(removed, 0);
	in.sin_port++;
	cr_assert_eq(add(&in, sizeof(in)), 0);
	cr_expect(peer != first);
	cr_assert_eq(add(&own_address, sizeof(own_address)), 0);
	cr_expect_eq(peer, first);
	cr_expect_eq(inserted, 2);
	dofi_rdm_close(&rdm);
}

Test(rdm, an_endpoint_that_is_shut_receives_nothing_more_and_keeps_its_buffers)
{
	open_rdm();
	dofi_rdm_shut(&rdm);
	cr_expect_eq(cancelled, BUFFERS);
	cr_expect(rdm.memory && !rdm.fid);
	dofi_rdm_shut(&rdm);
	dofi_cq_drain(&domain.cq);
	cr_expect_eq(seen_failed, BUFFERS);
	cr_expect_eq(posted, BUFFERS);
	dofi_rdm_close(&rdm);
	cr_expect(!rdm.memory);
}

Test(rdm, a_peer_that_the_fabric_does_not_take_is_an_error)
{
	open_rdm();
	fault.insert = 0;
	peer = 77;
	cr_expect_eq(add(&own_address, sizeof(own_address)), -EHOSTUNREACH);
	fault.insert = -FI_ENOMEM;
	cr_expect_eq(add(&own_address, sizeof(own_address)), -FI_ENOMEM);
	cr_expect_eq(peer, 77);
	dofi_rdm_close(&rdm);
}

/* Real fabrics: two endpoints with a progress thread each */

struct side {
	struct dofi_progress progress;
	struct dofi_domain domain;
	struct dofi_rdm rdm;
	struct dofi_fabric_choice choice;
	int ret;
	_Atomic unsigned got, wrong, cancelled;
	_Atomic bool closed;
	sem_t enough;
	unsigned wanted;
};

enum { FRAMES = 150 };

static struct side side[2];

/* Frames carry their number at both ends and have one of two lengths. */
static size_t frame_len(const struct side *s, unsigned number)
{
	return number % 3 ? 24 : s->rdm.frame_size;
}

static void frame_came(struct side *s, const unsigned char *data, size_t len)
{
	unsigned first, last, number = s->got;

	memcpy(&first, data, sizeof(first));
	memcpy(&last, data + len - sizeof(last), sizeof(last));
	if (s->closed || first != number || last != number || len != frame_len(s, number))
		s->wrong++;
	if (++s->got == s->wanted)
		sem_post(&s->enough);
}

static void side_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry,
			 int err, struct dofi_sink *sink)
{
	struct side *s = (struct side *)((char *)buffer->rdm - offsetof(struct side, rdm));

	cr_expect(!s->closed);
	if (err)
		s->cancelled++;
	else
		frame_came(s, buffer->data, entry->len);
	dofi_rdm_repost(buffer);
}

static void side_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (dofi_rdm_is_buffer(entry->op_context))
		dofi_rdm_completed(entry, err, sink);
	else
		cr_assert(!entry->op_context);	/* of a send that requested no completion */
}

static void side_swept(struct dofi_cq *cq)
{
	struct side *s = (struct side *)((char *)cq - offsetof(struct side, domain.cq));

	dofi_rdm_sweep(&s->rdm);
}

static void side_failed(struct dofi_progress *p, int err)
{
	cr_assert(!err, "%d", err);
}

static const struct dofi_progress_ops side_ops = {
	.completed = side_completed, .swept = side_swept, .failed = side_failed,
};

static void side_open(void *arg)
{
	struct side *s = arg;
	const struct dofi_rdm_options side_options = {
		.n_buffers = BUFFERS, .arrived = side_arrived,
	};

	dofi_cq_init(&s->domain.cq);
	s->ret = dofi_domain_open(&s->domain, &s->progress, s->progress.fabric,
				  s->progress.ops, &s->choice);
	if (!s->ret)
		s->ret = dofi_rdm_open(&s->rdm, &s->domain, &s->choice, &side_options);
}

static void side_close(void *arg)
{
	struct side *s = arg;
	unsigned posted_now = BUFFERS - s->rdm.n_unposted;

	dofi_rdm_close(&s->rdm);
	cr_expect_eq(s->cancelled, posted_now);
	s->closed = true;
	dofi_cq_drain(&s->domain.cq);
	dofi_domain_close(&s->domain);
}

static bool side_start(struct side *s, const char *provider)
{
	struct dofi_params params = { .endpoint = "rdm" };

	snprintf(params.provider, sizeof(params.provider), "%s", provider);
	if (dofi_fabric_choose(&params, &s->choice))
		return false;
	sem_init(&s->enough, 0, 0);
	cr_assert_eq(dofi_fabric_start(&s->progress, &side_ops, s->choice.info), 0);
	cr_expect(!s->progress.eq.fid);
	dofi_progress_call(&s->progress, side_open, s);
	cr_assert_eq(s->ret, 0);
	return true;
}

static void side_stop(struct side *s)
{
	dofi_progress_call(&s->progress, side_close, s);
	dofi_progress_stop(&s->progress);
	dofi_fabric_release(&s->choice);
	cr_expect_eq(s->wrong, 0);
}

/* Sends a frame as soon as the fabric takes it. @data is not reused. */
static void send_frame(struct side *from, fi_addr_t to, unsigned number, unsigned char *data)
{
	size_t len = frame_len(from, number);
	ssize_t ret;

	memcpy(data + len - sizeof(number), &number, sizeof(number));
	memcpy(data, &number, sizeof(number));
	do {
		ret = len <= from->choice.info->tx_attr->inject_size ?
			fi_inject(from->rdm.fid, data, len, to) :
			fi_send(from->rdm.fid, data, len, NULL, to, NULL);
		if (ret == -FI_EAGAIN)
			dofi_cq_poll(&from->domain.cq, NULL);
	} while (ret == -FI_EAGAIN);
	cr_assert_eq(ret, 0);
}

struct add_call {
	struct side *of, *to;
	fi_addr_t peer;
	int ret;
};

static void add_on_thread(void *arg)
{
	struct add_call *c = arg;

	const struct dofi_rdm *to = &c->to->rdm;

	c->ret = dofi_rdm_peer_add(&c->of->rdm, to->address, to->address_len, &c->peer);
}

static void exchange(struct side *from, struct side *to)
{
	unsigned char *memory = calloc(FRAMES, from->rdm.frame_size);
	struct add_call c = { .of = from, .to = to };
	struct add_call back = { .of = to, .to = from };
	unsigned i;

	to->got = 0;
	to->wanted = FRAMES;
	dofi_progress_call(&from->progress, add_on_thread, &c);
	dofi_progress_call(&to->progress, add_on_thread, &back);
	cr_assert(!c.ret && !back.ret);
	for (i = 0; i < FRAMES; i++)
		send_frame(from, c.peer, i, memory + i * from->rdm.frame_size);
	while (sem_wait(&to->enough))
		;
	free(memory);
}

/*
 * Sends frames in both directions and to itself, more than there are buffers, while no thread
 * polls.
 */
static void frames_of(const char *provider)
{
	if (!side_start(&side[0], provider)) {
		dofi_log(DOFI_ERR, DOFI_FAB, "no %s in this libfabric", provider);
		return;
	}
	cr_assert(side_start(&side[1], provider));
	exchange(&side[0], &side[1]);
	exchange(&side[1], &side[0]);
	exchange(&side[0], &side[0]);
	side_stop(&side[0]);
	side_stop(&side[1]);
}

static void init_real(void)
{
	dofi_settings_read();
	dofi_settings.tick_us = 100;
}

TestSuite(rdm_real, .init = init_real);

Test(rdm_real, shm, .timeout = 20) { frames_of("shm"); }
Test(rdm_real, rxm, .timeout = 20) { frames_of("tcp;ofi_rxm"); }
Test(rdm_real, tcp, .timeout = 20) { frames_of("tcp"); }
Test(rdm_real, sockets, .timeout = 20) { frames_of("sockets"); }
