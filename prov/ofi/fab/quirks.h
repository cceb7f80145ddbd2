/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What fi_info does not tell about a fabric: a small table with reasons. */
#ifndef DOFI_FAB_QUIRKS_H
#define DOFI_FAB_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most settings of libfabric's that a row depends on. */
#define DOFI_QUIRK_SETTINGS 3

struct dofi_quirk {
	const char *provider;	/* libfabric's provider name, or of a layer from its ';' on */
	uint32_t up_to;		/* the last version of libfabric that it is for; 0: all */
	const char *unless[DOFI_QUIRK_SETTINGS]; /* nor is it, where the user has set one of these */
	int rank;		/* the policy's preference, lowest first; 0 is never chosen by itself */
	bool late_listen_error;	/* an address in use shows at fi_listen, as EINVAL */
	bool blind_when_blocked; /* does not see the peer's end behind a message nobody receives */
	bool ends_silently;	/* a refused RDMA operation and a peer's death look like an orderly end */
	bool shutdown_overtakes; /* tells of the peer's end before all that it sent was received */
	bool shutdown_closes;	/* fi_shutdown closes a descriptor that fi_close closes again */
	bool stale_signal;	/* a descriptor stays readable after its CQ or EQ was emptied */
	bool trywait_reads;	/* fi_trywait of a CQ moves what has arrived, as a read does */
	bool data_in_eq;	/* an EQ's descriptor reports data of endpoints, and reading it moves data */
	bool listens_apart;	/* but not if it has passive endpoints alone */
	bool goes_on;		/* a refused RDMA write does not keep what was sent after it from arriving */
	bool loses_cq_data_flag;	/* does not tell of a message that waited that CQ data came with it */
	bool silent_errors;	/* a failed completion does not make its CQ's descriptor readable */
	bool hangs_on_empty_recv;	/* never ends a message that meets a receive of no bytes */
	bool keeps_half_open;	/* closes a passive endpoint that connections still refer to: halfopen.h */
	bool joins_families;	/* leaves it to the system whether a passive endpoint at [::] serves IPv4, too */
	bool eq_fails_for_one;	/* an error of the event queue may be one connection's alone */
	bool keeps_request;	/* frees a request that could not be accepted only when it is rejected */
	bool reason_in_prov_errno;	/* calls an attempt's failure ETIMEDOUT whatever it was; prov_errno says that */
	bool waits_to_open;	/* looks for the peer within fi_endpoint, for seconds if it is not there */
	bool takes_offset;	/* adds a registration's offset to the addresses that peers name */
	bool late_receives_cost; /* a message that comes before its receive is sent again after a long time */
	bool fixed_queues;	/* loses completions beyond the size of a CQ, and queues have a size of their own */
	bool reads_each;	/* a read of a completion queue looks at each of its endpoints */
	bool offloaded;		/* moves what peers want though nobody here reads a CQ */
	bool takes_fence;	/* knows FI_FENCE, which is none of its capabilities */
	bool operand_is_address; /* of an atomic: takes the pointer to it for it */
	bool wc_errors;		/* a failed completion's prov_errno is what verbs say of it: wc.h */
	const char *reason;

	/* of connectionless endpoints */
	bool rdm;		/* they can be used */
	bool refused;		/* never, even if named */
	bool shared_memory;	/* of processes on one host: shm.h */
	bool no_keys;		/* moves a peer's bytes without a look at the key */
	bool refusal_ends_all;	/* a refused RDMA operation ends all that two endpoints have under way */
	bool closes_wholly;	/* an endpoint's end returns all memory, and its CQ keeps nothing of it */
	bool frame_injected;	/* only what can be injected is sure to end */
	size_t frame_size;	/* what is longer is overtaken, or costs more than it saves; 0: unknown */
	const char *frame_variable; /* in the environment, what the user made of that */
	unsigned max_peers;	/* 0: no limit is known */
};

/* The row of @provider, or a row of defaults for a fabric nobody measured. */
const struct dofi_quirk *dofi_quirk_of(const char *provider);

/*
 * Whether the target's program does what its fabric is no good for: to keep a peer off memory that
 * it has no right to, or to go on when it has.
 */
static inline bool dofi_quirk_target_rdma(const struct dofi_quirk *quirk)
{
	return quirk->no_keys || quirk->refusal_ends_all;
}

#endif
