/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * echo_client: sends each line of its standard input to echo_server, and prints the answers.
 *
 *	cc echo_client.c -o echo_client $(pkg-config --cflags --libs dat2)
 *	./echo_client IA PORT ADDRESS		./echo_client ofi 4711 192.0.2.1
 *
 * ADDRESS is the numeric IPv4 address of the server's IA.
 */
#include <dat2/udat.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	64			/* bytes of the longest message, as in the server */
#define LIMIT	(10 * 1000 * 1000)	/* for a wait, in microseconds */
#define CHECK(call)	check(call, #call)

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async = DAT_HANDLE_NULL, conn, sent, received;
static DAT_EP_HANDLE ep;
static DAT_LMR_CONTEXT context;
static struct { char line[SIZE], answer[SIZE]; } memory;

static void check(DAT_RETURN ret, const char *call)
{
	const char *type, *subtype;

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &type, &subtype);
	fprintf(stderr, "%s: %s %s\n", call, type, subtype);
	exit(1);
}

/* Waits for an event, which must be the wanted one; a transfer must have succeeded. */
static DAT_EVENT next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER wanted)
{
	DAT_EVENT event;
	DAT_COUNT more;

	CHECK(dat_evd_wait(evd, LIMIT, 1, &event, &more));
	if (event.event_number == wanted && (wanted != DAT_DTO_COMPLETION_EVENT ||
	    event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS))
		return event;
	fprintf(stderr, "unexpected event or failed transfer: %#x\n",
		(unsigned int)event.event_number);
	exit(1);
}

static void prepare(char *name)
{
	DAT_REGION_DESCRIPTION region = { .for_va = &memory };
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;

	CHECK(dat_ia_open(name, 8, &async, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			     DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			     DAT_VA_TYPE_VA, &lmr, &context, NULL, NULL, NULL));
	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn));
	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &sent));
	CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &received));
	CHECK(dat_ep_create(ia, pz, received, sent, conn, NULL, &ep));
}

static void connect_to(DAT_CONN_QUAL port, const char *address)
{
	struct sockaddr_in server = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, address, &server.sin_addr) != 1) {
		fprintf(stderr, "no IPv4 address: %s\n", address);
		exit(2);
	}
	CHECK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&server, port, LIMIT, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	next_event(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	fprintf(stderr, "connected\n");
}

/* Sends the line. The receive for the answer comes first: the answer may be fast. */
static void echo(void)
{
	DAT_LMR_TRIPLET out = { (DAT_VADDR)(uintptr_t)memory.line, strlen(memory.line), context };
	DAT_LMR_TRIPLET in = { (DAT_VADDR)(uintptr_t)memory.answer, SIZE, context };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_EVENT event;

	CHECK(dat_ep_post_recv(ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	CHECK(dat_ep_post_send(ep, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	next_event(sent, DAT_DTO_COMPLETION_EVENT);
	event = next_event(received, DAT_DTO_COMPLETION_EVENT);
	printf("%.*s", (int)event.event_data.dto_completion_event_data.transfered_length,
	       memory.answer);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: echo_client IA PORT ADDRESS\n");
		return 2;
	}
	prepare(argv[1]);
	connect_to(strtoul(argv[2], NULL, 10), argv[3]);
	while (fgets(memory.line, SIZE, stdin))
		echo();
	CHECK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	next_event(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));	/* frees all objects */
	return 0;
}
