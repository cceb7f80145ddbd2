/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Domains and the keys of registrations. */

#include "fab/domain.h"

#include "child.h"
#include "fab/draw.h"
#include "fab/fake.h"
#include "fab/quirks.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/epoll.h>

static const struct dofi_progress_ops ops;
static struct dofi_progress progress = { .ops = &ops };
static struct dofi_domain domain;
static const struct dofi_quirk no_quirk;
static struct dofi_fabric_choice choice = { .mr_style = DOFI_MR_VIRTUAL, .quirk = &no_quirk };
static struct dofi_mr mr;
static uint32_t key;
static char memory[64];
static struct dofi_mr_request request = {
	.addr = memory, .len = sizeof(memory), .remote = FI_REMOTE_READ,
};

static void init(void)
{
	fake_init();
	if (!choice.info)
		choice.info = fake_info("tcp", "10.0.0.1");
	progress.fabric = &fake.fabric;
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.served);
	dofi_cq_init(&domain.cq);
	cr_assert_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), 0);
}

static int reg(void)
{
	int ret = dofi_mr_open(&domain, &request, &mr);

	key = mr.key;
	return ret;
}

TestSuite(domain, .init = init);

Test(domain, open_and_close_balance)
{
	dofi_domain_close(&domain);
	cr_expect_eq(fake.open, 0);
	cr_expect(!domain.fid);
	cr_expect(TAILQ_EMPTY(&progress.served));
}

Test(domain, one_queue_has_room_for_all_where_it_grows)
{
	cr_expect_eq(dofi_domain_cq_reserve(&domain, 1000000), &domain.cq);
	cr_expect_eq(dofi_domain_cq_reserve(&domain, 1000000), &domain.cq);
	cr_expect_eq(domain.n_more, 0);
	dofi_domain_close(&domain);
}

/* Fixed queues, which lose completions beyond their length. */

static void init_fixed(void)
{
	static const struct dofi_quirk fixed = { .fixed_queues = true };

	choice.quirk = &fixed;
	fake_init();
	choice.info = fake_info("verbs", "10.0.0.1");
	choice.info->domain_attr->threading = FI_THREAD_COMPLETION;
	fake.fault.cq_most = 10000;
	progress.fabric = &fake.fabric;
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.served);
	dofi_cq_init(&domain.cq);
	cr_assert_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), 0);
}

TestSuite(domain_fixed, .init = init_fixed);

Test(domain_fixed, another_queue_is_opened_when_one_is_full)
{
	struct dofi_cq *second;

	cr_expect_eq(dofi_domain_cq_reserve(&domain, domain.cq.unreserved - 192), &domain.cq);
	cr_expect_eq(dofi_domain_cq_reserve(&domain, 192), &domain.cq);
	second = dofi_domain_cq_reserve(&domain, 1);
	cr_expect(second && second != &domain.cq && domain.n_more == 1);
	cr_expect(domain.cq.serial && second->serial);
	cr_expect_eq(second->quirk, domain.cq.quirk);
	/* A quarter of the first attempt: the device takes at most 10000 entries. */
	cr_expect_eq(second->unreserved, 8191 - 1);
	dofi_domain_cq_release(&domain.cq, 192);
	cr_expect_eq(dofi_domain_cq_reserve(&domain, 192), &domain.cq);
	cr_expect_eq(dofi_domain_cq_reserve(&domain, 192), second);
	dofi_domain_close(&domain);
	cr_expect_eq(fake.open, 0);
	cr_expect(TAILQ_EMPTY(&progress.served));
}

Test(domain_fixed, what_no_queue_holds_is_refused)
{
	cr_expect(!dofi_domain_cq_reserve(&domain, 8192));
	dofi_domain_close(&domain);
	cr_expect_eq(fake.open, 0);
}

Test(domain_fixed, without_another_queue_it_is_refused)
{
	cr_expect_eq(dofi_domain_cq_reserve(&domain, domain.cq.unreserved), &domain.cq);
	fake.fault.cq_open = -FI_ENOMEM;
	cr_expect(!dofi_domain_cq_reserve(&domain, 1));
	dofi_domain_close(&domain);
	cr_expect_eq(fake.open, 0);
}

Test(domain, the_queue_has_the_quirks_of_the_fabric)
{
	static const struct dofi_quirk each = { .reads_each = true };

	cr_expect_eq(domain.cq.quirk, &no_quirk);
	dofi_domain_close(&domain);
	choice.quirk = &each;
	cr_assert_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), 0);
	cr_expect_eq(domain.cq.quirk, &each);
	dofi_domain_close(&domain);
}

Test(domain, a_failing_open_is_reported)
{
	dofi_domain_close(&domain);
	fake.fault.domain = -FI_ENOMEM;
	cr_expect_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), -FI_ENOMEM);
	cr_expect_eq(fake.open, 0);
}

Test(domain, without_a_queue_it_is_closed_again)
{
	dofi_domain_close(&domain);
	fake.fault.cq_open = -FI_EMFILE;
	cr_expect_eq(dofi_domain_open(&domain, &progress, progress.fabric,
				      progress.ops, &choice), -FI_EMFILE);
	cr_expect_eq(fake.open, 0);
}

Test(domain, a_failing_close_forgets_it_too)
{
	fake.fault.domain_close = -FI_EBUSY;
	dofi_domain_close(&domain);
	cr_expect(!domain.fid);
}

Test(domain, registers_as_requested)
{
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mr_addr, memory);
	cr_expect_eq(fake.mr_len, sizeof(memory));
	cr_expect_eq(fake.mr_access, FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ);
}

/*
 * The program may have no write access to the memory either, and then the system would refuse write
 * access.
 */
Test(domain, memory_that_is_only_read_is_registered_for_that)
{
	request.read_only = true;
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mr_access, FI_SEND | FI_WRITE | FI_REMOTE_READ);
}

Test(domain, keys_fit_32_bits_and_are_never_zero)
{
	int i;

	for (i = 0; i < 2000; i++) {
		cr_assert_eq(reg(), 0);
		cr_assert(key);
		cr_assert_eq(key, fake.mr_key[(fake.mrs - 1) % 256]);
	}
}

Test(domain, peers_count_by_addresses_or_from_the_first_byte)
{
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mr_offset, 0);
	request.zero_based = true;
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mr_offset, (uintptr_t)memory);
}

/* The fabric's key of scoped memory equals no key without that secret. */
Test(domain, the_scope_of_a_key_is_in_the_key)
{
	int i;

	request.secret = 0x12345678;
	for (i = 0; i < 200; i++) {
		request.scoped = i & 1;
		cr_assert_eq(reg(), 0);
		cr_expect_eq(!!(key & DOFI_KEY_SCOPED), request.scoped);
		cr_expect_eq(fake.mr_key[(fake.mrs - 1) % 256],
			     request.scoped ? 0x1234567800000000ULL | key : key);
		cr_expect_eq(dofi_mr_fabric_key(key, request.secret),
			     fake.mr_key[(fake.mrs - 1) % 256]);
		cr_expect_eq(dofi_mr_fabric_key(key, 0), key);
	}
}

Test(domain, zero_is_drawn_again)
{
	draw.zeros = 3;
	cr_assert_eq(reg(), 0);
	cr_expect(key);
}

/*
 * 64 keys: all bits but the scope's occur in both values, and no two neighbours are alike or
 * in sequence.
 */
Test(domain, keys_cannot_be_guessed)
{
	uint32_t all_or = 0, all_and = UINT32_MAX, last = 0;
	int i;

	for (i = 0; i < 64; i++) {
		cr_assert_eq(reg(), 0);
		all_or |= key;
		all_and &= key;
		cr_expect(key != last && key != last + 1);
		last = key;
	}
	cr_expect_eq(all_or, ~DOFI_KEY_SCOPED);
	cr_expect_eq(all_and, 0);
}

Test(domain, a_key_that_is_taken_is_tried_again_with_another)
{
	fake.fault.mr = -FI_ENOKEY;
	fake.fault.mr_times = 10;
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mrs, 11);
	cr_expect(fake.mr_key[0] != fake.mr_key[1]);
}

Test(domain, gives_up_when_every_key_is_taken)
{
	fake.fault.mr = -FI_ENOKEY;
	fake.fault.mr_times = 1000000;
	mr.key = 77;
	cr_expect_eq(reg(), -FI_ENOKEY);
	cr_expect(fake.mrs < 1000);
	cr_expect_eq(key, 77);
}

Test(domain, other_errors_are_not_tried_again)
{
	fake.fault.mr = -FI_ENOMEM;
	fake.fault.mr_times = 5;
	cr_expect_eq(reg(), -FI_ENOMEM);
	cr_expect_eq(fake.mrs, 1);
}

Test(domain, an_interrupted_draw_goes_on)
{
	draw.interruptions = 5;
	cr_assert_eq(reg(), 0);
	cr_expect(key);
}

Test(domain, without_randomness_nothing_is_registered)
{
	draw.none = true;
	cr_expect_eq(reg(), -EIO);
	cr_expect_eq(fake.mrs, 0);
}

static void make_native(uint64_t native_key)
{
	domain.mr_style = DOFI_MR_NATIVE;
	fake.mr_native = true;
	fake.native_key = native_key;
}

Test(domain, a_fabric_that_makes_keys_gets_none)
{
	make_native(0x1234);
	draw.none = true;
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mr_key[0], 0);
	cr_expect_eq(key, 0x1234);
}

Test(domain, the_largest_key_fits)
{
	make_native(UINT32_MAX);
	cr_assert_eq(reg(), 0);
	cr_expect_eq(key, UINT32_MAX);
}

Test(domain, a_key_beyond_32_bits_is_refused_and_closed)
{
	int before = fake.open;

	make_native(1ull << 32);
	cr_expect_eq(reg(), -EOVERFLOW);
	cr_expect_eq(fake.open, before);
}

Test(domain, a_registration_is_closed_once)
{
	const int before = fake.open;

	cr_assert_eq(reg(), 0);
	cr_expect(dofi_mr_is_open(&mr));
	cr_expect_eq(dofi_mr_close(&mr), 0);
	cr_expect(!dofi_mr_is_open(&mr));
	cr_expect_eq(fake.open, before);
	cr_expect_eq(dofi_mr_close(&mr), 0);
	cr_expect_eq(fake.open, before);
}

/* The remains of a registration after a child has closed it. */
struct left {
	int ret;
	bool open, live;
};

static void child_closes(int fd)
{
	struct left left = { .ret = dofi_mr_close(&mr) };

	left.open = dofi_mr_is_open(&mr);
	left.live = fake_mr_live(key);
	say(fd, &left, sizeof(left));
}

/* On a device both processes use one registration. */
Test(domain, a_child_forgets_its_parents_registration)
{
	struct left left;
	struct child c;

	cr_assert_eq(reg(), 0);
	c = child_start(child_closes);
	hear(c.fd, &left, sizeof(left));
	child_end(&c);
	cr_expect_eq(left.ret, 0);
	cr_expect(!left.open);
	cr_expect(left.live, "closed in the fabric");
	cr_expect_eq(dofi_mr_close(&mr), 0);
	cr_expect(!fake_mr_live(key));
}

Test(domain, what_the_fabric_does_not_close_is_open)
{
	cr_assert_eq(reg(), 0);
	fake.fault.mr_close = -FI_EBUSY;
	cr_expect_eq(dofi_mr_close(&mr), -FI_EBUSY);
	cr_expect(dofi_mr_is_open(&mr));
	fake.fault.mr_close = 0;
	cr_expect_eq(dofi_mr_close(&mr), 0);
}

/* Peers get access through the target, which moves the bytes */

static void init_granting(void)
{
	static struct fi_domain_attr attr;
	static struct fi_info info = { .domain_attr = &attr };

	choice.target_rdma = true;
	choice.info = &info;
	init();
	cr_expect(!domain.registers);
}

static void fini(void)
{
	dofi_domain_close(&domain);
	cr_expect_eq(fake.open, 0);
}

TestSuite(domain_granting, .init = init_granting, .fini = fini);

static bool is_granted(uint64_t access)
{
	const struct dofi_access use = {
		.key = key, .addr = (uintptr_t)memory, .len = sizeof(memory), .access = access,
	};
	void *where;

	if (dofi_grant_enter(&domain.grants, &use, &where))
		return false;
	dofi_grant_leave(&domain.grants);
	return true;
}

Test(domain_granting, registers_nothing)
{
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mrs, 0);
	cr_expect(!mr.fid && !mr.desc && dofi_mr_is_open(&mr));
	cr_expect(is_granted(FI_REMOTE_READ));
	cr_expect(!is_granted(FI_REMOTE_WRITE));
	cr_expect_eq(dofi_mr_close(&mr), 0);
	cr_expect(!dofi_mr_is_open(&mr) && !is_granted(FI_REMOTE_READ));
}

Test(domain_granting, without_a_key_there_is_nothing)
{
	draw.none = true;
	cr_expect_eq(reg(), -EIO);
	cr_expect(!dofi_mr_is_open(&mr));
}

/* A fabric that requires registration of memory for local use only. */
static void want_local(void)
{
	domain.registers = true;
}

Test(domain_granting, a_fabric_may_want_local_memory_registered)
{
	dofi_domain_close(&domain);
	choice.info->domain_attr->mr_mode = FI_MR_LOCAL;
	init();
	cr_expect(domain.registers);
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mrs, 1);
	cr_expect_eq(fake.mr_access, FI_SEND | FI_RECV | FI_READ | FI_WRITE);
	cr_expect(mr.fid && mr.grant && mr.desc == fi_mr_desc(mr.fid));
	cr_expect(is_granted(FI_REMOTE_READ));
	cr_expect_eq(dofi_mr_close(&mr), 0);
	cr_expect(!is_granted(FI_REMOTE_READ));
}

Test(domain_granting, what_fails_leaves_nothing_open)
{
	int before = fake.open;

	want_local();
	fake.fault.mr = -FI_ENOMEM;
	fake.fault.mr_times = 1;
	cr_expect_eq(reg(), -FI_ENOMEM);
	make_native(5);
	draw.none = true;
	cr_expect_eq(reg(), -EIO);
	cr_expect_eq(fake.mrs, 2);
	cr_expect_eq(fake.open, before);
}

Test(domain_granting, peers_are_out_even_if_the_fabric_does_not_close)
{
	want_local();
	cr_assert_eq(reg(), 0);
	fake.fault.mr_close = -FI_EBUSY;
	cr_expect_eq(dofi_mr_close(&mr), -FI_EBUSY);
	cr_expect(!is_granted(FI_REMOTE_READ));
	cr_expect(dofi_mr_is_open(&mr));
	fake.fault.mr_close = 0;
	cr_expect_eq(dofi_mr_close(&mr), 0);
}

/* Peers get access through this fabric and through another one that knows its keys. */
static void init_twofold(void)
{
	choice.also_granted = true;
	init();
}

TestSuite(domain_twofold, .init = init_twofold);

Test(domain_twofold, both_have_one_key)
{
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mrs, 1);
	cr_expect(mr.fid && mr.grant && mr.desc == fi_mr_desc(mr.fid));
	cr_expect_eq(fake.mr_access, FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ);
	cr_expect_eq(fake.mr_key[0], key);
	cr_expect(is_granted(FI_REMOTE_READ));
	cr_expect(!is_granted(FI_REMOTE_WRITE));
	cr_expect_eq(dofi_mr_close(&mr), 0);
	cr_expect(!dofi_mr_is_open(&mr) && !is_granted(FI_REMOTE_READ));
}

Test(domain_twofold, the_fabrics_own_key_is_taken_over)
{
	make_native(5);
	cr_assert_eq(reg(), 0);
	cr_expect_eq(key, 5);
	cr_expect(mr.fid && mr.grant && is_granted(FI_REMOTE_READ));
}

Test(domain_twofold, what_peers_may_not_use_is_no_grant)
{
	request.remote = 0;
	cr_assert_eq(reg(), 0);
	cr_expect(mr.fid && !mr.grant);
	cr_expect_eq(dofi_mr_close(&mr), 0);
}

/* To the fabric the keys differ by their secrets. Only the grants collide. */
Test(domain_twofold, a_key_that_is_granted_is_tried_again_with_another)
{
	struct dofi_mr first;
	int open;

	request.scoped = true;
	request.secret = 1;
	draw.fixed = 1;
	draw.number = 4711;
	cr_assert_eq(reg(), 0);
	first = mr;
	open = fake.open;
	request.secret = 2;
	draw.fixed = 1;
	cr_assert_eq(reg(), 0);
	cr_expect(key != first.key);
	cr_expect_eq(fake.mrs, 3);
	cr_expect_eq(fake.open, open + 1);
}

Test(domain_twofold, what_fails_leaves_nothing_open)
{
	int before = fake.open;

	fake.fault.mr = -FI_ENOMEM;
	fake.fault.mr_times = 1;
	cr_expect_eq(reg(), -FI_ENOMEM);
	cr_expect_eq(fake.open, before);
	request.scoped = true;
	request.secret = 1;
	draw.fixed = 1;
	draw.number = 4711;
	cr_assert_eq(reg(), 0);
	before = fake.open;
	draw.fixed = INT32_MAX;
	request.secret = 2;
	cr_expect_eq(reg(), -EEXIST);
	cr_expect(fake.mrs < 1000);
	cr_expect_eq(fake.open, before);
}

/* The completions of a domain on another fabric go to that fabric's transport. */
Test(domain, a_domain_on_another_fabric_has_its_own_completions)
{
	static const struct dofi_progress_ops others = { .foreign_contexts = true };
	struct fid_fabric second_fabric = fake.fabric;
	struct dofi_domain second;
	const int before = fake.open;

	dofi_cq_init(&second.cq);
	cr_assert_eq(dofi_domain_open(&second, &progress, &second_fabric, &others, &choice), 0);
	cr_expect(second.cq.ops == &others && !second.cq.owner);
	cr_expect(domain.cq.ops == &ops);
	cr_expect(dofi_cq_can_sleep(&second.cq, second.cq.fid));
	cr_expect_eq(fake.trywait_fabric, &second_fabric);
	cr_expect(dofi_cq_can_sleep(&domain.cq, domain.cq.fid));
	cr_expect_eq(fake.trywait_fabric, &fake.fabric);
	dofi_domain_close(&second);
	cr_expect_eq(fake.open, before);
}
