/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program's arguments of a call that connects endpoints. */
#ifndef DOFI_OBJ_REQUEST_H
#define DOFI_OBJ_REQUEST_H

#include "obj/dat.h"

#include <stdint.h>
#include <sys/socket.h>

/* No fabric carries more private data than this. */
#define DOFI_PRIVATE_DATA 256

/* The consumer's arguments of dat_ep_connect or dat_cr_accept. */
struct dofi_request {
	struct sockaddr_storage peer;
	DAT_CONN_QUAL conn_qual;
	int64_t deadline;		/* of the connection attempt */
	DAT_QOS qos;			/* replaces the attribute, unless it is BEST_EFFORT */
	DAT_COUNT data_size;
	unsigned char data[DOFI_PRIVATE_DATA];
};

#endif
