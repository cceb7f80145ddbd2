/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoint: the consumer's calls on a connection: connect, duplicate, disconnect, reset. */

#include "obj/ep/ep_cm.h"

#include "base/clock.h"
#include "obj/caps.h"
#include "obj/ep/datagram.h"

#include <netinet/in.h>
#include <string.h>

static DAT_RETURN address_take(const struct sockaddr *address, struct sockaddr_storage *peer)
{
	if (!address)
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED),
				    DOFI_CM, "no address to connect to");
	memset(peer, 0, sizeof(*peer));
	switch (address->sa_family) {
	case AF_INET:
		memcpy(peer, address, sizeof(struct sockaddr_in));
		return DAT_SUCCESS;
	case AF_INET6:
		memcpy(peer, address, sizeof(struct sockaddr_in6));
		return DAT_SUCCESS;
	default:
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED),
				    DOFI_CM, "the address has the family %d; permitted: AF_INET "
				    "(%d) or AF_INET6 (%d)", address->sa_family, AF_INET, AF_INET6);
	}
}

/* The arguments that all calls that connect have in common. */
struct attempt {
	struct sockaddr_storage peer;
	DAT_CONN_QUAL conn_qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT data_size;
	const void *data;
	DAT_QOS qos;
};

/* The time-out is argument @first of the call (DAT_INVALID_ARG...), the private data the next. */
static DAT_RETURN attempt_check(const struct dofi_ep *ep, const struct attempt *a,
				DAT_RETURN_SUBTYPE first)
{
	const struct dofi_ia *ia = ep->obj.ia;
	DAT_COUNT most = ia->max_private_data;

	/* the private data of a datagram EP's request does not pass the fabric */
	if (!ep->datagrams && ia->xport->request_data_max)
		most = ia->xport->request_data_max(ia, a->conn_qual);
	if (!a->timeout)
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_PARAMETER, first), DOFI_CM,
				    "timeout is 0; permitted: from 1 on");
	if (a->data_size < 0 || a->data_size > most)
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_PARAMETER, first + 1), DOFI_CM,
				    "private_data_size is %d; permitted: 0 to %d", a->data_size,
				    most);
	if (a->data_size && !a->data)
		return DOFI_REFUSED(DOFI_RET(DAT_INVALID_PARAMETER, first + 2), DOFI_CM,
				    "no private_data, with a size of %d", a->data_size);
	if (!dofi_qos_known(a->qos))
		return DOFI_REFUSED(DOFI_NOT_SUPPORTED, DOFI_CM, "quality_of_service is %#x; "
				    "permitted: DAT_QOS_BEST_EFFORT or one of dat_qos_supported",
				    a->qos);
	return DAT_SUCCESS;
}

static void request_fill(struct dofi_request *request, const struct attempt *a)
{
	request->peer = a->peer;
	request->conn_qual = a->conn_qual;
	dofi_request_set(request, dofi_deadline(a->timeout), a->qos, a->data, a->data_size);
}

static DAT_RETURN attempt_start(struct dofi_ep *ep, const struct attempt *a)
{
	struct dofi_request request;
	DAT_RETURN ret = DAT_SUCCESS;

	if (ep->datagrams) {
		request_fill(&request, a);
		return dofi_datagram_connect(ep, &request);
	}
	dofi_mutex_lock(&ep->lock);
	if (ep->state != DAT_EP_STATE_UNCONNECTED) {
		ret = dofi_ep_refuse(ep, "dat_ep_connect");
	} else if (!ep->pz || !ep->connect_evd) {
		ret = DOFI_REFUSED(DOFI_BAD_STATE(EP_NOTREADY), DOFI_CM,
				   "the EP to connect has no %s", ep->pz ? "connect EVD" : "PZ");
	} else {
		request_fill(&ep->request, a);
		ep->remote_port = a->conn_qual;
		ep->local_port = 0;
		ep->attempt = 0;
		ep->n_connect++;
		dofi_count_exactly(&ep->obj.ia->count.connect);
		dofi_ep_state_set(ep, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		dofi_ep_todo(ep, DOFI_EP_CONNECT);
	}
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dofi_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
			   DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT data_size,
			   const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	struct attempt a = {
		.conn_qual = conn_qual, .timeout = timeout, .data_size = data_size, .data = data,
		.qos = qos,
	};
	DAT_RETURN ret;

	if (!ep)
		return DOFI_REFUSED(DOFI_BAD_HANDLE(EP), DOFI_CM,
				    "dat_ep_connect: %p is no live EP", ep_handle);
	ret = address_take((const struct sockaddr *)address, &a.peer);
	if (!ret && !conn_qual)
		ret = DOFI_REFUSED(DOFI_BAD_ARG(3), DOFI_CM,
				   "remote_conn_qual is 0; permitted: from 1 on");
	if (!ret)
		ret = attempt_check(ep, &a, DAT_INVALID_ARG4);
	if (!ret && flags != DAT_CONNECT_DEFAULT_FLAG)
		ret = DOFI_REFUSED(DOFI_NOT_SUPPORTED, DOFI_CM, "connect_flags are %#x; "
				   "permitted: DAT_CONNECT_DEFAULT_FLAG (%#x)", flags,
				   DAT_CONNECT_DEFAULT_FLAG);
	return ret ? ret : attempt_start(ep, &a);
}

#if DAT_VERSION_MAJOR >= 2
/* A common service point's qualifier is the port of the address. */
DAT_RETURN dofi_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT data_size, const DAT_PVOID data)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	struct attempt a = {
		.timeout = timeout, .data_size = data_size, .data = data,
		.qos = DAT_QOS_BEST_EFFORT,
	};
	DAT_RETURN ret;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	ret = address_take((const struct sockaddr *)address, &a.peer);
	if (ret)
		return ret;
	/* the port is at the same offset in the addresses of both families */
	a.conn_qual = ntohs(((struct sockaddr_in *)&a.peer)->sin_port);
	if (!a.conn_qual)
		return DOFI_RET(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	ret = attempt_check(ep, &a, DAT_INVALID_ARG3);
	return ret ? ret : attempt_start(ep, &a);
}
#endif

/* The flags are the duplicated endpoint's: there is only the default. */
DAT_RETURN dofi_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE dup_handle,
			       DAT_TIMEOUT timeout, DAT_COUNT data_size, const DAT_PVOID data,
			       DAT_QOS qos)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	struct dofi_ep *dup DOFI_CALL = dofi_ep_enter(dup_handle);
	struct attempt a = {
		.timeout = timeout, .data_size = data_size, .data = data, .qos = qos,
	};
	DAT_RETURN ret;

	if (!ep || !dup || dup->obj.ia != ep->obj.ia || ep->datagrams || dup->datagrams)
		return DOFI_BAD_HANDLE(EP);
	/* how much the request carries depends on the peer, but arguments are checked first */
	ret = attempt_check(ep, &a, DAT_INVALID_ARG3);
	if (ret)
		return ret;
	/* @dup is connected to the peer that a query of it returns */
	dofi_mutex_lock(&dup->lock);
	if (dup->state == DAT_EP_STATE_CONNECTED) {
		a.peer = dup->request.peer;
		a.conn_qual = dup->remote_port;
	} else {
		ret = dofi_ep_bad_state(dup);
	}
	dofi_mutex_unlock(&dup->lock);
	if (!ret)
		ret = attempt_check(ep, &a, DAT_INVALID_ARG3);
	return ret ? ret : attempt_start(ep, &a);
}

static DAT_RETURN disconnect(struct dofi_ep *ep, DAT_CLOSE_FLAGS flags) DOFI_NEEDS(ep->lock)
{
	switch (ep->state) {
	case DAT_EP_STATE_DISCONNECTED:
		return DAT_SUCCESS;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
		return DAT_SUCCESS;
	case DAT_EP_STATE_CONNECTED:
		dofi_ep_state_set(ep, DAT_EP_STATE_DISCONNECT_PENDING);
		/* closes when the last request is done; the program need not poll until then */
		if (flags == DAT_CLOSE_GRACEFUL_FLAG) {
			ep->graceful = true;
			dofi_cq_sleep_begin(ep->cq);
		}
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		break;
	default:
		return dofi_ep_bad_state(ep);
	}
	if (flags == DAT_CLOSE_ABRUPT_FLAG && ep->finishing) {
		ep->finishing = false;
		dofi_ep_todo(ep, DOFI_EP_CLOSE);
	} else if (flags == DAT_CLOSE_ABRUPT_FLAG) {
		dofi_ep_end(ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else {
		dofi_ep_request_done(ep);
	}
	return DAT_SUCCESS;
}

DAT_RETURN dofi_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS flags)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_RETURN ret;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return DOFI_BAD_ARG(2);
	/* there is nothing to disconnect, but OFED's programs may call this for all EPs */
	if (ep->datagrams)
		return DAT_SUCCESS;
	dofi_mutex_lock(&ep->lock);
	ep->n_disconnect++;
	dofi_count_exactly(&ep->obj.ia->count.disconnect);
	ret = disconnect(ep, flags);
	dofi_mutex_unlock(&ep->lock);
	return ret;
}

DAT_RETURN dofi_ep_reset(DAT_EP_HANDLE ep_handle)
{
	struct dofi_ep *ep DOFI_CALL = dofi_ep_enter(ep_handle);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return DOFI_BAD_HANDLE(EP);
	dofi_mutex_lock(&ep->lock);
	if (ep->state == DAT_EP_STATE_DISCONNECTED) {
		dofi_ep_state_set(ep, DAT_EP_STATE_UNCONNECTED);
		ep->peer_data_size = 0;
		ep->local_port = ep->remote_port = 0;
	} else if (ep->state != DAT_EP_STATE_UNCONNECTED) {
		ret = dofi_ep_bad_state(ep);
	}
	dofi_mutex_unlock(&ep->lock);
	return ret;
}
