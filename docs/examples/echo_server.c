/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * echo_server: answers each message of many clients (echo_client.c) in capital letters. One thread
 * waits in poll(2) for all clients, and for the end of its standard input, which ends it. Clients
 * share the receives of a shared receive queue (SRQ).
 *
 *	cc echo_server.c -o echo_server $(pkg-config --cflags --libs dat2)
 *	./echo_server IA PORT			./echo_server ofi 4711
 */
#include <dat2/udat.h>
#include <ctype.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE	64	/* bytes of the longest message */
#define BUFFERS	256
#define CLIENTS	1000	/* further ones are rejected */
#define EVENTS	(BUFFERS + 4 * CLIENTS)	/* completions, and events of connections */
#define CHECK(call)	check(call, #call)

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
static DAT_PZ_HANDLE pz;
static DAT_SRQ_HANDLE srq;
static DAT_LMR_CONTEXT context;
static char buffers[BUFFERS][SIZE];
static int clients;

static void check(DAT_RETURN ret, const char *call)
{
	const char *type, *subtype;

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &type, &subtype);
	fprintf(stderr, "%s: %s %s\n", call, type, subtype);
	exit(1);
}

static DAT_LMR_TRIPLET segment(int buffer, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){ (DAT_VADDR)(uintptr_t)buffers[buffer], length, context };
}

static void post_receive(DAT_DTO_COOKIE buffer)
{
	DAT_LMR_TRIPLET to = segment(buffer.as_64, SIZE);

	CHECK(dat_srq_post_recv(srq, 1, &to, buffer));
}

/* A buffer receives a message, sends the answer, and goes back to the SRQ. */
static void transferred(const DAT_DTO_COMPLETION_EVENT_DATA *done)
{
	char *text = buffers[done->user_cookie.as_64];
	DAT_LMR_TRIPLET from;
	DAT_SEG_LENGTH i;

	if (done->status == DAT_DTO_SUCCESS && done->operation == DAT_DTO_RECEIVE) {
		for (i = 0; i < done->transfered_length; i++)
			text[i] = toupper((unsigned char)text[i]);
		from = segment(done->user_cookie.as_64, done->transfered_length);
		if (dat_ep_post_send(done->ep_handle, 1, &from, done->user_cookie,
				     DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS)
			return;
	}
	post_receive(done->user_cookie);	/* also after an error: the client has gone */
}

static void accept_client(DAT_CR_HANDLE cr)
{
	DAT_EP_ATTR attr = { .max_request_dtos = BUFFERS };
	DAT_EP_HANDLE ep;

	CHECK(dat_ep_create_with_srq(ia, pz, evd, evd, evd, srq, &attr, &ep));
	if (clients < CLIENTS && dat_cr_accept(cr, ep, 0, NULL) == DAT_SUCCESS) {
		clients++;
		return;
	}
	dat_cr_reject(cr, 0, NULL);
	CHECK(dat_ep_free(ep));
}

/* An EVD for all kinds of events keeps their order: completions, then the end of a connection. */
static void handle(const DAT_EVENT *event)
{
	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		accept_client(event->event_data.cr_arrival_event_data.cr_handle);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		fprintf(stderr, "%d clients\n", clients);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		transferred(&event->event_data.dto_completion_event_data);
		break;
	default:	/* the end of a connection, or of an attempt to make one */
		CHECK(dat_ep_free(event->event_data.connect_event_data.ep_handle));
		clients--;
	}
}

static void prepare(char *name, DAT_CONN_QUAL port, DAT_CNO_HANDLE *cno, DAT_FD *fd)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = BUFFERS, .max_recv_iov = 1,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_REGION_DESCRIPTION memory = { .for_va = buffers };
	DAT_DTO_COOKIE i;
	DAT_LMR_HANDLE lmr;
	DAT_PSP_HANDLE psp;

	CHECK(dat_ia_open(name, CLIENTS, &async, &ia));
	CHECK(dat_cno_fd_create(ia, fd, cno));
	CHECK(dat_evd_modify_cno(async, *cno));
	CHECK(dat_evd_create(ia, EVENTS, *cno, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG |
			     DAT_EVD_CR_FLAG, &evd));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, memory, sizeof(buffers), pz,
			     DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			     DAT_VA_TYPE_VA, &lmr, &context, NULL, NULL, NULL));
	CHECK(dat_srq_create(ia, pz, &attr, &srq));
	for (i.as_64 = 0; i.as_64 < BUFFERS; i.as_64++)
		post_receive(i);
	CHECK(dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	fprintf(stderr, "waiting for clients\n");
}

int main(int argc, char **argv)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .fd = STDIN_FILENO, .events = POLLIN } };
	DAT_EVD_HANDLE hint;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	char input[SIZE];

	if (argc != 3) {
		fprintf(stderr, "usage: echo_server IA PORT\n");
		return 2;
	}
	prepare(argv[1], strtoul(argv[2], NULL, 10), &cno, &fds[0].fd);
	while (poll(fds, 2, -1) > 0 && (!fds[1].revents || read(STDIN_FILENO, input, SIZE) > 0)) {
		dat_cno_trigger(cno, &hint);	/* before the events are taken: misses none */
		while (dat_evd_dequeue(async, &event) == DAT_SUCCESS)
			;	/* an SRQ also reports the end of each connection here */
		while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
			handle(&event);
	}
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));	/* frees all objects */
	return 0;
}
