/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exchanges of addresses that this end begins. */

#include "xport/ud/parts.h"

#include "nomem.h"
#include "xport/wire.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLS_MOST 128			/* of call.c */
#define LONG DAT_TIMEOUT_INFINITE
#define SHORT 500000			/* long enough for a request to arrive */

static DAT_PSP_HANDLE psp;		/* of far */
static DAT_CONN_QUAL qual;

static void init(void)
{
	ud_init();
	psp = ud_listen_any(&ud_far, &qual);
}

TestSuite(xport_ud_call, .init = init, .fini = ud_fini, .timeout = 120);

static DAT_EVENT established(const struct ud_side *s, DAT_IB_EXT_TYPE type, const char *data)
{
	return ud_ended(s, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, type, data);
}

static void failed(DAT_EVENT_NUMBER number)
{
	ud_ended(&ud_near, number,
		 number == DAT_IB_UD_CONNECTION_REJECT_EVENT ? DAT_IB_UD_CONNECT_REJECT :
							       DAT_IB_UD_CONNECT_ERROR, "");
	cr_expect(event_none(ud_near.evd));
	cr_expect_eq(ud_calls(), 0);
	cr_expect_eq(state_of_ep(ud_near.ep), DAT_EP_STATE_CONNECTED);
}

/* Two ends of this service */

Test(xport_ud_call, gives_both_an_address)
{
	DAT_EVENT theirs, ours;

	succeed(ud_call_at(&ud_near, qual, LONG, "hello"));
	succeed(dofi_cr_accept(ud_request(&ud_far, "hello"), ud_far.ep, 5, (DAT_PVOID) "reply"));
	theirs = established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH, "hello");
	ours = established(&ud_near, DAT_IB_UD_REMOTE_AH, "reply");
	cr_expect_eq(ud_extension(&ours)->remote_ah.qpn, ud_number(ud_far.ep));
	cr_expect_eq(ud_extension(&theirs)->remote_ah.qpn, ud_number(ud_near.ep));
	cr_expect(ud_extension(&ours)->context.as_ptr);
	cr_expect(ud_extension(&theirs)->context.as_ptr);
	ud_works(&ud_near, ud_ah_of(&ours), &ud_far, 100);
	ud_works(&ud_far, ud_ah_of(&theirs), &ud_near, 100);
	cr_expect_eq(ud_calls(), 0);
}

Test(xport_ud_call, names_the_address_that_the_program_named)
{
	const struct sockaddr_in *in;
	DAT_EVENT event;

	succeed(ud_call_at(&ud_near, qual, LONG, ""));
	succeed(dofi_cr_accept(ud_request(&ud_far, ""), ud_far.ep, 0, NULL));
	event = established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
	in = (const struct sockaddr_in *)&ud_extension(&event)->remote_ah.ia_addr;
	cr_expect_eq(in->sin_family, AF_INET);
	cr_expect_eq(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

Test(xport_ud_call, carries_most_private_data)
{
	const size_t most = (size_t)ia->max_private_data;
	char data[DOFI_CM_MAX_DATA + 1] = "";

	memset(data, 'x', most < sizeof(data) ? most : sizeof(data) - 1);
	succeed(ud_call_at(&ud_near, qual, LONG, data));
	succeed(dofi_cr_accept(ud_request(&ud_far, data), ud_far.ep, (DAT_COUNT)strlen(data),
			       data));
	established(&ud_near, DAT_IB_UD_REMOTE_AH, data);
}

Test(xport_ud_call, is_rejected_by_the_program)
{
	succeed(ud_call_at(&ud_near, qual, LONG, "hello"));
	succeed(dofi_cr_reject(ud_request(&ud_far, "hello"), 4, (DAT_PVOID) "away"));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, "away");
	cr_expect(event_none(ud_far.evd));
}

/* A service point may come a little later, if two programs start together. */
Test(xport_ud_call, is_repeated_until_there_is_a_service_point)
{
	succeed(dofi_psp_free(psp));
	succeed(ud_call_at(&ud_near, qual, LONG, "early"));
	settle();
	cr_expect_eq(ud_calls(), 1);
	succeed(dofi_psp_create(ia, qual, ud_far.evd, DAT_PSP_CONSUMER_FLAG, &psp));
	succeed(dofi_cr_accept(ud_request(&ud_far, "early"), ud_far.ep, 0, NULL));
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
}

Test(xport_ud_call, without_a_service_point_is_rejected)
{
	succeed(dofi_psp_free(psp));
	succeed(ud_call_at(&ud_near, qual, LONG, "hello"));
	failed(DAT_IB_UD_CONNECTION_REJECT_EVENT);
}

Test(xport_ud_call, ends_at_its_deadline)
{
	DAT_CR_HANDLE cr;

	succeed(ud_call_at(&ud_near, qual, SHORT, "hello"));
	cr = ud_request(&ud_far, "hello");
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
	/* the passive side gets an address handle only if the peer is there */
	ud_sockets_settle(qual);
	succeed(dofi_cr_accept(cr, ud_far.ep, 0, NULL));
	ud_ended(&ud_far, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "hello");
}

Test(xport_ud_call, ends_at_its_deadline_while_it_is_repeated)
{
	succeed(dofi_psp_free(psp));
	succeed(ud_call_at(&ud_near, qual, 20000, "hello"));
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

Test(xport_ud_call, to_no_single_host_fails)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	succeed(dofi_ep_connect(ud_near.ep, (DAT_IA_ADDRESS_PTR)&in, qual, LONG, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

Test(xport_ud_call, of_one_ep_may_be_several)
{
	enum { N = 10 };
	DAT_CR_HANDLE cr[N];
	DAT_EVENT event;
	struct ud_peer *ah = NULL;
	unsigned i;

	for (i = 0; i < N; i++)
		succeed(ud_call_at(&ud_near, qual, LONG, "many"));
	for (i = 0; i < N; i++)
		cr[i] = ud_request(&ud_far, "many");
	for (i = 0; i < N; i++) {
		succeed(dofi_cr_accept(cr[i], ud_far.ep, 0, NULL));
		established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH, "many");
		event = established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
		cr_expect(!ah || ah == ud_ah_of(&event));
		ah = ud_ah_of(&event);
	}
	cr_expect_eq(ah->uses, N);
	ud_works(&ud_near, ah, &ud_far, 10);
}

/* The end of an EP */

static unsigned fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Sockets linger until their last bytes are acknowledged. */
static bool fds_return_to(unsigned before)
{
	const int64_t until = dofi_now() + 30 * 1000000000LL;

	while (fds() > before && dofi_now() < until)
		usleep(1000);
	return fds() <= before;
}

Test(xport_ud_call, ends_with_its_ep)
{
	enum { N = 5 };
	struct ud_side sibling = ud_near;
	DAT_CR_HANDLE cr[N];
	unsigned before, i;

	sibling.ep = ud_ep_make(&ud_near);
	before = fds();
	for (i = 0; i < N; i++)
		succeed(ud_call_at(&sibling, qual, LONG, "gone"));
	for (i = 0; i < N; i++)
		cr[i] = ud_request(&ud_far, "gone");
	succeed(ud_call_at(&ud_near, qual, LONG, "stays"));
	cr_expect_eq(ud_calls(), N + 1);
	succeed(dofi_ep_free(sibling.ep));
	cr_expect_eq(ud_calls(), 1);
	cr_expect(event_none(ud_near.evd));
	ud_sockets_settle(qual);
	succeed(dofi_cr_accept(ud_request(&ud_far, "stays"), ud_far.ep, 0, NULL));
	established(&ud_far, DAT_IB_UD_PASSIVE_REMOTE_AH, "stays");
	for (i = 0; i < N; i++) {
		succeed(dofi_cr_accept(cr[i], ud_far.ep, 0, NULL));
		ud_ended(&ud_far, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR,
			 "gone");
	}
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
	cr_expect(fds_return_to(before), "%u, %u before", fds(), before);
}

Test(xport_ud_call, ends_with_its_ep_while_it_is_repeated)
{
	DAT_EP_HANDLE ep = ud_near.ep;

	succeed(dofi_psp_free(psp));
	succeed(ud_call_at(&ud_near, qual, LONG, "hello"));
	settle();
	ud_near.ep = ud_ep_make(&ud_near);
	succeed(dofi_ep_free(ep));
	cr_expect_eq(ud_calls(), 0);
	cr_expect(event_none(ud_near.evd));
}

/* Many */

Test(xport_ud_call, waits_while_too_many_are_not_answered)
{
	enum { N = 2 * CALLS_MOST + 10 };
	unsigned i;

	for (i = 0; i < N; i++)
		succeed(ud_call_at(&ud_near, qual, LONG, "many"));
	cr_expect_eq(ud_calls(), CALLS_MOST);
	for (i = 0; i < N; i++)
		succeed(dofi_cr_reject(ud_request(&ud_far, "many"), 2, (DAT_PVOID) "no"));
	for (i = 0; i < N; i++)
		ud_ended(&ud_near, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT,
			 "no");
	cr_expect_eq(ud_calls(), 0);
}

/* Descriptors: a test takes all of them. */

#define DESCRIPTORS 256

static int taken[DESCRIPTORS];
static unsigned n_taken;

static void descriptors_take(void)
{
	const struct rlimit few = { DESCRIPTORS, DESCRIPTORS };
	int fd;

	cr_assert(!setrlimit(RLIMIT_NOFILE, &few));
	while (n_taken < DESCRIPTORS && (fd = dup(STDERR_FILENO)) >= 0)
		taken[n_taken++] = fd;
	cr_assert(n_taken && errno == EMFILE);
}

static void descriptors_return(void)
{
	while (n_taken)
		close(taken[--n_taken]);
}

Test(xport_ud_call, waits_for_a_descriptor_of_another)
{
	DAT_CR_HANDLE cr;

	succeed(ud_call_at(&ud_near, qual, LONG, "first"));
	cr = ud_request(&ud_far, "first");
	descriptors_take();
	succeed(ud_call_at(&ud_near, qual, LONG, "second"));
	settle();
	cr_expect_eq(ud_calls(), 2);
	cr_expect(event_none(ud_near.evd));
	succeed(dofi_cr_reject(cr, 0, NULL));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, "");
	cr = ud_request(&ud_far, "second");
	descriptors_return();
	succeed(dofi_cr_accept(cr, ud_far.ep, 0, NULL));
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
}

Test(xport_ud_call, fails_without_a_descriptor)
{
	descriptors_take();
	succeed(ud_call_at(&ud_near, qual, LONG, "hello"));
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
	descriptors_return();
	succeed(ud_call_at(&ud_near, qual, LONG, "again"));
	succeed(dofi_cr_accept(ud_request(&ud_far, "again"), ud_far.ep, 0, NULL));
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
}

Test(xport_ud_call, a_waiting_call_ends_at_its_deadline)
{
	unsigned i;

	for (i = 0; i < CALLS_MOST; i++)
		succeed(ud_call_at(&ud_near, qual, LONG, "first"));
	succeed(ud_call_at(&ud_near, qual, 20000, "late"));
	ud_ended(&ud_near, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, "");
	cr_expect_eq(ud_calls(), CALLS_MOST);
}

Test(xport_ud_call, a_waiting_call_ends_with_its_ep)
{
	struct ud_side sibling = ud_near;
	unsigned i;

	sibling.ep = ud_ep_make(&ud_near);
	for (i = 0; i < CALLS_MOST + 5; i++)
		succeed(ud_call_at(&ud_near, qual, LONG, "first"));
	succeed(ud_call_at(&sibling, qual, LONG, "other"));
	cr_expect_eq(ud_calls(), CALLS_MOST);
	succeed(dofi_ep_free(sibling.ep));
	cr_expect_eq(ud_calls(), CALLS_MOST);
	sibling.ep = ud_near.ep;
	ud_near.ep = ud_ep_make(&ud_near);
	succeed(ud_call_at(&ud_near, qual, LONG, "last"));
	succeed(dofi_ep_free(sibling.ep));
	cr_expect_eq(ud_calls(), 1);
}

/* Peers of the test */

static struct peer other;
static int listening;

/* Listens at a port of @q. Returns -1 if it is taken. */
static int listener_at(DAT_CONN_QUAL q, unsigned i)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = htons(dofi_wire_datagram_port(q, i));
	if (!bind(fd, (struct sockaddr *)&in, sizeof(in)) && !listen(fd, 5))
		return fd;
	close(fd);
	return -1;
}

/* Listens at the first port of a qualifier. */
static void other_listens(void)
{
	for (qual = 5000; !ud_port_reserve(qual) || (listening = listener_at(qual, 0)) < 0; qual++)
		;
}

/* near requests an address of it. */
static void is_called_within(DAT_TIMEOUT timeout)
{
	succeed(ud_call_at(&ud_near, qual, timeout, "hello"));
	peer_adopt(&other, accept4(listening, NULL, NULL, SOCK_CLOEXEC));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_REQUEST);
}

static void init_other(void)
{
	ud_init();
	other_listens();
}

static void fini_other(void)
{
	if (other.fd >= 0 && other.id)
		close(other.fd);
	close(listening);
	ud_fini();
}

TestSuite(xport_ud_caller, .init = init_other, .fini = fini_other, .timeout = 60);

static struct dofi_cm_msg answer(void)
{
	return ud_message(&ud_far, DOFI_CM_DATAGRAM_ACCEPT);
}

Test(xport_ud_caller, introduces_itself)
{
	const struct dofi_cm_msg *m = &other.received, own = ud_message(&ud_near, m->kind);
	const struct dofi_cm_msg accept = answer();
	DAT_EVENT event;

	is_called_within(LONG);
	cr_expect_eq(m->conn_qual, qual);
	cr_expect_eq(m->number, own.number);
	cr_expect_eq(m->key, own.key);
	cr_expect_eq(m->data_size, 5);
	cr_expect(!memcmp(m->data, "hello", 5));
	cr_expect_eq(m->addr_len, own.addr_len);
	cr_expect(!memcmp(m->addr, own.addr, own.addr_len));
	peer_send_cm(&other, &accept);
	event = established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
	ud_works(&ud_near, ud_ah_of(&event), &ud_far, 10);
	cr_expect_eq(peer_recv_cm(&other), DOFI_CM_READY);
	cr_expect_eq(peer_recv_cm(&other), 0, "the connection ends");
}

static void is_refused(enum dofi_cm_reason reason)
{
	const struct dofi_cm_msg refuse = { .kind = DOFI_CM_REFUSE, .reason = reason };

	is_called_within(LONG);
	peer_send_cm(&other, &refuse);
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

Test(xport_ud_caller, is_refused_for_lack_of_memory)
{
	is_refused(DOFI_CM_BUSY);
}

/* Another port may have a peer of its fabric. */
Test(xport_ud_caller, is_refused_for_its_fabric)
{
	const struct dofi_cm_msg refuse = { .kind = DOFI_CM_REFUSE, .reason = DOFI_CM_NO_PATH };

	is_called_within(LONG);
	close(listening);
	listening = -1;
	peer_send_cm(&other, &refuse);
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

Test(xport_ud_caller, a_caller_refused_for_its_fabric_tries_the_next_port)
{
	const struct dofi_cm_msg refuse = { .kind = DOFI_CM_REFUSE, .reason = DOFI_CM_NO_PATH };
	const struct dofi_cm_msg accept = answer();
	int next = listener_at(qual, 1);

	is_called_within(LONG);
	peer_send_cm(&other, &refuse);
	if (next < 0)
		return;		/* taken on this machine */
	peer_hang_up(&other);
	peer_adopt(&other, accept4(next, NULL, NULL, SOCK_CLOEXEC));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_REQUEST);
	peer_send_cm(&other, &accept);
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
	close(next);
}

Test(xport_ud_caller, is_refused_for_a_newer_reason)
{
	is_refused((enum dofi_cm_reason)77);
}

Test(xport_ud_caller, gets_no_answer)
{
	is_called_within(SHORT);
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
	cr_expect_eq(peer_recv_cm(&other), 0);
}

Test(xport_ud_caller, gets_an_address_of_another_fabric)
{
	struct dofi_cm_msg accept = answer();

	memcpy(accept.fabric, "udp", sizeof("udp"));
	is_called_within(LONG);
	peer_send_cm(&other, &accept);
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

Test(xport_ud_caller, gets_an_address_that_is_none)
{
	struct dofi_cm_msg accept = answer();

	accept.addr = "nonsense";
	accept.addr_len = 9;
	is_called_within(LONG);
	peer_send_cm(&other, &accept);
	failed(DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

/* Kinds of messages that are no answer */
Test(xport_ud_caller, ignores_other_messages)
{
	const struct dofi_cm_msg ready = { .kind = DOFI_CM_READY };
	const struct dofi_cm_msg accept = answer();

	is_called_within(LONG);
	peer_send_cm(&other, &ready);
	peer_send_cm(&other, &accept);
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
}

/* A second answer comes too late. */
Test(xport_ud_caller, takes_one_answer)
{
	const struct dofi_cm_msg accept = answer(), reject = { .kind = DOFI_CM_REJECT };

	is_called_within(LONG);
	peer_send_cm(&other, &accept);
	peer_send_cm(&other, &reject);
	established(&ud_near, DAT_IB_UD_REMOTE_AH, "");
	settle();
	cr_expect(event_none(ud_near.evd));
}

/* Something else has the port: the next one is tried. */
static void goes_on_to_the_next_port(void)
{
	int next = listener_at(qual, 1);

	if (next < 0)
		return;		/* taken on this machine */
	close(listening);
	listening = next;
	peer_adopt(&other, accept4(next, NULL, NULL, SOCK_CLOEXEC));
	cr_assert_eq(peer_recv_cm(&other), DOFI_CM_DATAGRAM_REQUEST);
}

Test(xport_ud_caller, of_which_a_port_ends_tries_the_next)
{
	is_called_within(LONG);
	peer_hang_up(&other);
	goes_on_to_the_next_port();
}

Test(xport_ud_caller, of_which_a_port_answers_nonsense_tries_the_next)
{
	is_called_within(LONG);
	cr_assert_eq(send(other.fd, "HTTP/1.0 400\r\n\r\n", 16, MSG_NOSIGNAL), 16);
	while (peer_recv_cm(&other))
		;
	peer_hang_up(&other);
	goes_on_to_the_next_port();
}

Test(xport_ud_caller, of_which_a_port_has_another_version_tries_the_next)
{
	const struct dofi_cm_msg reject = { .kind = DOFI_CM_REJECT };
	unsigned char bytes[DOFI_CM_MAX];
	const size_t n = dofi_cm_pack(bytes, &reject);

	is_called_within(LONG);
	bytes[4] ^= 0xf0;
	cr_assert_eq(send(other.fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
	while (peer_recv_cm(&other))
		;
	peer_hang_up(&other);
	goes_on_to_the_next_port();
}

Test(xport_ud_caller, whose_peer_ends_without_an_answer_is_rejected)
{
	int fd;

	is_called_within(LONG);
	peer_hang_up(&other);
	close(listening);
	listening = -1;
	failed(DAT_IB_UD_CONNECTION_REJECT_EVENT);
	fd = listener_at(qual, 0);
	cr_expect(fd >= 0);
	close(fd);
}

Test(xport_ud_caller, may_lack_memory)
{
	DAT_EVENT event;
	DAT_RETURN ret;
	DAT_COUNT more;
	int n;

	for (n = 0; n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = ud_call_at(&ud_near, qual, 20000, "hello");
		if (ret) {
			expect_type(ret, DAT_INSUFFICIENT_RESOURCES);
			cr_expect(nomem_failed());
			continue;
		}
		succeed(dofi_evd_wait(ud_near.evd, 30000000, 1, &event, &more));
		cr_expect_eq((int)event.event_number, (int)DAT_IB_UD_CONNECTION_ERROR_EVENT);
		if (!nomem_failed())
			break;
	}
	cr_expect(n < NOMEM_MOST);
	cr_expect_eq(ud_calls(), 0);
}
