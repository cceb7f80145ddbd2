/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA that this end carries out alone, and RDMA that it asks the peer for. The peer is the test,
 * in this process, and reads no frame unless it was asked.
 */

#include "xport/rdm/rma.h"

#include "obj/cq_data.h"
#include "obj/ep/ep_post.h"
#include "obj/ep/fast.h"
#include "xport/rdm/rings_peer.h"
#include "thread.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* The system, by the linker's --wrap */

static int fault;			/* errno of process_vm_writev(); 0: it works */

/* Whether the EP has announced a write to the peer's memory. */
static bool is_writing(void)
{
	bool any = false;
	int i;

	for (i = 0; i < DOFI_WRITINGS; i++)
		any |= theirs->link->writing[i].busy != 0;
	return any;
}

ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
				 const struct iovec *to, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
				 const struct iovec *to, unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *from, unsigned long n,
				 const struct iovec *to, unsigned long m, unsigned long flags)
{
	cr_expect(is_writing(), "it is marked meanwhile");
	if (!fault)
		return __real_process_vm_writev(pid, from, n, to, m, flags);
	errno = fault;
	return -1;
}

/* The peer */

#define AREA (5 * (DOFI_WRITE_PIECE / 2))

static struct dofi_grants their_grants;
static unsigned char *area;		/* of the peer */
static struct dofi_grant *their_grant;
static uint32_t their_key;

static struct dofi_cm_msg request_with_grants(void)
{
	struct dofi_cm_msg m = request();

	cr_assert_eq(dofi_host_read(&m.host), 0);
	m.alive_addr = (uintptr_t)&id;
	dofi_grant_book_add_conn(their_grants.book, id);
	m.fd[m.n_fds++] = dofi_grant_book_fd(their_grants.book);
	return m;
}

static void publish(void)
{
	const struct dofi_mr_request r = {
		.addr = area, .len = AREA, .remote = FI_REMOTE_READ | FI_REMOTE_WRITE,
	};

	dofi_grants_init(&their_grants);
	cr_assert_eq(dofi_grants_publish(&their_grants), 0);
	cr_assert_eq(dofi_grant_open(&their_grants, &r, &their_grant, &their_key), 0);
}

static void init_by(void (*publisher)(void))
{
	struct dofi_cm_msg m;
	size_t i;

	init();
	for (i = 0; i < sizeof(big); i++)
		big[i] = (unsigned char)(i * 7 + 1);
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(area != MAP_FAILED);
	publisher();
	m = request_with_grants();
	couple_by(&m);
	fault = 0;
}

static void init_coupled(void)
{
	init_by(publish);
}

static void *publish_and_end(void *arg)
{
	publish();
	return arg;
}

/* The thread of the peer that has published its grants is dead. */
static void publish_and_die(void)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, publish_and_end, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

static void init_dead(void)
{
	init_by(publish_and_die);
}

static void fini_coupled(void)
{
	fini();
	if (their_grant)
		dofi_grant_close(their_grant);
	dofi_grants_fini(&their_grants);
	munmap(area, AREA);
}

TestSuite(onesided, .init = init_coupled, .fini = fini_coupled, .timeout = 60);
TestSuite(onesided_dead, .init = init_dead, .fini = fini_coupled, .timeout = 60);

static DAT_RMR_TRIPLET at(size_t offset, size_t length)
{
	return remote_of(their_key, (uintptr_t)area + offset, length);
}

static void post(bool reads, DAT_LMR_TRIPLET local, DAT_RMR_TRIPLET remote, uint64_t cookie)
{
	const DAT_DTO_COOKIE c = { .as_64 = cookie };

	if (reads)
		succeed(dofi_ep_post_rdma_read(ep, 1, &local, c, &remote,
					       DAT_COMPLETION_DEFAULT_FLAG));
	else
		succeed(dofi_ep_post_rdma_write(ep, 1, &local, c, &remote,
						DAT_COMPLETION_DEFAULT_FLAG));
}

static void write_at(size_t offset, size_t length, uint64_t cookie)
{
	post(false, big_segment(0, length), at(offset, length), cookie);
}

static void expect_done(uint64_t cookie)
{
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), cookie);
}

/* The peer got no frame, and the bytes are there. */
static void expect_alone(size_t offset, size_t length)
{
	cr_expect(!dofi_ring_has(&theirs->in));
	cr_expect(!memcmp(area + offset, big, length));
	cr_expect(!is_writing());
}

/* The post has sent the frame. */
static void expect_asked(uint32_t kind, enum rdm_result result)
{
	struct rdm_frame ack = frame(RDM_FRAME_ACK), f;

	cr_assert(dofi_ring_has(&theirs->in), "the peer is not asked");
	f = take_frame();
	cr_expect_eq(f.kind, kind);
	cr_expect_eq(f.key, their_key);
	ack.number = f.number;
	ack.key = result;
	send_frame(&ack, NULL, 0);
}

Test(onesided, a_write_is_done_by_the_post)
{
	size_t length;

	for (length = 0; length < 40000; length = length * 3 + 1) {
		write_at(100, length, length);
		expect_alone(100, length);
		expect_done(length);
		cr_expect_eq(area[100 + length], 0);
		memset(area, 0, 40000);
	}
}

Test(onesided, a_read_is_done_by_the_post)
{
	size_t length;

	memset(area, 0x5a, 40000);
	for (length = 1; length < 30000; length = length * 3 + 1) {
		post(true, big_segment(0, length), at(7, length), length);
		expect_alone(7, length);
		cr_expect(big[length] != 0x5a || big[length + 1] != 0x5a);
		expect_done(length);
	}
}

static uint64_t writes_made(void)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < DOFI_WRITINGS; i++)
		n += rdm_conn_of(ep)->out->writes[i].count;
	return n;
}

/* The owner of the memory waits for one piece at most. */
Test(onesided, a_long_write_is_made_in_pieces)
{
	unsigned char *source = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_TRIPLET s;
	DAT_LMR_HANDLE h;
	size_t i;

	for (i = 0; i < AREA; i++)
		source[i] = (unsigned char)(i * 7 + i / 251);
	succeed(lmr_make(pz, source, AREA, DAT_MEM_PRIV_ALL_FLAG, &h, &context, &remote));
	s = (DAT_LMR_TRIPLET){
		.lmr_context = context, .virtual_address = (uintptr_t)source,
		.segment_length = AREA,
	};
	post(false, s, at(0, AREA), 1);
	expect_done(1);
	cr_expect(!memcmp(area, source, AREA));
	cr_expect_eq(writes_made(), 3);
	succeed(dofi_lmr_free(h));
	munmap(source, AREA);
}

/* Asking the peer */

Test(onesided, what_is_not_granted_the_peer_refuses)
{
	post(false, big_segment(0, 2), at(AREA - 1, 2), 1);
	expect_asked(RDM_FRAME_WRITE, RDM_NO_ACCESS);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_REMOTE_ACCESS), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
}

static void end_their_grant(void)
{
	dofi_grant_close(their_grant);
	their_grant = NULL;
}

Test(onesided, after_the_grants_end_the_peer_is_asked)
{
	write_at(0, 8, 1);
	expect_done(1);
	end_their_grant();
	write_at(8, 8, 2);
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	expect_done(2);
	cr_expect_eq(area[8], 0);
}

Test(onesided, a_connection_that_is_over_is_not_written_to)
{
	dofi_grant_book_remove_conn(their_grants.book, id);
	write_at(0, 8, 1);
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	expect_done(1);
	cr_expect_eq(area[0], 0);
}

/* Its number may be another process's. */
Test(onesided_dead, a_dead_peer_is_not_written_to)
{
	write_at(0, 8, 1);
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	expect_done(1);
	cr_expect_eq(area[0], 0);
}

/* The peer's operations keep their place before later ones. */
Test(onesided, nothing_overtakes_what_the_peer_carries_out)
{
	const uint32_t granted = their_key;

	their_key ^= 1;			/* the peer knows a key that is not in its book */
	write_at(0, 8, 1);
	their_key = granted;
	write_at(8, 8, 2);
	post(true, big_segment(0, 8), at(8, 8), 3);
	cr_expect_eq(area[8], 0);
	their_key ^= 1;
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	their_key = granted;
	expect_done(1);
	write_at(16, 8, 4);
	cr_expect_eq(area[16], 0);
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	take_frame();
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
}

Test(onesided, memory_that_is_missing_breaks_the_connection)
{
	mprotect(area, 4096, PROT_NONE);
	write_at(0, 8, 1);
	cr_expect_eq(done_await(evd, DAT_DTO_ERR_TRANSPORT), 1);
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(hear(DOFI_CM_BYE).reason);
}

Test(onesided, a_process_that_may_not_write_asks)
{
	fault = EPERM;
	write_at(0, 8, 1);
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	expect_done(1);
	fault = 0;
	write_at(0, 8, 2);
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	expect_done(2);
	cr_expect_eq(area[0], 0, "not tried again");
}

/* The kernel does not find a process that is ending; its connection ends soon. */
Test(onesided, a_process_that_is_gone_is_asked_in_vain)
{
	fault = ESRCH;
	write_at(0, 8, 1);
	cr_expect_eq(take_frame().kind, RDM_FRAME_WRITE);
	cr_expect(event_none(evd));
}

#if DAT_VERSION_MAJOR >= 2
static void write_immed(void)
{
	DAT_LMR_TRIPLET from = big_segment(0, 300);
	DAT_RMR_TRIPLET to = at(5, 300);
	const struct dofi_post p = {
		.n = 1, .iov = &from, .remote = &to, .cookie.as_64 = 1, .immed = 0xfeed,
	};

	succeed(dofi_ep_post_write_immed(ep, &p));
}

Test(onesided, a_message_with_the_data_follows_the_bytes)
{
	struct rdm_frame f;

	write_immed();
	cr_expect(!memcmp(area + 5, big, 300));
	event_await(evd, DAT_IB_DTO_EVENT);
	f = take_frame();
	cr_expect(f.kind == RDM_FRAME_SEND && !f.data_size);
	cr_expect_eq(dofi_cq_data_kind(f.cq_data), DOFI_CQ_DATA_WRITE_IMMED);
	cr_expect_eq(dofi_cq_data_length(f.cq_data), 300);
	cr_expect_eq((uint32_t)f.cq_data, 0xfeed);
}

/* Without credits the message waits. The bytes are written once. */
Test(onesided, the_message_may_wait)
{
	struct rdm_frame f;
	int i;

	for (i = 0; i < RDM_WINDOW; i++)
		succeed(post_send(segment(0, 1)));
	write_immed();
	cr_expect(!memcmp(area + 5, big, 300));
	memset(area, 0, 400);
	for (i = 0; i < RDM_WINDOW; i++) {
		take_frame();
		expect_done(8);
	}
	f = frame(RDM_FRAME_CREDIT);
	f.credits = RDM_WINDOW;
	send_frame(&f, NULL, 0);
	event_await(evd, DAT_IB_DTO_EVENT);
	cr_expect_eq(take_frame().kind, RDM_FRAME_SEND);
	cr_expect_eq(area[5], 0);
}

Test(onesided, after_the_message_that_ends_a_grant_the_peer_is_asked)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 8 };
	DAT_LMR_TRIPLET out = segment(0, 8);

	succeed(dofi_ep_post_send_with_invalidate(ep, 1, &out, cookie,
						  DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE,
						  their_key));
	expect_done(8);
	write_at(0, 8, 1);
	cr_expect_eq(area[0], 0);
	take_frame();
	expect_asked(RDM_FRAME_WRITE, RDM_OK);
	expect_done(1);
	write_at(0, 8, 2);
	expect_alone(0, 8);
	expect_done(2);
}
#endif

/* The peer as a writer */

static _Atomic pid_t caller;
static _Atomic bool returned;

static void *free_lmr(void *arg)
{
	atomic_store(&caller, (pid_t)syscall(SYS_gettid));
	succeed(dofi_lmr_free(big_lmr));
	atomic_store(&returned, true);
	return arg;
}

/* The page of the LMR, as the peer finds it. */
static uint32_t page_of_big(void)
{
	const struct dofi_access use = {
		.key = big_remote, .addr = (uintptr_t)big, .len = 1, .access = FI_REMOTE_WRITE,
	};
	struct dofi_right permit = { .page = 0 };

	cr_assert(outbox->grants != NULL);
	cr_assert(dofi_grant_pages_find(outbox->grants, &use, &permit));
	cr_expect_eq(permit.memory, (uintptr_t)big);
	return permit.page;
}

Test(onesided, an_lmr_is_not_free_while_the_peer_writes)
{
	pthread_t thread;

	dofi_writing_begin(outbox->link->writing, &outbox->writes[0].count, page_of_big());
	cr_assert_eq(pthread_create(&thread, NULL, free_lmr, NULL), 0);
	while (!thread_rests(atomic_load(&caller)))
		usleep(100);
	cr_expect(!atomic_load(&returned));
	dofi_writing_end(outbox->link->writing);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(onesided, a_connection_does_not_end_while_the_peer_writes)
{
	dofi_writing_begin(outbox->link->writing, &outbox->writes[0].count, page_of_big());
	succeed(dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	while (dofi_grant_pages_has_conn(outbox->grants, ep_id))
		usleep(100);
	cr_expect(event_none(evd));
	dofi_writing_end(outbox->link->writing);
	event_await(evd, DAT_CONNECTION_EVENT_DISCONNECTED);
}
