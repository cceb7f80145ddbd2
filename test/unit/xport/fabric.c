/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An IA with the connected transport on the fake fabric. */

#include "xport/fabric.h"

#include "xport/msg/msg.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

const char *fabric_name = "tcp";
size_t fabric_cm_data = 256;
uint32_t peer_secret;
size_t fabric_key_size = 8;
size_t fabric_cq_data;
uint64_t fabric_mode;
struct fid request_handle;

static int getinfo(const char *node, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **info)
{
	*info = fake_info(fabric_name, "127.0.0.1");
	(*info)->ep_attr->max_msg_size = 1 << 20;
	(*info)->domain_attr->mr_key_size = fabric_key_size;
	(*info)->domain_attr->cq_data_size = fabric_cq_data;
	(*info)->mode = fabric_mode;
	(*info)->tx_attr->size = (*info)->rx_attr->size = 384;
	(*info)->tx_attr->iov_limit = 4;
	(*info)->tx_attr->inject_size = 128;
	(*info)->rx_attr->iov_limit = 4;
	return 0;
}

void xport_init(void)
{
	static const DAT_PROVIDER provider = { .device_name = "test-ia" };
	static const struct dofi_xports xports = { .connected = &dofi_msg_xport };
	const struct dofi_params any = { .provider = "" };

	fabric_init();
	fake.getinfo = getinfo;
	fake.cm_data_size = fabric_cm_data;
	fake_ep_init();
	cr_assert_eq(dofi_ia_open(&provider, &any, &xports, true, &ia), 0);
	fake_eps.peps_opened = 0;
	objects_make(64);
}

void xport_fini(void)
{
	ia_fini();
	cr_expect_eq(fake_eps.open, 0);
	cr_expect_eq(fake_eps.peps_open, 0);
}

/* Longer than the longest chain of work and events that a single event can start. */
#define LONGEST_CHAIN 24

static void openings_check(void *arg)
{
	const struct msg_ia *mia = ia->xport_ia;

	*(bool *)arg = !TAILQ_EMPTY(&mia->openings.list);
}

/*
 * An endpoint that is opened on a separate thread starts another chain when it is done, possibly
 * between the last settle() and the look at the list. So two looks in a row must find the list
 * empty. With endpoint_waits the test ends the opening.
 */
void quiesce(void)
{
	bool opening;
	int i, idle = 0;

	do {
		opening = false;
		for (i = 0; i < LONGEST_CHAIN; i++)
			settle();
		dofi_progress_call(&ia->progress, openings_check, &opening);
		idle = opening ? 0 : idle + 1;
	} while (idle < 2 && !(opening && fake_eps.fault.endpoint_waits));
}

static sem_t hold_reached, hold;

static void hold_run(struct dofi_work *work)
{
	sem_post(&hold_reached);
	while (sem_wait(&hold))
		;
}

void thread_hold(void)
{
	static struct dofi_work work = { .run = hold_run };

	sem_init(&hold_reached, 0, 0);
	sem_init(&hold, 0, 0);
	dofi_progress_post(&ia->progress, &work);
	while (sem_wait(&hold_reached))
		;
}

void thread_release(void)
{
	sem_post(&hold);
}

struct bytes wire(enum dofi_wire_kind kind, DAT_CONN_QUAL conn_qual, const void *data, size_t size)
{
	static unsigned char buf[DOFI_WIRE_MAX];
	const struct dofi_wire msg = {
		.kind = kind, .conn_qual = conn_qual, .secret = peer_secret,
		.data = data, .data_size = size,
	};

	return (struct bytes){ buf, dofi_wire_pack(buf, &msg) };
}

static void serve_event(struct fake_event *e, const void *fid, struct bytes bytes)
{
	e->entry.fid = (fid_t)(uintptr_t)fid;
	e->len = bytes.len;
	cr_assert(bytes.len <= sizeof(e->data));
	if (bytes.len)
		memcpy(e->data, bytes.data, bytes.len);
	fake_event_add(e);
	quiesce();
}

void cm_event(uint32_t event, const void *fid, struct bytes bytes)
{
	struct fake_event e = { .event = event };

	serve_event(&e, fid, bytes);
}

void cm_error(const void *fid, int err, struct bytes bytes)
{
	struct fake_event e = { .err = err };

	serve_event(&e, fid, bytes);
}

void cm_error_with_reason(const void *fid, int prov_errno)
{
	struct fake_event e = { .err = FI_ETIMEDOUT, .prov_errno = prov_errno };

	serve_event(&e, fid, NO_BYTES);
}

void cm_request_from(const void *pep, const void *address, size_t size, struct bytes bytes)
{
	struct fake_event e = { .event = FI_CONNREQ };

	e.entry.info = fake_info(fabric_name, "127.0.0.1");
	e.entry.info->dest_addr = malloc(size);
	e.entry.info->dest_addrlen = size;
	memcpy(e.entry.info->dest_addr, address, size);
	e.entry.info->handle = &request_handle;
	serve_event(&e, pep, bytes);
}

void cm_request(const void *pep, struct bytes bytes)
{
	const struct sockaddr_in peer = {
		.sin_family = AF_INET,
		.sin_port = htons(5555),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	cm_request_from(pep, &peer, sizeof(peer), bytes);
}

struct dofi_wire sent(void)
{
	struct dofi_wire msg = { .data_size = 0 };

	cr_assert_eq(dofi_wire_unpack(fake_eps.data, fake_eps.len, &msg), 0);
	return msg;
}

void connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL conn_qual)
{
	succeed(dofi_ep_connect(ep, some_address(), conn_qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	quiesce();
}

DAT_PSP_HANDLE psp_make(DAT_CONN_QUAL conn_qual)
{
	DAT_PSP_HANDLE psp;

	succeed(dofi_psp_create(ia, conn_qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	return psp;
}

DAT_CR_HANDLE cr_take(void)
{
	return event_only(DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
}

DAT_EVENT event_only(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = event_take(evd, number);

	cr_expect(event_none(evd));
	return event;
}
