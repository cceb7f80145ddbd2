/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The harness of the two-process tests: cases, roles, and common helpers.
 *
 * Two processes run a case, the server and the client, forked before any DAT call. A socket
 * between them carries whatever the roles must exchange outside DAT. A role that fails a check,
 * crashes or exceeds its time limit fails its own case only. Nothing here sleeps: every wait is
 * for an event, a message or a byte, and has a limit.
 *
 * Environment: DAT_TEST_IA names the IA (default ofi-tcp). Unless DAT_OVERRIDE is set, the
 * harness writes a dat.conf that takes the provider from DAT_TEST_PROVIDER1 or DAT_TEST_PROVIDER2
 * (by API version, default libdaplofi.so.N). DAT_TEST_SCALE multiplies all time limits, and a
 * non-empty TEST_RUNNER multiplies them by 8. Arguments are names of cases to run ("-l" lists
 * them; "-n COUNT" runs each COUNT times). Output is TAP.
 */
#ifndef PAIR_H
#define PAIR_H

#include "dat_select.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* One of the two processes of a case. */
struct pair {
	const char *role;	/* "server" or "client", for messages */
	bool server;
	int fd;			/* to the peer; -1 in a case of one role */
	pid_t peer;		/* 0 in a case of one role */
};

typedef void (*pair_role)(struct pair *p);

/* A case. A role passes by returning. */
struct pair_case {
	const char *name;
	pair_role server;	/* NULL: the case has the client only */
	pair_role client;
	unsigned seconds;	/* limit on the whole case on an idle machine; 0 is 30 */
	unsigned repeat;	/* number of runs, each in new processes; 0 is 1 */
	bool server_killed;	/* the server is expected to end by SIGKILL */
	bool client_killed;	/* the client is expected to end by SIGKILL */
	const char *not_sockets; /* why libfabric's deprecated sockets provider cannot pass it */
	const void *arg;	/* for the roles, returned by pair_arg() */
};

/* PAIR_CASE(name, server, client[, .member = value]...) */
#define PAIR_CASE(case_name, server_role, client_role, ...) \
	{ .name = (case_name), .server = (server_role), .client = (client_role), ##__VA_ARGS__ }

/* Runs the cases that @argv selects. Returns main()'s exit status. */
int pair_main(const struct pair_case *cases, size_t n, int argc, char **argv);

#define PAIR_MAIN(cases)                                                             \
	int main(int argc, char **argv)                                              \
	{                                                                            \
		return pair_main(cases, sizeof(cases) / sizeof((cases)[0]), argc, argv); \
	}

/*
 * With DAT_TEST_WARM in the environment, an IA is opened and closed before the roles are forked,
 * so the roles need not look for fabrics again. Do not set it for roles that change what
 * libfabric finds.
 */

/*
 * For test/conform, which has a runner of its own. pair_init() sets up time limits and dat.conf,
 * blocks SIGCHLD and stores the previous signal mask in @mask. pair_fabric_missing() reports
 * whether the fabric under test is absent. pair_subject() names the subject of the messages that
 * follow.
 */
bool pair_init(sigset_t *mask);
bool pair_fabric_missing(void);
void pair_subject(const char *name);

/* The member arg of the case that is running. */
const void *pair_arg(void);

/* The name of the IA under test, and whether its fabric is @provider ("tcp"). */
const char *pair_ia_name(void);
bool pair_fabric_is(const char *provider);

/* End this role: pair_fail() fails the case, pair_skip() skips it. */
void pair_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));
void pair_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Prints a line of diagnostics. */
void pair_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails the case unless @cond; further arguments form the message, as for printf. */
#define CHECK(cond, ...)                                                             \
	do {                                                                         \
		if (!(cond))                                                         \
			pair_fail(__FILE__, __LINE__, #cond ": " __VA_ARGS__);       \
	} while (0)

/* Fails the case unless the two integers are equal. */
#define SAME(got, wanted)                                                            \
	do {                                                                         \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted);    \
		if (got_ != wanted_)                                                 \
			pair_fail(__FILE__, __LINE__, #got " is %lld, not %lld",     \
				  got_, wanted_);                                    \
	} while (0)

/* OK: the DAT call must succeed. FAILS: it must fail with this DAT_RETURN_TYPE. */
#define OK(call) pair_ret(__FILE__, __LINE__, #call, (call), DAT_SUCCESS)
#define FAILS(call, type) pair_ret(__FILE__, __LINE__, #call, (call), (type))
void pair_ret(const char *file, int line, const char *call, DAT_RETURN ret, DAT_RETURN type);

/* Like OK(). While test/chaos/faults.c refuses resources (DAT_CHAOS), the call is repeated. */
#define OPENS(call)                                                                  \
	do {                                                                         \
		DAT_RETURN ret_;                                                     \
		do                                                                   \
			ret_ = (call);                                               \
		while (pair_may_repeat(ret_));                                       \
		pair_ret(__FILE__, __LINE__, #call, ret_, DAT_SUCCESS);              \
	} while (0)
bool pair_may_repeat(DAT_RETURN ret);

/*
 * Waits until no other test of this host, also in a chroot, uses the qualifiers that are the same
 * in every run: they would take each other's requests. Returns a descriptor: closing it, or the end
 * of this process, lets another test use them.
 */
int pair_lock_qualifiers(void);

/* Time. Limits are in milliseconds, multiplied by the scale. */
#define PAIR_LIMIT 30000		/* for events that must come, also at a load of 15 */
#define PAIR_QUIET 20			/* for events that must not come */
int64_t pair_now(void);			/* microseconds, monotonic */
int64_t pair_deadline(unsigned ms);	/* a moment that pair_now() reaches */
unsigned pair_scaled(unsigned ms);

/* Messages between the roles. The receiver must ask for the size that was sent. */
void pair_send(struct pair *p, const void *data, size_t size);
void pair_recv(struct pair *p, void *data, size_t size);
/* Returns when both roles have called it. */
void pair_sync(struct pair *p);
/* Returns when the peer's process has ended. */
void pair_wait_gone(struct pair *p);

/* Registered memory, page-aligned and zeroed. */
struct mem {
	unsigned char *base;
	size_t size;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

/* An open IA with the objects that most cases need. */
struct node {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;	/* made by dat_ia_open() */
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE cr;	/* connection requests */
	DAT_EVD_HANDLE conn;	/* connections */
	DAT_EVD_HANDLE req;	/* completions of requests */
	DAT_EVD_HANDLE recv;	/* completions of receives */
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR prov;
	struct sockaddr_storage address;
	/* made by node_begin(), or by the role; node_end() frees them */
	DAT_EP_HANDLE ep;
	struct mem m;
};

#define NODE_QLEN 1024		/* of each EVD */

void node_open(struct node *n);
/* Checks that the asynchronous EVD is empty, frees all objects and closes the IA gracefully. */
void node_close(struct node *n);
/* node_open() with an EP, and with memory of @size unless that is 0. */
void node_begin(struct node *n, size_t size);
/* node_close() after the EP and the memory of the node, if it has them, are freed. */
void node_end(struct node *n);
DAT_EVD_HANDLE node_evd(struct node *n, DAT_COUNT qlen, DAT_EVD_FLAGS flags);
/* An EP on the node's PZ and EVDs; @attr may be NULL. */
DAT_EP_HANDLE node_ep(struct node *n, const DAT_EP_ATTR *attr);
/* The attributes of an EP that was created without any. */
void node_ep_attr(struct node *n, DAT_EP_ATTR *attr);

/* Whether the IA runs on RDMA hardware, whatever its name. */
bool node_is_on_verbs(const struct node *n);
/* Skips the case if peers of the IA do not connect to a TCP port. */
void node_needs_tcp(const struct node *n);

/* The value of a named attribute of the provider, or NULL. */
const char *named_attr(const struct node *n, const char *name);

/* Whether the IA refuses what DAT forbids; a provider without the attribute OFI_STRICT does. */
bool node_is_strict(const struct node *n);

/* Whether both ends get BROKEN for the end of a connection that no program asked for. */
bool node_reports_broken(const struct node *n);
/* The event that ends a connection when the peer dies after all it sent was received. */
DAT_EVENT_NUMBER end_by_death(const struct node *n);

/*
 * The private data that every connection must carry: 64 bytes, as the DAT text promises, but 48
 * over RDMA's connection manager, which itself has 56 bytes; OFED's programs do with 48, too.
 */
DAT_COUNT node_least_data(const struct node *n);
/* Creates a service point at a qualifier that the provider picks. */
DAT_PSP_HANDLE node_listen(struct node *n, DAT_CONN_QUAL *qual);

/* The address and qualifier of a listener, as the roles exchange them. */
struct listener {
	struct sockaddr_storage address;
	DAT_CONN_QUAL qual;
};

void pair_send_listener(struct pair *p, struct node *n, DAT_CONN_QUAL qual);
void pair_recv_listener(struct pair *p, struct listener *listener);

/* Begins to connect with no private data and the usual time-out; does not wait for an event. */
void ep_connect(DAT_EP_HANDLE ep, const struct listener *listener);
/* Waits for a connection request and returns its CR. */
DAT_CR_HANDLE node_request(struct node *n);
/* Connects @ep to the peer's EP through a temporary service point; both roles call it. */
void pair_link(struct pair *p, struct node *n, DAT_EP_HANDLE ep);
/* Disconnects @ep; both roles call it, in either order. Each EP gets one DISCONNECTED. */
void pair_unlink(struct pair *p, struct node *n, DAT_EP_HANDLE ep);
DAT_EP_STATE ep_state(DAT_EP_HANDLE ep);
/* dat_cr_reject() with private data where the API has it. */
DAT_RETURN cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const void *data);

/* Like ep_connect(), with a time-out and private data. */
void connect_with(DAT_EP_HANDLE ep, const struct listener *listener, unsigned timeout_ms,
		  DAT_COUNT size, const void *data);
/* Tries to connect: the attempt must fail with exactly this event and leave the EP DISCONNECTED. */
void connect_fails(struct node *n, DAT_EP_HANDLE ep, const struct listener *listener,
		   DAT_EVENT_NUMBER number);
/*
 * Accepts a request after its sender has gone. Where the acceptor waits for no answer the fabric
 * reports this only after the accept: the connection is established, then ends.
 */
void accept_gone(struct node *n, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep);
/* Like accept_gone(), for a request that arrived at an RSP and brought @ep with it. */
void accept_own_gone(struct node *n, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep);
/* Checks that private data has this size and the bytes that fill() writes. */
void check_data(DAT_COUNT size, const void *data, DAT_COUNT wanted, unsigned seed);
/* Checks a connection request event and its CR, with private data of @size. */
void check_cr(struct node *n, const DAT_EVENT *event, DAT_PSP_HANDLE psp, DAT_CONN_QUAL qual,
	      DAT_COUNT size, unsigned seed);
/* Checks the result of dat_ep_query() about a connected EP's peer. */
void check_peer(struct node *n, DAT_EP_HANDLE ep, const struct listener *listener);

/* Events. Each checks its event and fails the case otherwise. */
const char *event_name(DAT_EVENT_NUMBER number);
#define expect_event(evd, number, event) \
	pair_event(__FILE__, __LINE__, (evd), (number), PAIR_LIMIT, (event))
#define expect_event_in(evd, number, ms, event) \
	pair_event(__FILE__, __LINE__, (evd), (number), (ms), (event))
/* Expects a connection event of this EP. */
#define expect_conn(evd, number, ep) pair_conn(__FILE__, __LINE__, (evd), (number), (ep))
/* Expects a completion with this cookie, status and, if it succeeds, length. */
#define expect_dto(evd, cookie, status, length) \
	pair_dto(__FILE__, __LINE__, (evd), (cookie), (status), (length))
/* Nothing is queued, and nothing arrives within PAIR_QUIET. */
#define expect_quiet(evd) pair_quiet(__FILE__, __LINE__, (evd))
void pair_event(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
		unsigned ms, DAT_EVENT *event);
void pair_conn(const char *file, int line, DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
	       DAT_EP_HANDLE ep);
void pair_dto(const char *file, int line, DAT_EVD_HANDLE evd, uint64_t cookie,
	      DAT_DTO_COMPLETION_STATUS status, uint64_t length);
void pair_quiet(const char *file, int line, DAT_EVD_HANDLE evd);
/* The next event is DISCONNECTED or BROKEN, for @ep, and the only one. Returns its number. */
DAT_EVENT_NUMBER expect_end(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep);

/* Expects a software event with this pointer as the next event of @evd. */
void expect_software(DAT_EVD_HANDLE evd, uintptr_t pointer);
/* Posts a software event. */
DAT_RETURN post_se(DAT_EVD_HANDLE evd, uintptr_t pointer);

/* Registered memory: */

void mem_get(struct node *n, struct mem *m, size_t size);	/* with all privileges */
void mem_get_with(struct node *n, DAT_PZ_HANDLE pz, struct mem *m, size_t size,
		  DAT_MEM_PRIV_FLAGS privileges);
void mem_put(struct mem *m);
DAT_LMR_TRIPLET mem_segment(const struct mem *m, size_t offset, size_t length);
/* dat_lmr_create() of virtual memory, with the arguments that both API versions have. */
DAT_RETURN lmr_create(DAT_IA_HANDLE ia, void *base, DAT_VLEN length, DAT_PZ_HANDLE pz,
		      DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr,
		      DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context);

/* Writes a pattern that depends on @seed and on each byte's offset. */
void fill(void *at, size_t size, unsigned seed);
/* Fails the case if the bytes are not fill()'s. */
void verify(const void *from, size_t size, unsigned seed);

/* Memory granted to the peer, as the roles exchange it. */
struct grant {
	uint64_t address;
	uint64_t size;
	uint32_t rmr_context;
};

void pair_grant(struct pair *p, const struct mem *m);
void pair_granted(struct pair *p, struct grant *g);
DAT_RMR_TRIPLET remote_segment(const struct grant *g, size_t offset, size_t length);

/* Post an operation of one segment; the post must succeed. */
void post_recv(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length,
	       uint64_t cookie);
void post_send(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length,
	       uint64_t cookie);
void post_write(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length,
		uint64_t cookie, const struct grant *g, size_t remote_offset);
void post_read(DAT_EP_HANDLE ep, const struct mem *m, size_t offset, size_t length,
	       uint64_t cookie, const struct grant *g, size_t remote_offset);

/* Expects a request to fail, and its connection to end. */
void expect_refused(struct node *n, DAT_EP_HANDLE ep, uint64_t cookie, const char *why);

/* Privileges. */
#define PRIV_LOCAL \
	((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
#define PRIV_READ DAT_MEM_PRIV_REMOTE_READ_FLAG
#define PRIV_WRITE DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define PRIV_BOTH ((DAT_MEM_PRIV_FLAGS)(PRIV_READ | PRIV_WRITE))

/*
 * dat_rmr_bind() with the arguments that both versions have; bind_part() binds a part of @m,
 * unbind() a length of zero.
 */
DAT_RETURN bind_flags(DAT_RMR_HANDLE rmr, const struct mem *m, DAT_LMR_TRIPLET part,
		      DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie, int flags,
		      DAT_RMR_CONTEXT *context);
DAT_RETURN bind_part(DAT_RMR_HANDLE rmr, const struct mem *m, size_t offset, size_t length,
		     DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, uint64_t cookie,
		     DAT_RMR_CONTEXT *context);
DAT_RETURN unbind(DAT_RMR_HANDLE rmr, const struct mem *m, DAT_EP_HANDLE ep, uint64_t cookie);
void expect_bind(DAT_EVD_HANDLE evd, DAT_RMR_HANDLE rmr, uint64_t cookie,
		 DAT_RMR_BIND_COMPLETION_STATUS status);

/* Creates an EP in this PZ and connects it to the peer's; both roles call it. */
DAT_EP_HANDLE link_in(struct pair *p, struct node *n, DAT_PZ_HANDLE pz);

/* A connected EP with memory, as most cases need it. */
struct link {
	struct node n;
	DAT_EP_HANDLE ep;
	struct mem m;		/* local memory, granted to the peer */
	struct grant theirs;	/* the peer's memory */
};

void link_open(struct pair *p, struct link *l, size_t size);
void link_open_with(struct pair *p, struct link *l, size_t size, const DAT_EP_ATTR *attr);
/* Like link_open(), with this depth of the EP's queues. */
void link_open_depth(struct pair *p, struct link *l, size_t size, DAT_COUNT depth);
/* Frees all of a link that is disconnected. */
void link_free(struct link *l);
/* Disconnects, checks that the EVDs are empty, and frees. */
void link_close(struct pair *p, struct link *l);

#endif
