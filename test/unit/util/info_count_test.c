/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Querying the counters of a process: this one, which answers well, badly or not at all. */
#include "info_count.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listener = -1;
static pthread_t server;
static bool with_descriptor;
static int reply = -1;		/* the descriptor to pass; -1: a file with a counter */

static void *serve(void *arg)
{
	union {
		struct cmsghdr head;
		char buffer[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = (char[]){ 'c' }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int to = accept(listener, NULL, NULL), fd = reply < 0 ? memfd_create("t", 0) : reply;

	if (reply >= 0 || dprintf(fd, "ia x pz_create 3\n") > 0)
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (with_descriptor) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.buffer);
	}
	/* the reader may have closed the connection because of a wrong process */
	sendmsg(to, &msg, MSG_NOSIGNAL);
	close(to);
	close(fd);
	return NULL;
}

static void start(int pid, bool good)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "dat-ofi/%d/0", pid);

	with_descriptor = good;
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&at,
			  offsetof(struct sockaddr_un, sun_path) + 1 + len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(pthread_create(&server, NULL, serve, NULL), 0);
}

static int query(pid_t pid, char **text)
{
	size_t len;
	FILE *out = open_memstream(text, &len);
	int n = count_show(out, pid);

	fclose(out);
	return n;
}

TestSuite(count, .init = cr_redirect_stderr);

Test(count, reply_is_copied)
{
	char *text;

	start(getpid(), true);
	cr_expect_eq(query(getpid(), &text), 1);
	cr_expect_str_eq(text, "ia x pz_create 3\n");
	pthread_join(server, NULL);
	free(text);
}

Test(count, reply_without_descriptor_is_rejected)
{
	char *text;

	start(getpid(), false);
	cr_expect_eq(query(getpid(), &text), 0);
	cr_expect_str_eq(text, "");
	pthread_join(server, NULL);
	free(text);
}

Test(count, process_without_the_provider_has_no_counters)
{
	char *text;

	cr_expect_eq(query(getpid(), &text), 0);
	cr_expect_eq(query(1 << 30, &text), 0);
}

/* The socket's name does not identify the process, so the reader checks the peer's credentials. */
Test(count, name_bound_by_another_process_is_rejected)
{
	char *text;

	start(1 << 30, true);
	cr_expect_eq(query(1 << 30, &text), 0);
	cr_expect_str_eq(text, "");
	pthread_join(server, NULL);
	free(text);
}

/* Returns the output when the process passes @fd. */
static char *printed(int fd, int wanted)
{
	char *text;

	reply = fd;
	start(getpid(), true);
	cr_expect_eq(query(getpid(), &text), wanted);
	pthread_join(server, NULL);
	close(listener);
	return text;
}

Test(count, commands_for_the_terminal_are_not_printed, .timeout = 30)
{
	static const char bytes[] = "\033]0;x\a\033[31mred\0\377 1~\n";
	int fd = memfd_create("t", 0);
	char *text;

	cr_assert_eq(write(fd, bytes, sizeof(bytes) - 1), (ssize_t)sizeof(bytes) - 1);
	text = printed(fd, 1);
	cr_expect_str_eq(text, "?]0;x??[31mred?? 1~\n");
	free(text);
}

Test(count, files_without_an_end_are_refused, .timeout = 30)
{
	int huge = memfd_create("t", 0), zero = open("/dev/zero", O_RDONLY), ends[2];
	char *text;

	cr_assert(!ftruncate(huge, (off_t)1 << 40) && !pipe(ends));
	text = printed(zero, 0);
	cr_expect_str_eq(text, "");
	free(text);
	text = printed(huge, 0);
	cr_expect_str_eq(text, "");
	free(text);
	text = printed(ends[0], 0);
	cr_expect_str_eq(text, "");
	free(text);
}
