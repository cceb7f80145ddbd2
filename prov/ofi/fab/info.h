/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which fabric an IA uses: dat.conf parameters, FI_PROVIDER and policy in, one fi_info out. */
#ifndef DOFI_FAB_INFO_H
#define DOFI_FAB_INFO_H

#include "fab/params.h"
#include "fab/topo.h"

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The libfabric interface this code is written to; any newer library offers it too. */
#define DOFI_FI_VERSION FI_VERSION(1, 17)

/* How remote memory is addressed and keyed on the chosen fabric. */
enum dofi_mr_style {
	DOFI_MR_NATIVE,		/* the fabric takes virtual addresses and makes the key */
	DOFI_MR_VIRTUAL,	/* told to take virtual addresses; keys are ours */
};

struct dofi_quirk;

/*
 * A fabric that an IA can use. What a message may have beside its bytes it carries by cq_data, as it
 * does all else there; or, on hardware, the fabric has a way for the commonest: immed, atomics, fences.
 */
struct dofi_fabric_choice {
	struct fi_info *info;		/* with domain_attr->mr_mode as fi_domain needs it */
	enum dofi_mr_style mr_style;
	bool rdm;			/* endpoints are of no connection: fab/endpoint.h */
	bool shared_memory;		/* its peers are on this host: xport/rdm/shm/page.h */
	bool target_rdma;		/* the target checks keys and moves bytes, not the fabric */
	bool write_ordered;		/* a send does not overtake the writes before it */
	size_t frame_size;		/* rdm: longest message that none sent later overtakes */
	uint64_t write_flags;		/* make an RDMA write complete when it is in memory */
	bool cq_data;			/* 64 bits of ours can go along with messages and writes */
	bool immed;			/* 32 can, with a write to a receive that ends by it, */
	bool atomics;			/* the fabric does these by itself, */
	bool fences;			/* and holds back what is posted with FI_FENCE */
	bool wildcard;			/* listen on every interface, connect from any */
	bool zero_based;		/* peers may count from the first byte of a registration */
	bool scoped_keys;		/* a key may be of one connection: dofi_mr_fabric_key() */
	bool says_bye;			/* an orderly end is announced, and so differs from a loss */
	bool also_granted;		/* peers get to memory on another fabric, too, by its keys */
	const struct dofi_quirk *quirk;
	struct dofi_locality locality;	/* of its device, if that is known */
	bool located;
};

/* Whether programs have immediate data, and atomics. */
static inline bool dofi_fabric_has_immed(const struct dofi_fabric_choice *choice)
{
	return choice->cq_data || choice->immed;
}

static inline bool dofi_fabric_has_atomics(const struct dofi_fabric_choice *choice)
{
	return choice->cq_data || choice->atomics;
}

/*
 * Finds the fabric. 0, or -FI_ENODATA when nothing fits (logged, naming what was
 * asked for), or another negative errno of fi_getinfo.
 */
int dofi_fabric_choose(const struct dofi_params *params, struct dofi_fabric_choice *choice);
void dofi_fabric_release(struct dofi_fabric_choice *choice);

/*
 * Blank-separated names of the libfabric providers that dofi_fabric_choose could choose, for
 * connected or for connectionless endpoints.
 */
void dofi_fabric_list(bool rdm, char *names, size_t size);

/* The address of the interface that @info stands for, 127.0.0.1 if it has none. */
void dofi_info_address(const struct fi_info *info, struct sockaddr_storage *address);

/* Limits of a fabric in DAT's terms; capability rows point into this. */
struct dofi_limits {
	uint64_t max_message_size;	/* bytes */
	uint64_t max_rdma_size;		/* bytes */
	uint32_t max_iov;		/* segments of a send or receive */
	uint32_t max_rdma_iov;		/* local segments of an RDMA read or write */
	uint32_t max_eps;
	uint32_t max_pzs;
	uint32_t max_lmrs;
	uint32_t max_srqs;		/* none where a message cannot be announced */
	uint32_t max_srq_eps;
	uint32_t inject_size;		/* bytes that are taken from memory of no registration */
	uint32_t cm_data_size;		/* bytes of private data that a connection request carries */
};

void dofi_info_limits(const struct dofi_fabric_choice *choice, size_t cm_data_size,
		      struct dofi_limits *limits);
/* To what the other fabric can do as well; what is not promised to programs stays. */
void dofi_limits_lower(struct dofi_limits *limits, const struct dofi_limits *other);

#endif
