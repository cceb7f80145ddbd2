/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The DAT 2.0 interface for user-level programs. Include this file; it includes the
 * rest.
 */

#ifndef _UDAT_H_
#define _UDAT_H_

#include <dat2/udat_config.h>
#include <dat2/dat_platform_specific.h>

/*
 * Types that dat.h needs
 */

/* Output of dat_get_handle_type(). */
typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR		= 0,
	DAT_HANDLE_TYPE_EP		= 1,
	DAT_HANDLE_TYPE_EVD		= 2,
	DAT_HANDLE_TYPE_IA		= 3,
	DAT_HANDLE_TYPE_LMR		= 4,
	DAT_HANDLE_TYPE_PSP		= 5,
	DAT_HANDLE_TYPE_PZ		= 6,
	DAT_HANDLE_TYPE_RMR		= 7,
	DAT_HANDLE_TYPE_RSP		= 8,
	DAT_HANDLE_TYPE_CNO		= 9,
	DAT_HANDLE_TYPE_SRQ		= 10,
	DAT_HANDLE_TYPE_CSP		= 11,
	DAT_HANDLE_TYPE_EXTENSION_BASE	= 12	/* first type that belongs to an extension */
} DAT_HANDLE_TYPE;

/* Selects the members of DAT_EVD_PARAM that dat_evd_query() returns. */
typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE	= 0x01,
	DAT_EVD_FIELD_EVD_QLEN	= 0x02,
	DAT_EVD_FIELD_EVD_STATE	= 0x04,
	DAT_EVD_FIELD_CNO	= 0x08,
	DAT_EVD_FIELD_EVD_FLAGS	= 0x10,
	DAT_EVD_FIELD_ALL	= 0x1f
} DAT_EVD_PARAM_MASK;

/* Selects the members of DAT_LMR_PARAM that dat_lmr_query() returns. */
enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE			= 0x001,
	DAT_LMR_FIELD_MEM_TYPE			= 0x002,
	DAT_LMR_FIELD_REGION_DESC		= 0x004,
	DAT_LMR_FIELD_LENGTH			= 0x008,
	DAT_LMR_FIELD_PZ_HANDLE			= 0x010,
	DAT_LMR_FIELD_MEM_PRIV			= 0x020,
	DAT_LMR_FIELD_VA_TYPE			= 0x040,
	DAT_LMR_FIELD_LMR_CONTEXT		= 0x080,
	DAT_LMR_FIELD_RMR_CONTEXT		= 0x100,
	DAT_LMR_FIELD_REGISTERED_SIZE		= 0x200,
	DAT_LMR_FIELD_REGISTERED_ADDRESS	= 0x400,
	DAT_LMR_FIELD_ALL			= 0x7ff
};

/* selects the members of DAT_PROVIDER_ATTR that dat_ia_query() returns */
typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#include <dat2/dat.h>
#include <dat2/dat_vendor_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Event dispatchers and consumer notification objects (CNO)
 */
typedef DAT_HANDLE DAT_CNO_HANDLE;	/* consumer notification object */

/*
 * State of an EVD: one flag of the first pair, one of the second, and one for the events that
 * wake a waiter.
 */
typedef enum dat_evd_state {
	DAT_EVD_STATE_ENABLED		= 0x01,	/* events trigger the CNO */
	DAT_EVD_STATE_DISABLED		= 0x02,	/* events do not trigger the CNO */
	DAT_EVD_STATE_WAITABLE		= 0x04,	/* dat_evd_wait() works */
	DAT_EVD_STATE_UNWAITABLE	= 0x08,	/* dat_evd_wait() is refused */
	DAT_EVD_STATE_CONFIG_NOTIFY	= 0x10,	/* every signalled completion wakes */
	DAT_EVD_STATE_CONFIG_SOLICITED	= 0x20,	/* completions that the sender solicited wake */
	DAT_EVD_STATE_CONFIG_THRESHOLD	= 0x30	/* the wait's threshold decides */
} DAT_EVD_STATE;

/* Output of dat_evd_query(). */
struct dat_evd_param {
	DAT_IA_HANDLE	ia_handle;	/* IA it belongs to */
	DAT_COUNT	evd_qlen;	/* events it can hold; at least the requested length */
	DAT_EVD_STATE	evd_state;	/* its state */
	DAT_CNO_HANDLE	cno_handle;	/* CNO it triggers, or DAT_HANDLE_NULL */
	DAT_EVD_FLAGS	evd_flags;	/* kinds of event it takes */
};

/*
 * In place of an EVD handle: DAT_EVD_ASYNC_EXISTS shares the asynchronous EVD of an earlier
 * dat_ia_open(); dat_ia_query() then returns DAT_EVD_OUT_OF_SCOPE.
 */
#define DAT_EVD_ASYNC_EXISTS	((DAT_EVD_HANDLE)0x1)
#define DAT_EVD_OUT_OF_SCOPE	((DAT_EVD_HANDLE)0x2)

typedef void (*DAT_AGENT_FUNC)(DAT_PVOID, DAT_EVD_HANDLE);

/*
 * A consumer function that a CNO calls on a provider thread. It may make any DAT call that
 * does not wait.
 */
typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID	instance_data;	/* first argument of proxy_agent_func */
	/* its second argument is the EVD that got an event, or null */
	DAT_AGENT_FUNC	proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

/* No agent: the value of a DAT_OS_WAIT_PROXY_AGENT that calls nothing. */
#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL	(DAT_OS_WAIT_PROXY_AGENT{ 0, 0 })
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL	((DAT_OS_WAIT_PROXY_AGENT){ 0, 0 })
#endif

/* The target of a CNO's triggers, besides dat_cno_wait(). */
typedef enum dat_proxy_type {
	DAT_PROXY_TYPE_NONE	= 0,	/* nothing */
	DAT_PROXY_TYPE_AGENT	= 1,	/* an agent */
	DAT_PROXY_TYPE_FD	= 2	/* a file descriptor */
} DAT_PROXY_TYPE;

/* Output of dat_cno_query(). */
typedef struct dat_cno_param {
	DAT_IA_HANDLE		ia_handle;	/* IA the CNO belongs to */
	DAT_PROXY_TYPE		proxy_type;	/* which member of proxy is valid */
	union {
		DAT_OS_WAIT_PROXY_AGENT	agent;	/* DAT_PROXY_TYPE_AGENT */
		DAT_FD			fd;	/* DAT_PROXY_TYPE_FD */
		DAT_PVOID		none;	/* DAT_PROXY_TYPE_NONE: a null pointer */
	} proxy;
} DAT_CNO_PARAM;

/*
 * Selects the members of DAT_CNO_PARAM that dat_cno_query() returns. The values are not
 * separate bits; providers fill in every member.
 */
typedef enum dat_cno_param_mask {
	DAT_CNO_FIELD_IA_HANDLE		= 0x1,
	DAT_CNO_FIELD_PROXY_TYPE	= 0x2,
	DAT_CNO_FIELD_PROXY		= 0x3,
	DAT_CNO_FIELD_ALL		= 0x4
} DAT_CNO_PARAM_MASK;

/*
 * Memory
 */

/* Kind of memory that an LMR is created from. */
typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL		= 0,	/* an address range of this process */
	DAT_MEM_TYPE_LMR		= 1,	/* the memory of another LMR */
	DAT_MEM_TYPE_SHARED_VIRTUAL	= 2	/* memory that several processes register */
} DAT_MEM_TYPE;

#define DAT_LMR_COOKIE_SIZE	40	/* bytes in a cookie */

/* identifies shared memory; equal in all processes that register it */
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

/* Memory that several processes register with one set of translations. */
typedef struct dat_shared_memory {
	DAT_PVOID	virtual_address;	/* its address in this process */
	DAT_LMR_COOKIE	shared_memory_id;	/* its identifier, agreed among the processes */
} DAT_SHARED_MEMORY;

/* Memory for dat_lmr_create(); the memory type selects the member. */
typedef union dat_region_description {
	DAT_PVOID		for_va;			/* DAT_MEM_TYPE_VIRTUAL: first byte */
	DAT_LMR_HANDLE		for_lmr_handle;		/* DAT_MEM_TYPE_LMR */
	DAT_SHARED_MEMORY	for_shared_memory;	/* DAT_MEM_TYPE_SHARED_VIRTUAL */
} DAT_REGION_DESCRIPTION;

/* Output of dat_lmr_query(). */
struct dat_lmr_param {
	DAT_IA_HANDLE		ia_handle;		/* IA it belongs to */
	DAT_MEM_TYPE		mem_type;		/* as requested */
	DAT_REGION_DESCRIPTION	region_desc;		/* as requested */
	DAT_VLEN		length;			/* bytes, as requested */
	DAT_PZ_HANDLE		pz_handle;		/* its PZ */
	DAT_MEM_PRIV_FLAGS	mem_priv;		/* access it grants */
	DAT_VA_TYPE		va_type;		/* how its addresses are expressed */
	DAT_LMR_CONTEXT		lmr_context;		/* for local segments */
	DAT_RMR_CONTEXT		rmr_context;		/* for peers; 0 without remote privileges */
	/* bytes actually registered; may exceed length */
	DAT_VLEN		registered_size;
	DAT_VADDR		registered_address;	/* first byte actually registered */
};

/*
 * IA and provider attributes
 */

/*
 * Identity and limits of an adapter. Counts are per IA unless noted otherwise. Names,
 * address and arrays belong to the provider and are valid until the IA is closed.
 */
struct dat_ia_attr {
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
	DAT_SEG_LENGTH		max_lmr_block_size;	/* bytes in an LMR */
	/* highest address an LMR may reach */
	DAT_VADDR		max_lmr_virtual_address;
	DAT_COUNT		max_pzs;		/* protection zones */
	DAT_SEG_LENGTH		max_message_size;	/* bytes in a send */
	DAT_SEG_LENGTH		max_rdma_size;		/* bytes in an RDMA operation */
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
	DAT_BOOLEAN		zb_supported;		/* DAT_VA_TYPE_ZB may be used */
	DAT_EXTENSION		extension_supported;	/* family of extensions */
	DAT_COUNT		extension_version;	/* version of their interface */

	/* further attributes, as text */
	DAT_COUNT		num_transport_attr;	/* entries in the array that follows */
	DAT_NAMED_ATTR		*transport_attr;	/* attributes of the transport */
	DAT_COUNT		num_vendor_attr;	/* entries in the array that follows */
	DAT_NAMED_ATTR		*vendor_attr;		/* attributes of the vendor */
};

#define DAT_IA_FIELD_IA_EXTENSION		UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_EXTENSION_VERSION	UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR	UINT64_C(0x400000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR		UINT64_C(0x800000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR		UINT64_C(0x1000000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR		UINT64_C(0x2000000000)
#define DAT_IA_FIELD_ALL			UINT64_C(0x3fffffffff)	/* all members */

/* How protection zones relate to the IAs of a provider. */
typedef enum dat_pz_support {
	DAT_PZ_UNIQUE		= 0,	/* each belongs to one open IA */
	DAT_PZ_SHAREABLE	= 1	/* one may be used with several IAs */
} DAT_PZ_SUPPORT;

/*
 * Attributes of a provider. Names and arrays belong to the provider and are valid until the
 * IA is closed.
 */
struct dat_provider_attr {
	/* name of the provider */
	char			provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32		provider_version_major;		/* version of the provider */
	DAT_UINT32		provider_version_minor;
	DAT_UINT32		dapl_version_major;		/* DAT version it implements */
	DAT_UINT32		dapl_version_minor;
	DAT_MEM_TYPE		lmr_mem_types_supported;	/* kinds of memory, as bits */
	/* when segment lists may be reused */
	DAT_IOV_OWNERSHIP	iov_ownership_on_return;
	DAT_QOS			dat_qos_supported;		/* qualities of service, as bits */
	DAT_COMPLETION_FLAGS	completion_flags_supported;	/* completion flags, as bits */
	/* calls on one object need no serialising */
	DAT_BOOLEAN		is_thread_safe;
	/* bytes in a connection request or reply */
	DAT_COUNT		max_private_data_size;
	/* DAT_CONNECT_MULTIPATH_FLAG works */
	DAT_BOOLEAN		supports_multipath;
	/* whether it creates EPs for public service points */
	DAT_EP_CREATOR_FOR_PSP	ep_creator;
	DAT_PZ_SUPPORT		pz_support;			/* how PZs relate to IAs */
	DAT_UINT32		optimal_buffer_alignment;	/* in bytes */
	/*
	 * Whether one EVD may take two kinds of event. Rows and columns: software,
	 * connection request, DTO, connection, RMR bind, asynchronous. Constant for C; in
	 * C++ a const member would prevent the declaration of a variable.
	 */
#ifdef __cplusplus
	DAT_BOOLEAN		evd_stream_merging_supported[6][6];
#else
	const DAT_BOOLEAN	evd_stream_merging_supported[6][6];
#endif
	DAT_BOOLEAN	srq_supported;			/* shared receive queues work */
	DAT_COUNT	srq_watermarks_supported;	/* which watermarks work; 0: none */
	DAT_BOOLEAN	srq_ep_pz_difference_supported;	/* EP and SRQ may be of different PZs */
	/* which counts dat_srq_query() knows; 0: none */
	DAT_COUNT	srq_info_supported;
	/* which counts dat_ep_recv_query() knows; 0: none */
	DAT_COUNT	ep_recv_info_supported;
	/* dat_lmr_sync_rdma_read() and _write() are needed */
	DAT_BOOLEAN	lmr_sync_req;
	/* a post never completes before it returns */
	DAT_BOOLEAN	dto_async_return_guaranteed;
	/* target buffer of a read must allow remote writes */
	DAT_BOOLEAN	rdma_write_for_rdma_read_req;
	/* a read exposes its target buffer to the network */
	DAT_BOOLEAN	rdma_read_lmr_rmr_context_exposure;
	DAT_RMR_SCOPE	rmr_scope_supported;		/* scopes of RMRs */
	/* calls may be made from a signal handler */
	DAT_BOOLEAN	is_signal_safe;
	/* high availability: failed paths are replaced */
	DAT_BOOLEAN	ha_supported;
	DAT_HA_LB	ha_loadbalancing;		/* how load is balanced over paths */
	DAT_COUNT	num_provider_specific_attr;	/* entries in the array that follows */
	DAT_NAMED_ATTR	*provider_specific_attr;	/* further attributes, as text */
};

/* Members of DAT_PROVIDER_ATTR. */
#define DAT_PROVIDER_FIELD_PROVIDER_NAME			UINT64_C(0x00000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR		UINT64_C(0x00000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR		UINT64_C(0x00000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR			UINT64_C(0x00000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR			UINT64_C(0x00000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED		UINT64_C(0x00000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP			UINT64_C(0x00000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED			UINT64_C(0x00000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED		UINT64_C(0x00000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE			UINT64_C(0x00000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE		UINT64_C(0x00000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH			UINT64_C(0x00000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR				UINT64_C(0x00001000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT				UINT64_C(0x00002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT		UINT64_C(0x00004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED		UINT64_C(0x00008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED			UINT64_C(0x00010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED		UINT64_C(0x00020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED	UINT64_C(0x00040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED			UINT64_C(0x00080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED		UINT64_C(0x00100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ				UINT64_C(0x00200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED		UINT64_C(0x00400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ		UINT64_C(0x00800000)
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE	UINT64_C(0x01000000)
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED			UINT64_C(0x02000000)
#define DAT_PROVIDER_FIELD_IS_SIGNAL_SAFE			UINT64_C(0x04000000)
#define DAT_PROVIDER_FIELD_HA_SUPPORTED				UINT64_C(0x08000000)
#define DAT_PROVIDER_FIELD_HA_LB				UINT64_C(0x10000000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR		UINT64_C(0x20000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR		UINT64_C(0x40000000)
/* all members */
#define DAT_PROVIDER_FIELD_ALL					UINT64_C(0x7fffffff)
/* none */
#define DAT_PROVIDER_FIELD_NONE					UINT64_C(0x00000000)

/*
 * EVD calls
 */

/*
 * dat_evd_create(3DAT) - creates an event dispatcher, enabled and waitable.
 *
 * It holds at least evd_min_qlen events (1 or more) of the kinds in evd_flags, which must
 * be kinds that may share an EVD. cno_handle may be DAT_HANDLE_NULL.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
				 DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
				 DAT_EVD_HANDLE *evd_handle);

/*
 * dat_evd_wait(3DAT) - waits for events and takes one.
 *
 * Returns when threshold or more events are queued and one of them is signalled, or after
 * timeout microseconds (0: at once; DAT_TIMEOUT_INFINITE: never). The call takes the oldest
 * event and sets n_more_events to the number left; on timeout it takes none. threshold
 * ranges from 1 to the EVD's length, and must be 1 where UNSIGNALLED or SOLICITED_WAIT
 * completions arrive.
 *
 * Only one thread may wait on an EVD: a second waiter and a concurrent dat_evd_dequeue()
 * get INVALID_STATE. The waiter gets INVALID_STATE when the EVD is made unwaitable, and
 * DAT_ABORT when it is destroyed.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, ABORT, INVALID_STATE,
 *             TIMEOUT_EXPIRED, INTERRUPTED_CALL.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout,
			       DAT_COUNT threshold, DAT_EVENT *event,
			       DAT_COUNT *n_more_events);

/*
 * dat_evd_enable(3DAT) - lets an EVD's events trigger its CNO.
 *
 * Does nothing if the EVD is enabled. Events that arrived while it was disabled trigger the
 * CNO now.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle);

/*
 * dat_evd_disable(3DAT) - stops an EVD's events from triggering its CNO.
 *
 * Events are still queued, and dat_evd_wait() still returns them.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle);

/*
 * dat_evd_set_unwaitable(3DAT) - makes dat_evd_wait() fail on an EVD.
 *
 * A waiting thread wakes with INVALID_STATE. dat_evd_dequeue() keeps working.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle);

/*
 * dat_evd_clear_unwaitable(3DAT) - makes dat_evd_wait() work again.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: safe.
 */
extern DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle);

/*
 * dat_evd_modify_cno(3DAT) - makes an EVD trigger another CNO, or none.
 *
 * cno_handle may be DAT_HANDLE_NULL. Events queued in the EVD trigger the new CNO.
 *
 * Fails with: INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle,
				     DAT_CNO_HANDLE cno_handle);

/*
 * CNO calls
 */

/*
 * dat_cno_create(3DAT) - creates a consumer notification object.
 *
 * An event in any of the EVDs attached to it triggers it: agent is called, and a
 * thread in dat_cno_wait() wakes. agent may be DAT_OS_WAIT_PROXY_AGENT_NULL.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: safe.
 */
extern DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
				 DAT_CNO_HANDLE *cno_handle);

/*
 * dat_cno_fd_create(3DAT) - creates a consumer notification object with a file
 * descriptor.
 *
 * The descriptor polls readable while the CNO is triggered. It belongs to the CNO; do
 * not close it.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_HANDLE, INVALID_PARAMETER,
 *             MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *file_descriptor,
				    DAT_CNO_HANDLE *cno_handle);

/*
 * dat_cno_modify_agent(3DAT) - replaces the agent of a CNO and arms the new one.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle,
				       DAT_OS_WAIT_PROXY_AGENT agent);

/*
 * dat_cno_query(3DAT) - returns the parameters of a consumer notification object.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle,
				DAT_CNO_PARAM_MASK cno_param_mask,
				DAT_CNO_PARAM *cno_param);

/*
 * dat_cno_wait(3DAT) - waits until a CNO is triggered.
 *
 * timeout is in microseconds. evd_handle returns an EVD that got an event; this is a hint,
 * so poll every attached EVD. The call consumes the trigger; one trigger wakes one thread.
 * On timeout it returns QUEUE_EMPTY without class bits. evd_handle is null if the IA was
 * closed.
 *
 * Fails with: INVALID_HANDLE, QUEUE_EMPTY, INVALID_PARAMETER, INTERRUPTED_CALL.
 * Threads: safe.
 */
extern DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
			       DAT_EVD_HANDLE *evd_handle);

/*
 * dat_cno_trigger(3DAT) - takes the trigger of a CNO, without waiting.
 *
 * Like dat_cno_wait() with a timeout of 0.
 *
 * Fails with: INVALID_HANDLE, INVALID_PARAMETER, QUEUE_EMPTY, MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno_handle,
				  DAT_EVD_HANDLE *evd_handle);

/*
 * dat_cno_free(3DAT) - frees a consumer notification object.
 *
 * Returns INVALID_STATE while an EVD is attached or a thread waits.
 *
 * Fails with: INVALID_HANDLE, INVALID_STATE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle);

/*
 * Memory calls
 */

/*
 * dat_lmr_create(3DAT) - registers memory, so that transfers may use it.
 *
 * mem_type selects the member of region_description; length is in bytes. With
 * DAT_VA_TYPE_ZB the addresses of the region are offsets from its start. Local segments
 * name the region by lmr_context; a peer that holds rmr_context has the remote privileges.
 * The registered region may be larger than requested. All outputs but lmr_handle may be
 * null.
 *
 * Fails with: INSUFFICIENT_RESOURCES, INVALID_PARAMETER, INVALID_HANDLE,
 *             INVALID_STATE, MODEL_NOT_SUPPORTED.
 * Threads: safe.
 */
extern DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
				 DAT_REGION_DESCRIPTION region_description,
				 DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
				 DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
				 DAT_LMR_HANDLE *lmr_handle,
				 DAT_LMR_CONTEXT *lmr_context,
				 DAT_RMR_CONTEXT *rmr_context,
				 DAT_VLEN *registered_length,
				 DAT_VADDR *registered_address);

/*
 * dat_lmr_query(3DAT) - returns the parameters of a local memory region.
 *
 * Fails with: INVALID_PARAMETER, INVALID_HANDLE.
 * Threads: calls on one object must be serialised.
 */
extern DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle,
				DAT_LMR_PARAM_MASK lmr_param_mask,
				DAT_LMR_PARAM *lmr_param);

#ifdef __cplusplus
}
#endif

#include <dat2/udat_vendor_specific.h>

#endif /* _UDAT_H_ */
