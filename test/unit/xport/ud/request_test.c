/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests of peers for an address, and the listeners that they come by. */

#include "xport/ud/parts.h"

#include "nomem.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

/* A CM socket that acts as far, and a PSP of near that it sends requests to. */
static struct peer other;
static DAT_PSP_HANDLE psp;
static DAT_CONN_QUAL qual;

/* Whether a socket of this process listens at the first port of the qualifier. */
static bool listens_first(void)
{
	const uint16_t port = htons(dofi_wire_datagram_port(qual, 0));
	bool found = false;
	int fd;

	for (fd = 0; fd < FD_SETSIZE && !found; fd++) {
		struct sockaddr_in6 name;
		socklen_t size = sizeof(name), flag_size = sizeof(int);
		int listens = 0;

		/* sin_port and sin6_port have the same offset */
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_size);
		found = listens && !getsockname(fd, (struct sockaddr *)&name, &size) &&
			name.sin6_family != AF_UNIX && name.sin6_port == port;
	}
	return found;
}

/*
 * These tests connect to the first port of the qualifier. Another program may have that port, as
 * several qualifiers map to it; the service point then listens at its second port.
 */
static void init(void)
{
	ud_init();
	psp = ud_listen_any(&ud_near, &qual);
	while (!listens_first()) {
		succeed(dofi_psp_free(psp));
		psp = ud_listen_any(&ud_near, &qual);
	}
}

static void fini(void)
{
	if (other.id && other.fd >= 0)
		close(other.fd);
	ud_fini();
}

TestSuite(xport_ud_request, .init = init, .fini = fini, .timeout = 60);

/* Returns whether something listens at port @i of the qualifier. */
static bool dials(struct peer *p, unsigned i)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(dofi_wire_datagram_port(qual, i));
	if (connect(fd, (struct sockaddr *)&in, sizeof(in))) {
		close(fd);
		return false;
	}
	peer_adopt(p, fd);
	return true;
}

static struct dofi_cm_msg request(void)
{
	struct dofi_cm_msg msg = ud_message(&ud_far, DOFI_CM_DATAGRAM_REQUEST);

	msg.conn_qual = qual;
	msg.data = "hello";
	msg.data_size = 5;
	return msg;
}

static void sends(const struct dofi_cm_msg *msg)
{
	cr_assert(dials(&other, 0));
	peer_send_cm(&other, msg);
}

static DAT_CR_HANDLE arrives(void)
{
	const struct dofi_cm_msg msg = request();

	sends(&msg);
	return ud_request(&ud_near, "hello");
}

static void is_refused(enum dofi_cm_reason reason)
{
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_REFUSE);
	cr_expect_eq(other.received.reason, reason);
	cr_expect_eq(peer_recv_cm(&other), 0);
	cr_expect(event_none(ud_near.evd));
}

static void accept_fails(DAT_CR_HANDLE cr)
{
	succeed(dofi_cr_accept(cr, ud_near.ep, 0, NULL));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "hello");
	cr_expect(event_none(ud_near.evd));
}

/* The peer has the answer, and says so. */
static void confirms(void)
{
	const struct dofi_cm_msg ready = { .kind = DOFI_CM_READY };

	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_ACCEPT);
	peer_send_cm(&other, &ready);
}

static DAT_EVENT accept_works(DAT_CR_HANDLE cr)
{
	succeed(dofi_cr_accept(cr, ud_near.ep, 2, (DAT_PVOID) "ok"));
	confirms();
	return ud_ended(&ud_near, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
			DAT_IB_UD_PASSIVE_REMOTE_AH, "hello");
}

/* Answers */

Test(xport_ud_request, is_accepted)
{
	const DAT_EVENT event = accept_works(arrives());
	const struct dofi_cm_msg own = ud_message(&ud_near, DOFI_CM_DATAGRAM_ACCEPT);
	const struct dofi_cm_msg *m = &other.received;

	cr_expect_eq(ud_extension(&event)->remote_ah.qpn, ud_number(ud_far.ep));
	ud_works(&ud_near, ud_ah_of(&event), &ud_far, 10);
	cr_expect_eq(m->number, own.number);
	cr_expect_eq(m->key, own.key);
	cr_expect_eq(m->data_size, 2);
	cr_expect(!memcmp(m->data, "ok", 2));
	cr_expect_str_eq(m->fabric, own.fabric);
	cr_expect_eq(peer_recv_cm(&other), 0, "the connection ends");
}

Test(xport_ud_request, names_its_sender)
{
	DAT_CR_PARAM param;

	succeed(dofi_cr_query(arrives(), DAT_CR_FIELD_ALL, &param));
	cr_expect_eq(((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr.s_addr,
		     htonl(INADDR_LOOPBACK));
	cr_expect(!param.local_ep_handle);
}

/* Programs may write into the private data that dat_cr_query() returns. */
Test(xport_ud_request, keeps_the_peers_data_for_the_event)
{
	DAT_CR_HANDLE cr = arrives();
	DAT_CR_PARAM param;

	succeed(dofi_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	cr_assert_eq(param.private_data_size, 5);
	memset(param.private_data, 0, 5);
	accept_works(cr);
}

Test(xport_ud_request, is_rejected_with_private_data)
{
	succeed(dofi_cr_reject(arrives(), 4, (DAT_PVOID) "away"));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_REJECT);
	cr_expect_eq(other.received.data_size, 4);
	cr_expect(!memcmp(other.received.data, "away", 4));
	cr_expect_eq(peer_recv_cm(&other), 0);
}

Test(xport_ud_request, a_request_without_an_answer_is_refused_when_the_ia_closes)
{
	arrives();
	succeed(dofi_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_REFUSE);
	cr_expect_eq(other.received.reason, DOFI_CM_NO_LISTENER);
	cr_expect_eq(peer_recv_cm(&other), 0);
}

Test(xport_ud_request, is_answered_after_its_service_point_has_gone)
{
	const DAT_CR_HANDLE cr = arrives();

	succeed(dofi_psp_free(psp));
	accept_works(cr);
}

Test(xport_ud_request, is_accepted_by_any_ep)
{
	struct ud_side second;

	ud_side_open(&ud_third);
	second = ud_third;
	succeed(dofi_cr_accept(arrives(), second.ep, 0, NULL));
	confirms();
	ud_ended(&second, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH,
		 "hello");
	cr_expect_eq(other.received.number, ud_number(second.ep));
	cr_expect_eq(other.received.key, ud_part(&second)->key);
}

/* The peer may end while the answer is on its way, as after its time-out. */
Test(xport_ud_request, fails_if_the_peer_does_not_confirm_the_answer)
{
	const DAT_CR_HANDLE cr = arrives();

	succeed(dofi_cr_accept(cr, ud_near.ep, 0, NULL));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_ACCEPT);
	cr_expect(event_none(ud_near.evd));
	peer_hang_up(&other);
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "hello");
	cr_expect(event_none(ud_near.evd));
}

Test(xport_ud_request, that_the_peer_does_not_confirm_leaves_no_address_handle)
{
	const DAT_CR_HANDLE cr = arrives();

	succeed(dofi_cr_accept(cr, ud_near.ep, 0, NULL));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_ACCEPT);
	cr_expect_eq(ud_in_table(&ud_near), 1);
	peer_hang_up(&other);
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "hello");
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

Test(xport_ud_request, ends_with_the_ep_that_accepted_it)
{
	const DAT_CR_HANDLE cr = arrives();

	succeed(dofi_cr_accept(cr, ud_near.ep, 0, NULL));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_ACCEPT);
	succeed(dofi_ep_free(ud_near.ep));
	ud_near.ep = NULL;
	cr_expect_eq(peer_recv_cm(&other), 0);
	cr_expect(event_none(ud_near.evd));
}

/* Peers that cannot be reached, or are gone */

Test(xport_ud_request, of_a_peer_that_is_gone_fails)
{
	const DAT_CR_HANDLE cr = arrives();

	peer_hang_up(&other);
	ud_sockets_settle(qual);
	accept_fails(cr);
}

Test(xport_ud_request, of_a_peer_that_is_gone_keeps_no_descriptor)
{
	const DAT_CR_HANDLE cr = arrives();

	shutdown(other.fd, SHUT_WR);
	cr_expect_eq(peer_recv_cm(&other), 0, "our end closed its socket");
	accept_fails(cr);
}

Test(xport_ud_request, of_a_peer_that_is_gone_can_be_rejected)
{
	const DAT_CR_HANDLE cr = arrives();

	peer_hang_up(&other);
	ud_sockets_settle(qual);
	succeed(dofi_cr_reject(cr, 2, (DAT_PVOID) "no"));
	cr_expect(event_none(ud_near.evd));
}

Test(xport_ud_request, of_another_fabric_is_refused)
{
	struct dofi_cm_msg msg = request();

	memcpy(msg.fabric, "udp", sizeof("udp"));
	sends(&msg);
	is_refused(DOFI_CM_NO_PATH);
}

Test(xport_ud_request, of_another_host_is_refused)
{
	struct dofi_cm_msg msg = request();

	memset(&msg.host, 0x55, sizeof(msg.host));
	sends(&msg);
	is_refused(DOFI_CM_NO_PATH);
}

Test(xport_ud_request, with_an_address_of_no_endpoint_is_refused)
{
	struct dofi_cm_msg msg = request();

	msg.addr = "nonsense";
	msg.addr_len = 9;
	sends(&msg);
	accept_fails(ud_request(&ud_near, "hello"));
	is_refused(DOFI_CM_NO_PATH);
}

/* Messages that are no request for this service point */

Test(xport_ud_request, for_another_qualifier_is_refused)
{
	struct dofi_cm_msg msg = request();

	msg.conn_qual++;
	sends(&msg);
	is_refused(DOFI_CM_NO_LISTENER);
}

Test(xport_ud_request, of_a_connection_is_not_taken)
{
	struct dofi_cm_msg msg = ud_message(&ud_far, DOFI_CM_REQUEST);

	msg.conn_qual = qual;
	msg.conn_id = 1;
	msg.window = RDM_WINDOW;
	sends(&msg);
	cr_expect_eq(peer_recv_cm(&other), 0);
	cr_expect(event_none(ud_near.evd));
}

Test(xport_ud_request, bytes_that_are_no_request_are_not_taken)
{
	cr_assert(dials(&other, 0));
	cr_assert_eq(send(other.fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	cr_expect_eq(peer_recv_cm(&other), 0);
	cr_expect(event_none(ud_near.evd));
	peer_hang_up(&other);
	memset(&other, 0, sizeof(other));
}

Test(xport_ud_request, may_be_followed_by_other_messages)
{
	const struct dofi_cm_msg reject = { .kind = DOFI_CM_REJECT };
	const DAT_CR_HANDLE cr = arrives();

	peer_send_cm(&other, &reject);
	settle();
	accept_works(cr);
}

/* Whether a request arrives, and not the end of its connection. */
static bool comes_to_the_program(void)
{
	DAT_EVENT event;
	char byte;

	for (;;) {
		if (dofi_evd_dequeue(ud_near.evd, &event) == DAT_SUCCESS)
			return true;
		if (recv(other.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0)
			return false;
		usleep(200);
	}
}

Test(xport_ud_request, may_lack_memory)
{
	const struct dofi_cm_msg msg = request();
	bool failed = true;
	int n;

	for (n = 0; failed && n < NOMEM_MOST; n++) {
		cr_assert(dials(&other, 0));
		nomem_after(n);
		peer_send_cm(&other, &msg);
		failed = !comes_to_the_program();
		cr_expect_eq(nomem_failed(), failed);
		peer_hang_up(&other);
	}
	cr_expect(!failed && n > 1);
	cr_expect_eq(ia->count.ah_request_arrived, 1);
	accept_works(arrives());
}

/* Listeners */

Test(xport_ud_request, finds_no_service_point_that_was_freed)
{
	succeed(dofi_psp_free(psp));
	cr_expect(!dials(&other, 0));
}

Test(xport_ud_request, finds_a_service_point_at_its_next_port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	struct dofi_cm_msg msg = request();

	succeed(dofi_psp_free(psp));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	in.sin_port = htons(dofi_wire_datagram_port(qual, 0));
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	succeed(dofi_psp_create(ia, qual, ud_near.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	cr_assert(dials(&other, 1));
	peer_send_cm(&other, &msg);
	accept_works(ud_request(&ud_near, "hello"));
	close(fd);
}

/* The provider's EPs are for connections. */
Test(xport_ud_request, finds_no_service_point_that_makes_eps)
{
	const struct dofi_cm_msg msg = request();

	succeed(dofi_psp_free(psp));
	succeed(dofi_psp_create(ia, qual, ud_near.evd, DAT_PSP_PROVIDER_FLAG, &psp));
	sends(&msg);
	is_refused(DOFI_CM_NO_LISTENER);
}

Test(xport_ud_request, finds_no_reserved_service_point)
{
	const struct dofi_cm_msg msg = request();
	DAT_EP_HANDLE ep;
	DAT_RSP_HANDLE rsp;

	succeed(dofi_psp_free(psp));
	succeed(dofi_ep_create(ia, ud_near.pz, ud_near.evd, ud_near.evd, ud_near.evd, NULL, &ep));
	succeed(dofi_rsp_create(ia, qual, ep, ud_near.evd, &rsp));
	sends(&msg);
	is_refused(DOFI_CM_NO_LISTENER);
}

/* Connections */

/* A service point takes both kinds of request. */
Test(xport_ud_request, comes_to_a_service_point_of_connections)
{
	DAT_EP_HANDLE a, b;
	DAT_CR_HANDLE cr;

	succeed(dofi_ep_create(ia, ud_near.pz, ud_near.evd, ud_near.evd, ud_near.evd, NULL, &a));
	succeed(dofi_ep_create(ia, ud_near.pz, ud_far.evd, ud_far.evd, ud_far.evd, NULL, &b));
	succeed(dofi_ep_connect(a, some_address(), qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	cr = event_await(ud_near.evd, DAT_CONNECTION_REQUEST_EVENT)
		     .event_data.cr_arrival_event_data.cr_handle;
	cr_expect(dofi_cr_accept(cr, ud_near.ep, 0, NULL) != DAT_SUCCESS, "of another kind");
	succeed(dofi_cr_accept(cr, b, 0, NULL));
	event_await(ud_near.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event_await(ud_far.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	cr = arrives();
	cr_expect(dofi_cr_accept(cr, a, 0, NULL) != DAT_SUCCESS, "of another kind");
	accept_works(cr);
}

TestSuite(xport_ud_listener, .init = ud_init_alone, .fini = fini, .timeout = 60);

/* An IA without datagram EPs does not listen for their peers. */
Test(xport_ud_listener, is_opened_with_the_first_datagram_ep)
{
	struct dofi_cm_msg msg;

	ud_near.evd = evd_make(64, EVD_ALL_FLAGS);
	psp = ud_listen_any(&ud_near, &qual);
	cr_expect(!dials(&other, 0));
	ud_side_open(&ud_far);
	ud_near.memory = NULL;
	msg = request();
	sends(&msg);
	ud_request(&ud_near, "hello");
}

Test(xport_ud_listener, stays_after_the_last_datagram_ep)
{
	ud_side_open(&ud_far);
	ud_side_close(&ud_far);
	ud_near.evd = evd_make(64, EVD_ALL_FLAGS);
	psp = ud_listen_any(&ud_near, &qual);
	cr_expect(dials(&other, 0));
}
