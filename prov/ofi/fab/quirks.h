/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts on fabrics that fi_info lacks: a table with reasons. */
#ifndef DOFI_FAB_QUIRKS_H
#define DOFI_FAB_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most settings of libfabric that a row depends on. */
#define DOFI_QUIRK_SETTINGS 3

struct dofi_quirk {
	/* libfabric's name of it; of a layer over another one, from the ';' on */
	const char *provider;
	uint32_t up_to;		/* the row applies up to this version of libfabric; 0: always */
	const char *unless[DOFI_QUIRK_SETTINGS]; /* nor if one of these variables is set */
	int rank;		/* preference, lowest first; 0: only chosen by name */
	bool late_listen_error;	/* an address in use is reported by fi_listen, as EINVAL */
	/* does not see the peer's end while a message has no receive */
	bool misses_end_while_blocked;
	/* a refused RDMA operation and a peer's death look like an orderly end */
	bool ends_silently;
	/* reports the peer's end before all that the peer sent was received */
	bool shutdown_overtakes;
	bool shutdown_closes;	/* fi_shutdown closes a descriptor that fi_close closes again */
	bool trywait_reads;	/* fi_trywait of a CQ moves arrived data, as a read does */
	/* an EQ's descriptor reports data of its endpoints, and reading the EQ moves the data */
	bool data_in_eq;
	bool delivers_after_refusal;	/* messages after a refused RDMA write still arrive */
	/* the completion of a message that waited for its receive lacks FI_REMOTE_CQ_DATA */
	bool loses_cq_data_flag;
	bool silent_errors;	/* a failed completion does not make its CQ's descriptor readable */
	/* one in many reads of a CQ serves connections; its descriptor is readable until then */
	bool many_reads;
	/* opens a CQ with room for FI_UNIVERSE_SIZE peers, which a device may not have */
	bool cq_for_universe;
	bool hangs_on_empty_recv; /* a message that meets a receive of no bytes never completes */
	/* connections without a request outlive their passive endpoint: sock/watch.h */
	bool keeps_half_open;
	/* the system decides whether a passive endpoint at [::] also serves IPv4 */
	bool joins_families;
	bool vague_refusal;	/* any failure to connect is ECONNREFUSED */
	bool strangers_crash;	/* bytes of any TCP client crash a process that listens */
	bool eq_fails_for_one;	/* an error of the event queue may concern a single connection */
	bool keeps_request; /* a request that could not be accepted is freed only by fi_reject */
	bool reason_in_prov_errno; /* a failed attempt is ETIMEDOUT; prov_errno has the reason */
	/* fi_endpoint searches for the peer, for seconds if it is unreachable */
	bool waits_to_open;
	bool has_delivery_complete;	/* always; others are queried for it */
	bool takes_offset;	/* adds a registration's offset to the addresses that peers name */
	/* a message that arrives before its receive is posted is sent again much later */
	bool late_receives_cost;
	/* a CQ loses completions beyond its size, and endpoints' queues have a fixed size */
	bool fixed_queues;
	bool reads_each;	/* a read of a CQ checks each of its endpoints */
	/* frees a read twice if its endpoint is closed while the reply arrives */
	bool frees_reads_twice;
	/* the peer answers reads and writes in their order, or loses an answer without an error */
	bool loses_answers;
	bool offloaded;		/* serves peers' operations while no thread here reads a CQ */
	bool takes_fence;	/* supports FI_FENCE without having the capability */
	bool operand_is_address; /* takes the pointer to an atomic's operand for the operand */
	/* messages hold fi_rma_iov as the processor lays it out: RDMA needs a 64-bit size_t */
	bool rdma_of_64_bits;
	bool wc_errors;	/* prov_errno of a failed completion is a verbs status: dofi_wc_errno() */
	const char *reason;	/* for the log and for readers: the observation and the version */

	bool datagrams;		/* the row is of endpoints of type FI_EP_DGRAM, not of others */

	/* connectionless endpoints */
	bool refused;		/* never chosen, even by name */
	bool by_clock;		/* a CQ's descriptor does not report arrivals */
	bool shared_memory;	/* peers are processes on one host */
	/*
	 * the target carries out RDMA: the fabric checks no keys, a refused operation ends all that
	 * two endpoints have in flight or never ends, or registrations do not have virtual
	 * addresses and keys of 32 bits for all endpoints of a domain
	 */
	bool target_rdma;
	/*
	 * without RDMA of the device libfabric emulates it, and aborts the process of the target at
	 * a wrong key; within a host it checks no keys
	 */
	bool may_emulate;
	bool frame_injected;	/* only injected frames are sure to complete */
	/* a longer message is overtaken, or costs more than it saves; 0: unknown */
	size_t frame_size;
	const char *frame_variable; /* the environment variable that limits frame_size */
	/* the variables with the lengths of an endpoint's queues, which take memory */
	const char *tx_variable, *rx_variable;
	bool keeps_peers;	/* crashes when addresses of peers are removed, or entries reused */
};

/* Returns the row of @provider, or a row of defaults for an unknown fabric. */
const struct dofi_quirk *dofi_quirk_of(const char *provider);
/* Returns the row of @provider for endpoints of type FI_EP_DGRAM, or the defaults. */
const struct dofi_quirk *dofi_quirk_of_datagrams(const char *provider);

#endif
