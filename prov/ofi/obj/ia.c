/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interface Adapter: an opened fabric with its progress thread and all objects made on it. */

#include "obj/ia.h"

#include "base/env.h"
#include "base/log.h"
#include "fab/info.h"
#include "obj/xport.h"
#include "rings/rings.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dofi_pool dofi_ia_pool = DOFI_POOL_INIT("ia", struct dofi_ia, NULL);

/*
 * The order in which objects end with their IA. Service points come first, as they make other
 * objects; then objects before the objects that they use.
 */
static const DAT_HANDLE_TYPE close_order[] = {
	DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP,
#if DAT_VERSION_MAJOR >= 2
	DAT_HANDLE_TYPE_CSP,
#endif
	DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_CNO,
};

#if DAT_VERSION_MAJOR >= 2
/*
 * OFED's registry shows programs a small number instead of our pointer and
 * exports the translation; a registry that shows the pointer answers it unchanged.
 */
DAT_IA_HANDLE dofi_ia_export(struct dofi_ia *ia)
{
	DAT_IA_HANDLE public;

	return dats_get_ia_handle(ia, &public) == DAT_SUCCESS ? public : (DAT_IA_HANDLE)ia;
}

DAT_COMM dofi_ia_comm(const struct dofi_ia *ia)
{
	return (DAT_COMM){
		.domain = ia->address.ss_family, .type = SOCK_STREAM, .protocol = IPPROTO_TCP,
	};
}
#else
DAT_IA_HANDLE dofi_ia_export(struct dofi_ia *ia)
{
	return ia;
}
#endif

/*
 * Sets *@size, which is 0, to the bytes of private data that the fabric carries: 0 if libfabric's
 * provider cannot tell. Opens a passive endpoint without an address, as no port may be free.
 * Returns 0 or a negative errno.
 */
static int fabric_data_size(struct dofi_ia *ia, size_t *size)
{
	struct fi_info *info = fi_dupinfo(ia->fabric.info);
	size_t len = sizeof(*size);
	struct fid_pep *pep;
	int ret;

	if (!info)
		return -ENOMEM;
	free(info->src_addr);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	ret = fi_passive_ep(ia->progress.fabric, info, &pep, NULL);
	fi_freeinfo(info);
	if (!ret) {
		ret = fi_getopt(&pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, size, &len);
		fi_close(&pep->fid);
	}
	if (ret)
		dofi_log(DOFI_ERR, DOFI_FAB,
			 "querying how much private data the fabric carries: %s",
			 fi_strerror(-ret));
	return ret == -FI_ENOSYS || ret == -FI_ENOPROTOOPT ? 0 : ret;
}

/* Without a local fabric, all peers are reached over the main fabric. */
static void local_drop(struct dofi_ia *ia)
{
	if (ia->local.info)
		dofi_fabric_release(&ia->local);
	ia->fabric.also_granted = false;
}

struct init_call {
	struct dofi_ia *ia;
	const struct dofi_xports *xports;
	int ret;
};

static void ia_init_on_thread(void *arg)
{
	struct init_call *c = arg;
	struct dofi_ia *ia = c->ia;
	const struct dofi_datagrams *service = c->xports->datagrams;
	int ret;

	c->ret = ia->xport->ia_init(ia);
	if (c->ret)
		return;
	if (ia->local.info && c->xports->add_local(ia))
		local_drop(ia);
	/* an IA may lack datagrams: none of its other services needs them */
	ia->datagrams = service;
	ret = service ? service->ia_init(ia) : 0;
	if (ret) {
		dofi_log(DOFI_INFO, DOFI_FAB, "no datagrams: %s", fi_strerror(-ret));
		ia->datagrams = NULL;
		ia->datagram_size = 0;
	} else if (service) {
		snprintf(ia->datagram_text, sizeof(ia->datagram_text), "%u", ia->datagram_size);
	}
}

static void ia_reset(struct dofi_ia *ia)
{
	size_t i;

	ia->obj.ia = ia;
	ia->obj.context = (DAT_CONTEXT){ .as_64 = 0 };
	ia->async_evd = NULL;
	ia->async_evd_owned = ia->async_evd_shared = false;
	ia->xport_ia = ia->local_ia = NULL;
	ia->datagrams = NULL;
	ia->datagrams_ia = NULL;
	ia->datagram_size = 0;
	ia->n_named = 0;
	dofi_counter_server_init(&ia->counter_server);
	ia->log_counters = NULL;
	memset(&ia->count, 0, sizeof(ia->count));
	memset(ia->made, 0, sizeof(ia->made));
	memset(ia->freed, 0, sizeof(ia->freed));
	memset(ia->base, 0, sizeof(ia->base));
	ia->cm_stopped = false;
	memset(ia->n_children, 0, sizeof(ia->n_children));
	for (i = 0; i < DOFI_KINDS; i++)
		TAILQ_INIT(&ia->children[i]);
}

/* Sets all members that follow from the fabrics. Returns 0 or a negative errno. */
static int ia_describe(struct dofi_ia *ia, const struct dofi_params *params)
{
	size_t data_size = ia->xport->cm_data_size;
	const int ret = data_size ? 0 : fabric_data_size(ia, &data_size);
	struct dofi_limits local;

	if (ret)
		return ret;
	dofi_info_limits(&ia->fabric, data_size, &ia->limits);
	/* the lower limits of both fabrics: a program does not know which one a connection takes */
	if (ia->local.info) {
		dofi_info_limits(&ia->local, 0, &local);
		dofi_limits_lower(&ia->limits, &local);
	}
	if (ia->limits.cm_data_size <= ia->xport->header_size) {
		dofi_log(DOFI_ERR, DOFI_FAB, "fabric %s carries too little private data (%u bytes)",
			 ia->fabric.info->fabric_attr->prov_name, ia->limits.cm_data_size);
		return -ENOTSUP;
	}
	ia->max_private_data = (DAT_COUNT)(ia->limits.cm_data_size - ia->xport->header_size);
	dofi_fabric_address(&ia->fabric, params, &ia->address);
	dofi_device_find(ia->fabric.info, &ia->address, DOFI_DEVICE_SYSFS, &ia->device);
	dofi_version_text(fi_version(), ia->version, sizeof(ia->version));
	dofi_version_check(fi_version());
	ia->frame_size[0] = ia->node[0] = ia->distance[0] = 0;
	if (ia->fabric.rdm)
		snprintf(ia->frame_size, sizeof(ia->frame_size), "%zu", ia->fabric.frame_size);
	if (ia->fabric.located) {
		snprintf(ia->node, sizeof(ia->node), "%d", ia->fabric.locality.node);
		snprintf(ia->distance, sizeof(ia->distance), "%u", ia->fabric.locality.distance);
	}
	return 0;
}

/* Chooses the fabric, and also a local one if @params name none. */
static int fabrics_choose(struct dofi_ia *ia, const struct dofi_params *params,
			  const struct dofi_xports *xports)
{
	int ret;

	ia->local.info = NULL;
	if (dofi_rings_are_named(params)) {
		ia->xport = xports->local;
		return dofi_rings_choose(params, &ia->fabric);
	}
	ret = dofi_fabric_choose(params, &ia->fabric);
	if (ret)
		return ret;
	ia->xport = ia->fabric.rdm ? xports->connectionless : xports->connected;
	if (!ia->fabric.rdm && xports->add_local && dofi_settings.local && !params->provider[0] &&
	    !params->domain[0] && !params->address[0] && !params->endpoint[0])
		ia->fabric.also_granted = !dofi_rings_choose_beside(&ia->local);
	return 0;
}

static void fabrics_release(struct dofi_ia *ia)
{
	local_drop(ia);
	dofi_fabric_release(&ia->fabric);
}

int dofi_ia_open(const DAT_PROVIDER *provider, const struct dofi_params *params,
		 const struct dofi_xports *xports, bool thread_safe, struct dofi_ia **out)
{
	struct dofi_ia *ia = dofi_pool_get(&dofi_ia_pool);
	struct init_call call = { .ia = ia, .xports = xports, .ret = -ENODEV };
	int ret;

	if (!ia)
		return -ENOMEM;
	ia_reset(ia);
	ia->obj.provider = provider;
	ia->thread_safe = thread_safe;
	ia->strict = dofi_settings.strict >= 0 ? dofi_settings.strict : params->strict[0] == '1';
	ret = fabrics_choose(ia, params, xports);
	if (ret)
		goto put_ia;
	ret = dofi_fabric_start(&ia->progress, ia->xport->progress_ops, ia->fabric.info);
	if (ret)
		goto release_fabrics;
	ret = ia_describe(ia, params);
	if (ret)
		goto stop_progress;
	dofi_progress_call(&ia->progress, ia_init_on_thread, &call);
	ret = call.ret;
	if (ret)
		goto stop_progress;
	dofi_pool_tag_set(ia, DOFI_KIND(DAT_HANDLE_TYPE_IA));
	dofi_log(DOFI_INFO, DOFI_CORE, "opened on fabric %s, domain %s%s%s",
		 ia->fabric.info->fabric_attr->prov_name, ia->fabric.info->domain_attr->name,
		 ia->local.info ? "; on this host " : "",
		 ia->local.info ? ia->local.info->fabric_attr->prov_name : "");
	*out = ia;
	return 0;

stop_progress:
	dofi_progress_stop(&ia->progress);
release_fabrics:
	fabrics_release(ia);
put_ia:
	dofi_pool_put(&dofi_ia_pool, ia);
	return ret;
}

void dofi_obj_destroy(struct dofi_obj *obj)
{
	if (!dofi_obj_claim(obj))
		return;
	dofi_calls_await(&obj->calls);
	obj->destroy(obj);
}

static void destroy_children(void *arg)
{
	struct dofi_ia *ia = arg;
	struct dofi_obj *obj;
	size_t i;

	dofi_counter_server_close(&ia->counter_server);
	for (i = 0; i < sizeof(close_order) / sizeof(close_order[0]); i++) {
		do {
			dofi_mutex_lock(&ia->lock);
			obj = TAILQ_FIRST(&ia->children[DOFI_KIND(close_order[i])]);
			dofi_mutex_unlock(&ia->lock);
			if (obj)
				dofi_obj_destroy(obj);
		} while (obj);
	}
	/* handlers of events use the transport, and sockets queues events of closed listeners */
	dofi_progress_events(&ia->progress);
	if (ia->datagrams)
		ia->datagrams->ia_fini(ia);
	ia->xport->ia_fini(ia);
}

void dofi_ia_destroy(struct dofi_ia *ia)
{
	struct dofi_obj *evd;

	dofi_pool_tag_set(ia, 0);
	dofi_calls_await(&ia->obj.calls);
	/* another IA owns the EVD, and may have freed it */
	evd = (struct dofi_obj *)ia->async_evd;
	if (!ia->async_evd_owned && evd && dofi_obj_is_live(evd, DAT_HANDLE_TYPE_EVD))
		dofi_obj_put(evd);
	dofi_progress_call(&ia->progress, destroy_children, ia);
	dofi_progress_stop(&ia->progress);
	fabrics_release(ia);
	if (ia->log_counters)
		ia->log_counters(&ia->obj, DAT_HANDLE_TYPE_IA);
	dofi_pool_put(&dofi_ia_pool, ia);
}

bool dofi_ia_in_use(struct dofi_ia *ia)
{
	struct dofi_obj *obj;
	bool found = false;
	size_t i;

	/* unanswered requests, and the EPs that came with them, do not keep the IA open */
	dofi_mutex_lock(&ia->lock);
	for (i = 0; i < DOFI_KINDS; i++)
		TAILQ_FOREACH(obj, &ia->children[i], sibling)
			found |= !atomic_load(&obj->provided) &&
				 !(ia->async_evd_owned && obj == (struct dofi_obj *)ia->async_evd);
	dofi_mutex_unlock(&ia->lock);
	return found;
}

DAT_RETURN dofi_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
	struct dofi_ia *ia = dofi_ia_enter(ia_handle);
	const bool graceful = flags == DAT_CLOSE_GRACEFUL_FLAG;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!graceful && flags != DAT_CLOSE_ABRUPT_FLAG)
		ret = DOFI_BAD_ARG(2);
	else if (graceful && dofi_ia_in_use(ia))
		ret = DOFI_BAD_STATE(IA_IN_USE);
	else if (!dofi_obj_claim(&ia->obj))
		ret = DOFI_BAD_HANDLE(IA);
	dofi_obj_leave(&ia->obj);
	if (ret)
		return ret;
	dofi_calls_await(&ia->obj.calls);
	if (graceful && dofi_ia_in_use(ia)) {
		/* a call that was in progress has made an object */
		dofi_pool_tag_set(ia, DOFI_KIND(DAT_HANDLE_TYPE_IA));
		return DOFI_BAD_STATE(IA_IN_USE);
	}
	dofi_log_call_ia = ia->obj.provider->device_name;
	dofi_log(DOFI_INFO, DOFI_CORE, "closed");
	dofi_ia_destroy(ia);
	dofi_log_call_ia = NULL;
	return DAT_SUCCESS;
}

#if DAT_VERSION_MAJOR >= 2
/* No IA takes over for another, as ha_supported says. */
DAT_RETURN dofi_ia_ha_related(DAT_IA_HANDLE ia_handle, const DAT_NAME_PTR name,
			      DAT_BOOLEAN *related)
{
	struct dofi_ia *ia DOFI_CALL = dofi_ia_enter(ia_handle);

	if (!ia)
		return DOFI_BAD_HANDLE(IA);
	if (!name)
		return DOFI_BAD_ARG(2);
	if (!related)
		return DOFI_BAD_ARG(3);
	*related = DAT_FALSE;
	return DAT_SUCCESS;
}
#endif
