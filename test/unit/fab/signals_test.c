/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program's signals after libfabric's shm has opened an endpoint. */

#include "fab/endpoint.h"
#include "fab/info.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>

static void handler(int sig)
{
}

static void another(int sig, siginfo_t *info, void *context)
{
}

static void (*handler_of(int sig))(int)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
	return now.sa_handler;
}

static void failed(struct dofi_progress *p, int err)
{
	cr_assert(!err, "%d", err);
}

static const struct dofi_progress_ops ops = { .failed = failed };

/* An endpoint of libfabric's shm. */
static struct {
	struct dofi_fabric_choice choice;
	struct dofi_progress progress;
	struct dofi_domain domain;
	struct dofi_rdm rdm;
	int ret;
} shm;

static void endpoint_open(void *arg)
{
	const struct dofi_rdm_options options = { .n_buffers = 0 };

	dofi_cq_init(&shm.domain.cq);
	shm.ret = dofi_domain_open(&shm.domain, &shm.progress, shm.progress.fabric,
				   shm.progress.ops, &shm.choice);
	if (!shm.ret)
		shm.ret = dofi_rdm_open(&shm.rdm, &shm.domain, &shm.choice, &options);
}

static void endpoint_close(void *arg)
{
	dofi_rdm_close(&shm.rdm);
	dofi_domain_close(&shm.domain);
}

static bool start(void)
{
	const struct dofi_params params = { .provider = "shm", .endpoint = "rdm" };

	if (dofi_fabric_choose(&params, &shm.choice)) {
		fprintf(stderr, "skipped: libfabric has no shm here\n");
		return false;
	}
	cr_assert_eq(dofi_fabric_start(&shm.progress, &ops, shm.choice.info), 0);
	return true;
}

static void stop(void)
{
	dofi_progress_stop(&shm.progress);
	dofi_fabric_release(&shm.choice);
}

TestSuite(signals, .timeout = 30);

Test(signals, are_the_programs_again)
{
	struct sigaction segv;
	void (*bus)(int) = handler_of(SIGBUS);

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, handler);
	segv = (struct sigaction){ .sa_sigaction = another, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaction(SIGSEGV, &segv, NULL);
	if (!start())
		return;
	dofi_progress_call(&shm.progress, endpoint_open, NULL);
	cr_assert_eq(shm.ret, 0);
	cr_expect(handler_of(SIGINT) == SIG_IGN);
	cr_expect(handler_of(SIGTERM) == handler);
	cr_expect(handler_of(SIGBUS) == bus);
	sigaction(SIGSEGV, NULL, &segv);
	cr_expect(segv.sa_sigaction == another);
	cr_expect(segv.sa_flags & SA_RESTART);
	dofi_progress_call(&shm.progress, endpoint_close, NULL);
	stop();
}

Test(signals, what_the_program_changes_meanwhile_stays)
{
	struct dofi_signals s;

	dofi_signals_save(&s);
	signal(SIGTERM, handler);
	signal(SIGINT, SIG_IGN);
	dofi_signals_restore(&s);
	cr_expect(handler_of(SIGTERM) == handler);
	cr_expect(handler_of(SIGINT) == SIG_IGN);
}
