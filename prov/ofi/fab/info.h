/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fabric that an IA uses: its features and limits. */
#ifndef DOFI_FAB_INFO_H
#define DOFI_FAB_INFO_H

#include "fab/params.h"

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The version of libfabric's interface that this code uses; newer libraries also offer it. */
#define DOFI_FI_VERSION FI_VERSION(1, 17)

/* How remote memory is addressed and keyed on the chosen fabric. */
enum dofi_mr_style {
	DOFI_MR_NATIVE,		/* the fabric takes virtual addresses and makes the key */
	DOFI_MR_VIRTUAL,	/* we request virtual addresses and choose the keys */
};

struct dofi_progress;
struct dofi_progress_ops;
struct dofi_quirk;
struct fid_fabric;

/* Where a device is in the machine. */
struct dofi_locality {
	int node;		/* the kernel's number of the NUMA node near the device */
	/* from the nodes where the calling thread may run; 10: the device's own node */
	unsigned distance;
};

/*
 * A fabric that an IA can use. With cq_data, remote CQ data carries DAT's additions to a message.
 * Hardware has immed, atomics and fences for the commonest of that instead.
 */
struct dofi_fabric_choice {
	struct fi_info *info;		/* with domain_attr->mr_mode as fi_domain needs it */
	enum dofi_mr_style mr_style;
	bool rdm;			/* endpoints are connectionless: fab/endpoint.h */
	bool shared_memory;		/* peers are on this host */
	bool target_rdma;		/* the target checks keys and moves bytes, not the fabric */
	bool write_ordered;		/* a send does not overtake earlier writes */
	size_t frame_size;	/* rdm: the longest message that later ones do not overtake */
	uint64_t write_flags;		/* make an RDMA write complete when it is in memory */
	bool cq_data;		/* messages and writes can carry 64 bits of remote CQ data */
	bool immed;	/* a write can carry 32 bits of remote CQ data, and then ends a receive */
	bool atomics;			/* the fabric executes atomics */
	bool fences;			/* the fabric supports FI_FENCE */
	bool wildcard;			/* listen on every interface, connect from any */
	bool zero_based; /* peers may count addresses from the first byte of a registration */
	bool scoped_keys;	/* a key can be limited to one connection: dofi_mr_fabric_key() */
	bool sends_bye;		/* a message before an orderly end distinguishes it from a loss */
	/* peers also use registrations on another fabric, with the keys of this one */
	bool also_granted;
	const struct dofi_quirk *quirk;
	struct dofi_locality locality;	/* of the device, if located */
	bool located;			/* where the device is is known */
};

/* Return whether programs have immediate data, and atomics. */
static inline bool dofi_fabric_has_immed(const struct dofi_fabric_choice *choice)
{
	return choice->cq_data || choice->immed;
}

static inline bool dofi_fabric_has_atomics(const struct dofi_fabric_choice *choice)
{
	return choice->cq_data || choice->atomics;
}

/*
 * Returns the name of a connectionless fabric, which is equal at both ends of a connection: both
 * have RDMA by the fabric, or neither has.
 */
const char *dofi_fabric_name(const struct dofi_fabric_choice *choice);

/* Chooses the fabric for @params. Returns 0; -FI_ENODATA if none fits, logged; or an error. */
int dofi_fabric_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice);
void dofi_fabric_release(struct dofi_fabric_choice *choice);

/*
 * Finds the fabric of datagrams of the IA on @main: the same device for verbs, udp at @address for
 * software. Its frame_size is the longest datagram, without a prefix. Returns 0; -ENODATA without
 * one; or another negative errno of fi_getinfo(). dofi_fabric_release() frees the choice.
 */
int dofi_datagram_choose(const struct dofi_fabric_choice *main,
			 const struct sockaddr_storage *address,
			 struct dofi_fabric_choice *choice);

/* Opens the fabric of @choice, for dofi_domain_open(); the caller closes it. */
int dofi_datagram_start(const struct dofi_fabric_choice *choice, struct fid_fabric **fabric);

/* Writes the names of the providers that dofi_fabric_choose() could choose, with blanks between. */
void dofi_fabric_list(bool rdm, char *names, size_t size);

/*
 * Returns the address at which peers reach this host: of the fabric's interface; where the fabric
 * has addresses of its own, that in @params, or the likely one (fab/reach.h); else 127.0.0.1.
 */
void dofi_fabric_address(const struct dofi_fabric_choice *choice, const struct dofi_params *params,
			 struct sockaddr_storage *address);
/* Writes the numeric IPv4 or IPv6 address to @text, and returns it; "?" for another family. */
const char *dofi_address_text(const struct sockaddr_storage *address, char text[INET6_ADDRSTRLEN]);

/* Limits of a fabric in DAT's terms; rows of obj/caps.c point into this. */
struct dofi_limits {
	uint64_t max_message_size;	/* bytes */
	uint64_t max_rdma_size;		/* bytes */
	uint32_t max_iov;		/* segments of a send or receive */
	uint32_t max_rdma_iov;		/* local segments of an RDMA read or write */
	uint32_t max_eps;
	uint32_t max_dtos;		/* receives of an endpoint, and requests */
	uint32_t max_pzs;
	uint32_t max_lmrs;
	uint32_t max_srqs;	/* 0 if the fabric cannot inject the header of SRQ framing */
	uint32_t max_srq_eps;
	uint32_t inject_size;		/* bytes that can be sent from unregistered memory */
	uint32_t cm_data_size;	/* bytes of private data that a connection request carries */
};

void dofi_info_limits(const struct dofi_fabric_choice *choice, size_t cm_data_size,
		      struct dofi_limits *limits);
/* Lowers limits to a second fabric's, but for two that programs do not see. */
void dofi_limits_lower(struct dofi_limits *limits, const struct dofi_limits *other);

/* Starts the progress thread with the traits of the fabric of @info, and near its device. */
int dofi_fabric_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
		      struct fi_info *info);

/* Writes @version (fi_version()) as text; an untested version is marked as that. */
void dofi_version_text(uint32_t version, char *text, size_t size);

/* Logs a version that is newer than the tested ones, once in a process. Any thread. */
void dofi_version_check(uint32_t version);

/* Where a fabric's device is in the machine: topo.c, or topo_none.c in builds without hwloc. */

/*
 * Returns whether the location of the device of @info is known, and sets *@locality. The first call
 * reads the topology, in milliseconds; choosing a fabric makes it before any thread runs or forks.
 */
bool dofi_topo_locate(const struct fi_info *info, struct dofi_locality *locality);

/* Binds @thread to the processors near the device of @info, unless DAT_OFI_NUMA disables it. */
void dofi_topo_bind(pthread_t thread, const struct fi_info *info);

#endif
