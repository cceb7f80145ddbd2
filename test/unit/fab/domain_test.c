/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Domains and the keys of registrations. */

#include "fab/domain.h"

#include "fab/fake.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>

static const struct dofi_progress_ops ops;
static struct dofi_progress progress = { .ops = &ops };
static struct dofi_domain domain;
static struct dofi_fabric_choice choice = { .mr_style = DOFI_MR_VIRTUAL };
static struct fid_mr *mr;
static uint32_t key;
static char memory[64];
static struct dofi_mr_request request = {
	.addr = memory, .len = sizeof(memory), .remote = FI_REMOTE_READ,
};

/* Randomness that fails: so many calls are interrupted, or all fail. */
static int interruptions;
static bool no_random;
static int zeros;
ssize_t __real_getrandom(void *buf, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	if (zeros > 0) {
		zeros--;
		memset(buf, 0, len);
		return len;
	}
	if (no_random || interruptions > 0) {
		interruptions--;
		errno = no_random ? EIO : EINTR;
		return -1;
	}
	return __real_getrandom(buf, len, flags);
}

static void init(void)
{
	fake_init();
	progress.fabric = &fake.fabric;
	progress.epfd = epoll_create1(EPOLL_CLOEXEC);
	TAILQ_INIT(&progress.cqs);
	dofi_cq_init(&domain.cq);
	cr_assert_eq(dofi_domain_open(&domain, &progress, &choice), 0);
}

static int reg(void)
{
	return dofi_mr_open(&domain, &request, &mr, &key);
}

TestSuite(domain, .init = init);

Test(domain, open_and_close_balance)
{
	dofi_domain_close(&domain);
	cr_expect_eq(fake.open, 0);
	cr_expect(!domain.fid);
	cr_expect(TAILQ_EMPTY(&progress.cqs));
}

Test(domain, a_failing_open_is_reported)
{
	dofi_domain_close(&domain);
	fake.fault.domain = -FI_ENOMEM;
	cr_expect_eq(dofi_domain_open(&domain, &progress, &choice), -FI_ENOMEM);
	cr_expect_eq(fake.open, 0);
}

Test(domain, without_a_queue_it_is_closed_again)
{
	dofi_domain_close(&domain);
	fake.fault.cq_open = -FI_EMFILE;
	cr_expect_eq(dofi_domain_open(&domain, &progress, &choice), -FI_EMFILE);
	cr_expect_eq(fake.open, 0);
}

Test(domain, a_failing_close_forgets_it_too)
{
	fake.fault.domain_close = -FI_EBUSY;
	dofi_domain_close(&domain);
	cr_expect(!domain.fid);
}

Test(domain, registers_what_it_is_told)
{
	cr_assert_eq(reg(), 0);
	cr_expect_eq(fake.mr_addr, memory);
	cr_expect_eq(fake.mr_len, sizeof(memory));
	cr_expect_eq(fake.mr_access, FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ);
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

/* To the fabric a scoped key is one that no key without that secret equals. */
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
	zeros = 3;
	cr_assert_eq(reg(), 0);
	cr_expect(key);
}

/* 64 keys: all bits but that of the scope occur in both values, and no two neighbours are alike or in sequence. */
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
	key = 77;
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
	interruptions = 5;
	cr_assert_eq(reg(), 0);
	cr_expect(key);
}

Test(domain, without_randomness_nothing_is_registered)
{
	no_random = true;
	cr_expect_eq(reg(), -EIO);
	cr_expect_eq(fake.mrs, 0);
}

static void make_native(uint64_t native_key)
{
	domain.mr_style = DOFI_MR_NATIVE;
	fake.mr_native = true;
	fake.native_key = native_key;
}

Test(domain, a_fabric_that_makes_keys_is_not_told_one)
{
	make_native(0x1234);
	no_random = true;
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
