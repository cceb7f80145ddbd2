/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams of the InfiniBand extension, as dat_extension_op(3) describes them: a client sends
 * "ping" to a server, which answers "pong". A datagram may be lost, so the client repeats it.
 *
 *	cc datagram.c -o datagram $(pkg-config --cflags --libs dat2)
 *	./datagram IA PORT			./datagram ofi 4711
 *	./datagram IA PORT ADDRESS		./datagram ofi 4711 192.0.2.1
 *
 * ADDRESS is the numeric IPv4 address of the server's IA.
 */
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 40			/* bytes in front of the data of each receive */
#define SIZE 8				/* bytes of data */
#define LIMIT (10 * 1000 * 1000)	/* microseconds */
#define CHECK(call) check(call, #call)

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async = DAT_HANDLE_NULL, conn, sent, received;
static DAT_EP_HANDLE ep;
static DAT_IB_ADDR_HANDLE peer;		/* of the other program */
static struct { char out[SIZE], header[HEADER], in[SIZE]; } memory;
static const DAT_DTO_COOKIE cookie;
static DAT_LMR_TRIPLET out = { .segment_length = SIZE }, in = { .segment_length = HEADER + SIZE };

static void check(DAT_RETURN ret, const char *call)
{
	if (ret == DAT_SUCCESS)
		return;
	fprintf(stderr, "%s: %#x\n", call, (unsigned int)ret);
	exit(1);
}

/* Waits for an event, which must be @wanted. Returns 0 if none comes within @limit. */
static int wait_for(DAT_EVD_HANDLE evd, int wanted, DAT_TIMEOUT limit, DAT_EVENT *event)
{
	DAT_COUNT more;
	DAT_RETURN ret = dat_evd_wait(evd, limit, 1, event, &more);

	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		return 0;
	check(ret, "dat_evd_wait");
	if ((int)event->event_number != wanted || (wanted == DAT_IB_DTO_EVENT &&
	    event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS))
		check(DAT_ABORT, "unexpected event or failed transfer");
	return 1;
}

static void send_text(const char *text)
{
	DAT_EVENT event;

	strcpy(memory.out, text);
	CHECK(dat_ib_post_send_ud(ep, 1, &out, &peer, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	wait_for(sent, DAT_IB_DTO_EVENT, DAT_TIMEOUT_INFINITE, &event);
}

/* Returns whether a datagram with @text came within @limit. */
static int received_text(const char *text, DAT_TIMEOUT limit)
{
	DAT_EVENT event;
	int same;

	if (!wait_for(received, DAT_IB_DTO_EVENT, limit, &event))
		return 0;
	same = !strncmp(memory.in, text, SIZE);
	printf("received: %.*s\n", SIZE, memory.in);
	CHECK(dat_ep_post_recv(ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	return same;
}

static void prepare(char *name)
{
	DAT_REGION_DESCRIPTION region = { .for_va = &memory };
	DAT_EP_ATTR attr = { .max_recv_dtos = 4, .max_request_dtos = 4 };
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	CHECK(dat_ia_open(name, 8, &async, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			     DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			     DAT_VA_TYPE_VA, &lmr, &in.lmr_context, NULL, NULL, NULL));
	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn));
	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &sent));
	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &received));
	CHECK(dat_ep_create(ia, pz, received, sent, conn, &attr, &ep));
	out.lmr_context = in.lmr_context;
	out.virtual_address = (DAT_VADDR)(uintptr_t)memory.out;
	in.virtual_address = (DAT_VADDR)(uintptr_t)memory.header;
	CHECK(dat_ep_post_recv(ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void listen_at(DAT_CONN_QUAL port)
{
	DAT_EVD_HANDLE requests;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	CHECK(dat_psp_create(ia, port, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	fprintf(stderr, "waiting for a client\n");
	wait_for(requests, DAT_IB_UD_CONNECTION_REQUEST_EVENT, DAT_TIMEOUT_INFINITE, &event);
	CHECK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL));
}

/* Exchanges addresses with the other program: a server if @address is NULL. */
static void exchange(DAT_CONN_QUAL port, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	DAT_IB_EXTENSION_EVENT_DATA *extension;
	DAT_EVENT event;

	if (address && inet_pton(AF_INET, address, &to.sin_addr) == 1)
		CHECK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, port, LIMIT, 0, NULL,
				     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	else
		listen_at(port);
	wait_for(conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_TIMEOUT_INFINITE, &event);
	extension = (DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;
	peer = extension->remote_ah;
	CHECK(dat_ib_ud_cm_free(ep, extension->context.as_ptr));
}

int main(int argc, char **argv)
{
	int tries = 10;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: datagram IA PORT [ADDRESS]\n");
		return 2;
	}
	prepare(argv[1]);
	exchange(strtoul(argv[2], NULL, 10), argv[3]);
	if (argc == 3) {
		while (received_text("ping", LIMIT))
			send_text("pong");
	} else {
		do
			send_text("ping");
		while (!received_text("pong", LIMIT / 10) && --tries);
		send_text("bye");
	}
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));	/* frees all objects */
	return !tries;
}
