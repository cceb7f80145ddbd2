/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fabric that behaves as a test sets it: any call can be made to fail, and its event and
 * completion queues hold the test's entries. It counts open fids, so that a test finds one that was
 * not closed.
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
	int err;			/* 0, or an error of either sign */
	int prov_errno;
};

struct fake_event {
	uint32_t event;			/* unused if err is set */
	struct fi_eq_cm_entry entry;
	char data[256];
	size_t len;
	int err;
	int prov_errno;
};

/* What the descriptors of the first completion and event queue report. */
enum fake_fd {
	FAKE_FD_TRUE,
	FAKE_FD_ALWAYS,			/* readable */
	FAKE_FD_NEVER,			/* not readable */
	FAKE_FD_LIES,			/* the opposite of the truth */
};

/* Set by tests. All zero is a fabric that works. */
struct fake_faults {
	int fabric, passive_ep, getopt, eq_open, second_eq_open, eq_control, domain, cq_open,
		cq_control, cq_close, domain_close;
	bool eq_fd_bad, cq_fd_bad;	/* epoll refuses the descriptor */
	size_t cq_most;			/* the longest completion queue; 0: no limit */
	bool no_cq_fd;			/* completion queues have no descriptor */
	enum fake_fd fd;		/* set by fake_set_fd() */
	_Atomic int cq_read, eq_read;	/* returned by reads if not 0; may be set at any time */
	int cq_readerr;			/* returned by fi_cq_readerr() if not 0 */
	int trywait;			/* this many fi_trywait() calls return -FI_EAGAIN */
	int mr_times;			/* this many registrations fail with mr */
	int mr;				/* the error of the mr_times failing registrations */
	int mr_close;			/* closing a registration fails with this */
};

struct fake {
	struct fake_faults fault;
	_Atomic int open;		/* fids that were opened and not closed */
	pthread_mutex_t lock;		/* guards the queues */
	int cq_fd, eq_fd, second_eq_fd;	/* eventfds, readable while the queue is not empty */
	struct fake_completion completion[FAKE_QUEUE];
	unsigned cq_head, cq_tail;
	struct fake_event event[16];
	unsigned eq_head, eq_tail;
	_Atomic int eq_errno;		/* all values of errno at reads of the event queue, ORed */
	_Atomic unsigned cq_reads, eq_reads, trywaits;
	struct fid_fabric *trywait_fabric; /* of the last fi_trywait() */

	/* registrations */
	uint64_t mr_key[256];		/* as requested */
	unsigned mrs;
	uint64_t mr_access;
	const void *mr_addr;
	size_t mr_len;
	uint64_t mr_offset;
	uint64_t native_key;		/* the fabric's own key if mr_native */
	bool mr_native;

	/* libfabric's entry points, if a test replaces them */
	int (*getinfo)(const char *node, uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	uint32_t version;		/* the result of fi_version(); 0: the real version */
	bool replace_fabric;		/* fi_fabric() opens the fake */

	/* endpoints, if a test has some: see fake_ep.h */
	int (*endpoint)(struct fi_info *info, struct fid_ep **ep);
	int (*passive_ep)(struct fi_info *info, struct fid_pep **pep);
	int (*av_open)(struct fi_av_attr *attr, struct fid_av **av);

	/* held around each call for the first CQ and for endpoints; NULL: no lock */
	_Atomic(struct dofi_mutex *) guard;
	_Atomic int unguarded;		/* calls that were made without the guard */

	struct fid_fabric fabric;
	struct fid_domain domain;
	struct fid_eq eq;
	struct fid_eq second_eq;	/* the second event queue that is opened; stays empty */
	struct fid_cq cq;
	struct fid_pep pep;
	size_t cm_data_size;		/* FI_OPT_CM_DATA_SIZE of a passive endpoint */
};

extern struct fake fake;

void fake_init(void);
/* Sets what the descriptors report from now on. Call fake_init() before. */
void fake_set_fd(enum fake_fd fd);
/*
 * Called at the start of each call that needs the guard. Counts the call as unguarded if no thread
 * holds the guard.
 */
void fake_guarded(void);
/* Adds a completion. @err is as the fabric reports it. */
void fake_complete(void *context, int err);
/* Adds the completion of a received message of @len bytes. @flags may have more than FI_RECV. */
void fake_receive(void *context, uint64_t flags, size_t len);
void fake_event_add(const struct fake_event *event);
/* Whether a registration with this key is open. */
bool fake_mr_live(uint64_t key);
/* Completions that were not read yet. */
unsigned fake_unread(void);

/* An fi_info of @provider with IPv4 source address @ip ("" for none). */
struct fi_info *fake_info(const char *provider, const char *ip);
/* Gives @info a network card at this PCI bus, with a link speed in bits per second. */
void fake_nic(struct fi_info *info, uint8_t bus, uint64_t speed);

#endif
