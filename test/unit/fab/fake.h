/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric that does what a test says: it can be made to fail, and its event and
 * completion queues hold what the test puts there. Counts what is open, so that
 * whatever is not closed again shows.
 */
#ifndef UNIT_FAB_FAKE_H
#define UNIT_FAB_FAKE_H

#include "fab/cq.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define FAKE_QUEUE 4096

struct fake_completion {
	struct fi_cq_data_entry entry;
	int err;			/* 0, or a failed completion's, of any sign */
	int prov_errno;
};

struct fake_event {
	uint32_t event;			/* or an error if err is set */
	struct fi_eq_cm_entry entry;
	char data[256];
	size_t len;
	int err;
	int prov_errno;
};

/* Set by tests; all zero is a fabric that works. */
struct fake_faults {
	int fabric, passive_ep, getopt, eq_open, second_eq_open, eq_control, domain, cq_open, cq_control, cq_close, domain_close;
	bool eq_fd_bad, cq_fd_bad;	/* a descriptor that epoll does not take */
	size_t cq_most;			/* the largest completion queue, if there is one */
	bool no_cq_fd;			/* completion queues have none */
	_Atomic int cq_read, eq_read;	/* what reading says instead; may be set at any time */
	int cq_readerr;			/* what reading the error says instead */
	int trywait;			/* so often there is something to read first */
	bool stale_signal;		/* descriptors stay readable until a read that waits */
	int mr_times;			/* so many registrations fail ... */
	int mr;				/* ... with this */
	int mr_close;			/* and registrations stay open */
};

struct fake {
	struct fake_faults fault;
	_Atomic int open;		/* fids that were opened and not closed */
	pthread_mutex_t lock;		/* the queues */
	int cq_fd, eq_fd, second_eq_fd;	/* eventfds, readable while there is something */
	struct fake_completion completion[FAKE_QUEUE];
	unsigned cq_head, cq_tail;
	struct fake_event event[16];
	unsigned eq_head, eq_tail;
	_Atomic int eq_errno;		/* errno's bits when the event queue was read */
	_Atomic unsigned cq_reads, cq_sreads, eq_reads, eq_sreads, trywaits;

	/* registrations */
	uint64_t mr_key[256];		/* as asked for */
	unsigned mrs;
	uint64_t mr_access;
	const void *mr_addr;
	size_t mr_len;
	uint64_t mr_offset;
	uint64_t native_key;		/* of a fabric that makes its own */
	bool mr_native;

	/* libfabric's entry points, where a test replaces them */
	int (*getinfo)(const char *node, uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	uint32_t version;		/* what fi_version() says; 0: the truth */
	bool replace_fabric;		/* fi_fabric() opens the fake */

	/* endpoints, where a test has some: see fake_ep.h */
	int (*endpoint)(struct fi_info *info, struct fid_ep **ep);
	int (*passive_ep)(struct fi_info *info, struct fid_pep **pep);
	int (*av_open)(struct fi_av_attr *attr, struct fid_av **av);

	/* to be held around each call for the first CQ, and for endpoints; NULL: nothing is */
	_Atomic(struct dofi_mutex *) guard;
	_Atomic int unguarded;		/* such calls without it */

	struct fid_fabric fabric;
	struct fid_domain domain;
	struct fid_eq eq;
	struct fid_eq second_eq;	/* what opening another gives: nothing comes there */
	struct fid_cq cq;
	struct fid_pep pep;
	size_t cm_data_size;		/* what a passive endpoint says */
};

extern struct fake fake;

void fake_init(void);
/* At the begin of such a call: whether the guard is held, if there is one. */
void fake_guarded(void);
/* Another completion; @err as a fabric has it. */
void fake_complete(void *context, int err);
/* The same of a message of @len bytes that arrived, with more than FI_RECV in @flags perhaps. */
void fake_receive(void *context, uint64_t flags, size_t len);
void fake_event_add(const struct fake_event *event);
/* Whether a registration with this key is open. */
bool fake_mr_live(uint64_t key);
/* How many completions nobody has read. */
unsigned fake_unread(void);

/* An fi_info of @provider whose source is the IPv4 address @ip ("" for none). */
struct fi_info *fake_info(const char *provider, const char *ip);
/* Gives it a network card at this PCI bus, with a link of so many bits in a second. */
void fake_nic(struct fi_info *info, uint8_t bus, uint64_t speed);

#endif
