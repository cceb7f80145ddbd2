/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The EP and the peer of coupled.h before they are connected. Either can connect to the other. */

#include "xport/cm/talk.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

DAT_PSP_HANDLE psp;
DAT_CONN_QUAL qual;

void talk_init(void)
{
	rdm_init();
	ep = ep_make();
}

/* Checks that nothing is left of a connection but the PZ's endpoint. */
void talk_fini(void)
{
	const struct dofi_pz *of = pz;
	const struct rdm_pz *rpz = of->xport_pz;
	uint32_t i;

	if (state_of_ep(ep) == DAT_EP_STATE_DISCONNECTED) {
		cr_expect(!((struct dofi_ep *)ep)->conn);
		for (i = 0; rpz && i < rpz->n_conns; i++)
			cr_expect(!rpz->conn[i]);
	}
	rdm_fini();
}

bool data_is(const void *data, DAT_COUNT size, const char *text)
{
	return size == (DAT_COUNT)strlen(text) && !memcmp(data, text, size);
}

/* The peer connects */

struct dofi_cm_msg request(void)
{
	psp = listen_any(&qual);
	peer_dial(&peer, qual);
	return peer_msg(&peer, DOFI_CM_REQUEST);
}

void refused_with(const struct dofi_cm_msg *msg, enum dofi_cm_reason reason)
{
	peer_send_cm(&peer, msg);
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_REFUSE);
	cr_expect_eq(peer.received.reason, reason);
	cr_expect_eq(peer_recv_cm(&peer), 0);
	cr_expect(event_none(evd));
}

DAT_CR_HANDLE request_sent(const struct dofi_cm_msg *msg)
{
	peer_send_cm(&peer, msg);
	return request_await();
}

void accept_with(DAT_CR_HANDLE cr, const char *data)
{
	succeed(dofi_cr_accept(cr, ep, (DAT_COUNT)strlen(data), (DAT_PVOID)data));
}

void accept_fails(void)
{
	event_await(evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
}

/* The EP connects */

DAT_CONN_QUAL own_port;

int listener(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(fd, 5), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	own_port = ntohs(in.sin_port);
	return fd;
}

void connect_with(const char *data, DAT_TIMEOUT timeout)
{
	succeed(dofi_ep_connect(ep, some_address(), own_port, timeout, (DAT_COUNT)strlen(data),
				(DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

void is_asked_within(DAT_TIMEOUT timeout)
{
	int fd = listener();

	connect_with("hello", timeout);
	peer_adopt(&peer, accept4(fd, NULL, NULL, SOCK_CLOEXEC));
	close(fd);
	cr_assert_eq(peer_recv_cm(&peer), DOFI_CM_REQUEST);
	cr_expect_eq(peer.received.conn_qual, own_port);
	cr_expect(data_is(peer.received.data, peer.received.data_size, "hello"));
	peer_learn(&peer);
}

void is_asked(void)
{
	is_asked_within(DAT_TIMEOUT_INFINITE);
}

void reply(enum dofi_cm_kind kind, uint8_t reason)
{
	struct dofi_cm_msg msg = peer_msg(&peer, kind);

	msg.reason = reason;
	peer_send_cm(&peer, &msg);
}

/* The connection is established, or ends */

void is_heard(void)
{
	receive(0, 100, 1);
	say("well", 4);
	done(1);
}

void say_bye(uint32_t last_frame, uint8_t reason)
{
	struct dofi_cm_msg bye = peer_msg(&peer, DOFI_CM_BYE);

	bye.last_frame = last_frame;
	bye.reason = reason;
	peer_send_cm(&peer, &bye);
}

void ends_with(DAT_EVENT_NUMBER number)
{
	event_await(evd, number);
	cr_expect(event_none(evd));
	cr_expect_eq(state_of_ep(ep), DAT_EP_STATE_DISCONNECTED);
}
