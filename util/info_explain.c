/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Explains event numbers, return codes, and the values of fields, given as a number or a name. The
 * names of return codes are dat_strerror()'s. dat_event(7) and dat_return(7) have the tables of
 * events and codes, too.
 */
#include "info_explain.h"

#include "dat_select.h"
#include "info_values.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define API_TEXT (DAT_VERSION_MAJOR >= 2 ? "DAT 2.0" : "uDAPL 1.2")
#define CLASS_MASK (DAT_CLASS_ERROR | DAT_CLASS_WARNING)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- events --------------------------------------------------------------- */

struct event {
	DAT_UINT32 number;
	const char *name, *data, *meaning;
};

#define E(name, data, meaning) { (DAT_UINT32)(name), #name, data, meaning }
#define CONN "connect_event_data"
#define ASYNC "asynch_error_event_data"

static const struct event events[] = {
	E(DAT_DTO_COMPLETION_EVENT, "dto_completion_event_data",
	  "A data transfer has completed; its status says how."),
	E(DAT_RMR_BIND_COMPLETION_EVENT, "rmr_completion_event_data",
	  "A bind has completed; its status says how."),
	E(DAT_CONNECTION_REQUEST_EVENT, "cr_arrival_event_data",
	  "A connection request has arrived at a service point."),
	E(DAT_CONNECTION_EVENT_ESTABLISHED, CONN, "The connection is established."),
	E(DAT_CONNECTION_EVENT_PEER_REJECTED, CONN,
	  "The peer's program rejected the request with dat_cr_reject."),
	E(DAT_CONNECTION_EVENT_NON_PEER_REJECTED, CONN,
	  "The request was rejected without the peer's program: no service point listens, its EVD "
	  "is full, another provider listens, the peer died, or the fabric failed."),
	E(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, CONN,
	  "The request was accepted, but the requester is gone or the fabric failed."),
	E(DAT_CONNECTION_EVENT_DISCONNECTED, CONN,
	  "One of the two programs ended the connection or the attempt."),
	E(DAT_CONNECTION_EVENT_BROKEN, CONN,
	  "The connection failed: an operation, the fabric or the peer failed."),
	E(DAT_CONNECTION_EVENT_TIMED_OUT, CONN, "The timeout of the connection request expired."),
	E(DAT_CONNECTION_EVENT_UNREACHABLE, CONN,
	  "The address cannot be reached, or did not answer before the fabric gave up."),
	E(DAT_ASYNC_ERROR_EVD_OVERFLOW, ASYNC, "An EVD was full, and events are lost."),
	E(DAT_ASYNC_ERROR_IA_CATASTROPHIC, ASYNC,
	  "The fabric has failed; the program can only close the IA."),
	E(DAT_ASYNC_ERROR_EP_BROKEN, ASYNC,
	  "An EP or SRQ failed or reached a watermark; see its reason."),
	E(DAT_ASYNC_ERROR_TIMED_OUT, ASYNC, "A wait within the provider timed out."),
	E(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ASYNC, "The provider has an internal error."),
#if DAT_VERSION_MAJOR >= 2
	E(DAT_HA_DOWN_TO_1, ASYNC, "A connection over several paths has one path left."),
	E(DAT_HA_UP_TO_MULTI_PATH, ASYNC,
	  "A connection over several paths has more than one path again."),
#endif
	E(DAT_SOFTWARE_EVENT, "software_event_data", "The program posted it with dat_evd_post_se."),
#if DAT_VERSION_MAJOR >= 2
	E(DAT_EXTENSION_EVENT, "event_extension_data", "The first number for extensions."),
	E(DAT_IB_DTO_EVENT, "dto_completion_event_data and event_extension_data",
	  "An operation of the InfiniBand extension has completed; its status says how."),
	E(DAT_IB_EXTENSION_RANGE_BASE, "event_extension_data",
	  "The first number for the InfiniBand extension."),
	E(DAT_IB_UD_CONNECTION_REQUEST_EVENT, "event_extension_data",
	  "A peer requests an address handle for datagrams."),
	E(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, "event_extension_data",
	  "An address handle for datagrams is available."),
	E(DAT_IB_UD_CONNECTION_REJECT_EVENT, "event_extension_data",
	  "The peer rejected the request for an address handle."),
	E(DAT_IB_UD_CONNECTION_ERROR_EVENT, "event_extension_data",
	  "The exchange of address handles failed."),
	E(DAT_IB_COLLECTIVE_EVENT, "event_extension_data", "A collective operation has completed."),
	E(DAT_IW_EXTENSION_RANGE_BASE, "event_extension_data",
	  "The first number for the iWARP extension."),
#endif
};

static const struct event *event_of_number(DAT_UINT32 number)
{
	size_t i;

	for (i = 0; i < COUNT(events); i++)
		if (events[i].number == number)
			return &events[i];
	return NULL;
}

static const struct event *event_of_name(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(events); i++)
		if (!strcasecmp(events[i].name, name))
			return &events[i];
	return NULL;
}

static void event_print(FILE *out, const struct event *e)
{
	fprintf(out, "0x%05x     event of %s\n", (unsigned int)e->number, API_TEXT);
	fprintf(out, "  name      %s\n", e->name);
	fprintf(out, "  data      %s\n", e->data);
	fprintf(out, "  meaning   %s\n", e->meaning);
}

/* --- return codes --------------------------------------------------------- */

struct part {
	DAT_UINT32 value;
	DAT_UINT32 type; /* of a subtype: its type */
	const char *meaning;
};

static const struct part types[] = {
	{ DAT_SUCCESS, 0,
	  "The call has done its work, or started it and an event reports the end." },
	{ DAT_ABORT, 0, "The object was destroyed while the call waited for it." },
	{ DAT_CONN_QUAL_IN_USE, 0, "Another service point listens at this qualifier or port." },
	{ DAT_INSUFFICIENT_RESOURCES, 0,
	  "Memory, queue space or something of the system ran out." },
	{ DAT_INTERNAL_ERROR, 0,
	  "The provider or the fabric failed in a way without another code." },
	{ DAT_INVALID_HANDLE, 0, "A handle is not that of a live object of the expected kind." },
	{ DAT_INVALID_PARAMETER, 0, "An argument is not valid; the subtype numbers it." },
	{ DAT_INVALID_STATE, 0, "The state of the object does not allow the call." },
	{ DAT_LENGTH_ERROR, 0, "A buffer is too small, or a transfer too long." },
	{ DAT_MODEL_NOT_SUPPORTED, 0, "The provider lacks this optional feature." },
	{ DAT_PROVIDER_NOT_FOUND, 0, "No usable entry has that name, version and thread safety." },
	{ DAT_PRIVILEGES_VIOLATION, 0, "The memory is not registered for that access." },
	{ DAT_PROTECTION_VIOLATION, 0, "The objects do not belong to one PZ." },
	{ DAT_QUEUE_EMPTY, 0, "There is no event to take, or the CNO is not triggered." },
	{ DAT_QUEUE_FULL, 0, "The queue has no space for another event." },
	{ DAT_TIMEOUT_EXPIRED, 0, "The timeout of the wait expired." },
	{ DAT_PROVIDER_ALREADY_REGISTERED, 0, "The registry has a provider of this name already." },
	{ DAT_PROVIDER_IN_USE, 0, "An IA of the provider is open." },
	{ DAT_INVALID_ADDRESS, 0, "The remote address cannot be used." },
	{ DAT_INTERRUPTED_CALL, 0, "A signal ended the wait." },
	{ DAT_CONN_QUAL_UNAVAILABLE, 0, "No connection qualifier is free." },
#if DAT_VERSION_MAJOR >= 2
	{ DAT_RESERVED_LMR, 0, "The LMR is reserved by the provider." },
	{ DAT_PORT_IN_USE, 0, "Another common service point listens at this port." },
	{ DAT_COMM_NOT_SUPPORTED, 0, "This kind of network address is not supported." },
	{ DAT_EXTENSION_BASE, 0, "An operation of an extension failed." },
#endif
	{ DAT_NOT_IMPLEMENTED, 0, "The provider does not have this call." },
};

#define HANDLE(n) \
	{ DAT_INVALID_HANDLE##n, DAT_INVALID_HANDLE, "The handle in argument " #n " is not valid." }
#define ARG(n) \
	{ DAT_INVALID_ARG##n, DAT_INVALID_PARAMETER, \
	  "Argument " #n " is not valid; the first is 1." }
#define IR(name, meaning) { name, DAT_INSUFFICIENT_RESOURCES, meaning }
#define IH(name, meaning) { name, DAT_INVALID_HANDLE, meaning }
#define IS(name, meaning) { name, DAT_INVALID_STATE, meaning }

static const struct part subtypes[] = {
	{ DAT_NO_SUBTYPE, 0, "There is no further detail." },
	{ DAT_SUB_INTERRUPTED, DAT_INTERRUPTED_CALL, "The thread handled a signal." },
	IR(DAT_RESOURCE_MEMORY, "Memory ran out, or a limit on objects was reached."),
	IR(DAT_RESOURCE_DEVICE, "The device or the system lacks it: descriptors, threads, space."),
	IR(DAT_RESOURCE_TEP, "There are too many EPs, or posted operations on one."),
	IR(DAT_RESOURCE_TEVD, "There are too many EVDs, or the queue would be too long."),
	IR(DAT_RESOURCE_PROTECTION_DOMAIN, "There are too many PZs."),
	IR(DAT_RESOURCE_MEMORY_REGION,
	   "There are too many LMRs or RMRs, or too much memory in them."),
	IR(DAT_RESOURCE_ERROR_HANDLER, "There are too many error handlers."),
	IR(DAT_RESOURCE_CREDITS, "Flow control has no credit left."),
	IR(DAT_RESOURCE_SRQ, "There are too many SRQs, or the SRQ is full."),
	IH(DAT_INVALID_HANDLE_IA, "The handle of an IA is not valid."),
	IH(DAT_INVALID_HANDLE_EP, "The handle of an EP is not valid."),
	IH(DAT_INVALID_HANDLE_LMR, "The handle of an LMR is not valid."),
	IH(DAT_INVALID_HANDLE_RMR, "The handle of an RMR is not valid."),
	IH(DAT_INVALID_HANDLE_PZ, "The handle of a PZ is not valid."),
	IH(DAT_INVALID_HANDLE_PSP, "The handle of a PSP is not valid."),
	IH(DAT_INVALID_HANDLE_RSP, "The handle of an RSP is not valid."),
	IH(DAT_INVALID_HANDLE_CR, "The handle of a CR is not valid, or the CR was answered."),
	IH(DAT_INVALID_HANDLE_CNO, "The handle of a CNO is not valid."),
	IH(DAT_INVALID_HANDLE_EVD_CR, "The handle of an EVD for connection requests is not valid."),
	IH(DAT_INVALID_HANDLE_EVD_REQUEST,
	   "The handle of an EVD is not valid: one for requests, or of any kind."),
	IH(DAT_INVALID_HANDLE_EVD_RECV, "The handle of an EVD for receives is not valid."),
	IH(DAT_INVALID_HANDLE_EVD_CONN, "The handle of an EVD for connection events is not valid."),
	IH(DAT_INVALID_HANDLE_EVD_ASYNC,
	   "The handle of an EVD for asynchronous errors is not valid."),
	IH(DAT_INVALID_HANDLE_SRQ, "The handle of an SRQ is not valid."),
#if DAT_VERSION_MAJOR >= 2
	IH(DAT_INVALID_HANDLE_CSP, "The handle of a CSP is not valid."),
#endif
	HANDLE(1), HANDLE(2), HANDLE(3), HANDLE(4), HANDLE(5),
	HANDLE(6), HANDLE(7), HANDLE(8), HANDLE(9), HANDLE(10),
	ARG(1), ARG(2), ARG(3), ARG(4), ARG(5), ARG(6), ARG(7), ARG(8), ARG(9), ARG(10),
	IS(DAT_INVALID_STATE_EP_UNCONNECTED, "The EP is unconnected."),
	IS(DAT_INVALID_STATE_EP_ACTCONNPENDING, "The EP requests a connection."),
	IS(DAT_INVALID_STATE_EP_PASSCONNPENDING, "A request has arrived for the reserved EP."),
	IS(DAT_INVALID_STATE_EP_TENTCONNPENDING, "The provider made the EP for a request."),
	IS(DAT_INVALID_STATE_EP_CONNECTED, "The EP is connected."),
	IS(DAT_INVALID_STATE_EP_DISCONNECTED, "The EP is disconnected; dat_ep_reset comes next."),
	IS(DAT_INVALID_STATE_EP_RESERVED, "The EP is reserved for an RSP."),
	IS(DAT_INVALID_STATE_EP_COMPLPENDING, "The EP has accepted a request."),
	IS(DAT_INVALID_STATE_EP_DISCPENDING, "The EP is disconnecting."),
	IS(DAT_INVALID_STATE_EP_PROVIDERCONTROL, "The EP is still the provider's."),
	IS(DAT_INVALID_STATE_EP_NOTREADY, "The EP lacks a PZ or an EVD that the call needs."),
	IS(DAT_INVALID_STATE_EP_RECV_WATERMARK, "The EP holds more receives than its watermark."),
	IS(DAT_INVALID_STATE_EP_PZ, "The EP has no suitable PZ."),
	IS(DAT_INVALID_STATE_EP_EVD_REQUEST, "The EP has no suitable EVD for requests."),
	IS(DAT_INVALID_STATE_EP_EVD_RECV, "The EP has no suitable EVD for receives."),
	IS(DAT_INVALID_STATE_EP_EVD_CONNECT, "The EP has no EVD for connection events."),
	IS(DAT_INVALID_STATE_EP_UNCONFIGURED, "The EP is unconnected and not configured."),
	IS(DAT_INVALID_STATE_EP_UNCONFRESERVED, "The EP is reserved and not configured."),
	IS(DAT_INVALID_STATE_EP_UNCONFPASSIVE,
	   "A request has arrived for the reserved EP, which is not configured."),
	IS(DAT_INVALID_STATE_EP_UNCONFTENTATIVE,
	   "The provider made the EP for a request, and it is not configured."),
	IS(DAT_INVALID_STATE_CNO_IN_USE, "An EVD or a waiting thread uses the CNO."),
	IS(DAT_INVALID_STATE_CNO_DEAD, "The CNO is being destroyed."),
	IS(DAT_INVALID_STATE_EVD_OPEN, "The EVD is open."),
	IS(DAT_INVALID_STATE_EVD_ENABLED, "The EVD is enabled."),
	IS(DAT_INVALID_STATE_EVD_DISABLED, "The EVD is disabled."),
	IS(DAT_INVALID_STATE_EVD_WAITABLE, "The EVD is waitable."),
	IS(DAT_INVALID_STATE_EVD_UNWAITABLE, "The EVD is unwaitable."),
	IS(DAT_INVALID_STATE_EVD_IN_USE, "An object still uses the EVD."),
	IS(DAT_INVALID_STATE_EVD_CONFIG_NOTIFY,
	   "Some completions on the EVD do not notify, so the threshold must be 1."),
	IS(DAT_INVALID_STATE_EVD_CONFIG_SOLICITED,
	   "The peer decides which completions on the EVD notify, so the threshold must be 1."),
	IS(DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD, "The EVD is configured for a threshold."),
	IS(DAT_INVALID_STATE_EVD_WAITER, "A thread is waiting for the EVD."),
	IS(DAT_INVALID_STATE_EVD_ASYNC, "The EVD is the asynchronous EVD of an IA."),
	IS(DAT_INVALID_STATE_IA_IN_USE, "Objects of the IA still exist."),
	IS(DAT_INVALID_STATE_LMR_IN_USE, "An RMR is bound to the LMR."),
	IS(DAT_INVALID_STATE_LMR_FREE, "The LMR is free."),
	IS(DAT_INVALID_STATE_PZ_IN_USE, "Objects of the PZ still exist."),
	IS(DAT_INVALID_STATE_PZ_FREE, "The PZ is free."),
	IS(DAT_INVALID_STATE_SRQ_OPERATIONAL, "The SRQ is in operation."),
	IS(DAT_INVALID_STATE_SRQ_ERROR, "The SRQ has failed."),
	IS(DAT_INVALID_STATE_SRQ_IN_USE, "An EP uses the SRQ."),
#if DAT_VERSION_MAJOR >= 2
	IS(DAT_INVALID_STATE_SRQ_SHUTDOWN, "The SRQ is shut down."),
#endif
	{ DAT_PRIVILEGES_READ, DAT_PRIVILEGES_VIOLATION, "The access is a local read." },
	{ DAT_PRIVILEGES_WRITE, DAT_PRIVILEGES_VIOLATION, "The access is a local write." },
	{ DAT_PRIVILEGES_RDMA_READ, DAT_PRIVILEGES_VIOLATION, "The access is an RDMA read." },
	{ DAT_PRIVILEGES_RDMA_WRITE, DAT_PRIVILEGES_VIOLATION, "The access is an RDMA write." },
	{ DAT_PROTECTION_READ, DAT_PROTECTION_VIOLATION, "The access is a local read." },
	{ DAT_PROTECTION_WRITE, DAT_PROTECTION_VIOLATION, "The access is a local write." },
	{ DAT_PROTECTION_RDMA_READ, DAT_PROTECTION_VIOLATION, "The access is an RDMA read." },
	{ DAT_PROTECTION_RDMA_WRITE, DAT_PROTECTION_VIOLATION, "The access is an RDMA write." },
	{ DAT_INVALID_ADDRESS_UNSUPPORTED, DAT_INVALID_ADDRESS,
	  "The fabric does not use addresses of this family." },
	{ DAT_INVALID_ADDRESS_UNREACHABLE, DAT_INVALID_ADDRESS,
	  "There is no route to the address." },
	{ DAT_INVALID_ADDRESS_MALFORMED, DAT_INVALID_ADDRESS, "The address is malformed." },
	{ DAT_NAME_NOT_REGISTERED, DAT_PROVIDER_NOT_FOUND,
	  "No entry has the name." },
	{ DAT_MAJOR_NOT_FOUND, DAT_PROVIDER_NOT_FOUND, "All entries have another major version." },
	{ DAT_MINOR_NOT_FOUND, DAT_PROVIDER_NOT_FOUND, "All entries have a lower minor version." },
	{ DAT_THREAD_SAFETY_NOT_FOUND, DAT_PROVIDER_NOT_FOUND, "No entry is threadsafe." },
};

static const struct part *part_of(const struct part *parts, size_t n, DAT_UINT32 value)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (parts[i].value == value)
			return &parts[i];
	return NULL;
}

/* An extension's codes count up through the subtype bits, and have names but no subtypes. */
static bool is_extension(DAT_RETURN code)
{
#if DAT_VERSION_MAJOR >= 2
	return DAT_GET_TYPE(code) == DAT_EXTENSION_BASE;
#else
	(void)code;
	return false;
#endif
}

/*
 * Calls may return a type without a class, such as DAT_QUEUE_EMPTY, but then without a subtype: the
 * other numbers of that form are events. A code has one class at most.
 */
static bool is_code(DAT_RETURN code)
{
	const char *type, *subtype;

	if (!DAT_GET_TYPE(code))
		return code == DAT_SUCCESS;
	if (!(code & CLASS_MASK) && DAT_GET_SUBTYPE(code))
		return false;
	return (code & CLASS_MASK) != CLASS_MASK &&
	       dat_strerror(code, &type, &subtype) == DAT_SUCCESS;
}

static const char *class_text(DAT_RETURN code)
{
	if (code & DAT_CLASS_ERROR)
		return "error: the call failed";
	if (code & DAT_CLASS_WARNING)
		return "warning: the call succeeded, with a condition to report";
	return code ? "none: the call failed nevertheless" : "success";
}

static void subtype_print(FILE *out, DAT_RETURN code, const char *name)
{
	const struct part *p = part_of(subtypes, COUNT(subtypes), DAT_GET_SUBTYPE(code));
	const char *type, *subtype;

	if (is_extension(code))
		fprintf(out, "  subtype   0x%08x  %s\n", (unsigned int)DAT_GET_SUBTYPE(code), name);
	else if (p && p->value == DAT_NO_SUBTYPE)
		fprintf(out, "  subtype   0x00000000  none\n");
	else if (p)
		fprintf(out, "  subtype   0x%08x  %s: %s\n", (unsigned int)p->value, name,
			p->meaning);
	if (is_extension(code) || !p || !p->type || p->type == DAT_GET_TYPE(code))
		return;
	dat_strerror(p->type, &type, &subtype);
	fprintf(out,
		"  note      This subtype belongs to %s; the code may be of the other API "
		"version.\n",
		type);
}

static void code_print(FILE *out, DAT_RETURN code)
{
	const struct part *p = part_of(types, COUNT(types), DAT_GET_TYPE(code));
	const char *type, *subtype;

	dat_strerror(code, &type, &subtype);
	fprintf(out, "0x%08x  return code of %s\n", (unsigned int)code, API_TEXT);
	fprintf(out, "  class     0x%08x  %s\n", (unsigned int)(code & CLASS_MASK),
		class_text(code));
	fprintf(out, "  type      0x%08x  %s: %s\n", (unsigned int)DAT_GET_TYPE(code), type,
		p ? p->meaning : "");
	subtype_print(out, code, subtype);
}

static bool extension_of_name(const char *name, DAT_RETURN *code)
{
#if DAT_VERSION_MAJOR >= 2
	static const DAT_RETURN codes[] = { DAT_IB_ERR, DAT_IB_COLLECTIVE_ERR };
	const char *type, *subtype;
	size_t i;

	for (i = 0; i < COUNT(codes); i++) {
		*code = DAT_CLASS_ERROR | codes[i];
		dat_strerror(*code, &type, &subtype);
		if (!strcasecmp(subtype, name))
			return true;
	}
#else
	(void)name;
	(void)code;
#endif
	return false;
}

/* The return code for the name of a type or subtype: an error, except for DAT_SUCCESS. */
static bool code_of_name(const char *name, DAT_RETURN *code)
{
	const char *type, *subtype;
	size_t i;

	for (i = 0; i < COUNT(types); i++) {
		dat_strerror(types[i].value, &type, &subtype);
		*code = types[i].value ? DAT_CLASS_ERROR | types[i].value : DAT_SUCCESS;
		if (!strcasecmp(type, name))
			return true;
	}
	for (i = 0; i < COUNT(subtypes); i++) {
		*code = DAT_CLASS_ERROR | subtypes[i].type | subtypes[i].value;
		dat_strerror(*code, &type, &subtype);
		if (subtypes[i].value && !strcasecmp(subtype, name))
			return true;
	}
	return extension_of_name(name, code);
}

/* --- numbers and names ---------------------------------------------------- */

/* Programs also print a code by %d, as a negative number. A leading zero is not octal. */
static bool number_parse(const char *text, DAT_UINT32 *number)
{
	const char *digits = text + (*text == '-');
	int base = strncasecmp(digits, "0x", 2) ? 10 : 16;
	long long value;
	char *end;

	if (!strchr("0123456789", *digits) || !*digits)
		return false;
	errno = 0;
	value = strtoll(text, &end, base);
	if (errno || *end || value < INT32_MIN || value > UINT32_MAX)
		return false;
	*number = (DAT_UINT32)value;
	return true;
}

bool explain(FILE *out, const char *text)
{
	const struct event *event;
	DAT_UINT32 number;
	bool is_number = number_parse(text, &number), is_a_code;

	event = is_number ? event_of_number(number) : event_of_name(text);
	is_a_code = is_number ? is_code(number) : code_of_name(text, &number);
	if (event)
		event_print(out, event);
	if (event && is_a_code)
		fprintf(out, "\n");
	if (is_a_code)
		code_print(out, number);
	return values_print(out, is_number ? NULL : text, number, event || is_a_code);
}
