/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages between two datperf processes: the greeting, carried as private data of the connection,
 * and the control messages sent between measurements. All values are in network byte order.
 */
#ifndef PERF_WIRE_H
#define PERF_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_HELLO_LEN 33
#define PERF_ADDRESS_MAX 256
#define PERF_CTL_LEN (64 + PERF_ADDRESS_MAX)
#define PERF_CARD_LEN (PERF_HELLO_LEN + 4 + PERF_ADDRESS_MAX)

/* The client's greeting in its connect request, the server's in its accept. */
struct perf_hello {
	uint16_t flags;	   /* PERF_HELLO_* */
	uint32_t size_max; /* largest message of the run, bytes */
	uint16_t window;   /* most messages in flight */
	uint8_t endpoints; /* EPs of a thread */
	uint8_t threads;   /* client: threads that send, each with its EPs */
	uint64_t addr;	   /* start of the sender's memory */
	uint32_t key;	   /* remote key of that memory */
	uint16_t index; /* number of the connection: thread * endpoints + EP; --peers: any order */
	uint16_t session;  /* distinguishes clients; never 0, except with --peers */
	uint8_t segments;  /* of each message; 0 is 1 */
};

#define PERF_HELLO_WAIT 0x1    /* block for completions instead of polling */
#define PERF_HELLO_BARE_CQ 0x2 /* raw: a completion queue without a wait object */
#define PERF_HELLO_SRQ 0x4     /* receives come from a shared receive queue */

/* The greeting on a fabric without connections, with the address of its sender. */
struct perf_card {
	struct perf_hello hello;
	uint32_t len;
	unsigned char address[PERF_ADDRESS_MAX]; /* in the fabric's format; zero after @len */
};

enum perf_ctl_type {
	PERF_CTL_START = 1, /* client: begin a phase */
	PERF_CTL_READY,	    /* server: prepared, receives are posted */
	PERF_CTL_FIN,	    /* client: its part of a one-sided phase is over */
	PERF_CTL_DONE,	    /* server: phase over, value = bad messages */
	PERF_CTL_OPEN_RAW,  /* client: listen on bare libfabric as well */
	PERF_CTL_SELECT,    /* client: the next phases use side "value" */
	PERF_CTL_QUIT,	    /* client: no more phases */
	PERF_CTL_ERROR,	    /* server: the request failed */
	PERF_CTL_PEERS,	    /* client: prepare for "value" connections */
	PERF_CTL_OPEN_UD,   /* client: open datagram endpoints; the addresses are of both */
};

struct perf_ctl {
	uint16_t type;	/* enum perf_ctl_type */
	uint16_t kind;	/* START: enum perf_kind */
	uint32_t seed;	/* START: seed of the pattern */
	uint32_t slots; /* START: messages in flight */
	uint64_t size;	/* START: bytes per message */
	uint64_t iters; /* START: number of messages; DONE: datagrams that the server sent */
	uint64_t value; /* READY: port; SELECT: side or connection; DONE: errors or bytes;
			 * START: expected time in ns */
	uint32_t flags; /* START: PERF_START_* */
	uint64_t cpu_ns; /* DONE: processor time of the server in the phase */
	/* OPEN_UD and its READY: address of the endpoint on bare libfabric */
	uint32_t address_len;
	unsigned char address[PERF_ADDRESS_MAX];
};

#define PERF_START_ROTATE 0x1u /* consecutive messages use different buffers */

void perf_hello_encode(const struct perf_hello *hello, unsigned char *buf);

/* Returns 0, or -1 if the bytes are not a greeting of this version. */
int perf_hello_decode(struct perf_hello *hello, const void *buf, size_t len);

void perf_card_encode(const struct perf_card *card, unsigned char *buf);
int perf_card_decode(struct perf_card *card, const void *buf, size_t len);

void perf_ctl_encode(const struct perf_ctl *ctl, unsigned char *buf);
/* Whether @buf, of at least 4 bytes, begins as a control message does. */
bool perf_ctl_begins(const void *buf);
int perf_ctl_decode(struct perf_ctl *ctl, const void *buf, size_t len);

#endif
