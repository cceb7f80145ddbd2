/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A progress thread with CM sockets, and a trace of their owners' notifications. */

#include "cm.h"

#include "base/env.h"
#include "fab/fake.h"
#include "fab/info.h"
#include "sock/linger.h"
#include "xport/cm/address.h"

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

struct cm_fixture cm;
struct cm_faults cm_fault;
_Atomic unsigned cm_accepts, cm_full_sends;
int cm_connecting, cm_accepted;

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

	cm_accepts++;
	if (cm_fault.accept_times > 0) {
		cm_fault.accept_times--;
		errno = cm_fault.accept;
		return -1;
	}
	ret = __real_accept4(fd, address, len, flags);
	if (ret >= 0)
		cm_accepted = ret;
	if (ret >= 0 && cm_fault.small)
		setsockopt(ret, SOL_SOCKET, SO_SNDBUF, &cm_fault.small, sizeof(cm_fault.small));
	return ret;
}

int __real_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
	if (dofi_progress_on_thread(&cm.progress))
		cm_connecting = fd;
	if (cm_fault.connect_to_self)
		bind(fd, address, len);
	return __real_connect(fd, address, len);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && cm_fault.epoll_add) {
		errno = cm_fault.epoll_add;
		cm_fault.epoll_add = 0;
		return -1;
	}
	return __real_epoll_ctl(epfd, op, fd, event);
}

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	ssize_t sent;

	if (cm_fault.send && dofi_progress_on_thread(&cm.progress)) {
		errno = cm_fault.send;
		cm_fault.send = 0;
		return -1;
	}
	if (cm_fault.send_most && n > cm_fault.send_most)
		n = cm_fault.send_most;
	sent = __real_send(fd, bytes, n, flags);
	cm_full_sends += sent < (ssize_t)n;
	return sent;
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
	sem_post(&cm.traced);
}

const char *cm_trace(void)
{
	static char copy[sizeof(trace)];

	pthread_mutex_lock(&trace_lock);
	memcpy(copy, trace, traces + 1);
	pthread_mutex_unlock(&trace_lock);
	return copy;
}

static void keep(const struct dofi_cm_msg *msg)
{
	cm.msg = *msg;
	cm.msg.data = cm.data;
	if (msg->data_size)
		memcpy(cm.data, msg->data, msg->data_size);
}

static void requested(struct dofi_cm_listener *listener, struct dofi_cm_conn *s,
		      const struct dofi_cm_msg *msg)
{
	cr_expect(dofi_progress_on_thread(&cm.progress));
	cr_expect_eq(dofi_cm_listener_owner(listener), &cm);
	cr_expect(!dofi_cm_owner(s));
	dofi_cm_set_owner(s, &cm.passive);
	cm.passive = s;
	keep(msg);
	if (cm.on_request)
		cm.on_request(s);
	trace_add('q');
}

static bool is_passive(const struct dofi_cm_conn *s)
{
	return dofi_cm_owner(s) == &cm.passive;
}

static void heard(struct dofi_cm_conn *s, const struct dofi_cm_msg *msg)
{
	char c = "?qarfybgqd"[msg->kind];

	cr_expect(dofi_progress_on_thread(&cm.progress));
	keep(msg);
	if (is_passive(s))
		c += 'A' - 'a';
	if (cm.on_message)
		cm.on_message(s);
	trace_add(c);
}

static void ended(struct dofi_cm_conn *s, int err)
{
	bool passive = is_passive(s);

	cr_expect(dofi_progress_on_thread(&cm.progress));
	*(passive ? &cm.passive_err : &cm.active_err) = err;
	if (cm.on_ended)
		cm.on_ended(s);
	trace_add(passive ? 'E' : 'e');
}

static struct dofi_cm_ops ops = { .request = requested, .message = heard, .ended = ended };

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

void cm_init(void)
{
	static const struct dofi_progress_ops progress_ops = { .completed = completed };
	struct fi_info *info = fake_info("fake", "");

	dofi_settings_read();
	fake_init();
	fake.replace_fabric = true;
	mark_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	descriptors = count_descriptors();
	sem_init(&marked, 0, 0);
	sem_init(&cm.traced, 0, 0);
	cm.passive_err = cm.active_err = 1;
	cr_assert_eq(dofi_fabric_start(&cm.progress, &progress_ops, info), 0);
	cr_assert_eq(dofi_source_add(&cm.progress, &mark, mark_fd, EPOLLIN), 0);
	fi_freeinfo(info);
}

void cm_fini(void)
{
	dofi_progress_stop(&cm.progress);
	cr_expect_eq(count_descriptors(), descriptors, "descriptors are left");
}

void cm_await(unsigned n)
{
	while (n)
		if (!sem_wait(&cm.traced))
			n--;
}

void cm_do(void (*fn)(void *arg), void *arg)
{
	dofi_progress_call(&cm.progress, fn, arg);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The rest of an epoll batch is handled before the next work. */
void cm_settle(void)
{
	uint64_t one = 1;

	cr_assert_eq(write(mark_fd, &one, sizeof(one)), sizeof(one));
	while (sem_wait(&marked))
		;
	cm_do(nothing, NULL);
}

struct call {
	struct dofi_cm_conn *cm;
	const struct dofi_cm_msg *msg;
	int ret;
};

static void do_listen(void *arg)
{
	struct call *c = arg;

	ops.patience_ms = cm.patience_ms;
	ops.first = cm.first;
	c->ret = dofi_cm_listen(&cm.progress, (struct sockaddr *)&cm.address, &ops, &cm,
				&cm.listener);
}

int cm_listen(int family)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&cm.address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&cm.address;
	struct sockaddr_un *un = (struct sockaddr_un *)&cm.address;
	struct call c = { 0 };

	cm.address.ss_family = (sa_family_t)family;
	if (family == AF_UNIX)
		snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "dat-ofi/test/%d",
			 (int)getpid());
	else if (family == AF_INET6)
		in6->sin6_addr = cm.wildcard ? in6addr_any : in6addr_loopback;
	else
		in->sin_addr.s_addr = htonl(cm.wildcard ? INADDR_ANY : INADDR_LOOPBACK);
	cm_do(do_listen, &c);
	if (!c.ret && family != AF_UNIX)
		in->sin_port = htons(dofi_cm_listener_port(cm.listener));
	return c.ret;
}

static void do_connect(void *arg)
{
	struct call *c = arg;
	size_t before = traces;

	c->ret = dofi_cm_connect(&cm.progress, (struct sockaddr *)&cm.address, NULL, &ops,
				 &cm.active, c->msg, &cm.active);
	cr_expect_eq(traces, before, "called back from within");
}

int cm_connect(const struct dofi_cm_msg *msg)
{
	struct call c = { .msg = msg };

	cm_do(do_connect, &c);
	return c.ret;
}

static void do_send(void *arg)
{
	struct call *c = arg;
	size_t before = traces;

	dofi_cm_send(c->cm, c->msg);
	cr_expect_eq(traces, before, "called back from within");
}

void cm_send(struct dofi_cm_conn *s, const struct dofi_cm_msg *msg)
{
	struct call c = { .cm = s, .msg = msg };

	cm_do(do_send, &c);
}

static void do_close(void *arg)
{
	dofi_cm_close(arg);
}

void cm_close(struct dofi_cm_conn *s)
{
	cm_do(do_close, s);
}

static void do_unlisten(void *arg)
{
	dofi_cm_unlisten(arg);
}

void cm_unlisten(void)
{
	cm_do(do_unlisten, cm.listener);
}

struct dofi_cm_msg cm_msg(enum dofi_cm_kind kind)
{
	return (struct dofi_cm_msg){
		.kind = kind, .reason = 1, .conn_qual = 77, .conn_id = 1,
		.frame_size = DOFI_CM_MIN_FRAME, .addr_len = 4, .addr = "addr", .fabric = "shm",
		.number = 1, .key = 1,
	};
}

void cm_couple(void)
{
	const struct dofi_cm_msg request = cm_msg(DOFI_CM_REQUEST);

	cr_assert_eq(cm_listen(AF_INET), 0);
	cr_assert_eq(cm_connect(&request), 0);
	cm_await(1);
	cr_assert_eq(*cm_trace(), 'q');
}

/* Embryos */

int cm_embryo(void)
{
	int fd = socket(cm.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	cr_assert_eq(connect(fd, (struct sockaddr *)&cm.address, dofi_cm_address_len(
		(struct sockaddr *)&cm.address)), 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return fd;
}

void cm_put(int fd, const void *bytes, size_t n)
{
	cr_assert_eq(__real_send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

void cm_put_msg(int fd, enum dofi_cm_kind kind)
{
	const struct dofi_cm_msg msg = cm_msg(kind);
	unsigned char buf[DOFI_CM_MAX];

	cm_put(fd, buf, dofi_cm_pack(buf, &msg));
}

int cm_embryo_in(void)
{
	int fd = cm_embryo();

	cm_put_msg(fd, DOFI_CM_REQUEST);
	cm_await(1);
	return fd;
}

int cm_end_of(int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		;
	return n ? -errno : 0;
}
