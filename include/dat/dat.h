/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of the DAT 1.2 interface that user and kernel consumers share. Programs
 * include udat.h.
 */

/* udat.h defines types that this file needs, and includes this file after them. */
#ifndef _UDAT_H_
#include <dat/udat.h>
#elif !defined(_DAT_H_)
#define _DAT_H_

#include <dat/dat_platform_specific.h>
#include <dat/dat_error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Names, booleans, contexts
 */
#define DAT_NAME_MAX_LENGTH	256	/* bytes in a name, including its terminating null */

typedef char *DAT_NAME_PTR;	/* a null-terminated name */

/* An attribute specific to a provider or transport, as text. */
typedef struct dat_named_attr {
	const char	*name;	/* its name */
	const char	*value;	/* its value, in the form the name defines */
} DAT_NAMED_ATTR;

/* Truth value. */
typedef enum dat_boolean {
	DAT_FALSE	= 0,
	DAT_TRUE	= 1
} DAT_BOOLEAN;

/* A value of the consumer's that DAT stores and returns without interpreting it. */
typedef union dat_context {
	DAT_PVOID	as_ptr;		/* seen as an address */
	DAT_UINT64	as_64;		/* seen as 64 bits */
	DAT_UVERYLONG	as_index;	/* seen as an index */
} DAT_CONTEXT;

typedef DAT_CONTEXT DAT_DTO_COOKIE;	/* identifies a transfer; returned in its completion */
typedef DAT_CONTEXT DAT_RMR_COOKIE;	/* identifies a bind; returned in its completion */

/*
 * Time
 */
typedef DAT_UINT32 DAT_TIMEOUT;	/* a duration in microseconds; 0 does not wait */

#define DAT_TIMEOUT_INFINITE	((DAT_TIMEOUT)~0)	/* wait without limit */

/*
 * Handles
 */
typedef DAT_PVOID DAT_HANDLE;	/* any of the handles below */

#define DAT_HANDLE_NULL	((DAT_HANDLE)0)	/* no object */

typedef DAT_HANDLE DAT_IA_HANDLE;	/* interface adapter */
typedef DAT_HANDLE DAT_PZ_HANDLE;	/* protection zone */
typedef DAT_HANDLE DAT_EVD_HANDLE;	/* event dispatcher */
typedef DAT_HANDLE DAT_EP_HANDLE;	/* endpoint */
typedef DAT_HANDLE DAT_SRQ_HANDLE;	/* shared receive queue */
typedef DAT_HANDLE DAT_LMR_HANDLE;	/* local memory region */
typedef DAT_HANDLE DAT_RMR_HANDLE;	/* remote memory region */
typedef DAT_HANDLE DAT_PSP_HANDLE;	/* public service point */
typedef DAT_HANDLE DAT_RSP_HANDLE;	/* reserved service point */
typedef DAT_HANDLE DAT_CR_HANDLE;	/* connection request */

/*
 * Addresses and connection qualifiers
 */
/* an IPv4 or IPv6 address, by its family */
typedef DAT_SOCK_ADDR *DAT_IA_ADDRESS_PTR;
typedef DAT_UINT64 DAT_CONN_QUAL;	/* the number of a listener; 64 significant bits */
typedef DAT_UINT64 DAT_PORT_QUAL;	/* the port at one end of a connection */

/*
 * Memory: addresses, lengths, contexts
 */
typedef DAT_UINT64 DAT_VADDR;		/* an address, wide enough for any peer */
typedef DAT_UINT64 DAT_VLEN;		/* a length in bytes */
typedef DAT_UINT32 DAT_LMR_CONTEXT;	/* identifies an LMR in a local segment */
typedef DAT_UINT32 DAT_RMR_CONTEXT;	/* grants a peer access; opaque, may be sent as is */

/* A piece of local memory: the segment of a scatter or gather list. */
typedef struct dat_lmr_triplet {
	DAT_LMR_CONTEXT	lmr_context;		/* LMR the piece lies in */
	DAT_UINT32	pad;			/* not used */
	DAT_VADDR	virtual_address;	/* its first byte */
	DAT_VLEN	segment_length;		/* its length in bytes; may be 0 */
} DAT_LMR_TRIPLET;

/* A piece of a peer's memory: the remote side of an RDMA operation. */
typedef struct dat_rmr_triplet {
	DAT_RMR_CONTEXT	rmr_context;	/* as granted by the peer */
	DAT_UINT32	pad;		/* not used */
	DAT_VADDR	target_address;	/* its first byte, in the peer's address space */
	DAT_VLEN	segment_length;	/* its length in bytes */
} DAT_RMR_TRIPLET;

/* Permitted accesses to registered memory, local and remote. */
typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG		= 0x00,	/* no access */
	DAT_MEM_PRIV_LOCAL_READ_FLAG	= 0x01,	/* source of sends and RDMA writes here */
	DAT_MEM_PRIV_REMOTE_READ_FLAG	= 0x02,	/* source of a peer's RDMA reads */
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG	= 0x10,	/* target of receives and RDMA reads here */
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG	= 0x20,	/* target of a peer's RDMA writes */
	DAT_MEM_PRIV_ALL_FLAG		= 0x33	/* all of the above */
} DAT_MEM_PRIV_FLAGS;

/* read, from here and from a peer */
#define DAT_MEM_PRIV_READ_FLAG	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
/* write, from here and from a peer */
#define DAT_MEM_PRIV_WRITE_FLAG	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* When the caller may reuse a segment list passed to a post call. */
typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER	= 0,	/* on return from the post */
	DAT_IOV_PROVIDER_NOMOD	= 1,	/* on completion; unchanged */
	DAT_IOV_PROVIDER_MOD	= 2	/* on completion; may have changed */
} DAT_IOV_OWNERSHIP;

typedef struct dat_lmr_param DAT_LMR_PARAM;	/* see udat.h */

/* Selects the members of DAT_LMR_PARAM that dat_lmr_query() returns. */
typedef enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE			= 0x001,
	DAT_LMR_FIELD_MEM_TYPE			= 0x002,
	DAT_LMR_FIELD_REGION_DESC		= 0x004,
	DAT_LMR_FIELD_LENGTH			= 0x008,
	DAT_LMR_FIELD_PZ_HANDLE			= 0x010,
	DAT_LMR_FIELD_MEM_PRIV			= 0x020,
	DAT_LMR_FIELD_LMR_CONTEXT		= 0x040,
	DAT_LMR_FIELD_RMR_CONTEXT		= 0x080,
	DAT_LMR_FIELD_REGISTERED_SIZE		= 0x100,
	DAT_LMR_FIELD_REGISTERED_ADDRESS	= 0x200,
	DAT_LMR_FIELD_ALL			= 0x3ff
} DAT_LMR_PARAM_MASK;

/* Output of dat_rmr_query(). */
typedef struct dat_rmr_param {
	DAT_IA_HANDLE		ia_handle;	/* IA it belongs to */
	DAT_PZ_HANDLE		pz_handle;	/* its PZ */
	DAT_LMR_TRIPLET		lmr_triplet;	/* memory it is bound to; not valid when unbound */
	DAT_MEM_PRIV_FLAGS	mem_priv;	/* access it grants */
	DAT_RMR_CONTEXT		rmr_context;	/* context of the last bind */
} DAT_RMR_PARAM;

/* Selects the members of DAT_RMR_PARAM that dat_rmr_query() returns. */
typedef enum dat_rmr_param_mask {
	DAT_RMR_FIELD_IA_HANDLE		= 0x01,
	DAT_RMR_FIELD_PZ_HANDLE		= 0x02,
	DAT_RMR_FIELD_LMR_TRIPLET	= 0x04,
	DAT_RMR_FIELD_MEM_PRIV		= 0x08,
	DAT_RMR_FIELD_RMR_CONTEXT	= 0x10,
	DAT_RMR_FIELD_ALL		= 0x1f
} DAT_RMR_PARAM_MASK;

/*
 * Quality of service, connection and completion flags
 */

/* Quality of service; each provider reports the values it accepts. */
typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT	= 0x0,	/* always accepted */
	DAT_QOS_HIGH_THROUGHPUT	= 0x1,
	DAT_QOS_LOW_LATENCY	= 0x2,
	DAT_QOS_ECONOMY		= 0x4,
	DAT_QOS_PREMIUM		= 0x8
} DAT_QOS;

/* How to connect. */
typedef enum dat_connect_flags {
	DAT_CONNECT_DEFAULT_FLAG	= 0x0,	/* one path */
	DAT_CONNECT_MULTIPATH_FLAG	= 0x1	/* several paths, if available */
} DAT_CONNECT_FLAGS;

/* How to end a connection or close an IA. */
typedef enum dat_close_flags {
	DAT_CLOSE_ABRUPT_FLAG	= 0x0,	/* at once; operations may be flushed, objects destroyed */
	DAT_CLOSE_GRACEFUL_FLAG	= 0x1	/* after posted requests complete; an IA must be empty */
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT	DAT_CLOSE_ABRUPT_FLAG	/* the value 0 */

/*
 * How an operation completes. As an endpoint attribute a flag sets the mode of one
 * direction; on a post it applies to one operation.
 */
typedef enum dat_completion_flags {
	DAT_COMPLETION_DEFAULT_FLAG		= 0x00,	/* every completion is an event */
	DAT_COMPLETION_SUPPRESS_FLAG		= 0x01,	/* request: no event on success */
	/* send: the peer's receive wakes a waiter */
	DAT_COMPLETION_SOLICITED_WAIT_FLAG	= 0x02,
	/* the event wakes no waiter; needs the attribute */
	DAT_COMPLETION_UNSIGNALLED_FLAG		= 0x04,
	/* request: starts after earlier RDMA reads complete */
	DAT_COMPLETION_BARRIER_FENCE_FLAG	= 0x08,
	/* attribute: the wait's threshold decides */
	DAT_COMPLETION_EVD_THRESHOLD_FLAG	= 0x10
} DAT_COMPLETION_FLAGS;

/*
 * Interface adapter (IA)
 */

/*
 * Identity and limits of an adapter. Counts are per IA unless noted otherwise. Names,
 * address and arrays belong to the provider and are valid until the IA is closed.
 */
typedef struct dat_ia_attr {
	char			adapter_name[DAT_NAME_MAX_LENGTH];	/* device or fabric */
	char			vendor_name[DAT_NAME_MAX_LENGTH];	/* its manufacturer */
	DAT_UINT32		hardware_version_major;
	DAT_UINT32		hardware_version_minor;
	DAT_UINT32		firmware_version_major;
	DAT_UINT32		firmware_version_minor;
	/* its address, for a peer's dat_ep_connect() */
	DAT_IA_ADDRESS_PTR	ia_address_ptr;

	/* limits */
	DAT_COUNT		max_eps;		/* endpoints */
	/* operations posted to one EP, each direction */
	DAT_COUNT		max_dto_per_ep;
	/* RDMA reads of a peer in progress on an EP */
	DAT_COUNT		max_rdma_read_per_ep_in;
	/* RDMA reads of an EP in progress */
	DAT_COUNT		max_rdma_read_per_ep_out;
	DAT_COUNT		max_evds;		/* event dispatchers */
	DAT_COUNT		max_evd_qlen;		/* events in an EVD */
	/* segments of a send or receive */
	DAT_COUNT		max_iov_segments_per_dto;
	DAT_COUNT		max_lmrs;		/* local memory regions */
	DAT_VLEN		max_lmr_block_size;	/* bytes in an LMR */
	/* highest address an LMR may reach */
	DAT_VADDR		max_lmr_virtual_address;
	DAT_COUNT		max_pzs;		/* protection zones */
	DAT_VLEN		max_message_size;	/* bytes in a send */
	DAT_VLEN		max_rdma_size;		/* bytes in an RDMA operation */
	DAT_COUNT		max_rmrs;		/* remote memory regions */
	DAT_VADDR		max_rmr_target_address;	/* highest address an RMR may reach */
	/* shared receive queues; 0: not supported */
	DAT_COUNT		max_srqs;
	DAT_COUNT		max_ep_per_srq;		/* endpoints on an SRQ */
	DAT_COUNT		max_recv_per_srq;	/* receives posted to an SRQ */
	/* segments of an RDMA read */
	DAT_COUNT		max_iov_segments_per_rdma_read;
	/* segments of an RDMA write */
	DAT_COUNT		max_iov_segments_per_rdma_write;
	/* RDMA reads of peers in progress, all EPs */
	DAT_COUNT		max_rdma_read_in;
	DAT_COUNT		max_rdma_read_out;	/* RDMA reads in progress, all EPs */
	/* max_rdma_read_per_ep_in holds regardless of other EPs */
	DAT_BOOLEAN		max_rdma_read_per_ep_in_guaranteed;
	/* max_rdma_read_per_ep_out holds regardless of other EPs */
	DAT_BOOLEAN		max_rdma_read_per_ep_out_guaranteed;

	/* further attributes, as text */
	DAT_COUNT		num_transport_attr;	/* entries in the array that follows */
	DAT_NAMED_ATTR		*transport_attr;	/* attributes of the transport */
	DAT_COUNT		num_vendor_attr;	/* entries in the array that follows */
	DAT_NAMED_ATTR		*vendor_attr;		/* attributes of the vendor */
} DAT_IA_ATTR;

/* selects the members of DAT_IA_ATTR that dat_ia_query() returns */
typedef DAT_UINT64 DAT_IA_ATTR_MASK;

/* Members of DAT_IA_ATTR. */
#define DAT_IA_FIELD_IA_ADAPTER_NAME				UINT64_C(0x000000001)
#define DAT_IA_FIELD_IA_VENDOR_NAME				UINT64_C(0x000000002)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION			UINT64_C(0x000000004)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION			UINT64_C(0x000000008)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION			UINT64_C(0x000000010)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION			UINT64_C(0x000000020)
#define DAT_IA_FIELD_IA_ADDRESS_PTR				UINT64_C(0x000000040)
#define DAT_IA_FIELD_IA_MAX_EPS					UINT64_C(0x000000080)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP				UINT64_C(0x000000100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN			UINT64_C(0x000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT		UINT64_C(0x000000400)
#define DAT_IA_FIELD_IA_MAX_EVDS				UINT64_C(0x000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN				UINT64_C(0x000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO		UINT64_C(0x000002000)
#define DAT_IA_FIELD_IA_MAX_LMRS				UINT64_C(0x000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE			UINT64_C(0x000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS			UINT64_C(0x000010000)
#define DAT_IA_FIELD_IA_MAX_PZS					UINT64_C(0x000020000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE			UINT64_C(0x000040000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE				UINT64_C(0x000080000)
#define DAT_IA_FIELD_IA_MAX_RMRS				UINT64_C(0x000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS			UINT64_C(0x000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS				UINT64_C(0x000400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ				UINT64_C(0x000800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ			UINT64_C(0x001000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ		UINT64_C(0x002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE		UINT64_C(0x004000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN			UINT64_C(0x008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT			UINT64_C(0x010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED	UINT64_C(0x020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED	UINT64_C(0x040000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR			UINT64_C(0x080000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR				UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR				UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR				UINT64_C(0x400000000)
/* all members */
#define DAT_IA_FIELD_ALL					UINT64_C(0x7ffffffff)
/* none */
#define DAT_IA_FIELD_NONE					UINT64_C(0x000000000)
/* older name */
#define DAT_IA_ALL						DAT_IA_FIELD_ALL

/* Names of older DAT versions for the same fields and masks. */
#define max_rdma_read_per_ep			max_rdma_read_per_ep_in
#define max_mtu_size				max_message_size
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE		DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP_IN	DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP		DAT_IA_FIELD_IA_MAX_DTO_PER_EP_IN

typedef struct dat_provider_attr DAT_PROVIDER_ATTR;	/* see udat.h */

/* A provider as the registry lists it: one line of dat.conf. */
typedef struct dat_provider_info {
	char		ia_name[DAT_NAME_MAX_LENGTH];	/* name for dat_ia_open() */
	DAT_UINT32	dapl_version_major;		/* major number of its DAT version */
	DAT_UINT32	dapl_version_minor;		/* minor number of its DAT version */
	DAT_BOOLEAN	is_thread_safe;			/* as dat.conf declares it */
} DAT_PROVIDER_INFO;

/*
 * Event dispatcher (EVD)
 */

/* Kinds of event that an EVD accepts. */
typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG	= 0x001,	/* posted by dat_evd_post_se() */
	DAT_EVD_CR_FLAG		= 0x010,	/* connection requests */
	DAT_EVD_DTO_FLAG	= 0x020,	/* completions of data transfers */
	DAT_EVD_CONNECTION_FLAG	= 0x040,	/* connections established and ended */
	DAT_EVD_RMR_BIND_FLAG	= 0x080,	/* completions of binds */
	DAT_EVD_ASYNC_FLAG	= 0x100,	/* asynchronous errors */
	DAT_EVD_DEFAULT_FLAG	= 0x1f0		/* all but software events */
} DAT_EVD_FLAGS;

typedef struct dat_evd_param DAT_EVD_PARAM;	/* see udat.h */

/*
 * Endpoint (EP)
 */

/* Service of an endpoint's transport. */
typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC	= 0	/* reliable, in order, connected */
} DAT_SERVICE_TYPE;

/*
 * State of an endpoint. In an UNCONFIGURED_ state the EP lacks its PZ or an EVD.
 */
typedef enum dat_ep_state {
	DAT_EP_STATE_UNCONNECTED			= 0,	/* new, or reset */
	DAT_EP_STATE_UNCONFIGURED_UNCONNECTED		= 1,
	/* belongs to an RSP that waits for a request */
	DAT_EP_STATE_RESERVED				= 2,
	DAT_EP_STATE_UNCONFIGURED_RESERVED		= 3,
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING		= 4,	/* its RSP received a request */
	DAT_EP_STATE_UNCONFIGURED_PASSIVE		= 5,
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING		= 6,	/* dat_ep_connect() was called */
	/* created by the provider for a request */
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING	= 7,
	DAT_EP_STATE_UNCONFIGURED_TENTATIVE		= 8,
	DAT_EP_STATE_CONNECTED				= 9,	/* data can flow */
	DAT_EP_STATE_DISCONNECT_PENDING			= 10,	/* dat_ep_disconnect() was called */
	/* the connection ended, for any reason */
	DAT_EP_STATE_DISCONNECTED			= 11,
	DAT_EP_STATE_COMPLETION_PENDING			= 12	/* dat_cr_accept() was called */
} DAT_EP_STATE;

#define DAT_EP_STATE_ERROR	DAT_EP_STATE_DISCONNECTED	/* older name */

/*
 * Requested capabilities of an endpoint. Counts are minimums: the provider may grant more,
 * and dat_ep_query() reports the values granted. max_message_size is enforced. A size or a
 * segment count of 0 selects the provider's default.
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE	service_type;		/* service of the transport */
	DAT_VLEN		max_message_size;	/* bytes in a send or receive */
	DAT_VLEN		max_rdma_size;		/* bytes in an RDMA operation */
	DAT_QOS			qos;			/* quality of service */
	/* EVD_THRESHOLD, UNSIGNALLED or SOLICITED_WAIT */
	DAT_COMPLETION_FLAGS	recv_completion_flags;
	/* EVD_THRESHOLD or UNSIGNALLED */
	DAT_COMPLETION_FLAGS	request_completion_flags;
	DAT_COUNT		max_recv_dtos;		/* receives posted and not completed */
	DAT_COUNT		max_request_dtos;	/* requests posted and not completed */
	DAT_COUNT		max_recv_iov;		/* segments of a receive */
	DAT_COUNT		max_request_iov;	/* segments of a send */
	DAT_COUNT		max_rdma_read_in;	/* RDMA reads of the peer in progress */
	DAT_COUNT		max_rdma_read_out;	/* own RDMA reads in progress */
	/* soft watermark of receives taken from an SRQ */
	DAT_COUNT		srq_soft_hw;
	DAT_COUNT		max_rdma_read_iov;	/* segments of an RDMA read */
	DAT_COUNT		max_rdma_write_iov;	/* segments of an RDMA write */
	/* entries in the array that follows */
	DAT_COUNT		ep_transport_specific_count;
	DAT_NAMED_ATTR		*ep_transport_specific;	/* attributes of the transport */
	/* entries in the array that follows */
	DAT_COUNT		ep_provider_specific_count;
	DAT_NAMED_ATTR		*ep_provider_specific;	/* attributes of the provider */
} DAT_EP_ATTR;

/*
 * Parameters that dat_ep_query() returns and dat_ep_modify() may change. Addresses belong
 * to the provider and are valid while the EP exists.
 */
typedef struct dat_ep_param {
	DAT_IA_HANDLE		ia_handle;		/* IA it belongs to */
	DAT_EP_STATE		ep_state;		/* state at the time of the query */
	DAT_IA_ADDRESS_PTR	local_ia_address_ptr;	/* own address */
	DAT_PORT_QUAL		local_port_qual;	/* own port */
	/* peer's address; valid from the pending states on */
	DAT_IA_ADDRESS_PTR	remote_ia_address_ptr;
	/* peer's port; valid from the pending states on */
	DAT_PORT_QUAL		remote_port_qual;
	DAT_PZ_HANDLE		pz_handle;		/* its PZ */
	DAT_EVD_HANDLE		recv_evd_handle;	/* where receives complete */
	DAT_EVD_HANDLE		request_evd_handle;	/* where requests complete */
	DAT_EVD_HANDLE		connect_evd_handle;	/* where connection events go */
	DAT_SRQ_HANDLE		srq_handle;		/* its SRQ, or DAT_HANDLE_NULL */
	DAT_EP_ATTR		ep_attr;		/* its attributes */
} DAT_EP_PARAM;

typedef DAT_UINT64 DAT_EP_PARAM_MASK;	/* selects members of DAT_EP_PARAM to query or modify */

/* Members of DAT_EP_PARAM. */
#define DAT_EP_FIELD_IA_HANDLE				UINT64_C(0x00000001)
#define DAT_EP_FIELD_EP_STATE				UINT64_C(0x00000002)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR		UINT64_C(0x00000004)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL			UINT64_C(0x00000008)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR		UINT64_C(0x00000010)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL			UINT64_C(0x00000020)
#define DAT_EP_FIELD_PZ_HANDLE				UINT64_C(0x00000040)
#define DAT_EP_FIELD_RECV_EVD_HANDLE			UINT64_C(0x00000080)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE			UINT64_C(0x00000100)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE			UINT64_C(0x00000200)
#define DAT_EP_FIELD_SRQ_HANDLE				UINT64_C(0x00000400)

/* Members of ep_attr in DAT_EP_PARAM. */
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE		UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE		UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE		UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_QOS			UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS	UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS	UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS		UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS		UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV		UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV		UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN		UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT		UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW		UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV		UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV		UINT64_C(0x04000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR		UINT64_C(0x08000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR	UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR		UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_ALL			UINT64_C(0x7ffff000)
/* members and attributes */
#define DAT_EP_FIELD_ALL				UINT64_C(0x7ffff7ff)

/*
 * Special counts: watermarks that never trigger, and a count that the provider does not
 * know.
 */
#define DAT_WATERMARK_INFINITE	(-1)
#define DAT_HW_DEFAULT		DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT	0
#define DAT_VALUE_UNKNOWN	(-2)

/*
 * Shared receive queue (SRQ)
 */

/* Whether a shared receive queue works. */
typedef enum dat_srq_state {
	DAT_SRQ_STATE_OPERATIONAL	= 0,
	DAT_SRQ_STATE_ERROR		= 1
} DAT_SRQ_STATE;

/* Requested capabilities of a shared receive queue; the provider may grant more. */
typedef struct dat_srq_attr {
	DAT_COUNT	max_recv_dtos;	/* receives posted and not completed */
	DAT_COUNT	max_recv_iov;	/* segments of a receive */
	DAT_COUNT	low_watermark;	/* DAT_SRQ_LW_DEFAULT; see dat_srq_set_lw() */
} DAT_SRQ_ATTR;

/* Output of dat_srq_query(). */
typedef struct dat_srq_param {
	DAT_IA_HANDLE	ia_handle;	/* IA it belongs to */
	DAT_SRQ_STATE	srq_state;	/* whether it works */
	DAT_PZ_HANDLE	pz_handle;	/* its PZ */
	DAT_COUNT	max_recv_dtos;	/* receives it can hold */
	DAT_COUNT	max_recv_iov;	/* segments of a receive */
	DAT_COUNT	low_watermark;	/* an event is raised below this number of free receives */
	/* receives an EP can still take, or DAT_VALUE_UNKNOWN */
	DAT_COUNT	available_dto_count;
	/* available receives plus receives taken and not yet dequeued, or DAT_VALUE_UNKNOWN */
	DAT_COUNT	outstanding_dto_count;
} DAT_SRQ_PARAM;

/* Selects the members of DAT_SRQ_PARAM that dat_srq_query() returns. */
typedef enum dat_srq_param_mask {
	DAT_SRQ_FIELD_IA_HANDLE			= 0x01,
	DAT_SRQ_FIELD_SRQ_STATE			= 0x02,
	DAT_SRQ_FIELD_PZ_HANDLE			= 0x04,
	DAT_SRQ_FIELD_MAX_RECV_DTO		= 0x08,
	DAT_SRQ_FIELD_MAX_RECV_IOV		= 0x10,
	DAT_SRQ_FIELD_LOW_WATERMARK		= 0x20,
	DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT	= 0x40,
	DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT	= 0x80,
	DAT_SRQ_FIELD_ALL			= 0xff
} DAT_SRQ_PARAM_MASK;

/*
 * Protection zone (PZ)
 */

/* Output of dat_pz_query(). */
typedef struct dat_pz_param {
	DAT_IA_HANDLE	ia_handle;	/* IA it belongs to */
} DAT_PZ_PARAM;

/* Selects the members of DAT_PZ_PARAM that dat_pz_query() returns. */
typedef enum dat_pz_param_mask {
	DAT_PZ_FIELD_IA_HANDLE	= 0x1,
	DAT_PZ_FIELD_ALL	= 0x1
} DAT_PZ_PARAM_MASK;

/*
 * Service points and connection requests
 */

/*
 * Whether the consumer or the provider creates the endpoint for a request at a public
 * service point.
 */
typedef enum dat_psp_flags {
	DAT_PSP_CONSUMER_FLAG	= 0x0,	/* the consumer, for dat_cr_accept() */
	DAT_PSP_PROVIDER_FLAG	= 0x1	/* the provider; the consumer sets its PZ and EVDs */
} DAT_PSP_FLAGS;

/* Whether a provider can create the endpoint for a request at a public service point. */
typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER	= 0,	/* no: DAT_PSP_CONSUMER_FLAG only */
	DAT_PSP_CREATES_EP_IFASKED	= 1,	/* if the flag requests it */
	DAT_PSP_CREATES_EP_ALWAYS	= 2	/* always: DAT_PSP_PROVIDER_FLAG only */
} DAT_EP_CREATOR_FOR_PSP;

/* Output of dat_psp_query(). */
typedef struct dat_psp_param {
	DAT_IA_HANDLE	ia_handle;	/* IA it belongs to */
	DAT_CONN_QUAL	conn_qual;	/* its qualifier */
	DAT_EVD_HANDLE	evd_handle;	/* where requests arrive */
	DAT_PSP_FLAGS	psp_flags;	/* whether the provider creates endpoints */
} DAT_PSP_PARAM;

/* Selects the members of DAT_PSP_PARAM that dat_psp_query() returns. */
typedef enum dat_psp_param_mask {
	DAT_PSP_FIELD_IA_HANDLE		= 0x1,
	DAT_PSP_FIELD_CONN_QUAL		= 0x2,
	DAT_PSP_FIELD_EVD_HANDLE	= 0x4,
	DAT_PSP_FIELD_PSP_FLAGS		= 0x8,
	DAT_PSP_FIELD_ALL		= 0xf
} DAT_PSP_PARAM_MASK;

/* Output of dat_rsp_query(). */
typedef struct dat_rsp_param {
	DAT_IA_HANDLE	ia_handle;	/* IA it belongs to */
	DAT_CONN_QUAL	conn_qual;	/* its qualifier */
	DAT_EVD_HANDLE	evd_handle;	/* where its one request arrives */
	DAT_EP_HANDLE	ep_handle;	/* endpoint reserved for it */
} DAT_RSP_PARAM;

/* Selects the members of DAT_RSP_PARAM that dat_rsp_query() returns. */
typedef enum dat_rsp_param_mask {
	DAT_RSP_FIELD_IA_HANDLE		= 0x1,
	DAT_RSP_FIELD_CONN_QUAL		= 0x2,
	DAT_RSP_FIELD_EVD_HANDLE	= 0x4,
	DAT_RSP_FIELD_EP_HANDLE		= 0x8,
	DAT_RSP_FIELD_ALL		= 0xf
} DAT_RSP_PARAM_MASK;

/*
 * Output of dat_cr_query(). Address and private data belong to the provider and are valid
 * while the CR exists.
 */
typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR	remote_ia_address_ptr;	/* address of the requester */
	DAT_PORT_QUAL		remote_port_qual;	/* port of the requester */
	DAT_COUNT		private_data_size;	/* bytes in private_data */
	DAT_PVOID		private_data;		/* as sent by the requester */
	/* EP of the RSP or provider PSP, else null */
	DAT_EP_HANDLE		local_ep_handle;
} DAT_CR_PARAM;

/* Selects the members of DAT_CR_PARAM that dat_cr_query() returns. */
typedef enum dat_cr_param_mask {
	DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR	= 0x01,
	DAT_CR_FIELD_REMOTE_PORT_QUAL		= 0x02,
	DAT_CR_FIELD_PRIVATE_DATA_SIZE		= 0x04,
	DAT_CR_FIELD_PRIVATE_DATA		= 0x08,
	DAT_CR_FIELD_LOCAL_EP_HANDLE		= 0x10,
	DAT_CR_FIELD_ALL			= 0x1f
} DAT_CR_PARAM_MASK;

/*
 * Events
 */

/* Event numbers. Each group is headed by the member of DAT_EVENT_DATA that is valid for it. */
typedef enum dat_event_number {
	/* With dto_completion_event_data: */
	DAT_DTO_COMPLETION_EVENT			= 0x00001,

	/* With rmr_completion_event_data: */
	DAT_RMR_BIND_COMPLETION_EVENT			= 0x01001,

	/* With cr_arrival_event_data: */
	DAT_CONNECTION_REQUEST_EVENT			= 0x02001,

	/* With connect_event_data: */
	DAT_CONNECTION_EVENT_ESTABLISHED		= 0x04001,	/* data can flow */
	/* rejected by the peer's program */
	DAT_CONNECTION_EVENT_PEER_REJECTED		= 0x04002,
	/* no listener, its EVD is full, or the fabric failed */
	DAT_CONNECTION_EVENT_NON_PEER_REJECTED		= 0x04003,
	DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR	= 0x04004,	/* the requester is gone */
	DAT_CONNECTION_EVENT_DISCONNECTED		= 0x04005,	/* ended by either side */
	DAT_CONNECTION_EVENT_BROKEN			= 0x04006,	/* ended by an error */
	/* the timeout of dat_ep_connect() expired */
	DAT_CONNECTION_EVENT_TIMED_OUT			= 0x04007,
	/* no route to the address */
	DAT_CONNECTION_EVENT_UNREACHABLE		= 0x04008,

	/* With asynch_error_event_data: */
	/* an EVD was full: events are lost */
	DAT_ASYNC_ERROR_EVD_OVERFLOW			= 0x08001,
	/* the IA can only be closed */
	DAT_ASYNC_ERROR_IA_CATASTROPHIC			= 0x08002,
	/* error on an EP or SRQ; see the reason */
	DAT_ASYNC_ERROR_EP_BROKEN			= 0x08003,
	/* a wait inside the provider timed out */
	DAT_ASYNC_ERROR_TIMED_OUT			= 0x08004,
	/* internal error of the provider */
	DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR		= 0x08005,

	/* With software_event_data: */
	DAT_SOFTWARE_EVENT				= 0x10001
} DAT_EVENT_NUMBER;

/* How a data transfer or a bind ended. */
typedef enum dat_dto_completion_status {
	DAT_DTO_SUCCESS			= 0,	/* done */
	DAT_DTO_ERR_FLUSHED		= 1,	/* not executed: the connection ended first */
	DAT_DTO_ERR_LOCAL_LENGTH	= 2,	/* the buffers do not fit the data */
	DAT_DTO_ERR_LOCAL_EP		= 3,	/* the endpoint failed */
	DAT_DTO_ERR_LOCAL_PROTECTION	= 4,	/* local memory does not allow the access */
	DAT_DTO_ERR_BAD_RESPONSE	= 5,	/* the peer sent an invalid response */
	DAT_DTO_ERR_REMOTE_ACCESS	= 6,	/* the peer's memory does not allow the access */
	DAT_DTO_ERR_REMOTE_RESPONDER	= 7,	/* the peer could not complete the operation */
	DAT_DTO_ERR_TRANSPORT		= 8,	/* the network failed */
	DAT_DTO_ERR_RECEIVER_NOT_READY	= 9,	/* the peer posted no receive for too long */
	DAT_DTO_ERR_PARTIAL_PACKET	= 10,	/* only part of a message arrived */
	DAT_RMR_OPERATION_FAILED	= 11	/* the bind failed */
} DAT_DTO_COMPLETION_STATUS;

/* Names of older DAT versions. */
#define DAT_DTO_LENGTH_ERROR	DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE		DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_SUCCESS	DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE	DAT_DTO_ERR_FLUSHED

#define DAT_RMR_BIND_COMPLETION_STATUS	DAT_DTO_COMPLETION_STATUS

/*
 * A data transfer has completed. After an error only endpoint, cookie and status are
 * valid.
 */
typedef struct dat_dto_completion_event_data {
	/* EP of the post, or the EP that took the receive from an SRQ */
	DAT_EP_HANDLE			ep_handle;
	DAT_DTO_COOKIE			user_cookie;		/* as given to the post call */
	DAT_DTO_COMPLETION_STATUS	status;			/* how it ended */
	DAT_VLEN			transfered_length;	/* bytes transferred */
} DAT_DTO_COMPLETION_EVENT_DATA;

/* A bind has completed. */
typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE			rmr_handle;	/* RMR that was to be bound */
	DAT_RMR_COOKIE			user_cookie;	/* as given to dat_rmr_bind() */
	DAT_DTO_COMPLETION_STATUS	status;		/* how it ended */
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

/* A service point; the create call determines the member. */
typedef union dat_sp_handle {
	DAT_RSP_HANDLE	rsp_handle;
	DAT_PSP_HANDLE	psp_handle;
} DAT_SP_HANDLE;

/* A connection request arrived. */
typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE		sp_handle;		/* service point it arrived at */
	DAT_IA_ADDRESS_PTR	local_ia_address_ptr;	/* address it arrived at */
	DAT_CONN_QUAL		conn_qual;		/* qualifier it arrived at */
	DAT_CR_HANDLE		cr_handle;		/* to accept, reject or hand off */
} DAT_CR_ARRIVAL_EVENT_DATA;

/* A connection was established, refused or ended. */
typedef struct dat_connection_event_data {
	DAT_EP_HANDLE	ep_handle;		/* its endpoint */
	DAT_COUNT	private_data_size;	/* bytes in private_data; 0 on the passive side */
	/* from the acceptor; valid until the EP is reused or freed */
	DAT_PVOID	private_data;
} DAT_CONNECTION_EVENT_DATA;

/* Reasons with the handle of an IA. */
typedef enum ia_async_error_reason {
	DAT_IA_CATASTROPHIC_ERROR	= 0,
	DAT_IA_OTHER_ERROR		= 1
} DAT_IA_ASYNC_ERROR_REASON;

/* Reasons with the handle of an EP. */
typedef enum ep_async_error_reason {
	DAT_EP_TRANSFER_TO_ERROR		= 0,	/* the EP can transfer no more */
	DAT_EP_OTHER_ERROR			= 1,
	/* more receives taken than the soft watermark */
	DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT	= 2
} DAT_EP_ASYNC_ERROR_REASON;

/* Reasons with the handle of an EVD. */
typedef enum ep_evd_error_reason {
	DAT_EVD_OVERFLOW_ERROR	= 0,	/* it was full when an event came */
	DAT_EVD_OTHER_ERROR	= 1
} DAT_EVD_ASYNC_ERROR_REASON;

/* Reasons with the handle of an SRQ. */
typedef enum ep_srq_error_reason {
	DAT_SRQ_TRANSFER_TO_ERROR	= 0,	/* the SRQ can deliver no more */
	DAT_SRQ_OTHER_ERROR		= 1,
	DAT_SRQ_LOW_WATERMARK_EVENT	= 2	/* fewer receives left than the low watermark */
} DAT_SRQ_ASYNC_ERROR_REASON;

/* Reasons with the handle of an LMR. */
typedef enum lmr_async_error_reason {
	DAT_LMR_OTHER_ERROR	= 0
} DAT_LMR_ASYNC_ERROR_REASON;

/* Reasons with the handle of an RMR. */
typedef enum rmr_async_error_reason {
	DAT_RMR_OTHER_ERROR	= 0
} DAT_RMR_ASYNC_ERROR_REASON;

/* Reasons with the handle of a PZ. */
typedef enum pz_async_error_reason {
	DAT_PZ_OTHER_ERROR	= 0
} DAT_PZ_ASYNC_ERROR_REASON;

/* An error that belongs to no call. */
typedef struct dat_asynch_error_event_data {
	DAT_HANDLE	dat_handle;	/* object with the error */
	DAT_COUNT	reason;		/* reason, from the enum of the object's type */
} DAT_ASYNCH_ERROR_EVENT_DATA;

/* A consumer's own event. */
typedef struct dat_software_event_data {
	DAT_PVOID	pointer;	/* as given to dat_evd_post_se() */
} DAT_SOFTWARE_EVENT_DATA;

/* Event data; event_number selects the member. */
typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA	dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA	cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA	connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA	asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA		software_event_data;
} DAT_EVENT_DATA;

/* An event, as dat_evd_wait() and dat_evd_dequeue() return it. */
typedef struct dat_event {
	DAT_EVENT_NUMBER	event_number;	/* selects the member of event_data */
	DAT_EVD_HANDLE		evd_handle;	/* EVD it comes from */
	DAT_EVENT_DATA		event_data;	/* depends on event_number */
} DAT_EVENT;

/*
 * Calls
 *
 * A call returns DAT_SUCCESS or an error that its comment lists, a DAT_RETURN_TYPE without
 * the DAT_ prefix. On failure its outputs are not valid. Every call may return
 * INVALID_HANDLE, with a subtype that names the object, and NOT_IMPLEMENTED. Any thread may
 * make a call marked safe at any time. The caller must serialise other calls on one object;
 * calls on different objects never interfere.
 */

/*
 * dat_registry_list_providers(3DAT) - lists the providers that can be opened.
 *
 * Fills up to max_to_return of the structures that the array points to, and sets
 * entries_returned to the number filled. An array that is too small is not an error. With
 * max_to_return 0 the call fails and sets entries_returned to the number of providers.
 *
 * Fails with: INVALID_PARAMETER, INSUFFICIENT_RESOURCES, INTERNAL_ERROR.
 * Threads: safe.
 */
extern DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return,
					      DAT_COUNT *entries_returned,
					      DAT_PROVIDER_INFO *dat_provider_list[]);

/*
 * dat_strerror(3DAT) - returns the names of a return code's type and subtype.
 *
 * Both texts are static. minor_message_string is empty when there is no subtype.
 *
 * Fails with: INVALID_PARAMETER.
 * Threads: safe.
 */
extern DAT_RETURN dat_strerror(DAT_RETURN dat_function_return,
			       const char **major_message_string,
			       const char **minor_message_string);

/*
 * IA calls
 */

/*
 * dat_ia_openv(3DAT) - opens an instance of the interface adapter named provider.
 *
 * Programs call dat_ia_open(), which adds version and thread safety. The registry loads the
 * provider that dat.conf names. asynch_evd_handle selects the EVD for asynchronous errors.
 * On entry, DAT_HANDLE_NULL creates an EVD that holds at least asynch_evd_min_qlen events,
 * and the call returns it; an EVD of kind DAT_EVD_ASYNC_FLAG is used as is;
 * DAT_EVD_ASYNC_EXISTS shares the EVD of an earlier open. Each open is a separate instance
 * with its own objects.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, PROVIDER_NOT_FOUND,
 *             INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider,
			       DAT_COUNT asynch_evd_min_qlen,
			       DAT_EVD_HANDLE *asynch_evd_handle,
			       DAT_IA_HANDLE *ia_handle,
			       DAT_UINT32 dat_major_version_number,
			       DAT_UINT32 dat_minor_version_number,
			       DAT_BOOLEAN dat_thread_safety);

/* Opens an IA with the version and the thread safety this program is compiled for. */
#define dat_ia_open(name, qlen, async_evd, ia) \
	dat_ia_openv((name), (qlen), (async_evd), (ia), \
		     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE)

/*
 * dat_ia_query(3DAT) - returns the attributes of an IA and its provider.
 *
 * ia_attr and provider_attr may be null if their masks are 0; async_evd_handle may always
 * be null. It becomes DAT_EVD_OUT_OF_SCOPE if the EVD belongs to another instance.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle,
			       DAT_EVD_HANDLE *async_evd_handle,
			       DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			       DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			       DAT_PROVIDER_ATTR *provider_attr);

/*
 * dat_ia_close(3DAT) - closes an instance of an IA.
 *
 * DAT_CLOSE_GRACEFUL_FLAG fails with INVALID_STATE while objects of the instance exist, and
 * changes nothing. DAT_CLOSE_ABRUPT_FLAG destroys them: connections break, waiting threads
 * return DAT_ABORT, and all handles become invalid.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags);

/*
 * dat_set_consumer_context(3DAT) - attaches a consumer context to any object.
 *
 * The context of a new object is 0. DAT does not interpret it.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context);

/*
 * dat_get_consumer_context(3DAT) - returns the context that dat_set_consumer_context()
 * attached.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context);

/*
 * dat_get_handle_type(3DAT) - returns the type of object behind a handle.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle,
				      DAT_HANDLE_TYPE *handle_type);

/*
 * PZ calls
 */

/*
 * dat_pz_create(3DAT) - creates a protection zone.
 *
 * An endpoint, and its peer through it, can access only memory of the endpoint's PZ.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);

/*
 * dat_pz_query(3DAT) - returns the parameters of a protection zone.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			       DAT_PZ_PARAM *pz_param);

/*
 * dat_pz_free(3DAT) - frees a protection zone.
 *
 * Returns INVALID_STATE while an EP, SRQ, LMR or RMR belongs to it.
 *
 * Fails with: INVALID_STATE, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle);

/*
 * EVD calls
 */

/*
 * dat_evd_query(3DAT) - returns the parameters of an event dispatcher.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle,
				DAT_EVD_PARAM_MASK evd_param_mask,
				DAT_EVD_PARAM *evd_param);

/*
 * dat_evd_dequeue(3DAT) - takes the oldest event, without waiting.
 *
 * Works on disabled and unwaitable EVDs too. DAT_QUEUE_EMPTY is returned without class
 * bits, because an empty poll is not an error.
 *
 * Fails with: INVALID_HANDLE, QUEUE_EMPTY, INVALID_STATE.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

/*
 * dat_evd_post_se(3DAT) - posts a software event to an EVD of kind DAT_EVD_SOFTWARE_FLAG.
 *
 * event_number must be DAT_SOFTWARE_EVENT; the pointer is delivered unchanged. On
 * DAT_QUEUE_FULL the event is not posted, and the call has no other effect.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, QUEUE_FULL.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);

/*
 * dat_evd_resize(3DAT) - changes how many events an EVD holds.
 *
 * No event is lost: the call returns INVALID_STATE if more than evd_min_qlen events are
 * queued. The EVD may become longer than requested.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, INSUFFICIENT_RESOURCES,
 *             INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen);

/*
 * dat_evd_free(3DAT) - frees an event dispatcher and the events in it.
 *
 * Returns INVALID_STATE while an EP, service point or IA uses it. A thread waiting on it
 * returns DAT_ABORT.
 *
 * Fails with: INVALID_HANDLE, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);

/*
 * EP calls
 */

/*
 * dat_ep_create(3DAT) - creates an endpoint, unconnected.
 *
 * PZ and EVDs may be DAT_HANDLE_NULL and be set later by dat_ep_modify(). The receive EVD
 * must be of kind DTO, the request EVD of kind DTO (and RMR_BIND, for binds), the
 * connection EVD of kind CONNECTION. A null ep_attributes selects the provider's defaults.
 * The attributes that dat_ep_query() returns for one EP can be used to create another.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				DAT_EVD_HANDLE recv_completion_evd_handle,
				DAT_EVD_HANDLE request_completion_evd_handle,
				DAT_EVD_HANDLE connect_evd_handle,
				const DAT_EP_ATTR *ep_attributes,
				DAT_EP_HANDLE *ep_handle);

/*
 * dat_ep_create_with_srq(3DAT) - creates an endpoint that receives from a shared receive
 * queue.
 *
 * Like dat_ep_create(), but ep_attributes must not be null, and max_recv_dtos limits the
 * receives that this EP may hold at one time. Receives are posted to the SRQ, never to the
 * EP.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle,
					 DAT_PZ_HANDLE pz_handle,
					 DAT_EVD_HANDLE recv_evd_handle,
					 DAT_EVD_HANDLE request_evd_handle,
					 DAT_EVD_HANDLE connect_evd_handle,
					 DAT_SRQ_HANDLE srq_handle,
					 const DAT_EP_ATTR *ep_attributes,
					 DAT_EP_HANDLE *ep_handle);

/*
 * dat_ep_query(3DAT) - returns the parameters of an endpoint.
 *
 * The addresses are valid while the EP exists, the peer's from the pending states on.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			       DAT_EP_PARAM *ep_param);

/*
 * dat_ep_modify(3DAT) - changes parameters of an endpoint.
 *
 * The call changes all members in the mask or none. Most attributes and EVDs can change
 * until the connection is being made, the PZ only while the EP is unconnected or tentative;
 * after that the call returns INVALID_STATE. It returns INVALID_PARAMETER for a member that
 * never changes and for an impossible value.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle,
				DAT_EP_PARAM_MASK ep_param_mask,
				const DAT_EP_PARAM *ep_param);

/*
 * dat_ep_get_status(3DAT) - returns an endpoint's state and whether it has outstanding
 * work.
 *
 * recv_idle is DAT_TRUE when no receive, request_idle when no request is outstanding.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
				    DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);

/*
 * dat_ep_connect(3DAT) - starts a connection to a service point of a peer.
 *
 * remote_ia_address is the peer's ia_address_ptr, remote_conn_qual the qualifier of its
 * service point. private_data, up to the provider's max_private_data_size bytes, is copied
 * and delivered to the peer. The EP must be unconnected. The call returns at once; within
 * timeout microseconds an event on the connection EVD reports the outcome: ESTABLISHED,
 * with the peer's private data, or PEER_REJECTED, NON_PEER_REJECTED, UNREACHABLE or
 * TIMED_OUT, after which the EP is disconnected.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_ADDRESS,
 *             INVALID_HANDLE, INVALID_STATE, MODEL_NOT_SUPPORTED.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle,
				 DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
				 DAT_COUNT private_data_size,
				 const DAT_PVOID private_data,
				 DAT_QOS quality_of_service,
				 DAT_CONNECT_FLAGS connect_flags);

/*
 * dat_ep_dup_connect(3DAT) - starts a connection to the service point of another endpoint's
 * connection.
 *
 * Like dat_ep_connect(), with the address and qualifier of ep_dup_handle, which must be
 * connected.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             INVALID_STATE, MODEL_NOT_SUPPORTED.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle,
				     DAT_EP_HANDLE ep_dup_handle, DAT_TIMEOUT timeout,
				     DAT_COUNT private_data_size,
				     const DAT_PVOID private_data,
				     DAT_QOS quality_of_service);

/*
 * dat_ep_disconnect(3DAT) - ends a connection, or the attempt at one.
 *
 * DAT_CLOSE_GRACEFUL_FLAG lets posted requests finish first, DAT_CLOSE_ABRUPT_FLAG flushes
 * them; receives are flushed last. Then the connection EVD of each side gets one event,
 * DISCONNECTED. Does nothing on a disconnected EP.
 *
 * Fails with: INVALID_HANDLE, INSUFFICIENT_RESOURCES, INVALID_PARAMETER,
 *             INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle,
				    DAT_CLOSE_FLAGS close_flags);

/*
 * dat_ep_reset(3DAT) - makes a disconnected endpoint unconnected, for another
 * connection.
 *
 * Does nothing on an unconnected EP. Completions still in an EVD may be lost: dequeue them
 * first.
 *
 * Fails with: INVALID_HANDLE, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle);

/*
 * dat_ep_free(3DAT) - destroys an endpoint.
 *
 * A connection is ended abruptly, without an event. Completions may remain in EVDs; the
 * EP's handle in them is invalid. Returns INVALID_STATE if the EP belongs to a service
 * point or a connection request.
 *
 * Fails with: INVALID_HANDLE, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle);

/*
 * Data transfer calls
 */

/*
 * dat_ep_post_send(3DAT) - sends a message to the peer.
 *
 * The segments of local_iov are sent in order, into one receive of the peer. The caller may
 * reuse the list on return (see iov_ownership_on_return), the memory only after completion.
 * The completion returns user_cookie. The EP must be connected; on a disconnected one the
 * completion is DAT_DTO_ERR_FLUSHED. num_segments may be 0. Returns INSUFFICIENT_RESOURCES
 * while max_request_dtos are outstanding.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             INVALID_STATE, PROTECTION_VIOLATION, PRIVILEGES_VIOLATION.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov,
				   DAT_DTO_COOKIE user_cookie,
				   DAT_COMPLETION_FLAGS completion_flags);

/*
 * dat_ep_post_recv(3DAT) - posts a receive for a message from the peer.
 *
 * Legal in every state, and best done before a connection is made. Receives are filled in
 * the order of posting. A message that is too long breaks the connection. Returns
 * INVALID_STATE if the EP receives from an SRQ, and INSUFFICIENT_RESOURCES while
 * max_recv_dtos are outstanding.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             PROTECTION_VIOLATION, PRIVILEGES_VIOLATION.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT_LMR_TRIPLET *local_iov,
				   DAT_DTO_COOKIE user_cookie,
				   DAT_COMPLETION_FLAGS completion_flags);

/*
 * dat_ep_post_rdma_read(3DAT) - reads memory of the peer.
 *
 * remote_iov names the peer's memory and the number of bytes to read; local_iov must be at
 * least as long. The rules of dat_ep_post_send() apply. Reads beyond max_rdma_read_out are
 * queued.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             INVALID_STATE, LENGTH_ERROR, PROTECTION_VIOLATION, PRIVILEGES_VIOLATION.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					DAT_LMR_TRIPLET *local_iov,
					DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags);

/*
 * dat_ep_post_rdma_write(3DAT) - writes memory of the peer.
 *
 * The segments of local_iov are written in order to remote_iov, which must be at least as
 * long. Completion means that the bytes are in the peer's memory. The rules of
 * dat_ep_post_send() apply. The peer gets no event.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             INVALID_STATE, LENGTH_ERROR, PROTECTION_VIOLATION, PRIVILEGES_VIOLATION.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle,
					 DAT_COUNT num_segments,
					 DAT_LMR_TRIPLET *local_iov,
					 DAT_DTO_COOKIE user_cookie,
					 const DAT_RMR_TRIPLET *remote_iov,
					 DAT_COMPLETION_FLAGS completion_flags);

/*
 * dat_ep_recv_query(3DAT) - returns the number of receives that an endpoint has taken.
 *
 * nbufs_allocated counts receives taken and not completed, bufs_alloc_span the completions
 * that would follow if every arriving message were complete. Either pointer may be null;
 * either count may be DAT_VALUE_UNKNOWN.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE, MODEL_NOT_SUPPORTED.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
				    DAT_COUNT *bufs_alloc_span);

/*
 * dat_ep_set_watermark(3DAT) - sets how many receives an endpoint may take.
 *
 * Taking more than soft_high_watermark raises one asynchronous event,
 * DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT; taking more than hard_high_watermark breaks the
 * connection. DAT_WATERMARK_INFINITE means no limit. Each call re-arms both.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, MODEL_NOT_SUPPORTED.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle,
				       DAT_COUNT soft_high_watermark,
				       DAT_COUNT hard_high_watermark);

/*
 * SRQ calls
 */

/*
 * dat_srq_create(3DAT) - creates a shared receive queue.
 *
 * low_watermark of srq_attr must be DAT_SRQ_LW_DEFAULT.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				 DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle);

/*
 * dat_srq_free(3DAT) - frees a shared receive queue and the receives in it.
 *
 * Returns INVALID_STATE while an EP uses it.
 *
 * Fails with: INVALID_HANDLE, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle);

/*
 * dat_srq_post_recv(3DAT) - posts a receive to a shared receive queue.
 *
 * Any EP of the SRQ may take the receive when a message arrives; the receive EVD of that EP
 * gets the completion, with user_cookie. Returns INSUFFICIENT_RESOURCES while the SRQ is
 * full.
 *
 * Fails with: INVALID_HANDLE, INSUFFICIENT_RESOURCES, INVALID_PARAMETER,
 *             PROTECTION_VIOLATION, PRIVILEGES_VIOLATION.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
				    DAT_LMR_TRIPLET *local_iov,
				    DAT_DTO_COOKIE user_cookie);

/*
 * dat_srq_query(3DAT) - returns the parameters of a shared receive queue.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle,
				DAT_SRQ_PARAM_MASK srq_param_mask,
				DAT_SRQ_PARAM *srq_param);

/*
 * dat_srq_resize(3DAT) - changes how many receives a shared receive queue holds.
 *
 * No receive is lost: the call returns INVALID_STATE if more are outstanding or the low
 * watermark is higher.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, INSUFFICIENT_RESOURCES,
 *             INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto);

/*
 * dat_srq_set_lw(3DAT) - requests an event when receives run low.
 *
 * One asynchronous event, DAT_SRQ_LOW_WATERMARK_EVENT, is raised when fewer than
 * low_watermark receives are left, at once if that is already so. Each call requests one
 * event.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, MODEL_NOT_SUPPORTED.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);

/*
 * Memory calls
 */

/*
 * dat_lmr_query(3DAT) - returns the parameters of a local memory region.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle,
				DAT_LMR_PARAM_MASK lmr_param_mask,
				DAT_LMR_PARAM *lmr_param);

/*
 * dat_lmr_free(3DAT) - ends a registration.
 *
 * Returns INVALID_STATE while an RMR is bound to it. After the call returns, no operation
 * posted earlier uses the memory: a queued operation fails with
 * DAT_DTO_ERR_LOCAL_PROTECTION, in posting order; if the fabric is using the memory, the
 * connection ends at once.
 *
 * Fails with: INVALID_HANDLE, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle);

/*
 * dat_lmr_sync_rdma_read(3DAT) - makes local stores visible to a peer's RDMA reads.
 *
 * Needed only if lmr_sync_req of DAT_PROVIDER_ATTR is set; always legal. Each segment must
 * lie in a valid LMR.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
					 const DAT_LMR_TRIPLET *local_segments,
					 DAT_VLEN num_segments);

/*
 * dat_lmr_sync_rdma_write(3DAT) - makes a peer's RDMA writes visible to local loads.
 *
 * Needed only if lmr_sync_req of DAT_PROVIDER_ATTR is set; always legal. Each segment must
 * lie in a valid LMR.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
					  const DAT_LMR_TRIPLET *local_segments,
					  DAT_VLEN num_segments);

/*
 * dat_rmr_create(3DAT) - creates a remote memory region, unbound.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);

/*
 * dat_rmr_query(3DAT) - returns the parameters of a remote memory region.
 *
 * Returns INVALID_PARAMETER if the mask selects the triplet of an unbound RMR.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle,
				DAT_RMR_PARAM_MASK rmr_param_mask,
				DAT_RMR_PARAM *rmr_param);

/*
 * dat_rmr_bind(3DAT) - grants a peer access to a piece of an LMR.
 *
 * context, valid on return, is the value that the peer needs; the previous grant ends. The
 * bind is ordered with the endpoint's requests: requests posted later take effect after it.
 * Length 0 only ends the previous grant. RMR, LMR and EP must belong to one PZ, and the LMR
 * must have the matching local privilege for each remote privilege. The request EVD gets
 * the completion.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             INVALID_STATE, MODEL_NOT_SUPPORTED, PRIVILEGES_VIOLATION,
 *             PROTECTION_VIOLATION.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle,
			       const DAT_LMR_TRIPLET *lmr_triplet,
			       DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			       DAT_RMR_COOKIE user_cookie,
			       DAT_COMPLETION_FLAGS completion_flags,
			       DAT_RMR_CONTEXT *context);

/*
 * dat_rmr_free(3DAT) - frees a remote memory region; its grant ends.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

/*
 * Service point and connection request calls
 */

/*
 * dat_psp_create(3DAT) - listens for connection requests on a qualifier.
 *
 * Any number of requests may arrive, each as an event on evd_handle. A request that finds
 * the EVD full is refused. Returns CONN_QUAL_IN_USE if another service point of the IA
 * listens on conn_qual.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             CONN_QUAL_IN_USE, MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
				 DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				 DAT_PSP_HANDLE *psp_handle);

/*
 * dat_psp_create_any(3DAT) - listens for connection requests on a qualifier the
 * provider chooses.
 *
 * Like dat_psp_create(), but conn_qual is an output.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             CONN_QUAL_UNAVAILABLE, MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
				     DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
				     DAT_PSP_HANDLE *psp_handle);

/*
 * dat_psp_query(3DAT) - returns the parameters of a public service point.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: safe.
 */
extern DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle,
				DAT_PSP_PARAM_MASK psp_param_mask,
				DAT_PSP_PARAM *psp_param);

/*
 * dat_psp_free(3DAT) - stops listening on a public service point.
 *
 * Requests already delivered as events can still be accepted or rejected; later requests
 * are refused.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle);

/*
 * dat_rsp_create(3DAT) - listens for one connection request, for a prepared endpoint.
 *
 * The EP must be unconnected and becomes reserved; with DAT_HANDLE_NULL the provider
 * creates an EP when the request arrives. Pass DAT_HANDLE_NULL as ep_handle to
 * dat_cr_accept().
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             INVALID_STATE, CONN_QUAL_IN_USE.
 * Threads: safe.
 */
extern DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
				 DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
				 DAT_RSP_HANDLE *rsp_handle);

/*
 * dat_rsp_query(3DAT) - returns the parameters of a reserved service point.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: safe.
 */
extern DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle,
				DAT_RSP_PARAM_MASK rsp_param_mask,
				DAT_RSP_PARAM *rsp_param);

/*
 * dat_rsp_free(3DAT) - frees a reserved service point.
 *
 * Its EP becomes unconnected again if no request has arrived.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);

/*
 * dat_cr_query(3DAT) - returns the requester's address and private data.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: safe.
 */
extern DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			       DAT_CR_PARAM *cr_param);

/*
 * dat_cr_accept(3DAT) - accepts a connection request.
 *
 * ep_handle is an unconnected EP, or DAT_HANDLE_NULL if the request already has an EP.
 * private_data is delivered to the requester. Success frees the CR. An event on the EP's
 * connection EVD reports the outcome: ESTABLISHED or ACCEPT_COMPLETION_ERROR.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
				DAT_COUNT private_data_size,
				const DAT_PVOID private_data);

/*
 * dat_cr_reject(3DAT) - rejects a connection request.
 *
 * The requester gets PEER_REJECTED. The CR is freed; an EP reserved for it becomes
 * unconnected again, an EP that the provider created is destroyed.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle);

/*
 * dat_cr_handoff(3DAT) - passes a connection request on to another qualifier of the
 * same IA.
 *
 * The CR is freed; a new CR arrives at the service point that listens on handoff. Returns
 * INVALID_PARAMETER if no service point listens there.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff);

#ifdef __cplusplus
}
#endif

#endif /* _UDAT_H_, _DAT_H_ */
