/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts on fabrics that fi_info lacks: a table with reasons. */

#include "fab/quirks.h"

#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>

/* Room for @size bytes of data and a header. */
#define FRAME(size) ((size) + 64)
/* 64 KiB are still in the cache when they are copied. */
#define LONG_FRAME FRAME(65536)

#define VERBS .wc_errors = true, .takes_fence = true, .late_receives_cost = true,         \
	      .fixed_queues = true, .offloaded = true, .waits_to_open = true,              \
	      .eq_fails_for_one = true, .reason_in_prov_errno = true, .trywait_reads = true

#define TCP .misses_end_while_blocked = true, .takes_offset = true, .keeps_half_open = true,      \
	    .has_delivery_complete = true, .loses_answers = true,                            \
	    .joins_families = true, .ends_silently = true, .rdma_of_64_bits = true,            \
	    .target_rdma = true, .frame_size = LONG_FRAME

#define RXM .rank = 5, .target_rdma = true, .many_reads = true,                        \
	    .tx_variable = "FI_OFI_RXM_TX_SIZE", .rx_variable = "FI_OFI_RXM_RX_SIZE"

/*
 * The ranks are our policy: hardware first, then the faster software. libfabric's order is that of
 * linking.
 *
 * takes_offset: libfabric's manual reserves the offset of a registration. Fabrics that use
 * libfabric's table of registrations have always added it to addresses (1.5 to 2.6).
 *
 * Specific rows precede generic ones.
 */
static const struct dofi_quirk quirks[] = {
	{ .provider = "verbs", .up_to = FI_VERSION(2, 1), .rank = 1, VERBS,
	  .operand_is_address = true, .keeps_request = true,
	  .reason = "RDMA hardware, with the quirks of newer versions; passes the address of an "
		    "atomic's operand to the device as the operand (1.17, 2.1); does not free a "
		    "request that it could not accept (1.17)" },
	{ .provider = "verbs", .rank = 1, VERBS,
	  .reason = "RDMA hardware; resolves the peer's address when an endpoint is opened (1.17); "
		    "returns an error of one connection from reading the event queue (1.17); most "
		    "failures are EIO, those of connections ETIMEDOUT, with the reason in "
		    "prov_errno; has fences without the capability; retries a send to a receiver "
		    "that is not ready after up to 655 ms" },
	{ .provider = "tcp", .up_to = FI_VERSION(1, 17), .rank = 2, TCP,
	  .hangs_on_empty_recv = true, .trywait_reads = true, .reads_each = true,
	  .frees_reads_twice = true,
	  .reason = "the software fabric that is maintained; stops reading without a receive, "
		    "checks all endpoints of a completion queue when that is read, frees a read "
		    "twice if its endpoint is closed within the reply, uses a closed passive "
		    "endpoint for a connection without a request (libfabric pull request 12709); "
		    "copies fi_rma_iov into a structure with 64-bit lengths (to 2.6)" },
	{ .provider = "tcp", .rank = 2, TCP, .hangs_on_empty_recv = true, .data_in_eq = true,
	  .reason = "the software fabric that is maintained; stops reading without a receive, or "
		    "at a receive of no bytes (2.1); has the sockets of a domain in the wait set "
		    "of each event queue that one of its endpoints is bound to, and moves their "
		    "data when the queue is read (1.18 to 2.6)" },
	{ .provider = "sockets", .rank = 3, .late_listen_error = true, .shutdown_closes = true,
	  .takes_offset = true, .delivers_after_refusal = true, .shutdown_overtakes = true,
	  .has_delivery_complete = true, .loses_cq_data_flag = true, .silent_errors = true,
	  .vague_refusal = true, .strangers_crash = true,
	  .reason = "deprecated; a message of a connection crashes a listener (to 2.6), "
		    "port in use is EINVAL from fi_listen (1.17, 2.6), ends by another "
		    "socket than data (1.17), any failure to connect is a refusal (1.17), a "
		    "connection outlives a refused write, a message that waits for a receive "
		    "loses FI_REMOTE_CQ_DATA but not the data (1.17), a failed completion does "
		    "not make the descriptor readable (1.17), descriptors closed twice after "
		    "fi_shutdown (1.17)" },
	{ .provider = "efa", .rank = 1, .may_emulate = true, .by_clock = true, .frame_size = 4096,
	  .reason = "RDMA hardware; messages of several packets end in any order; RDMA that is not "
		    "the device's aborts the target at a wrong key; fi_trywait does not arm the "
		    "descriptor of a CQ (read: 2.6)" },
	{ .provider = "cxi", .rank = 1, .target_rdma = true, .frame_size = FRAME(16384),
	  .reason = "RDMA hardware; RDMA needs offsets, and registrations of one endpoint; "
		    "messages up to 18433 bytes are not overtaken (read: 2.6)" },
	{ .provider = "psm3", .rank = 9, .target_rdma = true, .by_clock = true,
	  .frame_size = 16000,
	  .reason = "RDMA is carried out when the target reads its CQ, in parts that are checked "
		    "apart; messages up to 16000 bytes are not overtaken; only reading a CQ moves "
		    "data, so that a completion does not make its descriptor readable (2.6)" },
	{ .provider = "shm", .rank = 4, .shared_memory = true, .target_rdma = true,
	  .frame_injected = true, .frame_size = 4096, .keeps_peers = true,
	  .reason = "this host's memory; ignores keys, or an endpoint hangs at a bad one (1.17), "
		    "and both processes do at a message above 4096 bytes that is too long for its "
		    "receive (1.17, 2.6); may write to unmapped memory when an address is removed, "
		    "and crashes when one of its 256 entries is used again (2.1, 2.6)" },
	{ .provider = "tcp;ofi_rxm", .up_to = FI_VERSION(1, 17),
	  .unless = { "FI_OFI_RXM_ENABLE_DYN_RBUF", "FI_OFI_RXM_ENABLE_DIRECT_SEND",
		      "FI_OFI_RXM_ENABLE_PASSTHRU" },
	  RXM, .frame_size = LONG_FRAME, .frame_variable = "FI_OFI_RXM_EAGER_LIMIT",
	  .reason = "the layer with the quirks of the next row; but over tcp of 1.17 (not of 2.1) "
		    "messages up to its eager limit are sent and received without a buffer, and "
		    "not overtaken" },
	{ .provider = ";ofi_rxm",
	  RXM, .frame_size = 16384, .frame_variable = "FI_OFI_RXM_BUFFER_SIZE",
	  .cq_for_universe = true,
	  .reason = "a layer over connected endpoints; replaces one that ends without reporting "
		    "what was lost; a message longer than its buffer is overtaken; lets peers read "
		    "all that may be sent; serves its connections in one of 128 reads of a CQ; "
		    "opens a CQ for FI_UNIVERSE_SIZE peers, which is EINVAL if the device's CQs "
		    "are shorter (1.17; read: 2.6)" },
	{ .provider = "udp", .datagrams = true, .trywait_reads = true,
	  .reason = "cuts off a datagram that is longer than its receive, and reports no error; "
		    "completes each message that was not injected; a read or fi_trywait of a CQ "
		    "takes one datagram from the socket, and overwrites the oldest completion if "
		    "the CQ is full; the descriptor of a CQ stays readable while a datagram has "
		    "no receive; receives end without a completion (1.17, 2.1)" },
	{ .provider = "verbs", .datagrams = true, .wc_errors = true, .fixed_queues = true,
	  .trywait_reads = true,
	  .reason = "RDMA hardware; a peer's datagrams wait in buffers until the CQ is read, so "
		    "it is read as often as that of software; needs a prefix in receives, and "
		    "none in sends; loses a datagram that is longer than the MTU, and an endpoint "
		    "fails when one is longer than its receive; its AV has no lock (1.17, 2.1); "
		    "uses the first port of the device (1.17)" },
	{ .provider = "ucx", .rank = 9, .refused = true,
	  .reason = "it reads 1024 bytes of each address, where 256 are exchanged (read: 2.6)" },
	{ .provider = ";ofi_rxd", .rank = 9, .refused = true,
	  .reason = "a refused RDMA operation never ends, and its completion queue has no "
		    "descriptor though it says so (1.17, 2.6)" },
};

/*
 * An unknown fabric only has to move messages: the target carries out RDMA, frames are as short as
 * on the other fabrics, CQs are read by the clock, as for psm3, and the other fabrics are
 * preferred.
 */
static const struct dofi_quirk unmeasured = {
	.provider = "", .rank = 9, .target_rdma = true, .by_clock = true, .frame_size = FRAME(4096),
	.reason = "unknown",
};

/* If the version, or a setting of the user, rules a row out, a later row applies. */
static const struct dofi_quirk *find(const char *provider, bool datagrams)
{
	const char *layer = strchr(provider, ';');
	const struct dofi_quirk *q;
	size_t i;

	for (q = quirks; q < quirks + sizeof(quirks) / sizeof(quirks[0]); q++) {
		if (q->datagrams != datagrams ||
		    (q->up_to && !FI_VERSION_GE(q->up_to, fi_version())) ||
		    (strcmp(q->provider, provider) && (!layer || strcmp(q->provider, layer))))
			continue;
		for (i = 0; i < DOFI_QUIRK_SETTINGS && q->unless[i]; i++)
			if (secure_getenv(q->unless[i]))
				break;
		if (i == DOFI_QUIRK_SETTINGS || !q->unless[i])
			return q;
	}
	return &unmeasured;
}

const struct dofi_quirk *dofi_quirk_of(const char *provider)
{
	return find(provider, false);
}

const struct dofi_quirk *dofi_quirk_of_datagrams(const char *provider)
{
	return find(provider, true);
}
