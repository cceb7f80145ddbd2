/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The transport's part of an IA: room for private data, and its memory. */

#include "xport/msg/one.h"

#include "nomem.h"

#include <errno.h>
#include <stdlib.h>

TestSuite(msg, .init = init, .fini = xport_fini);

static void init_large(void)
{
	fabric_cm_data = 1000;
	init();
}

Test(msg, no_more_private_data_than_the_message_holds, .init = init_large)
{
	cr_expect_eq(ia->max_private_data, DOFI_WIRE_MAX_DATA);
}

static void init_small(void)
{
	fabric_cm_data = 56;
	init();
}

Test(msg, the_fabrics_private_data_less_the_header, .init = init_small)
{
	cr_expect_eq(ia->max_private_data, 56 - DOFI_WIRE_FIXED - DOFI_WIRE_SECRET);
}

/* like verbs */
static void init_least(void)
{
	fabric_cm_data = 55;
	fabric_key_size = 4;
	init();
}

/* dat_ep_connect() with @size bytes to @conn_qual. The header's room limits @size. */
static DAT_RETURN connect_of(DAT_CONN_QUAL conn_qual, DAT_COUNT size)
{
	DAT_RETURN ret = dofi_ep_connect(ep, some_address(), conn_qual, DAT_TIMEOUT_INFINITE, size,
					 payload, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);

	quiesce();
	if (!ret) {
		cr_expect_eq(sent().data_size, (size_t)size);
		cr_expect(fake_eps.len <= fake.cm_data_size);
		dofi_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
		quiesce();
		event_only(DAT_CONNECTION_EVENT_DISCONNECTED);
		succeed(dofi_ep_reset(ep));
	}
	return ret;
}

Test(msg, a_qualifier_that_is_no_port_takes_private_data_where_there_is_little, .init = init_least)
{
	static const struct {
		DAT_CONN_QUAL qual;
		DAT_COUNT room;
	} rows[] = {
		{ PORT, 51 },		{ UINT16_MAX, 51 }, { 1023, 49 },
		{ UINT16_MAX + 1, 43 }, { MAPPED, 43 },
	};
	size_t i;

	cr_expect_eq(ia->max_private_data, 51);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		succeed(connect_of(rows[i].qual, rows[i].room));
		cr_expect_eq(DAT_GET_TYPE(connect_of(rows[i].qual, rows[i].room + 1)),
			     DAT_INVALID_PARAMETER);
	}
}

/* Without secrets the header reserves no room for one. */
Test(msg, short_keys_leave_more_private_data, .init = init_small)
{
	DAT_COUNT before = ia->max_private_data;
	void *xport_ia = ia->xport_ia;

	ia->fabric.scoped_keys = false;
	cr_assert_eq(dofi_msg_xport.ia_init(ia), 0);
	cr_expect_eq(ia->max_private_data, before + DOFI_WIRE_SECRET);
	free(ia->xport_ia);
	ia->xport_ia = xport_ia;
}

Test(msg, the_ias_state_without_memory)
{
	static struct dofi_ia other;

	nomem_after(0);
	cr_expect_eq(dofi_msg_xport.ia_init(&other), -ENOMEM);
	cr_expect(nomem_failed());
	cr_expect(!other.xport_ia);
}
