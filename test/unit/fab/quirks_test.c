/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of quirks: which fabrics a row applies to. */

#include "fab/quirks.h"

#include "fab/fake.h"

#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <stdlib.h>

static const char *const measured[] = { "verbs", "tcp", "sockets", "efa", "shm",
					"tcp;ofi_rxm", "udp;ofi_rxd" };
#define MEASURED (sizeof(measured) / sizeof(measured[0]))

Test(quirks, preference_is_hardware_then_faster_software)
{
	int i;

	for (i = 0; i < 3; i++)
		cr_expect_eq(dofi_quirk_of(measured[i])->rank, i + 1, "%s", measured[i]);
}

Test(quirks, unknown_fabrics_come_last)
{
	const struct dofi_quirk *q = dofi_quirk_of("nosuch");

	cr_expect(q->rank > dofi_quirk_of("sockets")->rank);
	cr_expect(!q->late_listen_error);
	cr_expect(!q->misses_end_while_blocked);
}

Test(quirks, names_match_in_full)
{
	static const char *const other[] = { "", "tc", "tcpx", "tcp;ofi_rx", "TCP", "sockets ",
					     "ofi_rxm", "tcp;ofi_rxm2" };
	size_t i;

	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		cr_expect_eq(dofi_quirk_of(other[i]), dofi_quirk_of("nosuch"), "%s", other[i]);
}

Test(quirks, every_row_has_a_reason)
{
	size_t i;

	for (i = 0; i < MEASURED; i++)
		cr_expect(*dofi_quirk_of(measured[i])->reason, "%s", measured[i]);
	cr_expect(*dofi_quirk_of("nosuch")->reason);
	cr_expect(*dofi_quirk_of_datagrams("udp")->reason);
	cr_expect(*dofi_quirk_of_datagrams("verbs")->reason);
}

/* A fabric may have connections and datagrams, which have different quirks. */
Test(quirks, datagrams_have_rows_of_their_own)
{
	cr_expect_eq(dofi_quirk_of("udp"), dofi_quirk_of("nosuch"));
	cr_expect_eq(dofi_quirk_of_datagrams("tcp"), dofi_quirk_of("nosuch"));
	cr_expect(dofi_quirk_of_datagrams("udp")->datagrams);
	cr_expect(dofi_quirk_of_datagrams("verbs")->datagrams);
	cr_expect(!dofi_quirk_of("verbs")->datagrams);
}

Test(quirks, a_layer_is_the_same_over_any_fabric)
{
	cr_expect_eq(dofi_quirk_of("sockets;ofi_rxm"), dofi_quirk_of("verbs;ofi_rxm"));
	cr_expect(dofi_quirk_of("sockets;ofi_rxm") != dofi_quirk_of("nosuch"));
}

/* Otherwise frames that only tcp keeps in order would be sent over a fabric that reorders them. */
Test(quirks, a_layer_over_one_fabric_is_another_where_it_was_seen)
{
	const struct dofi_quirk *any = dofi_quirk_of("verbs;ofi_rxm");
	const bool seen = FI_VERSION_GE(FI_VERSION(1, 17), fi_version());

	cr_expect_eq(dofi_quirk_of("tcp;ofi_rxm") != any, seen);
	cr_expect_eq(dofi_quirk_of("tcp;ofi_rxm")->frame_size > 64 * 1024, seen);
	cr_expect_eq(any->frame_size, 16384);
}

Test(quirks, a_user_can_make_it_the_layer_over_any)
{
	static const char *const setting[] = {
		"FI_OFI_RXM_ENABLE_DYN_RBUF", "FI_OFI_RXM_ENABLE_DIRECT_SEND",
		"FI_OFI_RXM_ENABLE_PASSTHRU",
	};
	const struct dofi_quirk *itself = dofi_quirk_of("tcp;ofi_rxm");
	size_t i;

	for (i = 0; i < sizeof(setting) / sizeof(setting[0]); i++) {
		setenv(setting[i], "0", 1);
		cr_expect_eq(dofi_quirk_of("tcp;ofi_rxm"), dofi_quirk_of("verbs;ofi_rxm"), "%s",
			     setting[i]);
		unsetenv(setting[i]);
		cr_expect_eq(dofi_quirk_of("tcp;ofi_rxm"), itself, "%s", setting[i]);
	}
}

Test(quirks, event_queues_have_data_since_1_18)
{
	static const struct {
		uint32_t version;
		const char *provider;
		bool data;
	} known[] = {
		{ FI_VERSION(1, 17), "tcp", false },
		{ FI_VERSION(1, 18), "tcp", true },
		{ FI_VERSION(2, 1), "tcp", true },
		{ FI_VERSION(2, 6), "tcp", true },
		{ FI_VERSION(2, 6), "sockets", false },
		{ FI_VERSION(2, 6), "verbs", false },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct dofi_quirk *q;

		fake.version = known[i].version;
		q = dofi_quirk_of(known[i].provider);
		cr_expect_eq(q->data_in_eq, known[i].data, "%s", known[i].provider);
	}
}

/* Since 1.18 fi_trywait() of tcp reads nothing, so the caller must read earlier arrivals. */
Test(quirks, waiting_for_a_queue_may_be_a_read)
{
	fake.version = FI_VERSION(1, 17);
	cr_expect(dofi_quirk_of("tcp")->trywait_reads && dofi_quirk_of("verbs")->trywait_reads);
	cr_expect(!dofi_quirk_of("nosuch")->trywait_reads);
	fake.version = FI_VERSION(1, 18);
	cr_expect(!dofi_quirk_of("tcp")->trywait_reads);
	fake.version = FI_VERSION(2, 6);
	cr_expect(!dofi_quirk_of("tcp")->trywait_reads && dofi_quirk_of("verbs")->trywait_reads);
}

/* A refused fabric is never used. For each fabric that is used, it is known how far to trust it. */
Test(quirks, a_fabric_that_nobody_measured_moves_messages_alone)
{
	const struct dofi_quirk *q = dofi_quirk_of("nosuch");

	cr_expect(!q->refused && q->target_rdma && q->frame_size);
	cr_expect(dofi_quirk_of("udp;ofi_rxd")->refused && dofi_quirk_of("ucx")->refused);
	cr_expect(!dofi_quirk_of("efa")->target_rdma && dofi_quirk_of("efa")->may_emulate);
	cr_expect(dofi_quirk_of("cxi")->target_rdma && dofi_quirk_of("psm3")->target_rdma);
}
