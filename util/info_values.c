/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The values that fields of events and of queries have, and their meanings. */
#include "info_values.h"

#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct value {
	DAT_UINT32 number;
	const char *name, *field, *meaning;
};

#define V(field, name, meaning) { (DAT_UINT32)(name), #name, field, meaning }
#define STATUS(name, meaning) V("status of a completion event", name, meaning)
#define DTO(name, meaning) V("operation of a completion event", name, meaning)
#define REASON(object, name, meaning) V("reason of an asynchronous error of " object, name, meaning)
#define EP(name, meaning) V("ep_state of dat_ep_query and dat_ep_get_status", name, meaning)
#define EVD(name, meaning) V("evd_state of dat_evd_query", name, meaning)
#define SRQ(name, meaning) V("srq_state of dat_srq_query", name, meaning)
#define IB(name, meaning) V("status of the InfiniBand extension's event data", name, meaning)
#define TYPE(name, meaning) V("type of the InfiniBand extension's event data", name, meaning)

static const struct value values[] = {
	STATUS(DAT_DTO_SUCCESS, "The operation was executed."),
	STATUS(DAT_DTO_ERR_FLUSHED,
	       "The operation was not executed: the connection ended first, or was never there."),
	STATUS(DAT_DTO_ERR_LOCAL_LENGTH,
	       "The message was longer than the buffers of the receive, or the operation too "
	       "long."),
	STATUS(DAT_DTO_ERR_LOCAL_EP, "The EP failed."),
	STATUS(DAT_DTO_ERR_LOCAL_PROTECTION,
	       "The local memory is not registered for the access, or no longer."),
	STATUS(DAT_DTO_ERR_BAD_RESPONSE, "The peer sent an invalid response."),
	STATUS(DAT_DTO_ERR_REMOTE_ACCESS,
	       "The peer's memory is not registered for the access: a wrong address, length or "
	       "context, or the LMR or RMR was freed."),
	STATUS(DAT_DTO_ERR_REMOTE_RESPONDER,
	       "The peer could not execute the operation, such as a message longer than its "
	       "receive."),
	STATUS(DAT_DTO_ERR_TRANSPORT, "The fabric or the peer's process failed."),
	STATUS(DAT_DTO_ERR_RECEIVER_NOT_READY, "The peer posted no receive for too long."),
	STATUS(DAT_DTO_ERR_PARTIAL_PACKET, "A part of a message arrived."),
	STATUS(DAT_RMR_OPERATION_FAILED, "The bind failed."),
#if DAT_VERSION_MAJOR >= 2
	STATUS(DAT_DTO_ERR_LOCAL_MM_ERROR, "The management of local memory failed."),
	DTO(DAT_DTO_SEND, "A send."),
	DTO(DAT_DTO_RDMA_WRITE, "An RDMA write."),
	DTO(DAT_DTO_RDMA_READ, "An RDMA read."),
	DTO(DAT_DTO_RECEIVE, "A receive."),
	DTO(DAT_DTO_RECEIVE_WITH_INVALIDATE, "A receive whose message also invalidated an RMR."),
	DTO(DAT_DTO_BIND_MW, "A bind of an RMR."),
	DTO(DAT_DTO_LMR_FMR, "A fast registration of an LMR."),
	DTO(DAT_DTO_LMR_INVALIDATE, "The invalidation of an LMR."),
	DTO(DAT_DTO_EXTENSION_BASE, "The first operation of an extension."),
#endif
	EP(DAT_EP_STATE_UNCONNECTED, "The EP is new or reset."),
	EP(DAT_EP_STATE_UNCONFIGURED_UNCONNECTED,
	   "The EP is new or reset, and lacks a PZ or an EVD."),
	EP(DAT_EP_STATE_RESERVED, "The EP is reserved for an RSP."),
	EP(DAT_EP_STATE_UNCONFIGURED_RESERVED,
	   "The EP is reserved for an RSP, and lacks a PZ or an EVD."),
	EP(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
	   "A request has arrived at the RSP of the EP, and is not answered."),
	EP(DAT_EP_STATE_UNCONFIGURED_PASSIVE,
	   "A request has arrived at the RSP of the EP, which lacks a PZ or an EVD."),
	EP(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
	   "dat_ep_connect was called, and an event reports its result."),
	EP(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	   "The provider made the EP for a request, which is not answered."),
	EP(DAT_EP_STATE_UNCONFIGURED_TENTATIVE,
	   "The provider made the EP for a request, and the EP lacks a PZ or an EVD."),
	EP(DAT_EP_STATE_CONNECTED, "Operations can be posted and are executed."),
	EP(DAT_EP_STATE_DISCONNECT_PENDING,
	   "dat_ep_disconnect was called; posted operations are executed first, if it was "
	   "graceful."),
	EP(DAT_EP_STATE_DISCONNECTED,
	   "The connection or the attempt has ended; dat_ep_reset makes the EP usable again."),
	EP(DAT_EP_STATE_COMPLETION_PENDING,
	   "dat_cr_accept was called, and an event reports its result."),
#if DAT_VERSION_MAJOR >= 2
	EP(DAT_EP_STATE_CONNECTED_SINGLE_PATH,
	   "The connection over several paths has one path left."),
	EP(DAT_EP_STATE_CONNECTED_MULTI_PATH, "The connection has several paths."),
#endif
	EVD(DAT_EVD_STATE_ENABLED, "A bit: events trigger the CNO."),
	EVD(DAT_EVD_STATE_DISABLED, "A bit: events do not trigger the CNO."),
	EVD(DAT_EVD_STATE_WAITABLE, "A bit: dat_evd_wait waits."),
	EVD(DAT_EVD_STATE_UNWAITABLE, "A bit: dat_evd_wait is refused."),
	EVD(DAT_EVD_STATE_CONFIG_NOTIFY, "A bit: signalled completions notify."),
	EVD(DAT_EVD_STATE_CONFIG_SOLICITED, "A bit: completions notify if the peer asked for it."),
	EVD(DAT_EVD_STATE_CONFIG_THRESHOLD, "Two bits: the threshold of the wait decides."),
	SRQ(DAT_SRQ_STATE_ERROR, "The SRQ failed, and delivers no more buffers."),
	SRQ(DAT_SRQ_STATE_OPERATIONAL, "The SRQ works."),
#if DAT_VERSION_MAJOR >= 2
	SRQ(DAT_SRQ_STATE_SHUTDOWN, "The SRQ is shut down."),
#endif
	REASON("an IA", DAT_IA_CATASTROPHIC_ERROR, "The fabric failed; close the IA."),
	REASON("an IA", DAT_IA_OTHER_ERROR, "Another error of the IA."),
	REASON("an EP", DAT_EP_TRANSFER_TO_ERROR, "The EP can transfer no more data."),
	REASON("an EP", DAT_EP_OTHER_ERROR, "Another error of the EP."),
	REASON("an EP", DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT,
	       "No error: the EP holds more receives of its SRQ than its soft watermark."),
	REASON("an EVD", DAT_EVD_OVERFLOW_ERROR, "The EVD was full, and events are lost."),
	REASON("an EVD", DAT_EVD_OTHER_ERROR, "Another error of the EVD."),
	REASON("an SRQ", DAT_SRQ_TRANSFER_TO_ERROR, "The SRQ can deliver no more buffers."),
	REASON("an SRQ", DAT_SRQ_OTHER_ERROR, "Another error of the SRQ."),
	REASON("an SRQ", DAT_SRQ_LOW_WATERMARK_EVENT,
	       "No error: the SRQ has fewer receives than its low watermark."),
	REASON("an LMR", DAT_LMR_OTHER_ERROR, "An error of the LMR."),
	REASON("an RMR", DAT_RMR_OTHER_ERROR, "An error of the RMR."),
	REASON("a PZ", DAT_PZ_OTHER_ERROR, "An error of the PZ."),
#if DAT_VERSION_MAJOR >= 2
	IB(DAT_OP_SUCCESS, "The operation was executed."),
	IB(DAT_IB_OP_ERR, "The operation failed; the completion's status says how."),
	IB(DAT_IB_COLL_COMP_ERR, "A collective operation failed."),
	TYPE(DAT_IB_FETCH_AND_ADD, "A fetch-and-add: the old value is in the local buffer."),
	TYPE(DAT_IB_CMP_AND_SWAP, "A compare-and-swap: the old value is in the local buffer."),
	TYPE(DAT_IB_RDMA_WRITE_IMMED, "An RDMA write with immediate data."),
	TYPE(DAT_IB_RDMA_WRITE_IMMED_DATA, "Immediate data of a peer's RDMA write has arrived."),
	TYPE(DAT_IB_RECV_IMMED_DATA, "A peer's send with immediate data has arrived."),
	TYPE(DAT_IB_UD_CONNECT_REQUEST, "A request for an address handle has arrived."),
	TYPE(DAT_IB_UD_REMOTE_AH, "The requester has the address handle."),
	TYPE(DAT_IB_UD_PASSIVE_REMOTE_AH, "The acceptor has the address handle."),
	TYPE(DAT_IB_UD_SEND, "A datagram was sent."),
	TYPE(DAT_IB_UD_RECV, "A datagram has arrived."),
	TYPE(DAT_IB_UD_CONNECT_REJECT, "The request for an address handle was rejected."),
	TYPE(DAT_IB_UD_CONNECT_ERROR, "The exchange of address handles failed."),
#endif
};

bool values_print(FILE *out, const char *name, DAT_UINT32 number, bool printed)
{
	size_t i;

	for (i = 0; i < COUNT(values); i++) {
		const struct value *v = &values[i];

		if (name ? strcasecmp(v->name, name) : v->number != number)
			continue;
		fprintf(out, "%s%-11u %s of %s\n", printed ? "\n" : "", (unsigned int)v->number,
			v->field, DAT_VERSION_MAJOR >= 2 ? "DAT 2.0" : "uDAPL 1.2");
		fprintf(out, "  name      %s\n", v->name);
		fprintf(out, "  meaning   %s\n", v->meaning);
		printed = true;
	}
	return printed;
}
