/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer of the test, to which an EP is connected by rings. */
#ifndef UNIT_XPORT_RDM_RINGS_PEER_H
#define UNIT_XPORT_RDM_RINGS_PEER_H

#include "rings/set.h"
#include "xport/cm/address.h"
#include "xport/local_or_net.h"
#include "xport/msg/msg.h"
#include "xport/peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The IA, and a peer */

static const char layout[] = "rings/4";

static DAT_EP_HANDLE ep;
static DAT_CONN_QUAL qual;
static DAT_PSP_HANDLE psp;
static struct set peer;
static struct dofi_inbox *theirs;	/* the peer's */
static struct dofi_outbox *outbox;	/* the peer's, once the EP is connected */
static const uint64_t id = 0xe234567800000001;
static uint64_t ep_id;
static uint32_t sent;
static int cm_fd;

static inline void cm_name(struct sockaddr_un *name)
{
	snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "dat-ofi/side/%" PRIu64,
		 (uint64_t)qual);
}

static inline void init(void)
{
	static const struct dofi_xports xports = {
		.connected = &dofi_msg_xport, .connectionless = &dofi_rdm_xport,
		.add_local = dofi_local_or_net_add,
	};
	static const struct dofi_params nothing = { .provider = "" };
	const struct timeval patience = { .tv_sec = 30 };
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	ia_open_real(&xports, &nothing);
	if (!ia->local.info) {
		fprintf(stderr, "skipped: libfabric has no tcp here\n");
		exit(0);
	}
	rdm_objects_make();
	ep = ep_make();
	psp = listen_any(&qual);
	cm_name(&name);
	cm_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(cm_fd, (struct sockaddr *)&name,
			     dofi_cm_address_len((struct sockaddr *)&name)),
		     0);
	setsockopt(cm_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	set_open(&peer, 0, NULL);
	cr_assert_eq(dofi_inbox_open(peer.rings, &theirs), 0);
}

static inline void fini(void)
{
	ia_fini();
	dofi_outbox_put(outbox, &peer.bell);
	set_close(&peer);
	close(cm_fd);
}

static inline struct dofi_cm_msg request(void)
{
	return (struct dofi_cm_msg){
		.kind = DOFI_CM_REQUEST, .conn_qual = qual, .conn_id = id, .window = RDM_WINDOW,
		.frame_size = DOFI_LINK_FRAME, .fabric = DOFI_RINGS_NAME,
		.addr = layout, .addr_len = sizeof(layout), .alive_addr = 0x10,
		.n_fds = 2, .fd = { theirs->fd, peer.rings->doorbell_fd },
	};
}

/* Sends a message with its descriptors. Returns false if the other end has closed. */
static inline bool offer(const struct dofi_cm_msg *m)
{
	unsigned char bytes[DOFI_CM_MAX];
	struct iovec iov = { bytes, dofi_cm_pack(bytes, m) };
	char control[CMSG_SPACE(DOFI_CM_FDS * sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (m->n_fds) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(m->n_fds * sizeof(int));
		header = CMSG_FIRSTHDR(&msg);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(m->n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), m->fd, m->n_fds * sizeof(int));
	}
	return sendmsg(cm_fd, &msg, MSG_NOSIGNAL) == (ssize_t)iov.iov_len;
}

static inline void peer_sends(const struct dofi_cm_msg *m)
{
	cr_assert(offer(m));
}

/* Waits for the next message of @kind, with its descriptors. */
static inline struct dofi_cm_msg hear(enum dofi_cm_kind kind)
{
	static unsigned char in[DOFI_CM_MAX];
	static size_t len;
	struct dofi_cm_msg m = { 0 };
	char control[CMSG_SPACE(DOFI_CM_FDS * sizeof(int))];
	int fd[DOFI_CM_FDS] = { -1, -1, -1 };
	unsigned n_fds = 0;
	ssize_t n;

	do {
		while (!(n = dofi_cm_unpack(in, len, &m))) {
			struct iovec iov = { in + len, sizeof(in) - len };
			struct msghdr msg = {
				.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				.msg_controllen = sizeof(control),
			};
			struct cmsghdr *header;

			n = recvmsg(cm_fd, &msg, MSG_CMSG_CLOEXEC);
			cr_assert(n > 0, "it has closed");
			len += (size_t)n;
			header = CMSG_FIRSTHDR(&msg);
			if (header) {
				n_fds = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
				memcpy(fd, CMSG_DATA(header), n_fds * sizeof(int));
			}
		}
		cr_assert(n > 0);
		len -= (size_t)n;
		memmove(in, in + n, len);
	} while (m.kind != kind);
	m.n_fds = n_fds;
	memcpy(m.fd, fd, sizeof(fd));
	return m;
}

/* Frames */

static inline struct rdm_frame frame(enum rdm_frame_kind kind)
{
	return (struct rdm_frame){ .kind = (uint8_t)kind, .conn = ep_id, .sequence = sent + 1 };
}

static inline void send_frame(const struct rdm_frame *f, const void *data, size_t size)
{
	unsigned char *at;
	size_t len;

	dofi_mutex_lock(&outbox->lock);
	cr_assert_eq(dofi_outbox_reserve(outbox, rdm_frame_head(f) + size, &at), 0);
	len = rdm_frame_pack(at, f);
	if (size)
		memcpy(at + len, data, size);
	dofi_outbox_send(outbox);
	dofi_mutex_unlock(&outbox->lock);
	sent++;
	dofi_outbox_notify(outbox, &peer.bell);
}

static inline struct rdm_frame take_frame(void)
{
	struct dofi_ring_record record;
	struct rdm_frame f = { .kind = 0 };

	while (!dofi_ring_take(&theirs->in, &record))
		usleep(10);
	cr_assert_eq(rdm_frame_unpack(record.data, record.len, &f), 0);
	cr_expect_eq(f.conn, id);
	dofi_ring_release(&theirs->in, record.end);
	return f;
}

static inline void couple_by(const struct dofi_cm_msg *m)
{
	struct dofi_outbox *offer;
	struct dofi_cm_msg accepted;
	struct rdm_frame hello;
	unsigned i;

	peer_sends(m);
	succeed(dofi_cr_accept(request_await(), ep, 0, NULL));
	accepted = hear(DOFI_CM_ACCEPT);
	cr_assert(accepted.n_fds >= 2);
	cr_assert_eq(dofi_outbox_map(accepted.fd[0], accepted.fd[1],
				     accepted.n_fds > 2 ? accepted.fd[2] : -1, &offer), 0);
	cr_assert_eq(dofi_outbox_get(peer.rings, &offer, NULL, &outbox), 0);
	for (i = 0; i < accepted.n_fds; i++)
		close(accepted.fd[i]);
	ep_id = accepted.conn_id;
	hello = frame(RDM_FRAME_HELLO);
	send_frame(&hello, NULL, 0);
	cr_expect_eq(take_frame().kind, RDM_FRAME_HELLO_BACK);
	event_await(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static inline void couple(void)
{
	const struct dofi_cm_msg m = request();

	couple_by(&m);
}

static inline DAT_RETURN post_send(DAT_LMR_TRIPLET out)
{
	const DAT_DTO_COOKIE cookie = { .as_64 = 8 };

	return dofi_ep_post_send(ep, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

#endif
