/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A progress thread with CM sockets, and a trace of what their owners are notified of. */

#include "side.h"

#include "base/env.h"
#include "fab/fake.h"
#include "fab/start.h"
#include "sock/linger.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct side_fixture side;
struct side_faults side_fault;
_Atomic unsigned side_accepts;
int side_connecting, side_accepted;

static unsigned descriptors;		/* open before the test */

/* The progress thread reports it after all that was ready before, or in one batch with it. */
static int mark_fd;
static sem_t marked;

/* The system, by the linker's --wrap */

int __real_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int ret;

	side_accepts++;
	if (side_fault.accept_times > 0) {
		side_fault.accept_times--;
		errno = side_fault.accept;
		return -1;
	}
	ret = __real_accept4(fd, address, len, flags);
	if (ret >= 0)
		side_accepted = ret;
	if (ret >= 0 && side_fault.small)
		setsockopt(ret, SOL_SOCKET, SO_SNDBUF, &side_fault.small, sizeof(side_fault.small));
	return ret;
}

int __real_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
	if (dofi_progress_on_thread(&side.progress))
		side_connecting = fd;
	if (side_fault.connect_to_self)
		bind(fd, address, len);
	return __real_connect(fd, address, len);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && side_fault.epoll_add) {
		errno = side_fault.epoll_add;
		side_fault.epoll_add = 0;
		return -1;
	}
	return __real_epoll_ctl(epfd, op, fd, event);
}

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	if (side_fault.send && dofi_progress_on_thread(&side.progress)) {
		errno = side_fault.send;
		side_fault.send = 0;
		return -1;
	}
	if (side_fault.send_most && n > side_fault.send_most)
		n = side_fault.send_most;
	return __real_send(fd, bytes, n, flags);
}

/* The owner */

static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static char trace[1 << 16];		/* under trace_lock */
static size_t traces;

static void trace_add(char c)
{
	pthread_mutex_lock(&trace_lock);
	trace[traces++ % (sizeof(trace) - 1)] = c;
	pthread_mutex_unlock(&trace_lock);
	sem_post(&side.traced);
}

const char *side_trace(void)
{
	static char copy[sizeof(trace)];

	pthread_mutex_lock(&trace_lock);
	memcpy(copy, trace, traces + 1);
	pthread_mutex_unlock(&trace_lock);
	return copy;
}

static void keep(const struct dofi_side_msg *msg)
{
	side.msg = *msg;
	side.msg.data = side.data;
	if (msg->data_size)
		memcpy(side.data, msg->data, msg->data_size);
}

static void requested(struct dofi_side_listener *listener, struct dofi_side *s,
		      const struct dofi_side_msg *msg)
{
	cr_expect(dofi_progress_on_thread(&side.progress));
	cr_expect_eq(dofi_side_listener_owner(listener), &side);
	cr_expect(!dofi_side_owner(s));
	dofi_side_set_owner(s, &side.passive);
	side.passive = s;
	keep(msg);
	if (side.on_request)
		side.on_request(s);
	trace_add('q');
}

static bool is_passive(const struct dofi_side *s)
{
	return dofi_side_owner(s) == &side.passive;
}

static void heard(struct dofi_side *s, const struct dofi_side_msg *msg)
{
	char c = "?qarfybg"[msg->kind];

	cr_expect(dofi_progress_on_thread(&side.progress));
	keep(msg);
	if (is_passive(s))
		c += 'A' - 'a';
	if (side.on_message)
		side.on_message(s);
	trace_add(c);
}

static void ended(struct dofi_side *s, int err)
{
	bool passive = is_passive(s);

	cr_expect(dofi_progress_on_thread(&side.progress));
	*(passive ? &side.passive_err : &side.active_err) = err;
	if (side.on_ended)
		side.on_ended(s);
	trace_add(passive ? 'E' : 'e');
}

static struct dofi_side_ops ops = { .request = requested, .message = heard, .ended = ended };

/* The progress thread */

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	(void)entry;
	(void)err;
	(void)sink;
}

static void mark_ready(struct dofi_source *source)
{
	uint64_t n;

	(void)source;
	if (read(mark_fd, &n, sizeof(n)) > 0)
		sem_post(&marked);
}

static struct dofi_source mark = { mark_ready };

void side_init(void)
{
	static const struct dofi_progress_ops progress_ops = { .completed = completed };
	struct fi_info *info = fake_info("fake", "");

	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
	mark_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	descriptors = count_descriptors();
	sem_init(&marked, 0, 0);
	sem_init(&side.traced, 0, 0);
	side.passive_err = side.active_err = 1;
	cr_assert_eq(dofi_fabric_start(&side.progress, &progress_ops, info), 0);
	cr_assert_eq(dofi_source_add(&side.progress, &mark, mark_fd, EPOLLIN), 0);
	fi_freeinfo(info);
}

void side_fini(void)
{
	dofi_progress_stop(&side.progress);
	cr_expect_eq(count_descriptors(), descriptors, "descriptors are left");
}

void side_await(unsigned n)
{
	while (n)
		if (!sem_wait(&side.traced))
			n--;
}

void side_do(void (*fn)(void *arg), void *arg)
{
	dofi_progress_call(&side.progress, fn, arg);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The rest of an epoll batch is handled before the next work. */
void side_settle(void)
{
	uint64_t one = 1;

	cr_assert_eq(write(mark_fd, &one, sizeof(one)), sizeof(one));
	while (sem_wait(&marked))
		;
	side_do(nothing, NULL);
}

struct call {
	struct dofi_side *side;
	const struct dofi_side_msg *msg;
	int ret;
};

static void do_listen(void *arg)
{
	struct call *c = arg;

	ops.patience_ms = side.patience_ms;
	c->ret = dofi_side_listen(&side.progress, (struct sockaddr *)&side.address, &ops, &side,
				  &side.listener);
}

int side_listen(int family)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&side.address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&side.address;
	struct sockaddr_un *un = (struct sockaddr_un *)&side.address;
	struct call c = { 0 };

	side.address.ss_family = (sa_family_t)family;
	if (family == AF_UNIX)
		snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "dat-ofi/test/%d", (int)getpid());
	else if (family == AF_INET6)
		in6->sin6_addr = side.wildcard ? in6addr_any : in6addr_loopback;
	else
		in->sin_addr.s_addr = htonl(side.wildcard ? INADDR_ANY : INADDR_LOOPBACK);
	side_do(do_listen, &c);
	if (!c.ret && family != AF_UNIX)
		in->sin_port = htons(dofi_side_port(side.listener));
	return c.ret;
}

static void do_connect(void *arg)
{
	struct call *c = arg;
	size_t before = traces;

	c->ret = dofi_side_connect(&side.progress, (struct sockaddr *)&side.address, &ops,
				   &side.active, c->msg, &side.active);
	cr_expect_eq(traces, before, "called back from within");
}

int side_connect(const struct dofi_side_msg *msg)
{
	struct call c = { .msg = msg };

	side_do(do_connect, &c);
	return c.ret;
}

static void do_send(void *arg)
{
	struct call *c = arg;
	size_t before = traces;

	dofi_side_send(c->side, c->msg);
	cr_expect_eq(traces, before, "called back from within");
}

void side_send(struct dofi_side *s, const struct dofi_side_msg *msg)
{
	struct call c = { .side = s, .msg = msg };

	side_do(do_send, &c);
}

static void do_close(void *arg)
{
	dofi_side_close(arg);
}

void side_close(struct dofi_side *s)
{
	side_do(do_close, s);
}

static void do_unlisten(void *arg)
{
	dofi_side_unlisten(arg);
}

void side_unlisten(void)
{
	side_do(do_unlisten, side.listener);
}

struct dofi_side_msg side_msg(enum dofi_side_kind kind)
{
	return (struct dofi_side_msg){
		.kind = kind, .reason = 1, .conn_qual = 77, .conn_id = 1,
		.frame_size = DOFI_SIDE_MIN_FRAME, .addr_len = 4, .addr = "addr", .fabric = "shm",
	};
}

void side_couple(void)
{
	const struct dofi_side_msg request = side_msg(DOFI_SIDE_REQUEST);

	cr_assert_eq(side_listen(AF_INET), 0);
	cr_assert_eq(side_connect(&request), 0);
	side_await(1);
	cr_assert_eq(*side_trace(), 'q');
}

/* Strangers */

int side_stranger(void)
{
	int fd = socket(side.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	cr_assert_eq(connect(fd, (struct sockaddr *)&side.address, dofi_side_address_len(
		(struct sockaddr *)&side.address)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return fd;
}

void side_put(int fd, const void *bytes, size_t n)
{
	cr_assert_eq(__real_send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

void side_put_msg(int fd, enum dofi_side_kind kind)
{
	const struct dofi_side_msg msg = side_msg(kind);
	unsigned char buf[DOFI_SIDE_MAX];

	side_put(fd, buf, dofi_side_pack(buf, &msg));
}

int side_stranger_in(void)
{
	int fd = side_stranger();

	side_put_msg(fd, DOFI_SIDE_REQUEST);
	side_await(1);
	return fd;
}

int side_end_of(int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		;
	return n ? -errno : 0;
}
