/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reporting counters: to which processes, how, and that nothing is left behind. */

#include "loop/counter_server.h"

#include "base/env.h"
#include "fab/fake.h"
#include "fab/info.h"

#include <criterion/criterion.h>
#include <grp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct dofi_progress progress;
static struct dofi_counter_server server;
static int rendered;

static void render(FILE *to, void *arg)
{
	rendered++;
	fprintf(to, "this is %s\n", (const char *)arg);
}

static const struct dofi_progress_ops ops;

static void init(void)
{
	struct fi_info *info;

	fake_init();
	dofi_settings_read();
	dofi_settings.counters = 1;
	info = fake_info("tcp", "127.0.0.1");
	cr_assert_eq(dofi_fabric_start(&progress, &ops, info), 0);
	fi_freeinfo(info);
	dofi_counter_server_init(&server);
}

static void close_on_thread(void *arg)
{
	dofi_counter_server_close(arg);
}

static void close_server(struct dofi_counter_server *t)
{
	dofi_progress_call(&progress, close_on_thread, t);
}

static void fini(void)
{
	close_server(&server);
	dofi_progress_stop(&progress);
}

TestSuite(counter_server, .init = init, .fini = fini);

/* Connects to socket number @i of process @pid. Returns -1 if nothing listens there. */
static int asker_of(pid_t pid, int i)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "dat-ofi/%d/%d", (int)pid, i);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (!connect(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + 1 + len))
		return fd;
	close(fd);
	return -1;
}

static int asker(int i)
{
	return asker_of(getpid(), i);
}

/* Reads the answer from the file that was handed over. */
static ssize_t answer(int from, char *text, size_t size)
{
	char buffer[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = buffer,
		.msg_controllen = sizeof(buffer),
	};
	ssize_t n;
	int fd;

	if (recvmsg(from, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	n = pread(fd, text, size - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	return n;
}

static void open_server(struct dofi_counter_server *t, const char *name)
{
	dofi_counter_server_open(t, &progress, render, (void *)(uintptr_t)name);
}

Test(counter_server, an_asker_gets_the_text_as_a_file)
{
	char text[64];
	int i, fd;

	open_server(&server, "one");
	for (i = 0; i < 3; i++) {
		fd = asker(0);
		cr_assert(fd >= 0);
		cr_expect(answer(fd, text, sizeof(text)) > 0);
		cr_expect(!strcmp(text, "this is one\n"), "%s", text);
		close(fd);
	}
	cr_expect_eq(rendered, 3);
}

Test(counter_server, each_has_a_number)
{
	struct dofi_counter_server second;
	char text[64];
	int fd;

	open_server(&server, "one");
	open_server(&second, "two");
	fd = asker(1);
	cr_expect(answer(fd, text, sizeof(text)) > 0);
	cr_expect(!strcmp(text, "this is two\n"), "%s", text);
	close(fd);
	close_server(&second);
	cr_expect_eq(asker(1), -1);
	fd = asker(0);
	cr_expect(fd >= 0);
	close(fd);
}

Test(counter_server, a_client_is_not_waited_for)
{
	char text[64];
	int gone, silent, fd;

	open_server(&server, "one");
	gone = asker(0);
	close(gone);
	silent = asker(0);
	fd = asker(0);
	cr_expect(answer(fd, text, sizeof(text)) > 0);
	close(fd);
	close(silent);
}

Test(counter_server, a_setting_turns_the_server_off)
{
	dofi_settings.counters = 0;
	open_server(&server, "one");
	cr_expect_eq(asker(0), -1);
	cr_expect_eq(rendered, 0);
}

Test(counter_server, nothing_is_left_when_it_is_closed)
{
	open_server(&server, "one");
	close_server(&server);
	cr_expect_eq(asker(0), -1);
	close_server(&server);	/* closing again does no harm */
	cr_expect_eq(rendered, 0);
}

Test(counter_server, no_descriptor_is_left_for_it)
{
	struct dofi_progress none = {
		.epfd = -1, .thread = pthread_self(),
	};

	dofi_counter_server_open(&server, &none, render, NULL);
	cr_expect_eq(server.fd, -1);
	cr_expect_eq(asker(0), -1);
}

enum { USER = 65534, OTHERS = 65533, AGENTS = 4000000000, MANY = 1500 };

/*
 * Whether a process of another user gets an answer: with the group @gid and @n others. -1 if this
 * process may not start one, as in a namespace with fewer IDs.
 */
static int gets_an_answer(gid_t gid, size_t n, const gid_t *groups)
{
	const pid_t server_pid = getpid(), pid = fork();
	char text[64];
	int status;

	if (!pid) {
		if (setgroups(n, groups) || setgid(gid) || setuid(USER))
			_exit(2);
		_exit(answer(asker_of(server_pid, 0), text, sizeof(text)) > 0 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "%#x", status);
	return WEXITSTATUS(status) == 2 ? -1 : !WEXITSTATUS(status);
}

static void group_set(void *arg)
{
	dofi_settings.counters_group = *(int64_t *)arg;
}

/* Sets the group on the progress thread, which reads it. */
static void permit(int64_t group)
{
	dofi_progress_call(&progress, group_set, &group);
}

/* A process with more groups than the server reads is refused. */
Test(counter_server, another_user_needs_the_group)
{
	static gid_t groups[MANY];
	size_t i;

	for (i = 0; i < MANY; i++)
		groups[i] = (gid_t)(1000 + i);
	open_server(&server, "one");
	if (gets_an_answer(AGENTS, MANY, groups) < 0)
		return;
	cr_expect(!gets_an_answer(OTHERS, 0, NULL));
	/* the largest group ID */
	cr_expect(!gets_an_answer(OTHERS, 1, (gid_t[]){ UINT32_MAX - 1 }));
	permit(AGENTS);
	cr_expect(!gets_an_answer(OTHERS, 0, NULL));
	cr_expect_eq(gets_an_answer(AGENTS, 0, NULL), 1);
	cr_expect(!gets_an_answer(OTHERS, 2, (gid_t[]){ 7, 8 }));
	cr_expect_eq(gets_an_answer(OTHERS, 3, (gid_t[]){ 7, AGENTS, 8 }), 1);
	permit(1000);
	cr_expect(!gets_an_answer(OTHERS, MANY, groups));
	cr_expect_eq(gets_an_answer(OTHERS, 1000, groups), 1);
}
