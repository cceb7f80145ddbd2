/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening and closing a completion queue, and its shards. */

#include "fab/cq_one.h"

#include "base/log.h"
#include "capture.h"
#include "nomem.h"

#include <errno.h>
#include <string.h>

TestSuite(cq, .init = init);
TestSuite(cq_shards, .init = init_shards);

Test(cq, a_poll_after_the_close_is_harmless)
{
	dofi_cq_close(&cq);
	complete(1);
	poll_once();
	dofi_cq_drain(&cq);
	cr_expect_eq(delivered, 0);
	cr_expect_eq(fake.open, 0);
}

Test(cq, can_be_opened_again)
{
	dofi_cq_close(&cq);
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	complete(2);
	serve();
	cr_expect_eq(delivered, 2);
}

Test(cq, is_gone_even_if_the_fabric_refuses_to_close)
{
	fake.fault.cq_close = -FI_EBUSY;
	dofi_cq_close(&cq);
	cr_expect(!cq.fid);
	cr_expect(TAILQ_EMPTY(&progress.served));
}

static void refuses_to_open(int expected)
{
	dofi_cq_close(&cq);
	fake.open = 0;
	if (expected)
		cr_expect_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain,
					  progress.ops), expected);
	cr_expect_eq(fake.open, 0);
	cr_expect(TAILQ_EMPTY(&progress.served));
	cr_expect(!cq.fid);
}

Test(cq, without_a_queue_there_is_an_error)
{
	fake.fault.cq_open = -FI_ENOMEM;
	refuses_to_open(-FI_ENOMEM);
}

Test(cq, without_a_descriptor_it_is_closed_again)
{
	fake.fault.cq_control = -FI_ENOSYS;
	refuses_to_open(-FI_ENOSYS);
}

Test(cq, without_epoll_it_is_closed_again)
{
	fake.fault.cq_fd_bad = true;
	refuses_to_open(-EPERM);
}

Test(cq, without_any_queue_there_is_an_error)
{
	fake.fault.no_cq_fd = true;
	fake.fault.cq_open = -FI_ENOMEM;
	refuses_to_open(-FI_ENOMEM);
}

/* A CQ of several shards. The first is the fake queue that tests fill. */

Test(cq_shards, an_endpoint_too_many_makes_another_shard)
{
	struct dofi_shard *second;

	cr_expect(!cq.several);
	second = dofi_cq_enter_shard(&cq);
	cr_expect(second != &cq.first && second->fid != cq.fid && second->endpoints == 1);
	cr_expect(cq.several);
	cr_expect(dofi_cq_enter_shard(&cq) == second);
}

Test(cq_shards, a_thread_that_read_the_first_one_directly_reads_all)
{
	atomic_store(&cq.programs_fid, cq.fid);
	cr_expect(dofi_cq_enter_shard(&cq) != &cq.first);
	cr_expect_eq(cq.programs_fid, NULL);
}

Test(cq_shards, without_reads_each_there_is_one)
{
	quirk.reads_each = false;
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect(!cq.several);
}

Test(cq_shards, what_an_endpoint_leaves_needs_no_other)
{
	dofi_cq_leave_shard(&cq, &cq.first);
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect(!cq.several);
}

Test(cq_shards, without_another_they_share)
{
	fake.fault.cq_open = -FI_EMFILE;
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	complete(1);
	poll_once();
	cr_expect_eq(delivered, 1);
	fake.fault.cq_open = 0;
	cr_expect(dofi_cq_enter_shard(&cq) != &cq.first, "now there is one");
}

Test(cq_shards, without_memory_for_another_they_share_and_the_reason_is_logged)
{
	struct capture capture;
	const char *log;

	dofi_log_max = DOFI_INFO;
	capture_begin(&capture);
	nomem_after(0);
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect(nomem_failed());
	log = capture_end(&capture);
	cr_expect(strstr(log, "share a completion queue: Cannot allocate memory"), "%s", log);
}

Test(cq_shards, a_shard_without_a_usable_descriptor_is_closed)
{
	const int before = fake.open;

	fake.fault.cq_fd_bad = true;
	cr_expect(dofi_cq_enter_shard(&cq) == &cq.first);
	cr_expect_eq(fake.open, before);
}

Test(cq_shards, closing_closes_all_and_it_opens_as_one)
{
	dofi_cq_enter_shard(&cq);
	dofi_cq_close(&cq);
	cr_expect_eq(fake.open, 0);
	poll_once();
	cr_assert_eq(dofi_cq_open(&cq, &progress, progress.fabric, &fake.domain, progress.ops), 0);
	cr_expect(!cq.several);
	cr_expect_eq(cq.fd, fake.cq_fd);
	complete(1);
	poll_once();
	cr_expect_eq(delivered, 1);
}
