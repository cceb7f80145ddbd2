/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interface Adapter: an opened fabric with its progress thread and all objects made on it. */
#ifndef DOFI_OBJ_IA_H
#define DOFI_OBJ_IA_H

#include "base/layout.h"
#include "base/mutex.h"
#include "fab/info.h"
#include "fab/params.h"
#include "loop/counter_server.h"
#include "loop/progress.h"
#include "obj/obj.h"

#include <sys/socket.h>

struct dofi_datagrams;
struct dofi_evd;
struct dofi_xport;
struct dofi_xports;

#define DOFI_IA_NAMED_ATTRS 384
#define DOFI_IA_COUNTERS 85

struct dofi_ia {
	struct dofi_obj obj;
	const struct dofi_xport *xport;
	void *xport_ia;			/* the transport's state of this IA */
	struct dofi_fabric_choice fabric;
	/*
	 * In addition to a fabric that connects, and that the program did not name: memory of this
	 * host for peers on it. info is NULL if there is none.
	 */
	struct dofi_fabric_choice local;
	void *local_ia;
	/* the datagram service; NULL if the IA has none */
	const struct dofi_datagrams *datagrams;
	void *datagrams_ia;		/* its state of this IA */
	uint32_t datagram_size;		/* most bytes of a datagram; 0 without the service */
	char datagram_text[12];		/* datagram_size as text */
	struct dofi_limits limits;
	DAT_COUNT max_private_data;
	struct dofi_progress progress;
	struct sockaddr_storage address;
	bool thread_safe;		/* of the dat.conf entry that was opened */
	bool strict;			/* refuses what DAT forbids and OFED's provider accepts */

	_Atomic(struct dofi_evd *) async_evd; /* for asynchronous events; may be NULL */
	bool async_evd_owned;		/* made by dat_ia_open */
	bool async_evd_shared;		/* another instance's: dat_ia_query does not return it */

	char fabrics[128];		/* fabrics with connections that libfabric offers here */
	char rdm_fabrics[128];		/* connectionless fabrics that libfabric offers here */
	char frame_size[24];		/* empty for a fabric with connections */
	char version[48];
	char node[12], distance[12];	/* NUMA node and distance of the device, empty if unknown */
	struct dofi_device device;	/* the device, as it was when the IA was opened */
	DAT_NAMED_ATTR named[DOFI_IA_NAMED_ATTRS]; /* none until they are queried */
	DAT_COUNT n_named;

	struct dofi_counter_server counter_server;

	/* written by any thread, with dofi_count_exactly() */
	struct {
		uint64_t psp_any, cr_accepted, cr_rejected, async_error;
		uint64_t connect, active, passive;	/* attempts; connections, by end */
		uint64_t rejected, refused, timeout;	/* attempts that failed, by cause */
		uint64_t disconnect;			/* disconnects that the program requested */
		uint64_t disconnected, broken;		/* ends of connections */
		/* exchanges of datagram EPs: requested; requests that arrived; established */
		uint64_t ah_requested, ah_request_arrived, ah_resolved;
		/* datagrams that found no receive; that are for no EP here, or malformed */
		uint64_t dropped_no_receive, dropped_foreign;
		uint64_t dropped_sends;			/* datagrams that the fabric did not take */
	} count;

	/*
	 * Prints the counters of an object of this type, which is being freed:
	 * dofi_counters_log(), or NULL.
	 */
	void (*log_counters)(struct dofi_obj *obj, DAT_HANDLE_TYPE type);

	struct dofi_mutex lock;		/* the fields below */
	uint64_t made[DOFI_KINDS], freed[DOFI_KINDS];
	uint64_t base[DOFI_IA_COUNTERS]; /* values at the last reset: counters.c */
	bool cm_stopped;
	struct dofi_obj_list children[DOFI_KINDS];
	DAT_COUNT n_children[DOFI_KINDS];
};

DOFI_OBJ_HANDLES(ia, IA, struct dofi_ia);

static inline struct dofi_ia *dofi_ia_of(struct dofi_progress *p)
{
	return DOFI_CONTAINER_OF(p, struct dofi_ia, progress);
}

#if DAT_VERSION_MAJOR >= 2
/* The kind of address of its connections: a port of a host. */
DAT_COMM dofi_ia_comm(const struct dofi_ia *ia);
#endif

/* The IA handle that the program has; a 2.0 registry may pass it another one. */
DAT_IA_HANDLE dofi_ia_export(struct dofi_ia *ia);

/*
 * Opens the fabric that @params name, with the transport of @xports that fits. If they name none,
 * and the fabric connects, peers on this host may be reached by a second one, local. Returns 0 or a
 * negative errno, which is logged.
 */
int dofi_ia_open(const DAT_PROVIDER *provider, const struct dofi_params *params,
		 const struct dofi_xports *xports, bool thread_safe, struct dofi_ia **ia);
/* Destroys every child and the IA itself. */
void dofi_ia_destroy(struct dofi_ia *ia);

/* Ends @obj of an IA without events, unless another thread has claimed it. */
void dofi_obj_destroy(struct dofi_obj *obj);

/* Whether the consumer has objects left, so that a graceful close fails. */
bool dofi_ia_in_use(struct dofi_ia *ia);

DAT_RETURN dofi_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags);
#if DAT_VERSION_MAJOR >= 2
DAT_RETURN dofi_ia_ha_related(DAT_IA_HANDLE ia_handle, const DAT_NAME_PTR name,
			      DAT_BOOLEAN *related);
#endif

#endif
