/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages of a side connection: what they look like as bytes. Pure functions.
 *
 *	bytes 0-3  magic
 *	byte 4     version: the major in the high half, the minor in the low
 *	byte 5     kind
 *	bytes 6-7  how many bytes follow
 *	then       fields: a tag (1 byte), a length (2 bytes), a value of that length
 *
 * Numbers are big-endian. Peers of another major version cannot talk. A higher minor version may
 * have fields that we do not know, which are skipped; those that we know mean what they did.
 * Each kind has fields that must be there and others that may; any order, none twice.
 */
#ifndef DOFI_XPORT_CM_WIRE_H
#define DOFI_XPORT_CM_WIRE_H

#include "xport/rdm/shm/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOFI_SIDE_HEADER 8
#define DOFI_SIDE_MAX 1024		/* bytes of a message at most */
#define DOFI_SIDE_MAX_DATA 240		/* of which a consumer's, */
#define DOFI_SIDE_MAX_ADDR 256		/* and a fabric's address */
#define DOFI_SIDE_NAME 64		/* room for a name and its NUL */
#define DOFI_SIDE_MIN_FRAME 64		/* who takes no frame of this size takes none */
#define DOFI_SIDE_FDS 2			/* descriptors that go along with a message */

enum dofi_side_kind {
	DOFI_SIDE_REQUEST = 1,		/* the first message of who connects, and only that */
	DOFI_SIDE_ACCEPT = 2,
	DOFI_SIDE_REJECT = 3,		/* the consumer turned the request down */
	DOFI_SIDE_REFUSE = 4,		/* the provider did, for a reason */
	DOFI_SIDE_READY = 5,
	DOFI_SIDE_BELL = 6,		/* the header alone: look at your queue */
	DOFI_SIDE_BYE = 7,
};

/* Why a provider turns a request down. What is not known here is some reason, too. */
enum dofi_side_reason {
	DOFI_SIDE_NOBODY = 1,		/* nobody listens for the qualifier */
	DOFI_SIDE_BUSY = 2,		/* no room for another request or connection */
	DOFI_SIDE_APART = 3,		/* no fabric leads from one to the other */
};

/* What a kind has no field for, and what may be missing and is, is 0 or empty. */
struct dofi_side_msg {
	enum dofi_side_kind kind;
	uint8_t reason;			/* enum dofi_side_reason, or of a newer peer; of a BYE: it broke */
	uint64_t conn_qual;
	uint64_t conn_id;		/* of frames to who sends this; never 0 */
	uint32_t secret;
	uint32_t window;		/* how many credited frames it takes */
	uint32_t frame_size;		/* and of which size; at least DOFI_SIDE_MIN_FRAME */
	uint32_t last_frame;		/* how many it had sent when it ended the connection */
	bool srq;			/* it receives from an SRQ */
	uint64_t alive_addr;		/* of a word that is conn_id while the connection lives */
	uint32_t addr_format;		/* as in fi_info */
	uint16_t addr_len;
	const void *addr;		/* of its fabric endpoint */
	char fabric[DOFI_SIDE_NAME];	/* the fabric's provider */
	struct dofi_host host;
	char page[DOFI_SIDE_NAME];	/* its file in /dev/shm: no path, and no leading dot */
	unsigned char page_cookie[16];
	uint16_t data_size;
	const void *data;		/* the consumer's */
	/*
	 * Descriptors that go along, beside the bytes, within a host. The sender keeps its own
	 * open until the peer has answered; the receiver's are closed when the message has been
	 * dealt with.
	 */
	unsigned n_fds;
	int fd[DOFI_SIDE_FDS];
};

/*
 * Renders @msg, whose names are terminated and whose sizes are within the limits above; the
 * bytes used. Fields that the kind has not are left out.
 */
size_t dofi_side_pack(unsigned char buf[DOFI_SIDE_MAX], const struct dofi_side_msg *msg);

/*
 * Parses the first message of @len bytes from a stranger. The bytes that it has, or 0 while they
 * are not all there; -EPROTO when they are not ours, as soon as that shows, -EPROTONOSUPPORT when
 * they are, but of another version. @msg->addr and @msg->data point into @buf.
 */
ssize_t dofi_side_unpack(const void *buf, size_t len, struct dofi_side_msg *msg);

#endif
