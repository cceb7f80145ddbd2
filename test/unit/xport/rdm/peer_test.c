/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The report of an unknown peer about itself in a request or an answer. It may be invalid. */

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

Test(rdm_peer_asking, a_request_of_a_peer_without_frames_is_refused)
{
	struct dofi_cm_msg msg = request();

	msg.window = 0;
	refused_with(&msg, DOFI_CM_NO_PATH);
}

Test(rdm_peer_asking, a_request_of_a_peer_with_tiny_frames_is_refused)
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

Test(rdm_peer_asking, of_another_pid_space)
{
	struct dofi_cm_msg msg = request();

	msg.host.pid_space++;
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
