/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an unknown peer reports of itself in a request or an answer. It may be invalid. */

#include "xport/rdm/peer.h"

#include "xport/cm/talk.h"

/* In a request: it is refused without an event */

TestSuite(rdm_peer_asking, .init = talk_init, .fini = talk_fini, .timeout = 60);

Test(rdm_peer_asking, of_another_fabric)
{
	struct dofi_cm_msg msg = request();

	strcpy(msg.fabric, "sockets");
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, that_takes_no_frames)
{
	struct dofi_cm_msg msg = request();

	msg.window = 0;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, that_takes_but_tiny_ones)
{
	struct dofi_cm_msg msg = request();

	msg.frame_size = RDM_FRAME_LEAST - 1;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, of_another_host)
{
	struct dofi_cm_msg msg = request();

	msg.host.boot[15] ^= 1;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, of_another_device)
{
	struct dofi_cm_msg msg = request();

	msg.host.shm_device++;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, of_another_shm)
{
	struct dofi_cm_msg msg = request();

	msg.host.shm_inode++;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, of_another_pid_space)
{
	struct dofi_cm_msg msg = request();

	msg.host.pid_space++;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, of_another_user)
{
	struct dofi_cm_msg msg = request();

	msg.host.uid++;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, with_a_page_that_is_not_there)
{
	struct dofi_cm_msg msg = request();

	msg.page[0] = 'x';
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, with_a_page_that_is_not_its_own)
{
	struct dofi_cm_msg msg = request();

	msg.page_cookie[0] ^= 1;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

/* The fabric would notice only at the first message, and then wait forever. */
Test(rdm_peer_asking, with_an_endpoint_that_is_not_there)
{
	struct dofi_cm_msg msg = request();
	char address[DOFI_RDM_ADDRESS];

	msg.addr_len = snprintf(address, sizeof(address), "fi_shm://%s.77", msg.page) + 1;
	msg.addr = (unsigned char *)address;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, with_an_endpoint_of_another)
{
	struct dofi_cm_msg msg = request();
	char address[DOFI_RDM_ADDRESS];

	memcpy(address, msg.addr, msg.addr_len);
	address[sizeof("fi_shm://dat-ofi-") - 1] ^= 1;
	msg.addr = (unsigned char *)address;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

/* In an answer: it ends the attempt */

TestSuite(rdm_peer_answering, .init = talk_init, .fini = talk_fini, .timeout = 60);

static void answer_leads_to(const struct dofi_cm_msg *msg, DAT_EVENT_NUMBER number)
{
	peer_send_cm(&peer, msg);
	ends_with(number);
}

Test(rdm_peer_answering, of_another_host)
{
	struct dofi_cm_msg msg;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	msg.host.boot[0] ^= 1;
	answer_leads_to(&msg, DAT_CONNECTION_EVENT_UNREACHABLE);
}

Test(rdm_peer_answering, of_another_fabric)
{
	struct dofi_cm_msg msg;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	strcpy(msg.fabric, "efa");
	answer_leads_to(&msg, DAT_CONNECTION_EVENT_UNREACHABLE);
}

Test(rdm_peer_answering, with_a_page_of_another)
{
	struct dofi_cm_msg msg;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	msg.page_cookie[3] ^= 1;
	answer_leads_to(&msg, DAT_CONNECTION_EVENT_UNREACHABLE);
}

/* The peer's page is gone because the peer is. */
Test(rdm_peer_answering, a_peer_that_accepts_and_dies_is_not_unreachable)
{
	struct dofi_cm_msg msg;

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	strcpy(msg.page, "dat-ofi-0000000000000000");
	answer_leads_to(&msg, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

Test(rdm_peer_answering, with_an_endpoint_that_is_gone)
{
	struct dofi_cm_msg msg;
	char address[DOFI_RDM_ADDRESS];

	is_asked();
	msg = peer_msg(&peer, DOFI_CM_ACCEPT);
	msg.addr_len = snprintf(address, sizeof(address), "fi_shm://%s.77", msg.page) + 1;
	msg.addr = (unsigned char *)address;
	answer_leads_to(&msg, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}
