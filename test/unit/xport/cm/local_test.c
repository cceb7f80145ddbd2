/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CM connections within a host: a listener is found by its qualifier, and its name may be taken. */

#include "xport/cm/listen.h"

#include "base/log.h"
#include "capture.h"
#include "cm.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

TestSuite(cm_local, .init = cm_init, .fini = cm_fini, .timeout = 30);

/* A qualifier that no other process uses. */
static uint64_t own_qual(unsigned n)
{
	return (uint64_t)getpid() << 32 | n;
}

/* The owner of the connections */

static struct dofi_cm_conn *accepted;	/* the connection of the last request */
static uint64_t requested_qual;
static struct sockaddr_storage requester;

static void requested(struct dofi_cm_listener *listener, struct dofi_cm_conn *conn,
		      const struct dofi_cm_msg *msg)
{
	cr_expect_eq(dofi_cm_listener_owner(listener), &cm);
	accepted = conn;
	requested_qual = msg->conn_qual;
	requester = *dofi_cm_peer(conn);
	sem_post(&cm.traced);
}

static void heard(struct dofi_cm_conn *conn, const struct dofi_cm_msg *msg)
{
	(void)conn;
	(void)msg;
}

static void ended(struct dofi_cm_conn *conn, int err)
{
	(void)conn;
	cm.active_err = err;
	sem_post(&cm.traced);
}

static const struct dofi_cm_ops ops = { .request = requested, .message = heard, .ended = ended };

/* The calls, on the progress thread */

struct call {
	enum dofi_local_service service;
	uint64_t conn_qual;
	struct dofi_cm_listener *listener;
	struct dofi_cm_conn *conn;
	int ret;
};

static void do_listen(void *arg)
{
	struct call *c = arg;

	c->ret = dofi_local_listen(&cm.progress, c->service, c->conn_qual, &ops, &cm, &c->listener);
}

static struct call listen_for(uint64_t conn_qual)
{
	struct call c = { .conn_qual = conn_qual };

	cm_do(do_listen, &c);
	return c;
}

static void do_unlisten(void *arg)
{
	dofi_cm_unlisten(arg);
}

static void do_connect(void *arg)
{
	struct dofi_cm_msg msg = cm_msg(DOFI_CM_REQUEST);
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(4711),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	struct sockaddr_storage address = { 0 };
	struct call *c = arg;

	memcpy(&address, &to, sizeof(to));
	msg.conn_qual = c->conn_qual;
	c->ret = dofi_local_connect(&cm.progress, c->service, c->conn_qual, &address, &ops, &cm,
				    &msg, &c->conn);
}

static struct call connect_to(uint64_t conn_qual)
{
	struct call c = { .conn_qual = conn_qual };

	cm_do(do_connect, &c);
	cr_assert_eq(c.ret, 0);
	return c;
}

static void do_close_both(void *arg)
{
	struct call *c = arg;

	dofi_cm_close(c->conn);
	dofi_cm_close(accepted);
}

/* Closes both ends in one call on the progress thread, so that neither reports the other's end. */
static void close_both(struct call *c)
{
	cm_do(do_close_both, c);
}

Test(cm_local, a_request_reaches_the_listener_of_its_qualifier)
{
	struct call first = listen_for(own_qual(1)), second = listen_for(own_qual(2)), c;
	unsigned n;

	cr_assert(!first.ret && !second.ret);
	for (n = 2; n; n--) {
		c = connect_to(own_qual(n));
		cm_await(1);
		cr_expect_eq(requested_qual, own_qual(n));
		close_both(&c);
	}
	cm_do(do_unlisten, first.listener);
	cm_do(do_unlisten, second.listener);
}

/* As over TCP: the address that was connected to is the host's own, and so is the peer's. */
Test(cm_local, the_listener_learns_an_address_and_a_port)
{
	struct call l = listen_for(own_qual(1)), c;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&requester;

	cr_assert_eq(l.ret, 0);
	c = connect_to(own_qual(1));
	cm_await(1);
	cr_expect_eq(requester.ss_family, AF_INET);
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	cr_expect(in->sin_port);
	close_both(&c);
	cm_do(do_unlisten, l.listener);
}

Test(cm_local, a_large_qualifier_has_its_own_name)
{
	struct call l = listen_for(UINT64_MAX), none, c;

	cr_assert_eq(l.ret, 0);
	none = connect_to(UINT64_MAX >> 4);
	cm_await(1);
	cr_expect_eq(cm.active_err, -ECONNREFUSED);
	cm_close(none.conn);
	c = connect_to(UINT64_MAX);
	cm_await(1);
	cr_expect_eq(requested_qual, UINT64_MAX);
	close_both(&c);
	cm_do(do_unlisten, l.listener);
}

Test(cm_local, without_a_listener_a_connection_is_refused)
{
	struct call c = connect_to(own_qual(1));

	cm_await(1);
	cr_expect_eq(cm.active_err, -ECONNREFUSED);
	cm_close(c.conn);
}

Test(cm_local, a_name_that_is_taken_is_refused_and_logged)
{
	struct call l = listen_for(own_qual(1));
	struct capture capture;
	const char *log;

	cr_assert_eq(l.ret, 0);
	dofi_log_max = DOFI_INFO;
	capture_begin(&capture);
	cr_expect_eq(listen_for(own_qual(1)).ret, -EADDRINUSE);
	log = capture_end(&capture);
	cr_expect(strstr(log, "is taken"), "%s", log);
	cm_do(do_unlisten, l.listener);
}

Test(cm_local, a_name_is_free_again_when_its_listener_is_closed)
{
	struct call l = listen_for(own_qual(1));

	cr_assert_eq(l.ret, 0);
	cm_do(do_unlisten, l.listener);
	l = listen_for(own_qual(1));
	cr_expect_eq(l.ret, 0);
	cm_do(do_unlisten, l.listener);
}

Test(cm_local, services_of_a_qualifier_have_names_of_their_own)
{
	struct call l = listen_for(own_qual(1)), other = {
		.service = DOFI_LOCAL_DATAGRAMS, .conn_qual = own_qual(1),
	}, c = other;

	cr_assert_eq(l.ret, 0);
	cm_do(do_connect, &c);
	cm_await(1);
	cr_expect_eq(cm.active_err, -ECONNREFUSED);
	cm_close(c.conn);
	cm_do(do_listen, &other);
	cr_assert_eq(other.ret, 0);
	cm_do(do_unlisten, l.listener);
	cm_do(do_connect, &c);
	cm_await(1);
	cr_expect_eq(requested_qual, own_qual(1));
	close_both(&c);
	cm_do(do_unlisten, other.listener);
}
