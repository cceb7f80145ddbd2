/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The InfiniBand extensions of DAT 2.0: atomics, immediate data, datagrams, counters,
 * collectives.
 */

#ifndef _DAT_IB_EXTENSIONS_H_
#define _DAT_IB_EXTENSIONS_H_

#include <dat2/udat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* version 2.0.9, to compare with extension_version of DAT_IA_ATTR */
#define DAT_IB_EXTENSION_VERSION	209

/*
 * Names of the provider-specific attributes that report supported features
 */
/* operations */
#define DAT_IB_ATTR_COUNTERS		"DAT_COUNTERS"
#define DAT_IB_ATTR_FETCH_AND_ADD	"DAT_IB_FETCH_AND_ADD"
#define DAT_IB_ATTR_CMP_AND_SWAP	"DAT_IB_CMP_AND_SWAP"
#define DAT_IB_ATTR_IMMED_DATA		"DAT_IB_IMMED_DATA"
#define DAT_IB_ATTR_UD			"DAT_IB_UD"
#define DAT_ATTR_COUNTERS		DAT_IB_ATTR_COUNTERS	/* older name */

/* collectives */
#define DAT_IB_COLL_SET_CLOCK		"DAT_COLL_SET_CLOCK"
#define DAT_IB_COLL_READ_CLOCK		"DAT_COLL_READ_CLOCK"
#define DAT_IB_COLL_BROADCAST		"DAT_COLL_BROADCAST"
#define DAT_IB_COLL_BARRIER		"DAT_COLL_BARRIER"
#define DAT_IB_COLL_SCATTER		"DAT_COLL_SCATTER"
#define DAT_IB_COLL_SCATTERV		"DAT_COLL_SCATTERV"
#define DAT_IB_COLL_GATHER		"DAT_COLL_GATHER"
#define DAT_IB_COLL_GATHERV		"DAT_COLL_GATHERV"
#define DAT_IB_COLL_ALLGATHER		"DAT_COLL_ALLGATHER"
#define DAT_IB_COLL_ALLGATHERV		"DAT_COLL_ALLGATHERV"
#define DAT_IB_COLL_ALLTOALL		"DAT_COLL_ALLTOALL"
#define DAT_IB_COLL_ALLTOALLV		"DAT_COLL_ALLTOALLV"
#define DAT_IB_COLL_REDUCE		"DAT_COLL_REDUCE"
#define DAT_IB_COLL_ALLREDUCE		"DAT_COLL_ALLREDUCE"
#define DAT_IB_COLL_REDUCE_SCATTER	"DAT_COLL_REDUCE_SCATTER"
#define DAT_IB_COLL_SCAN		"DAT_COLL_SCAN"

/*
 * Operations, events, codes
 */

/* The operation, second argument of dat_extension_op(). The calls below pass it. */
typedef enum dat_ib_op {
	DAT_IB_FETCH_AND_ADD_OP			= 0,
	DAT_IB_CMP_AND_SWAP_OP			= 1,
	DAT_IB_RDMA_WRITE_IMMED_OP		= 2,
	DAT_IB_UD_SEND_OP			= 3,
	DAT_IB_QUERY_COUNTERS_OP		= 4,
	DAT_IB_PRINT_COUNTERS_OP		= 5,
	DAT_IB_COLLECTIVE_CREATE_MEMBER_OP	= 6,
	DAT_IB_COLLECTIVE_FREE_MEMBER_OP	= 7,
	DAT_IB_COLLECTIVE_CREATE_GROUP_OP	= 8,
	DAT_IB_COLLECTIVE_FREE_GROUP_OP		= 9,
	DAT_IB_COLLECTIVE_SET_CLOCK_OP		= 10,
	DAT_IB_COLLECTIVE_READ_CLOCK_OP		= 11,
	DAT_IB_COLLECTIVE_SCATTER_OP		= 12,
	DAT_IB_COLLECTIVE_SCATTERV_OP		= 13,
	DAT_IB_COLLECTIVE_GATHER_OP		= 14,
	DAT_IB_COLLECTIVE_GATHERV_OP		= 15,
	DAT_IB_COLLECTIVE_ALLGATHER_OP		= 16,
	DAT_IB_COLLECTIVE_ALLGATHERV_OP		= 17,
	DAT_IB_COLLECTIVE_ALLTOALL_OP		= 18,
	DAT_IB_COLLECTIVE_ALLTOALLV_OP		= 19,
	DAT_IB_COLLECTIVE_REDUCE_OP		= 20,
	DAT_IB_COLLECTIVE_ALLREDUCE_OP		= 21,
	DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP	= 22,
	DAT_IB_COLLECTIVE_SCAN_OP		= 23,
	DAT_IB_COLLECTIVE_BROADCAST_OP		= 24,
	DAT_IB_COLLECTIVE_BARRIER_OP		= 25,
	DAT_IB_START_COUNTERS_OP		= 26,
	DAT_IB_STOP_COUNTERS_OP			= 27,
	DAT_IB_UD_CM_FREE_OP			= 28,
	DAT_IB_UD_AH_FREE_OP			= 29,
	/* specific to this implementation */
	DAT_IB_SEND_IMMED_OP			= 0x100,
	DAT_IB_UD_SEND_IMMED_OP			= 0x101,
	DAT_IB_OPEN_QUERY_OP			= 0x1000,	/* opens an IA for a query only */
	DAT_IB_CLOSE_QUERY_OP			= 0x2000	/* closes it */
} DAT_IB_OP;

/* Older names. */
#define DAT_QUERY_COUNTERS_OP	DAT_IB_QUERY_COUNTERS_OP
#define DAT_PRINT_COUNTERS_OP	DAT_IB_PRINT_COUNTERS_OP

/* Events of the extension. */
typedef enum dat_ib_event_number {
	/* a completion: dto_completion_event_data and extension data are valid */
	DAT_IB_DTO_EVENT			= 0x40000,
	/* a peer requests an address handle */
	DAT_IB_UD_CONNECTION_REQUEST_EVENT	= 0x40001,
	/* the address handle is available */
	DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED	= 0x40002,
	DAT_IB_UD_CONNECTION_REJECT_EVENT	= 0x40003,	/* the peer rejected the request */
	DAT_IB_UD_CONNECTION_ERROR_EVENT	= 0x40004,	/* the exchange failed */
	DAT_IB_COLLECTIVE_EVENT			= 0x40005	/* a collective is done */
} DAT_IB_EVENT_NUMBER;

/* With the type of event_number: C and C++ compilers warn of a comparison of two types. */
#define DAT_IB_DTO_EVENT ((DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT)
#define DAT_IB_UD_CONNECTION_REQUEST_EVENT ((DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT)
#define DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED \
	((DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED)
#define DAT_IB_UD_CONNECTION_REJECT_EVENT ((DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REJECT_EVENT)
#define DAT_IB_UD_CONNECTION_ERROR_EVENT ((DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_ERROR_EVENT)
#define DAT_IB_COLLECTIVE_EVENT ((DAT_EVENT_NUMBER)DAT_IB_COLLECTIVE_EVENT)

/* The kind of an event's extension data. */
typedef enum dat_ib_ext_type {
	/* atomic done; the old value is in the local buffer */
	DAT_IB_FETCH_AND_ADD			= 0,
	/* atomic done; the old value is in the local buffer */
	DAT_IB_CMP_AND_SWAP			= 1,
	DAT_IB_RDMA_WRITE_IMMED			= 2,	/* write with immediate data done */
	/* a peer's write with immediate data arrived */
	DAT_IB_RDMA_WRITE_IMMED_DATA		= 3,
	/* a peer's send with immediate data arrived */
	DAT_IB_RECV_IMMED_DATA			= 4,
	DAT_IB_UD_CONNECT_REQUEST		= 5,	/* datagrams: request arrived */
	DAT_IB_UD_REMOTE_AH			= 6,	/* datagrams: address handle, active side */
	/* datagrams: address handle, passive side */
	DAT_IB_UD_PASSIVE_REMOTE_AH		= 7,
	DAT_IB_UD_SEND				= 8,	/* datagram sent */
	DAT_IB_UD_RECV				= 9,	/* datagram received */
	DAT_IB_UD_CONNECT_REJECT		= 10,
	DAT_IB_UD_CONNECT_ERROR			= 11,
	DAT_IB_COLLECTIVE_CREATE_STATUS		= 12,
	DAT_IB_COLLECTIVE_CREATE_DATA		= 13,
	DAT_IB_COLLECTIVE_CLOCK_SET_STATUS	= 14,
	DAT_IB_COLLECTIVE_SCATTER_STATUS	= 15,
	DAT_IB_COLLECTIVE_SCATTERV_STATUS	= 16,
	DAT_IB_COLLECTIVE_GATHER_STATUS		= 17,
	DAT_IB_COLLECTIVE_GATHERV_STATUS	= 18,
	DAT_IB_COLLECTIVE_ALLGATHER_STATUS	= 19,
	DAT_IB_COLLECTIVE_ALLGATHERV_STATUS	= 20,
	DAT_IB_COLLECTIVE_ALLTOALL_STATUS	= 21,
	DAT_IB_COLLECTIVE_ALLTOALLV_STATUS	= 22,
	DAT_IB_COLLECTIVE_REDUCE_STATUS		= 23,
	DAT_IB_COLLECTIVE_ALLREDUCE_STATUS	= 24,
	DAT_IB_COLLECTIVE_REDUCE_SCATTER_STATUS	= 25,
	DAT_IB_COLLECTIVE_SCAN_STATUS		= 26,
	DAT_IB_COLLECTIVE_BROADCAST_STATUS	= 27,
	DAT_IB_COLLECTIVE_BARRIER_STATUS	= 28
} DAT_IB_EXT_TYPE;

/* How an operation of the extension ended. */
typedef enum dat_ib_status {
	DAT_OP_SUCCESS		= 0,
	DAT_IB_OP_ERR		= 1,
	DAT_IB_COLL_COMP_ERR	= 2
} DAT_IB_STATUS;

/* Return types of the extension. */
typedef enum dat_ib_return {
	DAT_IB_ERR		= 0x10000000,
	DAT_IB_COLLECTIVE_ERR	= 0x10000001
} DAT_IB_RETURN;

/* Operations of the extension, as values of DAT_DTOS. */
typedef enum dat_ib_dtos {
	DAT_IB_DTO_RDMA_WRITE_IMMED	= 8,
	DAT_IB_DTO_RECV_IMMED		= 9,
	DAT_IB_DTO_FETCH_ADD		= 10,
	DAT_IB_DTO_CMP_SWAP		= 11,
	DAT_IB_DTO_RECV_MSG_IMMED	= 12,
	DAT_IB_DTO_SEND_UD		= 13,
	DAT_IB_DTO_RECV_UD		= 14,
	DAT_IB_DTO_RECV_UD_IMMED	= 15,
	DAT_IB_DTO_COLLECTIVES		= 16
} DAT_IB_DTOS;

/* Handle types of the extension. */
typedef enum dat_ib_handle_type {
	DAT_IB_HANDLE_TYPE_EXT		= 12,
	DAT_IB_HANDLE_TYPE_COLLECTIVE	= 13
} DAT_IB_HANDLE_TYPE;

/* Kinds of event of the extension, for dat_evd_create(). */
typedef enum dat_ib_evd_extension_flags {
	DAT_IB_EVD_EXTENSION_FLAG	= 0x200
} DAT_IB_EVD_EXTENSION_FLAGS;

/* Privileges of the extension, for dat_lmr_create(). */
typedef enum dat_ib_mem_priv_flags {
	DAT_IB_MEM_PRIV_REMOTE_ATOMIC	= 0x40	/* target of a peer's atomics */
} DAT_IB_MEM_PRIV_FLAGS;

/* Service types of the extension, for DAT_EP_ATTR. */
typedef enum dat_ib_service_type {
	DAT_IB_SERVICE_TYPE_UD	= 1	/* datagrams: unreliable, to many peers */
} DAT_IB_SERVICE_TYPE;

/*
 * Counters
 */

/*
 * Counters of an IA. Their meaning is the provider's; counters of InfiniBand's connection
 * manager, links and diagnostics are 0 on other fabrics.
 */
typedef enum dat_ia_counters {
	/* objects created and freed */
	DCNT_IA_PZ_CREATE		= 0,
	DCNT_IA_PZ_FREE			= 1,
	DCNT_IA_LMR_CREATE		= 2,
	DCNT_IA_LMR_FREE		= 3,
	DCNT_IA_RMR_CREATE		= 4,
	DCNT_IA_RMR_FREE		= 5,
	DCNT_IA_PSP_CREATE		= 6,
	DCNT_IA_PSP_CREATE_ANY		= 7,
	DCNT_IA_PSP_FREE		= 8,
	DCNT_IA_RSP_CREATE		= 9,
	DCNT_IA_RSP_FREE		= 10,
	DCNT_IA_EVD_CREATE		= 11,
	DCNT_IA_EVD_FREE		= 12,
	DCNT_IA_EP_CREATE		= 13,
	DCNT_IA_EP_FREE			= 14,
	DCNT_IA_SRQ_CREATE		= 15,
	DCNT_IA_SRQ_FREE		= 16,

	/* connection requests */
	DCNT_IA_SP_CR			= 17,
	DCNT_IA_SP_CR_ACCEPTED		= 18,
	DCNT_IA_SP_CR_REJECTED		= 19,

	/* memory of the provider */
	DCNT_IA_MEM_ALLOC		= 20,
	DCNT_IA_MEM_ALLOC_DATA		= 21,
	DCNT_IA_MEM_FREE		= 22,

	/* asynchronous errors */
	DCNT_IA_ASYNC_ERROR		= 23,
	DCNT_IA_ASYNC_QP_ERROR		= 24,
	DCNT_IA_ASYNC_CQ_ERROR		= 25,

	/* connection manager */
	DCNT_IA_CM_LISTEN		= 26,
	DCNT_IA_CM_REQ_TX		= 27,
	DCNT_IA_CM_REQ_RX		= 28,
	DCNT_IA_CM_REP_TX		= 29,
	DCNT_IA_CM_REP_RX		= 30,
	DCNT_IA_CM_RTU_TX		= 31,
	DCNT_IA_CM_RTU_RX		= 32,
	DCNT_IA_CM_USER_REJ_TX		= 33,
	DCNT_IA_CM_USER_REJ_RX		= 34,
	DCNT_IA_CM_ACTIVE_EST		= 35,
	DCNT_IA_CM_PASSIVE_EST		= 36,
	DCNT_IA_CM_AH_REQ_TX		= 37,
	DCNT_IA_CM_AH_REQ_RX		= 38,
	DCNT_IA_CM_AH_RESOLVED		= 39,
	DCNT_IA_CM_DREQ_TX		= 40,
	DCNT_IA_CM_DREQ_RX		= 41,
	DCNT_IA_CM_DREP_TX		= 42,
	DCNT_IA_CM_DREP_RX		= 43,
	DCNT_IA_CM_MRA_TX		= 44,
	DCNT_IA_CM_MRA_RX		= 45,
	DCNT_IA_CM_REQ_FULLQ_POLL	= 46,

	/* connection manager: errors */
	DCNT_IA_CM_ERR			= 47,
	DCNT_IA_CM_ERR_REQ_FULLQ	= 48,
	DCNT_IA_CM_ERR_REQ_DUP		= 49,
	DCNT_IA_CM_ERR_REQ_RETRY	= 50,
	DCNT_IA_CM_ERR_REP_DUP		= 51,
	DCNT_IA_CM_ERR_REP_RETRY	= 52,
	DCNT_IA_CM_ERR_RTU_DUP		= 53,
	DCNT_IA_CM_ERR_RTU_RETRY	= 54,
	DCNT_IA_CM_ERR_REFUSED		= 55,
	DCNT_IA_CM_ERR_RESET		= 56,
	DCNT_IA_CM_ERR_TIMEOUT		= 57,
	DCNT_IA_CM_ERR_REJ_TX		= 58,
	DCNT_IA_CM_ERR_REJ_RX		= 59,
	DCNT_IA_CM_ERR_DREQ_DUP		= 60,
	DCNT_IA_CM_ERR_DREQ_RETRY	= 61,
	DCNT_IA_CM_ERR_DREP_DUP		= 62,
	DCNT_IA_CM_ERR_DREP_RETRY	= 63,
	DCNT_IA_CM_ERR_MRA_DUP		= 64,
	DCNT_IA_CM_ERR_MRA_RETRY	= 65,
	DCNT_IA_CM_ERR_UNEXPECTED	= 66,

	/* link */
	DCNT_IA_LNK_ERR_RCV		= 67,
	DCNT_IA_LNK_ERR_RCV_REM_PHYS	= 68,
	DCNT_IA_LNK_ERR_RCV_CONSTRAINT	= 69,
	DCNT_IA_LNK_ERR_XMT_DISCARDS	= 70,
	DCNT_IA_LNK_ERR_XMT_CONTRAINT	= 71,
	DCNT_IA_LNK_ERR_INTEGRITY	= 72,
	DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN	= 73,
	DCNT_IA_LNK_WARN_RCV_SW_RELAY	= 74,
	DCNT_IA_LNK_WARN_XMT_WAIT	= 75,

	/* device diagnostics */
	DCNT_IA_DIAG_ERR_RQ_RAE		= 76,
	DCNT_IA_DIAG_ERR_RQ_OOS		= 77,
	DCNT_IA_DIAG_ERR_RQ_RIRE	= 78,
	DCNT_IA_DIAG_ERR_RQ_UDSDPRD	= 79,
	DCNT_IA_DIAG_ERR_SQ_RAE		= 80,
	DCNT_IA_DIAG_ERR_SQ_OOS		= 81,
	DCNT_IA_DIAG_ERR_SQ_RIRE	= 82,
	DCNT_IA_DIAG_ERR_SQ_RREE	= 83,
	DCNT_IA_DIAG_ERR_SQ_TREE	= 84,

	/* all counters, as an array */
	DCNT_IA_ALL_COUNTERS		= 85
} DAT_IA_COUNTERS;

/* Counters of an EP: operations, and bytes where the name ends in _DATA. */
typedef enum dat_ep_counters {
	DCNT_EP_CONNECT			= 0,
	DCNT_EP_DISCONNECT		= 1,
	DCNT_EP_POST_SEND		= 2,
	DCNT_EP_POST_SEND_DATA		= 3,
	DCNT_EP_POST_SEND_UD		= 4,
	DCNT_EP_POST_SEND_UD_DATA	= 5,
	DCNT_EP_POST_RECV		= 6,
	DCNT_EP_POST_RECV_DATA		= 7,
	DCNT_EP_POST_WRITE		= 8,
	DCNT_EP_POST_WRITE_DATA		= 9,
	DCNT_EP_POST_WRITE_IMM		= 10,
	DCNT_EP_POST_WRITE_IMM_DATA	= 11,
	DCNT_EP_POST_READ		= 12,
	DCNT_EP_POST_READ_DATA		= 13,
	DCNT_EP_POST_CMP_SWAP		= 14,
	DCNT_EP_POST_FETCH_ADD		= 15,

	/* completed receives */
	DCNT_EP_RECV			= 16,
	DCNT_EP_RECV_DATA		= 17,
	DCNT_EP_RECV_UD			= 18,
	DCNT_EP_RECV_UD_DATA		= 19,
	DCNT_EP_RECV_IMM		= 20,
	DCNT_EP_RECV_IMM_DATA		= 21,
	DCNT_EP_RECV_RDMA_IMM		= 22,
	DCNT_EP_RECV_RDMA_IMM_DATA	= 23,

	/* all counters, as an array */
	DCNT_EP_ALL_COUNTERS		= 24
} DAT_EP_COUNTERS;

/* Counters of an EVD. */
typedef enum dat_evd_counters {
	DCNT_EVD_WAIT			= 0,	/* calls of dat_evd_wait() */
	DCNT_EVD_WAIT_BLOCKED		= 1,	/* calls of dat_evd_wait() that slept */
	DCNT_EVD_WAIT_NOTIFY		= 2,	/* wake-ups */
	DCNT_EVD_DEQUEUE		= 3,	/* calls of dat_evd_dequeue() */
	DCNT_EVD_DEQUEUE_FOUND		= 4,	/* calls of dat_evd_dequeue() that found an event */
	DCNT_EVD_DEQUEUE_NOT_FOUND	= 5,	/* calls of dat_evd_dequeue() that found none */
	DCNT_EVD_DEQUEUE_POLL		= 6,	/* polls of the fabric's queue */
	/* polls of the fabric's queue that were not empty */
	DCNT_EVD_DEQUEUE_POLL_FOUND	= 7,
	DCNT_EVD_CONN_CALLBACK		= 8,	/* connection events */
	DCNT_EVD_DTO_CALLBACK		= 9,	/* completions */
	DCNT_EVD_ALL_COUNTERS		= 10	/* all counters, as an array */
} DAT_EVD_COUNTERS;

/* Groups of IA counters that can be started and stopped. */
typedef enum dat_ia_counter_type {
	DCNT_IA_CM	= 0,	/* connection manager */
	DCNT_IA_LNK	= 1,	/* link */
	DCNT_IA_DIAG	= 2	/* device diagnostics */
} DAT_IA_COUNTER_TYPE;

/*
 * Collectives
 */
typedef DAT_HANDLE DAT_IB_COLLECTIVE_HANDLE;	/* a group of processes */
typedef unsigned int DAT_IB_COLLECTIVE_RANK;	/* rank of a process in its group */
typedef unsigned int DAT_IB_COLLECTIVE_ID;	/* identifies a group */
typedef void *DAT_IB_COLLECTIVE_MEMBER;		/* data of one process, exchanged in its group */

/* Element types of a reduction. */
typedef enum dat_ib_collective_data_type {
	DAT_IB_COLLECTIVE_TYPE_INT8		= 0,
	DAT_IB_COLLECTIVE_TYPE_UINT8		= 1,
	DAT_IB_COLLECTIVE_TYPE_INT16		= 2,
	DAT_IB_COLLECTIVE_TYPE_UINT16		= 3,
	DAT_IB_COLLECTIVE_TYPE_INT32		= 4,
	DAT_IB_COLLECTIVE_TYPE_UINT32		= 5,
	DAT_IB_COLLECTIVE_TYPE_INT64		= 6,
	DAT_IB_COLLECTIVE_TYPE_UINT64		= 7,
	DAT_IB_COLLECTIVE_TYPE_FLOAT		= 8,
	DAT_IB_COLLECTIVE_TYPE_DOUBLE		= 9,
	DAT_IB_COLLECTIVE_TYPE_LONG_DOUBLE	= 10,
	DAT_IB_COLLECTIVE_TYPE_SHORT_INT	= 11,
	DAT_IB_COLLECTIVE_TYPE_2INT		= 12,
	DAT_IB_COLLECTIVE_TYPE_FLOAT_INT	= 13,
	DAT_IB_COLLECTIVE_TYPE_LONG_INT		= 14,
	DAT_IB_COLLECTIVE_TYPE_DOUBLE_INT	= 15
} DAT_IB_COLLECTIVE_DATA_TYPE;

/* Operations of a reduction. */
typedef enum dat_ib_collective_reduce_data_op {
	DAT_IB_COLLECTIVE_REDUCE_OP_MAX		= 0,
	DAT_IB_COLLECTIVE_REDUCE_OP_MIN		= 1,
	DAT_IB_COLLECTIVE_REDUCE_OP_SUM		= 2,
	DAT_IB_COLLECTIVE_REDUCE_OP_PROD	= 3,
	DAT_IB_COLLECTIVE_REDUCE_OP_LAND	= 4,
	DAT_IB_COLLECTIVE_REDUCE_OP_BAND	= 5,
	DAT_IB_COLLECTIVE_REDUCE_OP_LOR		= 6,
	DAT_IB_COLLECTIVE_REDUCE_OP_BOR		= 7,
	DAT_IB_COLLECTIVE_REDUCE_OP_LXOR	= 8,
	DAT_IB_COLLECTIVE_REDUCE_OP_BXOR	= 9,
	DAT_IB_COLLECTIVE_REDUCE_OP_MAXLOC	= 10,
	DAT_IB_COLLECTIVE_REDUCE_OP_MINLOC	= 11
} DAT_IB_COLLECTIVE_REDUCE_DATA_OP;

/* Placement of a group's processes on nodes. */
typedef struct dat_ib_collective_group {
	int	local_size;		/* processes on this node */
	int	local_rank;		/* own rank among them */
	int	*local_ranks;		/* their ranks in the group */
	int	external_size;		/* nodes */
	int	external_rank;		/* own node's rank among them */
	int	*external_ranks;	/* rank of each node's leader */
	int	*intranode_table;	/* group rank to rank on its node */
	int	*internode_table;	/* group rank to rank of its node */
	int	is_comm_world;		/* the group has every process */
} DAT_IB_COLLECTIVE_GROUP;

/*
 * Event data
 */

/* The verbs address handle; a program that looks inside includes <infiniband/verbs.h>. */
struct ibv_ah;

/* Address of a datagram endpoint. */
typedef struct dat_ib_addr_handle {
	struct ibv_ah	*ah;		/* created and freed by the provider */
	DAT_UINT32	qpn;		/* queue pair number */
	DAT_SOCK_ADDR6	ia_addr;	/* address of its IA */
} DAT_IB_ADDR_HANDLE;

/* Immediate data. */
typedef struct dat_ib_immed_data {
	DAT_UINT32	data;	/* in host byte order, as the peer passed it */
} DAT_IB_IMMED_DATA;

/* A collective that is done. */
typedef struct dat_ib_collective_event_data {
	DAT_HANDLE	handle;		/* the group */
	DAT_CONTEXT	context;	/* of the call */
} DAT_IB_COLLECTIVE_EVENT_DATA;

/* The contents of event_extension_data of DAT_EVENT. */
typedef struct dat_ib_extension_event_data {
	DAT_IB_EXT_TYPE		type;		/* the kind of the event */
	DAT_IB_STATUS		status;		/* how it ended */
	union {
		DAT_IB_IMMED_DATA	immed;	/* *_IMMED_DATA types: the immediate value */
	} val;
	__extension__ union {
		DAT_IB_ADDR_HANDLE	remote_ah;	/* UD types: address of the peer */
		DAT_IB_COLLECTIVE_EVENT_DATA coll;	/* collective types */
	};
	DAT_CONTEXT		context;	/* context passed to the operation, if any */
} DAT_IB_EXTENSION_EVENT_DATA;

/*
 * Operations as calls
 *
 * Each calls dat_extension_op() and returns its result.
 */

/*
 * Adds to 8 aligned bytes of the peer; lbuf, of 8 bytes, gets the old value. Cookie, flags
 * and completion work as for dat_ep_post_rdma_read().
 */
#define dat_ib_post_fetch_and_add(ep, add_val, lbuf, cookie, rbuf, flgs) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_FETCH_AND_ADD_OP, \
			 (DAT_UINT64)(add_val), (DAT_LMR_TRIPLET *)(lbuf), (cookie), \
			 (DAT_RMR_TRIPLET *)(rbuf), (DAT_COMPLETION_FLAGS)(flgs))

/*
 * Stores swap_val into 8 aligned bytes of the peer if they equal cmp_val; lbuf, of 8 bytes,
 * gets the old value.
 */
#define dat_ib_post_cmp_and_swap(ep, cmp_val, swap_val, lbuf, cookie, rbuf, flgs) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_CMP_AND_SWAP_OP, \
			 (DAT_UINT64)(cmp_val), (DAT_UINT64)(swap_val), \
			 (DAT_LMR_TRIPLET *)(lbuf), (cookie), \
			 (DAT_RMR_TRIPLET *)(rbuf), (DAT_COMPLETION_FLAGS)(flgs))

/* An RDMA write that also completes a receive of the peer, with idata. */
#define dat_ib_post_rdma_write_immed(ep, size, lbuf, cookie, rbuf, idata, flgs) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_RDMA_WRITE_IMMED_OP, \
			 (DAT_COUNT)(size), (DAT_LMR_TRIPLET *)(lbuf), (cookie), \
			 (DAT_RMR_TRIPLET *)(rbuf), (DAT_UINT32)(idata), \
			 (DAT_COMPLETION_FLAGS)(flgs))

/*
 * A send with immediate data: the receive completes as DAT_IB_RECV_IMMED_DATA, with idata.
 * Other implementations receive such messages but have no call to send one.
 */
#define dat_ib_post_send_immed(ep, size, lbuf, cookie, idata, flgs) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_SEND_IMMED_OP, \
			 (DAT_COUNT)(size), (DAT_LMR_TRIPLET *)(lbuf), (cookie), \
			 (DAT_UINT32)(idata), (DAT_COMPLETION_FLAGS)(flgs))

/* Sends a datagram to ah_ptr. The receiver's buffer begins with 40 bytes of header. */
#define dat_ib_post_send_ud(ep, segments, lbuf, ah_ptr, cookie, flgs) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_SEND_OP, \
			 (DAT_COUNT)(segments), (DAT_LMR_TRIPLET *)(lbuf), \
			 (DAT_IB_ADDR_HANDLE *)(ah_ptr), (cookie), \
			 (DAT_COMPLETION_FLAGS)(flgs))

/* A datagram with immediate data: the receive completes as DAT_IB_DTO_RECV_UD_IMMED, with idata. */
#define dat_ib_post_send_ud_immed(ep, segments, lbuf, ah_ptr, cookie, idata, flgs) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_SEND_IMMED_OP, \
			 (DAT_COUNT)(segments), (DAT_LMR_TRIPLET *)(lbuf), \
			 (DAT_IB_ADDR_HANDLE *)(ah_ptr), (cookie), \
			 (DAT_UINT32)(idata), (DAT_COMPLETION_FLAGS)(flgs))

/* Frees the state left from a datagram endpoint's connection exchange. */
#define dat_ib_ud_cm_free(ep, cm) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_CM_FREE_OP, (cm))

/* Frees an address handle that an event delivered. */
#define dat_ib_ud_ah_free(ep, ah) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_AH_FREE_OP, \
			 (DAT_IB_ADDR_HANDLE *)(ah))

/*
 * Reads counter cntr of an IA, EP or EVD, or all counters into an array; a non-zero reset
 * clears them.
 */
#define dat_ib_query_counters(dat_handle, cntr, p_cntrs_out, reset) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_QUERY_COUNTERS_OP, (int)(cntr), \
			 (DAT_UINT64 *)(p_cntrs_out), (int)(reset))

/*
 * Prints counter cntr of an IA, EP or EVD, or all counters, to stdout; a non-zero reset
 * clears them.
 */
#define dat_ib_print_counters(dat_handle, cntr, reset) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_PRINT_COUNTERS_OP, (int)(cntr), \
			 (int)(reset))

/* Starts a group of counters of an IA; type is a DAT_IA_COUNTER_TYPE. */
#define dat_ib_start_counter(dat_handle, type) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_START_COUNTERS_OP, \
			 (DAT_IA_COUNTER_TYPE)(type))

/* Stops a group of counters of an IA; type is a DAT_IA_COUNTER_TYPE. */
#define dat_ib_stop_counter(dat_handle, type) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_STOP_COUNTERS_OP, \
			 (DAT_IA_COUNTER_TYPE)(type))

/*
 * Opens the IA called name only to query its attributes: no EVD is created. The handle is
 * valid only for dat_ib_close_query().
 */
#define dat_ib_open_query(name, ia_handle, ia_mask, ia_attr, prov_mask, prov_attr) \
	dat_extension_op(DAT_HANDLE_NULL, DAT_IB_OPEN_QUERY_OP, \
			 (const DAT_NAME_PTR)(name), (DAT_HANDLE *)(ia_handle), \
			 (DAT_IA_ATTR_MASK)(ia_mask), (DAT_IA_ATTR *)(ia_attr), \
			 (DAT_PROVIDER_ATTR_MASK)(prov_mask), \
			 (DAT_PROVIDER_ATTR *)(prov_attr))

/* Closes an IA of dat_ib_open_query(). */
#define dat_ib_close_query(ia_handle) \
	dat_extension_op((DAT_HANDLE)(ia_handle), DAT_IB_CLOSE_QUERY_OP)

/*
 * Creates this process's member data, to be exchanged among the group; progress_func is
 * called while a collective waits.
 */
#define dat_ib_collective_create_member(ia_handle, progress_func, member, member_size) \
	dat_extension_op((DAT_IA_HANDLE)(ia_handle), \
			 DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, (void *)(progress_func), \
			 (DAT_IB_COLLECTIVE_MEMBER *)(member), \
			 (DAT_UINT32 *)(member_size))

/* Frees member data. */
#define dat_ib_collective_free_member(ia_handle, member) \
	dat_extension_op((DAT_IA_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_FREE_MEMBER_OP, \
			 (DAT_IB_COLLECTIVE_MEMBER)(member))

/*
 * Creates a group of group_size members, in which this process has rank self. An event on
 * evd delivers the group's handle.
 */
#define dat_ib_collective_create_group( \
		members, group_size, self, group_id, group_info, evd, pd, user_context) \
	dat_extension_op((DAT_EVD_HANDLE)(evd), DAT_IB_COLLECTIVE_CREATE_GROUP_OP, \
			 (DAT_IB_COLLECTIVE_MEMBER *)(members), \
			 (DAT_COUNT)(group_size), (DAT_IB_COLLECTIVE_RANK)(self), \
			 (DAT_IB_COLLECTIVE_ID)(group_id), \
			 (DAT_IB_COLLECTIVE_GROUP *)(group_info), (DAT_PZ_HANDLE)(pd), \
			 (user_context))

/* Frees a group. */
#define dat_ib_collective_free_group(coll_handle) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_FREE_GROUP_OP)

/* Sets the group's clock. */
#define dat_ib_collective_set_clock(coll_handle, clock_value, user_context) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_SET_CLOCK_OP, (DAT_UINT64)(clock_value), \
			 (user_context))

/* Reads the group's clock. */
#define dat_ib_collective_read_clock(coll_handle, clock_value) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_READ_CLOCK_OP, (DAT_UINT64 *)(clock_value))

/*
 * Collectives on a group. All of its members make the same call; an event with user_context
 * on the group's EVD reports completion. The names are MPI's.
 */
#define dat_ib_collective_scatter( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, root, user_context, \
		flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_SCATTER_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
			 (user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_scatterv( \
		coll_handle, sendbuf, sendsizes, displs, recvbuf, recvsize, root, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_SCATTERV_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT *)(sendsizes), (DAT_COUNT *)(displs), \
			 (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize), \
			 (DAT_IB_COLLECTIVE_RANK)(root), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_gather( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, root, user_context, \
		flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_GATHER_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
			 (user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_gatherv( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsizes, displs, root, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_GATHERV_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT *)(recvsizes), (DAT_COUNT *)(displs), \
			 (DAT_IB_COLLECTIVE_RANK)(root), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allgather( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_ALLGATHER_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allgatherv( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsizes, displs, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_ALLGATHERV_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT *)(recvsizes), (DAT_COUNT *)(displs), \
			 (user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_alltoall( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_ALLTOALL_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_alltoallv( \
		coll_handle, sendbuf, sendsizes, senddispls, recvbuf, recvsizes, \
		recvdispls, user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_ALLTOALLV_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT *)(sendsizes), (DAT_COUNT *)(senddispls), \
			 (DAT_PVOID)(recvbuf), (DAT_COUNT *)(recvsizes), \
			 (DAT_COUNT *)(recvdispls), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_reduce( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, root, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_REDUCE_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), \
			 (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), \
			 (DAT_IB_COLLECTIVE_RANK)(root), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allreduce( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_ALLREDUCE_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), \
			 (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_reduce_scatter( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsizes, op, type, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT *)(recvsizes), \
			 (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_scan( \
		coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, \
		user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_SCAN_OP, (DAT_PVOID)(sendbuf), \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
			 (DAT_COUNT)(recvsize), \
			 (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_broadcast(coll_handle, buf, size, root, user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_BROADCAST_OP, (DAT_PVOID)(buf), \
			 (DAT_COUNT)(size), (DAT_IB_COLLECTIVE_RANK)(root), \
			 (user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_barrier(coll_handle, user_context, flags) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), \
			 DAT_IB_COLLECTIVE_BARRIER_OP, (user_context), \
			 (DAT_COMPLETION_FLAGS)(flags))

/* Receives on a datagram endpoint are ordinary receives; the rest are older names. */
#define dat_ib_post_recv_ud	dat_ep_post_recv
#define dat_query_counters	dat_ib_query_counters
#define dat_print_counters	dat_ib_print_counters

/*
 * Texts
 */

/*
 * dat_strerror_extension - returns the text of an extension's return code.
 *
 * value may be a whole DAT_RETURN with its class bits. The text is static.
 *
 * Fails with: INVALID_PARAMETER, for a value that is not one of DAT_IB_RETURN.
 * Threads: safe.
 */
static __inline__ DAT_RETURN dat_strerror_extension(DAT_IB_RETURN value, const char **message)
{
	switch ((DAT_UINT32)value & ~(DAT_CLASS_ERROR | DAT_CLASS_WARNING)) {
	case DAT_SUCCESS:
		*message = "DAT_SUCCESS";
		return DAT_SUCCESS;
	case DAT_IB_ERR:
		*message = "DAT_IB_ERR";
		return DAT_SUCCESS;
	case DAT_IB_COLLECTIVE_ERR:
		*message = "DAT_IB_COLLECTIVE_ERR";
		return DAT_SUCCESS;
	default:
		*message = "unknown extension error";
		return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER;
	}
}

/*
 * dat_strerror_ext_status - returns the text of an extension event's status.
 *
 * Fails with: INVALID_PARAMETER, for a value that is not one of DAT_IB_STATUS.
 * Threads: safe.
 */
static __inline__ DAT_RETURN dat_strerror_ext_status(DAT_IB_STATUS value, const char **message)
{
	switch ((int)value) {
	case DAT_OP_SUCCESS:
		*message = "DAT_OP_SUCCESS";
		return DAT_SUCCESS;
	case DAT_IB_OP_ERR:
		*message = "DAT_IB_OP_ERR";
		return DAT_SUCCESS;
	case DAT_IB_COLL_COMP_ERR:
		*message = "DAT_IB_COLL_COMP_ERR";
		return DAT_SUCCESS;
	default:
		*message = "unknown extension status";
		return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER;
	}
}

#ifdef __cplusplus
}
#endif

#endif /* _DAT_IB_EXTENSIONS_H_ */
