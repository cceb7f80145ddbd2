/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program's signals after libfabric's shm has opened an endpoint. */

#include "xport/rdm/shm/signals.h"

#include "child.h"
#include "xport/rdm/shm/page.h"
#include "xport/rdm/shm/real.h"

#include <sys/stat.h>

static void handler(int sig)
{
	(void)sig;
}

static void another(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
}

static void (*handler_of(int sig))(int)
{
	struct sigaction now;

	sigaction(sig, NULL, &now);
	return now.sa_handler;
}

static struct dofi_shm shm;
static struct shm_real real;

static bool endpoint_open(void)
{
	char address[64];

	if (!shm_real_open(&real))
		return false;
	cr_assert_eq(dofi_shm_open(&shm), 0);
	cr_assert_eq(dofi_shm_endpoint(&shm, address, sizeof(address)), 0);
	shm_real_endpoint(&real, address);
	return true;
}

static void endpoint_close(void)
{
	shm_real_close(&real);
	dofi_shm_close(&shm);
}

TestSuite(signals, .timeout = 30);

Test(signals, are_the_programs_again)
{
	struct dofi_signals s;
	struct sigaction segv;
	void (*bus)(int) = handler_of(SIGBUS);

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, handler);
	segv = (struct sigaction){ .sa_sigaction = another, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaction(SIGSEGV, &segv, NULL);
	dofi_signals_save(&s);
	if (!endpoint_open())
		return;
	dofi_signals_restore(&s);
	cr_expect(handler_of(SIGINT) == SIG_IGN);
	cr_expect(handler_of(SIGTERM) == handler);
	cr_expect(handler_of(SIGBUS) == bus);
	sigaction(SIGSEGV, NULL, &segv);
	cr_expect(segv.sa_sigaction == another);
	cr_expect(segv.sa_flags & SA_RESTART);
	endpoint_close();
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

static void ends_itself(int fd)
{
	(void)fd;
	raise(SIGTERM);
}

static void ends(int fd)
{
	(void)fd;
	exit(0);
}

/* The number of links of the endpoint's file. */
static nlink_t names_of_endpoint(void)
{
	char path[128];
	struct stat st;

	/* the file name that 1.17 and 2.1 derive */
	snprintf(path, sizeof(path), DOFI_SHM_FOLDER "/%s.0:%d:0", shm.name, (int)geteuid());
	return stat(path, &st) ? 0 : st.st_nlink;
}

Test(signals, a_child_that_ends_takes_no_file_along)
{
	struct dofi_signals s;
	struct child c;

	signal(SIGTERM, SIG_DFL);
	dofi_signals_save(&s);
	if (!endpoint_open())
		return;
	dofi_signals_restore(&s);
	cr_assert_eq(names_of_endpoint(), 1);
	c = child_start(ends_itself);
	cr_expect_eq(WTERMSIG(child_end(&c)), SIGTERM);
	c = child_start(ends);
	cr_expect_eq(child_end(&c), 0);
	cr_expect_eq(names_of_endpoint(), 1);
	endpoint_close();
	cr_expect_eq(names_of_endpoint(), 0);
}
