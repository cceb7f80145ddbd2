/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Address handles. */

#include "xport/ud/parts.h"

#include "nomem.h"
#include "rings/set.h"

#include <errno.h>
#include <unistd.h>

TestSuite(xport_ud_peer, .init = ud_init, .fini = ud_fini, .timeout = 60);

static bool is_valid(const void *ah)
{
	return ud_peer_is_valid(ud_part(&ud_near), ah);
}

/* The introduction of a peer */

static struct dofi_cm_msg introduction(void)
{
	struct dofi_cm_msg msg = { .kind = DOFI_CM_DATAGRAM_REQUEST };

	ud_introduce(ud_ep_of(ud_far.ep), NULL, &msg);
	return msg;
}

Test(xport_ud_peer, is_introduced_by_what_its_peers_need)
{
	const struct dofi_cm_msg msg = introduction();
	const struct ud_pz *upz = ud_part(&ud_far);

	cr_expect_eq(msg.number, ud_number(ud_far.ep));
	cr_expect_eq(msg.key, upz->key);
	cr_expect_eq(msg.frame_size, upz->rdm.frame_size);
	cr_expect_eq(msg.addr_format, upz->rdm.address_format);
	cr_expect_eq(msg.addr_len, upz->rdm.address_len);
	cr_expect_str_eq(msg.fabric, "shm");
	cr_expect(dofi_host_shares_pids(&msg.host, &ud_ia_of(ia)->host));
}

static bool is_taken(const struct dofi_cm_msg *msg)
{
	struct ud_intro intro;

	return ud_intro_take(&intro, msg, false);
}

Test(xport_ud_peer, needs_a_number_a_key_and_an_address)
{
	const unsigned char zeros[DOFI_RDM_ADDRESS + 1] = { 0 };
	struct dofi_cm_msg msg;

	msg = introduction();
	cr_expect(is_taken(&msg));
	msg.number = 0;
	cr_expect(!is_taken(&msg));
	msg = introduction();
	msg.key = 0;
	cr_expect(!is_taken(&msg));
	msg = introduction();
	msg.addr_len = 0;
	cr_expect(!is_taken(&msg));
	msg = introduction();
	msg.addr = zeros;
	msg.addr_len = DOFI_RDM_ADDRESS;
	cr_expect(is_taken(&msg));
	msg.addr_len++;
	cr_expect(!is_taken(&msg));
}

/* Takes the introduction of a peer on this host, with one of its members changed. */
static bool is_taken_near(const struct dofi_inbox *inbox,
			  void (*change)(struct dofi_cm_msg *msg))
{
	struct ud_intro intro = { .offer = NULL };
	struct dofi_cm_msg msg = introduction();
	bool taken;

	msg.addr = UD_LAYOUT;
	msg.addr_len = sizeof(UD_LAYOUT);
	msg.fd[0] = inbox->fd;
	msg.fd[1] = inbox->rings->doorbell_fd;
	msg.n_fds = 2;
	if (change)
		change(&msg);
	taken = ud_intro_take(&intro, &msg, true);
	cr_expect_eq(taken, intro.offer != NULL);
	ud_intro_drop(&intro);
	return taken;
}

static void lacks_descriptor(struct dofi_cm_msg *msg)
{
	msg->n_fds--;
}

static void has_short_layout(struct dofi_cm_msg *msg)
{
	msg->addr_len--;
}

static void has_other_layout(struct dofi_cm_msg *msg)
{
	msg->addr = "datagrams/0";
}

static void lacks_number(struct dofi_cm_msg *msg)
{
	msg->number = 0;
}

Test(xport_ud_peer, on_this_host_needs_an_inbox_a_doorbell_and_the_layout)
{
	struct dofi_inbox *inbox;
	struct set set;

	set_open(&set, 0, NULL);
	cr_assert_eq(dofi_inbox_open(set.rings, &inbox), 0);
	cr_expect(is_taken_near(inbox, NULL));
	cr_expect(!is_taken_near(inbox, lacks_descriptor));
	cr_expect(!is_taken_near(inbox, has_short_layout));
	cr_expect(!is_taken_near(inbox, has_other_layout));
	cr_expect(!is_taken_near(inbox, lacks_number));
	set_close(&set);
}

/* Uses */

Test(xport_ud_peer, is_one_handle_however_often_it_is_met)
{
	struct ud_peer *first = ud_meet(&ud_near, &ud_far), *second = ud_meet(&ud_near, &ud_far);

	cr_expect_eq(first, second);
	cr_expect_eq(ud_in_table(&ud_near), 1);
	cr_expect(is_valid(first));
	ud_put(first);
	cr_expect(is_valid(first), "it has another use");
	ud_works(&ud_near, first, &ud_far, 10);
	ud_put(second);
	cr_expect(!is_valid(first));
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

Test(xport_ud_peer, is_met_again_after_its_last_use)
{
	unsigned i;

	for (i = 0; i < 20; i++) {
		struct ud_peer *ah = ud_meet(&ud_near, &ud_far);

		ud_works(&ud_near, ah, &ud_far, i);
		ud_put(ah);
		cr_expect(!is_valid(ah));
	}
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

Test(xport_ud_peer, is_one_for_all_eps_of_its_pz)
{
	struct ud_side sibling = ud_far;
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);

	sibling.ep = ud_ep_make(&ud_far);
	cr_expect_eq(ud_meet(&ud_near, &sibling), ah);
	ud_works(&ud_near, ah, &ud_far, 10);
	ud_works(&ud_near, ah, &sibling, 20);
}

Test(xport_ud_peer, with_another_key_is_another)
{
	struct ud_intro intro = ud_intro_of(&ud_far);
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far), *other;

	intro.key ^= 1;
	cr_assert_eq(ud_get(&ud_near, &intro, &other), 0);
	cr_expect(ah != other);
	ud_works(&ud_near, ah, &ud_far, 10);
}

Test(xport_ud_peer, is_found_among_many)
{
	enum { N = 3000 };
	static struct ud_peer *all[N];
	struct ud_intro intro = ud_intro_of(&ud_far);
	struct ud_peer *again;
	const uint64_t key = intro.key;
	unsigned i;

	for (i = 0; i < N; i++) {
		intro.key = key + i;
		cr_assert_eq(ud_get(&ud_near, &intro, &all[i]), 0);
	}
	cr_expect_eq(ud_in_table(&ud_near), N);
	for (i = 0; i < N; i++) {
		intro.key = key + i;
		cr_assert_eq(ud_get(&ud_near, &intro, &again), 0);
		cr_expect_eq(again, all[i]);
		ud_put(again);
		ud_put(all[i]);
		cr_expect(!is_valid(again));
	}
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

Test(xport_ud_peer, may_be_the_pz_itself)
{
	ud_works(&ud_near, ud_meet(&ud_near, &ud_near), &ud_near, 100);
}

/* Checks */

Test(xport_ud_peer, is_no_other_value)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	struct ud_peer copy = *ah;

	cr_expect(is_valid(ah));
	cr_expect(!is_valid(NULL));
	cr_expect(!is_valid(&copy));
	cr_expect(!is_valid((char *)ah + 8));
	cr_expect(!is_valid((char *)ah + 64));
	cr_expect(!is_valid((void *)1));
	cr_expect(!is_valid(NOWHERE));
	cr_expect(!is_valid(ud_near.ep));
	cr_expect(!is_valid((void *)UINTPTR_MAX));
}

Test(xport_ud_peer, is_of_one_pz)
{
	struct ud_peer *ah = ud_meet(&ud_near, &ud_far);
	DAT_LMR_TRIPLET iov = ud_segment(&ud_far, 0, 10);
	const struct dofi_post p = ud_post(&ud_far, ah, ud_far.ep, &iov);

	cr_expect(!ud_peer_is_valid(ud_part(&ud_far), ah));
	expect_arg(dofi_ep_post_send_ud(ud_far.ep, &p), 5);
	cr_expect(event_none(ud_far.evd));
}

Test(xport_ud_peer, is_invalid_once_its_pz_is_closed)
{
	struct ud_peer *ah;

	ud_side_open(&ud_third);
	ah = ud_meet(&ud_third, &ud_far);
	ud_meet(&ud_third, &ud_near);
	ud_side_close(&ud_third);
	cr_expect(!is_valid(ah));
	ud_side_open(&ud_third);
	cr_expect(!ud_peer_is_valid(ud_part(&ud_third), ah));
}

/* Peers that cannot be reached */

static void is_not_reached(struct ud_intro *intro, int why)
{
	struct ud_peer *peer;

	cr_expect_eq(ud_get(&ud_near, intro, &peer), why);
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

Test(xport_ud_peer, of_another_fabric_is_not_reached)
{
	struct ud_intro intro = ud_intro_of(&ud_far);

	memcpy(intro.fabric, "udp", sizeof("udp"));
	is_not_reached(&intro, -EHOSTUNREACH);
}

Test(xport_ud_peer, of_another_host_is_not_reached)
{
	struct ud_intro intro = ud_intro_of(&ud_far);

	memset(&intro.host, 0x55, sizeof(intro.host));
	is_not_reached(&intro, -EHOSTUNREACH);
}

Test(xport_ud_peer, of_another_pid_space_is_not_reached)
{
	struct ud_intro intro = ud_intro_of(&ud_far);
	struct ud_peer *peer;

	intro.host.pid_space++;
	cr_expect(ud_get(&ud_near, &intro, &peer) < 0);
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

/* An address of another kind could name any file. */
Test(xport_ud_peer, with_an_address_of_no_endpoint_is_not_reached)
{
	static const char *const wrong[] = {
		"fi_shm://", "fi_shm:///etc/passwd", "nonsense", "fi_shm://../../tmp/x", "",
	};
	struct ud_intro intro = ud_intro_of(&ud_far);
	struct ud_peer *peer;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		intro.addr_len = strlen(wrong[i]) + 1;
		memcpy(intro.addr, wrong[i], intro.addr_len);
		cr_expect(ud_get(&ud_near, &intro, &peer) < 0, "%s", wrong[i]);
	}
	memset(intro.addr, 0xff, sizeof(intro.addr));
	intro.addr_len = sizeof(intro.addr);
	cr_expect(ud_get(&ud_near, &intro, &peer) < 0);
	cr_expect_eq(ud_in_table(&ud_near), 0);
}

Test(xport_ud_peer, may_lack_memory)
{
	struct ud_intro intro = ud_intro_of(&ud_far);
	struct ud_peer *peer = NULL;
	int n, ret = -1;

	for (n = 0; ret && n < NOMEM_MOST; n++) {
		nomem_after(n);
		ret = ud_get(&ud_near, &intro, &peer);
		if (nomem_failed() && ret)
			cr_expect_eq(ud_in_table(&ud_near), 0);
	}
	cr_assert_eq(ret, 0);
	ud_works(&ud_near, peer, &ud_far, 10);
}
