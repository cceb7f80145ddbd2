/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table: a server publishes a table, and clients read rows of it by RDMA. The server accepts the
 * clients, with the address of the table as private data. It takes no part in their reads.
 *
 *	cc table.c -o table $(pkg-config --cflags --libs dat2)
 *	./table IA PORT CLIENTS			./table ofi 4711 2
 *	./table IA PORT ADDRESS ROW...		./table ofi 4711 192.0.2.1 0 3
 *
 * The server exits when CLIENTS clients have left. ADDRESS is the numeric IPv4 address of its IA.
 */
#include <dat2/udat.h>
#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT	(10 * 1000 * 1000)	/* for a wait, in microseconds */
#define ROWS	3
#define SIZE	32			/* bytes of a row, which is a text */
#define CHECK(call)	check(call, #call)

static char table[ROWS][SIZE] = { "Everest 8849 m", "Elbrus 5642 m", "Fuji 3776 m" };

/* The private data of the acceptance, in network byte order; a context is opaque. */
struct place {
	uint64_t address;
	uint32_t rows;
	DAT_RMR_CONTEXT context;
};

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;	/* evd: for all other events */
static DAT_PZ_HANDLE pz;

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
static DAT_EVENT next_event(DAT_EVENT_NUMBER wanted)
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

static void serve(DAT_CONN_QUAL port, int clients)
{
	DAT_REGION_DESCRIPTION memory = { .for_va = table };
	struct place place = { htobe64((uintptr_t)table), htonl(ROWS), 0 };
	DAT_LMR_HANDLE lmr;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	DAT_COUNT more;

	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, memory, sizeof(table), pz,
			     DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, &lmr, NULL,
			     &place.context, NULL, NULL));
	CHECK(dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	fprintf(stderr, "waiting for clients\n");
	while (clients > 0) {
		CHECK(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
			CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
			cr = event.event_data.cr_arrival_event_data.cr_handle;
			if (dat_cr_accept(cr, ep, sizeof(place), &place) != DAT_SUCCESS) {
				dat_cr_reject(cr, 0, NULL);
				CHECK(dat_ep_free(ep));
			}
		} else if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
			CHECK(dat_ep_free(event.event_data.connect_event_data.ep_handle));
			clients--;
		}
	}
}

/* @numbers is a list that ends with NULL. */
static void read_rows(DAT_CONN_QUAL port, const char *address, char **numbers)
{
	struct sockaddr_in server = { .sin_family = AF_INET };
	DAT_LMR_TRIPLET to = { .segment_length = SIZE };
	DAT_RMR_TRIPLET from = { .segment_length = SIZE };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	char row[SIZE];
	DAT_REGION_DESCRIPTION memory = { .for_va = row };
	struct place place;
	DAT_LMR_HANDLE lmr;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	unsigned long i;

	if (inet_pton(AF_INET, address, &server.sin_addr) != 1)
		exit(2);
	to.virtual_address = (DAT_VADDR)(uintptr_t)row;
	CHECK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, memory, SIZE, pz,
			     DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA, &lmr, &to.lmr_context,
			     NULL, NULL, NULL));
	CHECK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep));
	CHECK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&server, port, LIMIT, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	event = next_event(DAT_CONNECTION_EVENT_ESTABLISHED);
	if (event.event_data.connect_event_data.private_data_size < (DAT_COUNT)sizeof(place))
		check(DAT_LENGTH_ERROR, "not a server of a table");
	memcpy(&place, event.event_data.connect_event_data.private_data, sizeof(place));
	from.rmr_context = place.context;
	for (; *numbers; numbers++) {
		i = strtoul(*numbers, NULL, 10);
		if (i >= ntohl(place.rows))
			check(DAT_LENGTH_ERROR, "no such row");
		from.virtual_address = be64toh(place.address) + i * SIZE;
		CHECK(dat_ep_post_rdma_read(ep, 1, &to, cookie, &from,
					    DAT_COMPLETION_DEFAULT_FLAG));
		next_event(DAT_DTO_COMPLETION_EVENT);
		puts(row);
	}
	CHECK(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
	next_event(DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(int argc, char **argv)
{
	DAT_CONN_QUAL port = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc < 4) {
		fprintf(stderr, "usage: table IA PORT CLIENTS, or table IA PORT ADDRESS ROW...\n");
		return 2;
	}
	CHECK(dat_ia_open(argv[1], 8, &async, &ia));
	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG |
			     DAT_EVD_DTO_FLAG, &evd));
	if (argc == 4)
		serve(port, atoi(argv[3]));
	else
		read_rows(port, argv[3], argv + 4);
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));	/* frees all objects */
	return 0;
}
