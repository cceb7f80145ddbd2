/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interface of datperf's transports: DAT and bare libfabric are each a table of operations, and the
 * measuring loops of perf_loop.c use nothing else. So both sides of a comparison run the same
 * instructions above that table.
 */
#ifndef PERF_H
#define PERF_H

#include "perf_stat.h"
#include "perf_wire.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum perf_test {
	PERF_SEND,
	PERF_WRITE,
	PERF_READ,
	PERF_MPI, /* eager writes to buffers that the target polls, with credits */
	PERF_IMM, /* writes with immediate data */
	PERF_FADD, /* fetch-and-add */
	PERF_CSWAP, /* compare-and-swap */
	PERF_UD, /* datagrams */
	PERF_NTESTS
};
enum perf_metric {
	PERF_LAT,
	PERF_BW,
	PERF_VERIFY,
	PERF_BIDIR, /* bandwidth in both directions at once */
	PERF_NMETRICS
};
enum perf_end {
	PERF_END_CLIENT,
	PERF_END_SERVER,
	PERF_NENDS
};
enum perf_side {
	PERF_SIDE_DAT,
	PERF_SIDE_RAW,
	PERF_NSIDES
};

/* Number of a phase in a control message. */
#define PERF_KIND(test, metric) ((test)*PERF_NMETRICS + (metric))
#define PERF_NKINDS (PERF_UD * PERF_NMETRICS) /* of phases without datagrams */

/* Cookies: the kind of operation that a completion belongs to. */
#define PERF_COOKIE_RX 0x1u  /* a data receive */
#define PERF_COOKIE_TX 0x2u  /* a data send, write or read */
#define PERF_COOKIE_CRX 0x4u /* a control receive */
#define PERF_COOKIE_CTX 0x8u /* a control send */
/* A datagram receive: its number. */
#define PERF_COOKIE_SLOT(cookie) ((unsigned int)((cookie) >> 8))

struct perf_comp {
	uint64_t cookie; /* PERF_COOKIE_* */
	uint64_t len;	 /* bytes received; undefined for other operations */
	uint32_t imm;	 /* immediate data, of a receive with such */
};

/*
 * Layout of the registered memory of a process, as offsets. Both processes derive equal layouts
 * from the largest size and the window.
 */
struct perf_layout {
	size_t ctl_tx, ctl_rx;	 /* control messages */
	size_t note_tx, note_rx; /* small notifications of --wait */
	size_t tx, rx;		 /* data areas of area bytes each */
	size_t area;
	size_t total;
	unsigned int window;
};

struct perf_xport;

/*
 * Datagrams. A transport's connections carry the control messages of their phases.
 * A message of the data area is at an offset into x->ud.mem. Functions that return int return as
 * those of struct perf_ops.
 */
struct perf_ud_ops {
	/*
	 * Opens endpoints, sets all of x->ud but the buffers, and writes to @ctl what the peer
	 * needs to reach them.
	 */
	int (*open)(struct perf_xport *x, struct perf_ctl *ctl);
	/* Client, server: gets the address of the peer, which wrote @ctl. */
	int (*connect)(struct perf_xport *x, const struct perf_ctl *ctl);
	int (*accept)(struct perf_xport *x, const struct perf_ctl *ctl);
	/* @len includes the x->ud.head bytes in front of the data. */
	int (*post_recv)(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			 uint64_t cookie);
	int (*post_send)(struct perf_xport *x, unsigned int lane, size_t off, size_t len,
			 uint64_t cookie);
	/* As poll of struct perf_ops, but sleeps at most PERF_UD_WAIT_MS; len is the data's. */
	int (*poll)(struct perf_xport *x, struct perf_comp *comp);
	/* Undoes open; close of struct perf_ops calls it. */
	void (*close)(struct perf_xport *x);
};

#define PERF_ATOMIC_LEN 8

/*
 * Operations of DAT's InfiniBand extension. @off is an offset into x->mem, where atomics store the
 * previous value, @roff into the peer's memory. Functions return as in struct perf_ops.
 */
struct perf_ext_ops {
	/* Fails if the device lacks the operation of @test. */
	int (*check)(struct perf_xport *x, enum perf_test test);
	/* Also completes a receive of the peer. */
	int (*post_write_imm)(struct perf_xport *x, size_t off, size_t len, size_t roff,
			      uint32_t imm, uint64_t cookie);
	int (*post_fadd)(struct perf_xport *x, size_t off, size_t roff, uint64_t add,
			 uint64_t cookie);
	int (*post_cswap)(struct perf_xport *x, size_t off, size_t roff, uint64_t compare,
			  uint64_t swap, uint64_t cookie);
};

/*
 * A transport. One thread at a time makes all calls. Functions that return int return 0, or a
 * negative value with an error text in x->err. The posting functions may also return -EAGAIN: poll
 * and try again.
 */
struct perf_ops {
	const char *name;
	/* Opens the device; does not contact a peer. */
	int (*open)(struct perf_xport *x);
	/* Listens on *port; for port 0 chooses a port and stores it. */
	int (*listen)(struct perf_xport *x, unsigned int *port);
	/* Waits for a client, at most x->wait_client_ms, and connects to it. */
	int (*accept)(struct perf_xport *x);
	int (*connect)(struct perf_xport *x, const struct sockaddr *addr, unsigned int port);
	/* @off is an offset into x->mem, @roff into the peer's memory. */
	int (*post_recv)(struct perf_xport *x, size_t off, size_t len, uint64_t cookie);
	int (*post_send)(struct perf_xport *x, size_t off, size_t len, uint64_t cookie);
	int (*post_write)(struct perf_xport *x, size_t off, size_t len, size_t roff,
			  uint64_t cookie);
	int (*post_read)(struct perf_xport *x, size_t off, size_t len, size_t roff,
			 uint64_t cookie);
	/*
	 * Takes one completion: returns 1 if there was one, else 0. With x->blocking sleeps until
	 * there is one, at most PERF_WAIT_MS.
	 */
	int (*poll)(struct perf_xport *x, struct perf_comp *comp);
	/* Selects the connection of the next posts; only called if there are several. */
	void (*select)(struct perf_xport *x, unsigned int lane);
	/* Called rarely: detects a connection that ended without completions. */
	int (*check)(struct perf_xport *x);
	/* Ends the connection gracefully; the peer calls this too. */
	void (*disconnect)(struct perf_xport *x);
	/* Releases everything, in any state of x. */
	void (*close)(struct perf_xport *x);
	const struct perf_ud_ops *ud; /* NULL: no datagrams */
	const struct perf_ext_ops *ext; /* NULL: none */
};

#define PERF_WAIT_MS 200
#define PERF_UD_WAIT_MS 5
#define PERF_WINDOW_MAX 4096
#define PERF_ENDPOINTS_MAX 64
#define PERF_THREADS_MAX 64
#define PERF_SEGMENTS_MAX 32

/* The datagram endpoints of a transport. */
struct perf_ud {
	unsigned char *mem; /* memory with the layout of the transport */
	size_t limit;	    /* most bytes of data of a datagram; 0: there are no endpoints */
	size_t head;	    /* bytes in front of the data of each receive */
	size_t stride;	    /* distance of two buffers; 0: all datagrams use one */
	unsigned int slots; /* buffers, if there are several */
};

struct perf_xport {
	const struct perf_ops *ops;
	bool blocking;
	bool bare_cq;		 /* raw: a CQ without a descriptor */
	bool srq;		 /* DAT: receives come from an SRQ */
	unsigned int segments;	 /* DAT: local segments of each message; 0 is 1 */
	unsigned int timeout_ms; /* longest silence of a peer */
	int wait_client_ms;	 /* limit of accept; -1: none */
	uint32_t size_max;	 /* client: largest message */
	unsigned int lanes;	 /* connections that messages alternate between; 0 is 1 */
	unsigned int first_lane; /* number of its first connection among all threads */
	unsigned int threads;	 /* threads of the client; 0 is 1 */
	uint16_t session;	 /* 0: none yet */
	bool refused;		 /* the last request was not from a datperf of this version */
	unsigned char *mem;
	struct perf_layout lay;
	/*
	 * Control completions not yet taken. They outlive a phase: the next request can arrive
	 * before the completion of the last reply is seen.
	 */
	unsigned int crx, ctx;
	unsigned int seed; /* number of phases so far */
	struct perf_ud ud;
	char err[512];
};

/* The fabric below an IA, which the raw side uses too. */
struct perf_fabric {
	char provider[64];
	char domain[64];
	char libfabric[16]; /* version */
	bool rdm; /* its endpoints are connectionless */
	size_t datagram; /* most bytes of data of a datagram; 0: not asked for */
	bool dgram; /* raw: its endpoints are for datagrams only */
	bool has_wait_obj; /* the raw side's CQ has a descriptor */
	struct sockaddr_storage addr; /* ss_family 0: any */
};

/* A measurement; one point of the table. */
struct perf_point {
	enum perf_test test;
	enum perf_metric metric;
	size_t size;
	uint64_t iters;
	bool rotate;	   /* each message uses another buffer */
	double interval_ns; /* between the client's messages; 0: as short as possible */
	uint64_t expected_ns; /* how long the phase will take; 0: unknown */
	uint64_t begin_ns; /* result: begin of the phase */
	uint64_t total_ns; /* result: time of the whole phase */
	uint64_t sent, lost; /* result of PERF_UD: datagrams; iters is the number that arrived */
	uint64_t cpu_ns[PERF_NENDS]; /* result: processor time of each process */
	uint64_t *samples; /* result of PERF_LAT: ns per round trip */
};

/* perf_xport.c: common to both transports */
int perf_fail(struct perf_xport *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether @test can transfer @size bytes: RDMA and datagrams end with, or begin with, a mark. */
bool perf_test_has_size(enum perf_test test, size_t size);
#define PERF_LISTEN_TEXT 80
/* Writes the begin of an error text: that a program cannot listen on @port; 0: any. */
const char *perf_listen_text(unsigned int port, char *buf, size_t len);
void perf_layout_init(struct perf_layout *lay, size_t size_max, unsigned int window);
unsigned int perf_slots(const struct perf_layout *lay, size_t size);
size_t perf_stride(size_t size);
int perf_mem_alloc(struct perf_xport *x);
void perf_mem_free(struct perf_xport *x);
uint64_t perf_now_ns(void);
static inline bool perf_is_atomic(unsigned int test)
{
	return test == PERF_FADD || test == PERF_CSWAP;
}
/* Whether @test uses struct perf_ext_ops. */
static inline bool perf_is_ext(unsigned int test)
{
	return test == PERF_IMM || perf_is_atomic(test);
}
/* Processor time of all threads of this process. */
uint64_t perf_cpu_ns(void);
/* Decodes the peer's greeting; fails if the peer is not a datperf of this version. */
int perf_hello_check(struct perf_xport *x, const void *buf, size_t len, struct perf_hello *hello);

/* perf_dat.c */
struct perf_xport *perf_dat_new(const char *device);
/* Rejects the requests of a client that are not accepted yet. */
void perf_dat_forget(struct perf_xport *listener, uint16_t session);
/* Creates a transport on the IA of @x, which must be closed after it; NULL without memory. */
struct perf_xport *perf_dat_share(struct perf_xport *x);
void perf_dat_fabric(struct perf_xport *x, struct perf_fabric *fabric);
const char *perf_dat_api(void);

/* perf_raw.c */
struct perf_xport *perf_raw_new(const struct perf_fabric *fabric);
void perf_raw_fabric(struct perf_xport *x, struct perf_fabric *fabric);
/* Stores the version of libfabric. */
void perf_raw_version(struct perf_fabric *fabric);
bool perf_raw_has_wait_obj(struct perf_xport *x);

/* perf_run.c */
/* Posts the control receive; call before connect or accept completes. */
int perf_run_arm(struct perf_xport *x);
int perf_run_point(struct perf_xport *x, struct perf_point *point);
/* Client: sends a message other than START and waits for the reply. */
int perf_run_request(struct perf_xport *x, const struct perf_ctl *request, struct perf_ctl *reply);
/* Server: waits for a control message. */
int perf_run_next(struct perf_xport *x, struct perf_ctl *ctl);
int perf_run_reply(struct perf_xport *x, const struct perf_ctl *ctl);
/* Server: runs the phase that @start requests. */
int perf_run_serve(struct perf_xport *x, const struct perf_ctl *start);

#endif
