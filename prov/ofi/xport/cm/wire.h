/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of a CM connection as bytes. Pure functions.
 *
 *	bytes 0-3  magic
 *	byte 4     version: major in the high half, minor in the low
 *	byte 5     kind
 *	bytes 6-7  number of bytes that follow
 *	then       fields: a tag (1 byte), a length (2 bytes), a value of that length
 *
 * Numbers are big-endian. Peers of another major version are refused. A higher minor version may
 * have unknown fields, which are skipped; known fields keep their meaning. Each kind has required
 * and optional fields; they come in any order, none twice.
 */
#ifndef DOFI_XPORT_CM_WIRE_H
#define DOFI_XPORT_CM_WIRE_H

#include "host/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOFI_CM_HEADER 8
#define DOFI_CM_MAX 1024		/* largest message */
#define DOFI_CM_MAX_DATA 240		/* largest private data of a consumer */
#define DOFI_CM_MAX_ADDR 256		/* largest address of a fabric */
#define DOFI_CM_NAME 64		/* largest name, with its NUL */
#define DOFI_CM_MIN_FRAME 64		/* a peer that takes no frame of this size is refused */
#define DOFI_CM_FDS 3			/* most descriptors of a message */

enum dofi_cm_kind {
	DOFI_CM_REQUEST = 1,		/* the first message of a connection's active side */
	DOFI_CM_ACCEPT = 2,
	DOFI_CM_REJECT = 3,		/* the consumer rejected the request */
	DOFI_CM_REFUSE = 4,		/* the provider refused the request, for a reason */
	/* a service point has the request; or the requester has the address of a datagram EP */
	DOFI_CM_READY = 5,
	DOFI_CM_BYE = 7,		/* 6 was a wakeup */
	/*
	 * addresses of datagram EPs: a first message; its answer, or REJECT or REFUSE; then READY
	 */
	DOFI_CM_DATAGRAM_REQUEST = 8,
	DOFI_CM_DATAGRAM_ACCEPT = 9,
};

/* Returns whether the kind is a first message of the active side. It is no later message. */
static inline bool dofi_cm_is_request(enum dofi_cm_kind kind)
{
	return kind == DOFI_CM_REQUEST || kind == DOFI_CM_DATAGRAM_REQUEST;
}

/* Why a provider refuses a request. Other values are reasons of newer versions. */
enum dofi_cm_reason {
	DOFI_CM_NO_LISTENER = 1,		/* no service point listens for the qualifier */
	DOFI_CM_BUSY = 2,		/* there is no memory for another request or connection */
	DOFI_CM_NO_PATH = 3,		/* no fabric connects both ends */
};

/* A message. Members that are no field of its kind, and missing fields, are 0 or empty. */
struct dofi_cm_msg {
	enum dofi_cm_kind kind;
	/* enum dofi_cm_reason, or a newer peer's; of a BYE, whether the connection broke */
	uint8_t reason;
	uint64_t conn_qual;
	uint64_t conn_id;		/* the id for frames to the sender; never 0 */
	uint32_t secret;
	uint32_t window;		/* credited frames that the sender keeps */
	/* largest frame that the sender takes; at least DOFI_CM_MIN_FRAME */
	uint32_t frame_size;
	/* frames that the sender had sent when it ended the connection */
	uint32_t last_frame;
	bool srq;			/* the sender receives from an SRQ */
	uint64_t alive_addr;		/* address of a word: conn_id while the connection exists */
	uint32_t number;		/* of the sender's datagram EP; never 0 */
	uint64_t key;			/* secret of the sender's PZ, in datagrams to it; never 0 */
	uint32_t addr_format;		/* as in fi_info */
	uint16_t addr_len;
	const void *addr;		/* address of the sender's fabric endpoint */
	char fabric[DOFI_CM_NAME];	/* the fabric's provider */
	struct dofi_host host;
	uint16_t data_size;
	const void *data;		/* private data of the consumer */
	/* passed within a host: the receiver's are closed when the message has been processed */
	unsigned n_fds;
	int fd[DOFI_CM_FDS];
};

/* Packs @msg, with names and sizes within the limits above. Returns the number of bytes. */
size_t dofi_cm_pack(unsigned char buf[DOFI_CM_MAX], const struct dofi_cm_msg *msg);

/*
 * Parses the first message of @len untrusted bytes. Returns its size, or 0 while it is incomplete;
 * -EPROTO as soon as the bytes are malformed, -EPROTONOSUPPORT for another version. @msg->addr and
 * @msg->data point into @buf.
 */
ssize_t dofi_cm_unpack(const void *buf, size_t len, struct dofi_cm_msg *msg);

#endif
