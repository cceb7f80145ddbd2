/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* The return code of a DAT call: class, type and subtype in one 32-bit code. */

#ifndef _DAT_ERROR_H_
#define _DAT_ERROR_H_

#include <dat/dat_platform_specific.h>

/*
 * Layout of a DAT_RETURN
 *
 * Bits 31-30 hold the class, bits 29-16 the type, bits 15-0 the subtype. A code
 * without class bits is still an error when its type is not DAT_SUCCESS: some
 * providers return DAT_QUEUE_EMPTY and DAT_NOT_IMPLEMENTED that way. Compare types
 * with DAT_GET_TYPE().
 */
typedef DAT_UINT32 DAT_RETURN;	/* of every call: class | type | subtype */

#define DAT_CLASS_ERROR		0x80000000U	/* the call failed */
#define DAT_CLASS_WARNING	0x40000000	/* the call succeeded with a warning */
#define DAT_CLASS_SUCCESS	0		/* the call succeeded */
#define DAT_TYPE_MASK		0x3fff0000	/* bits of the type */
#define DAT_SUBTYPE_MASK	0xffff		/* bits of the subtype */

/* Non-zero if the code is a warning: the call succeeded, with a condition to report. */
#define DAT_IS_WARNING(status)	((DAT_UINT32)(status) & DAT_CLASS_WARNING)

/* The type: one of DAT_RETURN_TYPE. Compare this, not the whole code. */
#define DAT_GET_TYPE(status)	((DAT_UINT32)(status) & DAT_TYPE_MASK)

/* The subtype: one of DAT_RETURN_SUBTYPE, the detail of the type. */
#define DAT_GET_SUBTYPE(status)	((DAT_UINT32)(status) & DAT_SUBTYPE_MASK)

/*
 * Types and subtypes
 */

/*
 * Types of result. The values are already shifted into the type bits; they carry no class.
 */
typedef enum dat_return_type {
	/* done, or started; an event reports completion */
	DAT_SUCCESS			= 0x00000000,
	/* the object was destroyed while the call waited on it */
	DAT_ABORT			= 0x00010000,
	/* another service point has this qualifier */
	DAT_CONN_QUAL_IN_USE		= 0x00020000,
	DAT_INSUFFICIENT_RESOURCES	= 0x00030000,	/* memory, device or queue space ran out */
	DAT_INTERNAL_ERROR		= 0x00040000,	/* internal error of the provider */
	/* not a valid handle of the type that the call expects */
	DAT_INVALID_HANDLE		= 0x00050000,
	/* the argument named by the subtype is not legal */
	DAT_INVALID_PARAMETER		= 0x00060000,
	/* the object's state does not allow the call */
	DAT_INVALID_STATE		= 0x00070000,
	/* a buffer is too small, or a transfer too long */
	DAT_LENGTH_ERROR		= 0x00080000,
	/* an optional feature this provider lacks */
	DAT_MODEL_NOT_SUPPORTED		= 0x00090000,
	/* no provider of that name, version and thread safety */
	DAT_PROVIDER_NOT_FOUND		= 0x000a0000,
	/* the memory is not registered for that access */
	DAT_PRIVILEGES_VIOLATION	= 0x000b0000,
	DAT_PROTECTION_VIOLATION	= 0x000c0000,	/* the memory belongs to another PZ */
	DAT_QUEUE_EMPTY			= 0x000d0000,	/* nothing to dequeue */
	DAT_QUEUE_FULL			= 0x000e0000,	/* no space for another event */
	DAT_TIMEOUT_EXPIRED		= 0x000f0000,	/* the wait reached its timeout */
	DAT_PROVIDER_ALREADY_REGISTERED	= 0x00100000,	/* the registry has this name already */
	DAT_PROVIDER_IN_USE		= 0x00110000,	/* an IA of the provider is open */
	DAT_INVALID_ADDRESS		= 0x00120000,	/* the remote address cannot be used */
	DAT_INTERRUPTED_CALL		= 0x00130000,	/* a signal ended the wait */
	DAT_CONN_QUAL_UNAVAILABLE	= 0x00140000,	/* no connection qualifier is available */
	DAT_NOT_IMPLEMENTED		= 0x0fff0000	/* this provider does not have the call */
} DAT_RETURN_TYPE;

#define DAT_NAME_NOT_FOUND	DAT_PROVIDER_NOT_FOUND	/* its name in DAT 1.0 */

/* The detail of a type. Numbers differ between DAT 1.2 and 2.0, so use the names. */
typedef enum dat_return_subtype {
	/* any type */
	DAT_NO_SUBTYPE				= 0,	/* no detail */

	/* DAT_INTERRUPTED_CALL */
	DAT_SUB_INTERRUPTED			= 1,

	/* DAT_INSUFFICIENT_RESOURCES: the exhausted resource */
	DAT_RESOURCE_MEMORY			= 2,
	/* also descriptors, threads: they have no subtype */
	DAT_RESOURCE_DEVICE			= 3,
	/* endpoints, or queue space for posted operations */
	DAT_RESOURCE_TEP			= 4,
	DAT_RESOURCE_TEVD			= 5,	/* event dispatchers, or their length */
	DAT_RESOURCE_PROTECTION_DOMAIN		= 6,
	DAT_RESOURCE_MEMORY_REGION		= 7,
	DAT_RESOURCE_ERROR_HANDLER		= 8,
	DAT_RESOURCE_CREDITS			= 9,	/* flow control credits */
	DAT_RESOURCE_SRQ			= 10,

	/* DAT_INVALID_HANDLE: which handle is bad */
	DAT_INVALID_HANDLE_IA			= 11,
	DAT_INVALID_HANDLE_EP			= 12,
	DAT_INVALID_HANDLE_LMR			= 13,
	DAT_INVALID_HANDLE_RMR			= 14,
	DAT_INVALID_HANDLE_PZ			= 15,
	DAT_INVALID_HANDLE_PSP			= 16,
	DAT_INVALID_HANDLE_RSP			= 17,
	DAT_INVALID_HANDLE_CR			= 18,
	DAT_INVALID_HANDLE_CNO			= 19,
	DAT_INVALID_HANDLE_EVD_CR		= 20,	/* EVD for connection requests */
	DAT_INVALID_HANDLE_EVD_REQUEST		= 21,	/* EVD for request completions */
	DAT_INVALID_HANDLE_EVD_RECV		= 22,	/* EVD for receive completions */
	DAT_INVALID_HANDLE_EVD_CONN		= 23,	/* EVD for connection events */
	DAT_INVALID_HANDLE_EVD_ASYNC		= 24,	/* EVD for asynchronous errors */
	DAT_INVALID_HANDLE_SRQ			= 25,
	DAT_INVALID_HANDLE1			= 26,	/* the first argument; and so on */
	DAT_INVALID_HANDLE2			= 27,
	DAT_INVALID_HANDLE3			= 28,
	DAT_INVALID_HANDLE4			= 29,
	DAT_INVALID_HANDLE5			= 30,
	DAT_INVALID_HANDLE6			= 31,
	DAT_INVALID_HANDLE7			= 32,
	DAT_INVALID_HANDLE8			= 33,
	DAT_INVALID_HANDLE9			= 34,
	DAT_INVALID_HANDLE10			= 35,

	/* DAT_INVALID_PARAMETER: which argument is bad, counted from one */
	DAT_INVALID_ARG1			= 36,
	DAT_INVALID_ARG2			= 37,
	DAT_INVALID_ARG3			= 38,
	DAT_INVALID_ARG4			= 39,
	DAT_INVALID_ARG5			= 40,
	DAT_INVALID_ARG6			= 41,
	DAT_INVALID_ARG7			= 42,
	DAT_INVALID_ARG8			= 43,
	DAT_INVALID_ARG9			= 44,
	DAT_INVALID_ARG10			= 45,

	/* DAT_INVALID_STATE: the state the object is in */
	DAT_INVALID_STATE_EP_UNCONNECTED	= 46,
	DAT_INVALID_STATE_EP_ACTCONNPENDING	= 47,
	DAT_INVALID_STATE_EP_PASSCONNPENDING	= 48,
	DAT_INVALID_STATE_EP_TENTCONNPENDING	= 49,
	DAT_INVALID_STATE_EP_CONNECTED		= 50,
	DAT_INVALID_STATE_EP_DISCONNECTED	= 51,
	DAT_INVALID_STATE_EP_RESERVED		= 52,
	DAT_INVALID_STATE_EP_COMPLPENDING	= 53,
	DAT_INVALID_STATE_EP_DISCPENDING	= 54,
	DAT_INVALID_STATE_EP_PROVIDERCONTROL	= 55,	/* the provider still owns the EP */
	DAT_INVALID_STATE_EP_NOTREADY		= 56,	/* a PZ or EVD the call needs is missing */
	DAT_INVALID_STATE_EP_RECV_WATERMARK	= 57,	/* more receives taken than the watermark */
	DAT_INVALID_STATE_EP_PZ			= 58,	/* the EP has no suitable PZ */
	DAT_INVALID_STATE_EP_EVD_REQUEST	= 59,	/* the EP has no request EVD */
	DAT_INVALID_STATE_EP_EVD_RECV		= 60,	/* the EP has no receive EVD */
	DAT_INVALID_STATE_EP_EVD_CONNECT	= 61,	/* the EP has no connection EVD */
	DAT_INVALID_STATE_EP_UNCONFIGURED	= 62,
	DAT_INVALID_STATE_EP_UNCONFRESERVED	= 63,
	DAT_INVALID_STATE_EP_UNCONFPASSIVE	= 64,
	DAT_INVALID_STATE_EP_UNCONFTENTATIVE	= 65,
	DAT_INVALID_STATE_CNO_IN_USE		= 66,	/* EVDs or waiters are attached */
	DAT_INVALID_STATE_CNO_DEAD		= 67,	/* the CNO is being destroyed */
	DAT_INVALID_STATE_EVD_OPEN		= 68,
	DAT_INVALID_STATE_EVD_ENABLED		= 69,
	DAT_INVALID_STATE_EVD_DISABLED		= 70,
	DAT_INVALID_STATE_EVD_WAITABLE		= 71,
	DAT_INVALID_STATE_EVD_UNWAITABLE	= 72,
	DAT_INVALID_STATE_EVD_IN_USE		= 73,	/* an object still uses the EVD */
	DAT_INVALID_STATE_EVD_CONFIG_NOTIFY	= 74,
	DAT_INVALID_STATE_EVD_CONFIG_SOLICITED	= 75,
	DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD	= 76,
	DAT_INVALID_STATE_EVD_WAITER		= 77,	/* another thread waits on the EVD */
	/* the EVD is the asynchronous error EVD of an IA */
	DAT_INVALID_STATE_EVD_ASYNC		= 78,
	DAT_INVALID_STATE_IA_IN_USE		= 79,	/* objects of the IA exist */
	DAT_INVALID_STATE_LMR_IN_USE		= 80,	/* an RMR is bound to it */
	DAT_INVALID_STATE_LMR_FREE		= 81,	/* the LMR is free */
	DAT_INVALID_STATE_PZ_IN_USE		= 82,	/* objects belong to it */
	DAT_INVALID_STATE_PZ_FREE		= 83,
	DAT_INVALID_STATE_SRQ_OPERATIONAL	= 84,
	DAT_INVALID_STATE_SRQ_ERROR		= 85,
	DAT_INVALID_STATE_SRQ_IN_USE		= 86,	/* an endpoint uses it */

	/* DAT_PRIVILEGES_VIOLATION: the access that is not granted */
	DAT_PRIVILEGES_READ			= 87,
	DAT_PRIVILEGES_WRITE			= 88,
	DAT_PRIVILEGES_RDMA_READ		= 89,
	DAT_PRIVILEGES_RDMA_WRITE		= 90,

	/* DAT_PROTECTION_VIOLATION: the access that crosses PZs */
	DAT_PROTECTION_READ			= 91,
	DAT_PROTECTION_WRITE			= 92,
	DAT_PROTECTION_RDMA_READ		= 93,
	DAT_PROTECTION_RDMA_WRITE		= 94,

	/* DAT_INVALID_ADDRESS */
	DAT_INVALID_ADDRESS_UNSUPPORTED		= 95,	/* a family that the fabric does not use */
	DAT_INVALID_ADDRESS_UNREACHABLE		= 96,	/* no route to it */
	DAT_INVALID_ADDRESS_MALFORMED		= 97,	/* not a valid address */

	/* DAT_PROVIDER_NOT_FOUND: the mismatch */
	DAT_NAME_NOT_REGISTERED			= 98,
	DAT_MAJOR_NOT_FOUND			= 99,
	DAT_MINOR_NOT_FOUND			= 100,
	DAT_THREAD_SAFETY_NOT_FOUND		= 101
} DAT_RETURN_SUBTYPE;

#endif /* _DAT_ERROR_H_ */
