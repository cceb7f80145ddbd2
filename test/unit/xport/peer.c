/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA with the connectionless transport on a real fabric, and peers of the test. */

#include "xport/peer.h"

#include "fab/info.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 30			/* longer than anything expected takes */
#define PEERS 4

unsigned char big[BIG];
DAT_LMR_CONTEXT big_context;
DAT_RMR_CONTEXT big_remote;
uint64_t done_length;

DAT_LMR_HANDLE big_lmr;

/* The endpoint that receives the frames for all peers. */
static struct {
	struct dofi_fabric_choice choice;
	struct dofi_progress progress;
	struct dofi_domain domain;
	struct dofi_rdm rdm;
	struct dofi_host host;
	struct peer *peer[PEERS];
	unsigned n_peers;
	int ret;
	bool open;
} hub;

static void frame_keep(struct peer *p, const struct rdm_frame *f)
{
	struct peer_frame *kept = &p->got[p->n_came % PEER_FRAMES];

	cr_assert(p->n_came - p->n_taken < PEER_FRAMES);
	cr_assert(f->data_size <= sizeof(kept->data));
	kept->frame = *f;
	if (f->data_size)
		memcpy(kept->data, f->data, f->data_size);
	kept->frame.data = kept->data;
	p->n_came++;
	sem_post(&p->came);
}

static void frame_came(const void *bytes, size_t len)
{
	struct rdm_frame f = { .kind = 0 };
	unsigned i;

	cr_assert_eq(rdm_frame_unpack(bytes, len, &f), 0);
	for (i = 0; i < hub.n_peers; i++)
		if (hub.peer[i]->id == f.conn)
			break;
	cr_assert(i < hub.n_peers, "for nobody: %#llx", (unsigned long long)f.conn);
	frame_keep(hub.peer[i], &f);
}

static void hub_arrived(struct dofi_rdm_buffer *buffer, const struct fi_cq_data_entry *entry,
			int err, struct dofi_sink *sink)
{
	if (!err)
		frame_came(buffer->data, entry->len);
	dofi_rdm_repost(buffer);
}

static void hub_completed(const struct fi_cq_data_entry *entry, int err, struct dofi_sink *sink)
{
	if (dofi_rdm_is_buffer(entry->op_context))
		dofi_rdm_completed(entry, err, sink);
}

static void hub_swept(struct dofi_cq *cq)
{
	dofi_rdm_sweep(&hub.rdm);
}

static void hub_failed(struct dofi_progress *p, int err)
{
	cr_assert(!err, "%d", err);
}

static const struct dofi_progress_ops hub_ops = {
	.completed = hub_completed, .swept = hub_swept, .failed = hub_failed,
};

static void hub_open(void *arg)
{
	const struct dofi_rdm_options options = { .n_buffers = 64, .arrived = hub_arrived };

	hub.ret = dofi_host_read(&hub.host);
	dofi_cq_init(&hub.domain.cq);
	if (!hub.ret)
		hub.ret = dofi_domain_open(&hub.domain, &hub.progress, hub.progress.fabric,
					   hub.progress.ops, &hub.choice);
	if (!hub.ret)
		hub.ret = dofi_rdm_open(&hub.rdm, &hub.domain, &hub.choice, &options);
}

static void hub_close(void *arg)
{
	dofi_rdm_close(&hub.rdm);
	dofi_domain_close(&hub.domain);
}

static void hub_start(const struct dofi_params *params)
{
	cr_assert_eq(dofi_fabric_choose(params, &hub.choice), 0);
	cr_assert_eq(dofi_fabric_start(&hub.progress, &hub_ops, hub.choice.info), 0);
	dofi_progress_call(&hub.progress, hub_open, NULL);
	cr_assert_eq(hub.ret, 0);
	hub.open = true;
}

static void hub_stop(void)
{
	unsigned i;

	dofi_progress_call(&hub.progress, hub_close, NULL);
	dofi_progress_stop(&hub.progress);
	dofi_fabric_release(&hub.choice);
	for (i = 0; i < hub.n_peers; i++)
		if (hub.peer[i]->fd >= 0)
			close(hub.peer[i]->fd);
}

/* The IA */

/*
 * The first call of libfabric probes all fabrics, which takes long. So it is made once, and not in
 * each test.
 */
__attribute__((constructor)) static void fabrics_find(void)
{
	struct fi_info *info;

	if (!fi_getinfo(DOFI_FI_VERSION, NULL, NULL, 0, NULL, &info))
		fi_freeinfo(info);
}

void rdm_objects_make(void)
{
	objects_make(256);
	succeed(lmr_make(pz, big, sizeof(big), DAT_MEM_PRIV_ALL_FLAG, &big_lmr, &big_context,
			 &big_remote));
}

void rdm_init_on(const char *provider)
{
	static const struct dofi_xports xports = { .connectionless = &dofi_rdm_xport };
	struct dofi_params params = { .endpoint = "rdm" };

	snprintf(params.provider, sizeof(params.provider), "%s", provider);
	ia_open_real(&xports, &params);
	hub_start(&params);
	rdm_objects_make();
}

void rdm_init(void)
{
	rdm_init_on("shm");
}

void rdm_fini(void)
{
	ia_fini();
	if (hub.open)
		hub_stop();
}

static ssize_t inject_later(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	return -FI_EAGAIN;
}

void fabric_takes(DAT_EP_HANDLE with, bool takes)
{
	static struct fi_ops_msg later, *own;
	struct rdm_conn *conn = rdm_conn_of(with);
	struct dofi_cq *cq = &conn->rpz->domain->cq;
	struct fid_ep *fid = conn->rpz->rdm.fid;

	/* a sweep of the CQ sends for the other EPs of the endpoint */
	dofi_mutex_lock(&cq->lock);
	dofi_mutex_lock(&conn->ep->lock);
	if (fid->msg != &later) {
		own = fid->msg;
		later = *own;
		later.inject = inject_later;
	}
	fid->msg = takes ? own : &later;
	dofi_mutex_unlock(&conn->ep->lock);
	dofi_mutex_unlock(&cq->lock);
}

DAT_LMR_TRIPLET big_segment(size_t offset, size_t length)
{
	return segment_of(big_context, big + offset, length);
}

DAT_EVENT event_await(DAT_EVD_HANDLE with, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	succeed(dofi_evd_wait(with, PATIENCE_S * 1000000, 1, &event, &more));
	cr_assert_eq(event.event_number, number, "%#x", event.event_number);
	return event;
}

uint64_t done_await(DAT_EVD_HANDLE with, DAT_DTO_COMPLETION_STATUS status)
{
	const DAT_EVENT event = event_await(with, DAT_DTO_COMPLETION_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *d = &event.event_data.dto_completion_event_data;

	cr_expect_eq(d->status, status, "%d", d->status);
	done_length = d->transfered_length;
	return d->user_cookie.as_64;
}

DAT_PSP_HANDLE listen_any(DAT_CONN_QUAL *conn_qual)
{
	DAT_PSP_HANDLE psp;

	succeed(dofi_psp_create_any(ia, conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

DAT_CR_HANDLE request_await(void)
{
	const DAT_EVENT event = event_await(evd, DAT_CONNECTION_REQUEST_EVENT);

	return event.event_data.cr_arrival_event_data.cr_handle;
}

void pair_connect(DAT_EP_HANDLE active, DAT_EP_HANDLE passive)
{
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp = listen_any(&qual);

	succeed(dofi_ep_connect(active, some_address(), qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	succeed(dofi_cr_accept(request_await(), passive, 0, NULL));
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(dofi_psp_free(psp));
}

void pair_works(DAT_EP_HANDLE from, DAT_EP_HANDLE to)
{
	static unsigned char number;
	DAT_LMR_TRIPLET out = segment(sizeof(memory) - 2, 1), in = segment(sizeof(memory) - 1, 1);
	const DAT_DTO_COOKIE cookie = { .as_64 = 4242 };

	memory[sizeof(memory) - 2] = (char)++number;
	succeed(dofi_ep_post_recv(to, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	succeed(dofi_ep_post_send(from, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 4242);
	cr_expect_eq(done_await(evd, DAT_DTO_SUCCESS), 4242);
	cr_expect_eq(memory[sizeof(memory) - 1], (char)number);
}

/* CM sockets */

static void peer_enlist(struct peer *p)
{
	cr_assert(hub.n_peers < PEERS);
	sem_init(&p->came, 0, 0);
	p->fd = -1;
	p->id = ((uint64_t)0xabcd << 32) + hub.n_peers;
	hub.peer[hub.n_peers++] = p;
}

struct dofi_cm_msg peer_msg(struct peer *p, enum dofi_cm_kind kind)
{
	struct dofi_cm_msg msg;

	if (!p->id)
		peer_enlist(p);
	msg = (struct dofi_cm_msg){
		.kind = kind, .conn_id = p->id, .secret = PEER_SECRET, .window = RDM_WINDOW,
		.frame_size = (uint32_t)hub.rdm.frame_size, .alive_addr = (uintptr_t)&p->id,
		.addr_format = hub.rdm.address_format, .addr_len = (uint16_t)hub.rdm.address_len,
		.addr = hub.rdm.address,
		.host = hub.host,
	};

	strncpy(msg.fabric, hub.choice.info->fabric_attr->prov_name, sizeof(msg.fabric) - 1);
	return msg;
}

void peer_send_cm(struct peer *p, const struct dofi_cm_msg *msg)
{
	unsigned char buf[DOFI_CM_MAX];
	size_t n = dofi_cm_pack(buf, msg);

	cr_assert_eq(send(p->fd, buf, n, MSG_NOSIGNAL), (ssize_t)n);
}

void peer_adopt(struct peer *p, int fd)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int yes = 1;

	if (!p->id)
		peer_enlist(p);
	cr_assert(p->fd < 0 && fd >= 0);
	p->fd = fd;
	p->in_len = p->in_used = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

void peer_dial(struct peer *p, DAT_CONN_QUAL port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	peer_adopt(p, fd);
}

void peer_hang_up(struct peer *p)
{
	close(p->fd);
	p->fd = -1;
}

/* Reads the next message into p->received. Returns its kind, or 0 at the end. */
int peer_recv_cm(struct peer *p)
{
	ssize_t n;

	p->in_len -= p->in_used;
	memmove(p->in, p->in + p->in_used, p->in_len);
	p->in_used = 0;
	while (!(n = dofi_cm_unpack(p->in, p->in_len, &p->received))) {
		n = recv(p->fd, p->in + p->in_len, sizeof(p->in) - p->in_len, 0);
		cr_assert(n >= 0 || errno == ECONNRESET, "%d", errno);
		if (n <= 0)
			return 0;
		p->in_len += (size_t)n;
	}
	cr_assert(n > 0);
	p->in_used = (size_t)n;
	return p->received.kind;
}

static void learn_on_thread(void *arg)
{
	struct peer *p = arg;

	hub.ret = dofi_rdm_peer_add(&hub.rdm, p->received.addr, p->received.addr_len, &p->to);
}

void peer_learn(struct peer *p)
{
	p->conn = p->received.conn_id;
	p->secret = p->received.secret;
	p->sent = p->seen = 0;
	dofi_progress_call(&hub.progress, learn_on_thread, p);
	cr_assert_eq(hub.ret, 0);
}

/* Frames */

struct rdm_frame peer_frame(const struct peer *p, enum rdm_frame_kind kind)
{
	return (struct rdm_frame){ .kind = (uint8_t)kind,
				   .conn = p->conn,
				   .sequence = p->sent + 1 };
}

/*
 * Wakes the IA: before shm takes a first message, it sends a notice of it that the IA must handle.
 */
void peer_send_bytes(struct peer *p, const void *bytes, size_t size)
{
	ssize_t ret;

	do {
		ret = fi_inject(hub.rdm.fid, bytes, size, p->to);
		dofi_progress_wake(&ia->progress);
		if (ret == -FI_EAGAIN)
			dofi_cq_poll(&hub.domain.cq, NULL);
	} while (ret == -FI_EAGAIN);
	cr_assert_eq(ret, 0);
}

void peer_send(struct peer *p, const struct rdm_frame *f, const void *data, size_t size)
{
	unsigned char buf[4096];
	size_t len = rdm_frame_pack(buf, f);

	cr_assert(len + size <= sizeof(buf));
	if (size)
		memcpy(buf + len, data, size);
	p->sent++;
	peer_send_bytes(p, buf, len + size);
}

static const struct peer_frame *take(struct peer *p)
{
	struct timespec until;
	const struct peer_frame *got;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	cr_assert_eq(sem_timedwait(&p->came, &until), 0, "no frame came");
	got = &p->got[p->n_taken++ % PEER_FRAMES];
	cr_assert_eq(got->frame.sequence, ++p->seen);
	return got;
}

const struct peer_frame *peer_take(struct peer *p, enum rdm_frame_kind kind)
{
	const struct peer_frame *got;

	do
		got = take(p);
	while (got->frame.kind == RDM_FRAME_CREDIT && kind != RDM_FRAME_CREDIT);
	cr_assert_eq(got->frame.kind, kind, "%d", got->frame.kind);
	return got;
}

static void drain(void *arg)
{
	dofi_cq_drain(arg);
}

bool peer_has_none(struct peer *p)
{
	dofi_progress_call(&ia->progress, drain, &((struct dofi_pz *)pz)->domain.cq);
	dofi_progress_call(&hub.progress, drain, &hub.domain.cq);
	return p->n_came == p->n_taken;
}

/* CM sockets and frames */

static void expect_introduction(const struct peer *p)
{
	cr_expect_str_eq(p->received.fabric, hub.choice.info->fabric_attr->prov_name);
	cr_expect_eq(p->received.window, RDM_WINDOW);
	cr_expect_eq(p->received.host.pid, (uint32_t)getpid());
	cr_expect_eq(*(const uint64_t *)(uintptr_t)p->received.alive_addr, p->received.conn_id);
	cr_expect_eq(!!p->received.secret, hub.choice.scoped_keys);
}

/* Returns whether this system lets a process read the memory of another one by number. */
static bool can_read_memory(void)
{
	char from = 0, to;
	const struct iovec source = { &from, 1 }, target = { &to, 1 };

	return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == 1;
}

void peer_couple_as(struct peer *p, DAT_EP_HANDLE ep, const struct dofi_cm_msg *request,
		    bool readable)
{
	struct rdm_frame hello;
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp = listen_any(&qual);

	peer_dial(p, qual);
	peer_send_cm(p, request);
	succeed(dofi_cr_accept(request_await(), ep, 0, NULL));
	cr_assert_eq(peer_recv_cm(p), DOFI_CM_ACCEPT);
	expect_introduction(p);
	peer_learn(p);
	hello = peer_frame(p, RDM_FRAME_HELLO);
	hello.value[0] = hub.choice.shared_memory && !p->blind;
	peer_send(p, &hello, NULL, 0);
	cr_expect_eq(peer_take(p, RDM_FRAME_HELLO_BACK)->frame.value[0],
		     readable && can_read_memory());
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	succeed(dofi_psp_free(psp));
}

void peer_couple(struct peer *p, DAT_EP_HANDLE ep)
{
	const struct dofi_cm_msg request = peer_msg(p, DOFI_CM_REQUEST);

	peer_couple_as(p, ep, &request, hub.choice.shared_memory);
}

void peer_sees_break(struct peer *p)
{
	event_await(evd, DAT_CONNECTION_EVENT_BROKEN);
	cr_expect(event_none(evd));
	cr_expect_eq(peer_recv_cm(p), DOFI_CM_BYE);
	cr_expect_eq(p->received.reason, 1, "the BYE reports a break");
	cr_expect_eq(peer_recv_cm(p), 0);
}
