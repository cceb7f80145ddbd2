/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider as a registry sees it: its entry points, its function table, opening an IA. */

#include "base/env.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/mutex.h"
#include "check/check.h"
#include "dat_cause.h"
#include "ext.h"
#include "fab/params.h"
#include "obj/caps.h"
#include "obj/counters.h"
#include "obj/ep/ep_attr.h"
#include "obj/ep/ep_cm.h"
#include "obj/ep/ep_post.h"
#include "obj/ep/fast.h"
#include "obj/evd/evd.h"
#include "obj/ia.h"
#include "obj/mem/lmr.h"
#include "obj/mem/rmr.h"
#include "obj/sp/cr.h"
#include "obj/sp/sp.h"
#include "xport/local_or_net.h"
#include "xport/msg/msg.h"
#include "xport/rdm/rdm.h"
#include "xport/ud/ud.h"

#include <stdlib.h>
#include <string.h>

/*
 * A dat.conf entry: each IA name has its own function table. An entry is never freed, as a thread
 * may look into the table while another closes the last IA; it is used again when the registry
 * loads the provider again.
 */
struct entry {
	DAT_PROVIDER table;
	DAT_PROVIDER_INFO info;
	char *ia_params;
	bool in_use;
	TAILQ_ENTRY(entry) link;
};

static struct dofi_mutex entries_lock;
static TAILQ_HEAD(, entry) entries DOFI_GUARDED_BY(entries_lock) = TAILQ_HEAD_INITIALIZER(entries);

/* DAT passes the name only, so thread-safe entries have tables of their own. */
static struct entry *entry_find(const char *name, bool thread_safe)
{
	struct entry *e;

	dofi_mutex_lock(&entries_lock);
	TAILQ_FOREACH(e, &entries, link)
		if (e->in_use && !strcmp(e->info.ia_name, name) &&
		    !!e->info.is_thread_safe == thread_safe)
			break;
	dofi_mutex_unlock(&entries_lock);
	return e;
}

/* Returns @handle, of any IA, with a reference; or NULL. */
static struct dofi_evd *async_evd_use(DAT_EVD_HANDLE handle)
{
	struct dofi_evd *evd DOFI_CALL = dofi_evd_enter(handle);

	return evd && dofi_obj_get(&evd->obj) ? evd : NULL;
}

/*
 * The length that a program requests is a minimum: a program with a hundred endpoints on an SRQ
 * requests 8, and then each endpoint reports its last receive.
 */
#define ASYNC_QLEN 256

/* Sets the asynchronous EVD of @ia to *@handle, or makes one if *@handle is null. */
static DAT_RETURN async_evd_set(struct dofi_ia *ia, const struct entry *e, DAT_COUNT qlen,
				DAT_EVD_HANDLE *handle)
{
	struct dofi_evd *evd = NULL;
	DAT_RETURN ret;
	uint32_t i;
	void *p;

	if (*handle == DAT_HANDLE_NULL) {
		if (qlen < ASYNC_QLEN)
			qlen = ASYNC_QLEN;
		ret = dofi_evd_new(ia, qlen, NULL, DAT_EVD_ASYNC_FLAG, &evd);
		if (ret)
			return ret;
		ia->async_evd_owned = true;
		ia->async_evd = *handle = evd;
		return DAT_SUCCESS;
	}
	ia->async_evd_shared = *handle == DAT_EVD_ASYNC_EXISTS;
	if (!ia->async_evd_shared)
		evd = async_evd_use(*handle);
	/* else the EVD of an open instance of this IA name */
	for (i = 0; ia->async_evd_shared && !evd && (p = dofi_pool_next(&dofi_ia_pool, &i)); i++) {
		struct dofi_ia *other DOFI_CALL = dofi_ia_enter(p);

		if (other && !strcmp(other->obj.provider->device_name, e->info.ia_name))
			evd = async_evd_use(other->async_evd);
	}
	if (!evd)
		return DOFI_BAD_HANDLE(EVD_ASYNC);
	if (!(evd->flags & DAT_EVD_ASYNC_FLAG))
		ret = DOFI_BAD_HANDLE(EVD_ASYNC);
	else
		ret = dofi_evd_take_async(evd) ? DAT_SUCCESS : DOFI_BAD_ARG(3);
	if (ret)
		dofi_obj_put(&evd->obj);
	else
		ia->async_evd = evd;
	return ret;
}

static const struct dofi_xports xports = {
	.connected = &dofi_msg_xport, .connectionless = &dofi_rdm_xport,
	.local = &dofi_rings_xport,
	.add_local = dofi_local_or_net_add,
#if DAT_VERSION_MAJOR >= 2
	.datagrams = &dofi_ud_datagrams,
#endif
};

static DAT_RETURN open_bare(const struct entry *e, struct dofi_ia **ia)
{
	struct dofi_params params;
	char why[160];
	int err;

	err = dofi_params_parse(e->ia_params, &params, why, sizeof(why));
	if (err) {
		dofi_log(DOFI_ERR, DOFI_CORE, "ia_params: %s" DAT_CAUSE_FORMAT, why,
			 DAT_CAUSE_PARAMS);
		return DOFI_RET(DAT_INVALID_PARAMETER, 0);
	}
	err = dofi_named_find(&params, DOFI_NAMED_SYSFS, why, sizeof(why));
	if (err) {
		dofi_log(DOFI_ERR, DOFI_CORE, "%s" DAT_CAUSE_FORMAT, why, DAT_CAUSE_PARAMS);
		return dofi_ret(err);
	}
	err = dofi_ia_open(&e->table, &params, &xports, e->info.is_thread_safe, ia);
	if (err)
		return dofi_ret(err);
	dofi_counter_server_open(&(*ia)->counter_server, &(*ia)->progress, dofi_counters_render,
				 *ia);
	if (dofi_settings.counters == 2)
		(*ia)->log_counters = dofi_counters_log;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_open(const char *name, bool thread_safe, DAT_COUNT qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia_handle)
{
	struct dofi_ia *ia;
	struct entry *e;
	DAT_RETURN ret;

	dofi_std_fds_hold();
	dofi_fd_table_grow();
	dofi_settings_read();
	if (!name)
		return DOFI_BAD_ARG(1);
	if (!async_evd)
		return DOFI_BAD_ARG(3);
	if (!ia_handle)
		return DOFI_BAD_ARG(4);
	if (*async_evd == DAT_HANDLE_NULL && qlen <= 0)
		return DOFI_BAD_ARG(2);
	e = entry_find(name, thread_safe);
	if (!e)
		return DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	dofi_log_call_ia = e->info.ia_name;
	ret = open_bare(e, &ia);
	if (!ret) {
		ret = async_evd_set(ia, e, qlen, async_evd);
		if (ret)
			dofi_ia_destroy(ia);
		else
			*ia_handle = ia;
	}
	dofi_log_call_ia = NULL;
	return ret;
}

DAT_RETURN dofi_prov_open_bare(const char *name, struct dofi_ia **ia)
{
	struct entry *e = entry_find(name, true);

	dofi_std_fds_hold();
	dofi_settings_read();
	if (!e)
		e = entry_find(name, false);
	return e ? open_bare(e, ia) : DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

static DAT_RETURN ia_open_threadsafe(const DAT_NAME_PTR name, DAT_COUNT qlen,
				     DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia_handle)
{
	return ia_open(name, true, qlen, async_evd, ia_handle);
}

static DAT_RETURN ia_open_nonthreadsafe(const DAT_NAME_PTR name, DAT_COUNT qlen,
					DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia_handle)
{
	return ia_open(name, false, qlen, async_evd, ia_handle);
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags)
{
#ifdef DOFI_CHECKS
	dofi_check_at_close(ia_handle);
#endif
	return dofi_ia_close(ia_handle, flags);
}

/* Positional, so that a member more or less breaks the build. */
static const DAT_PROVIDER functions = {
	NULL, /* device_name */
	NULL, /* extension */
	ia_open_threadsafe, dofi_ia_query, ia_close, dofi_set_consumer_context,
	dofi_get_consumer_context, dofi_get_handle_type, dofi_cno_create, dofi_cno_modify_agent,
	dofi_cno_query, dofi_cno_free, dofi_cno_wait, dofi_cr_query, dofi_cr_accept, dofi_cr_reject,
	dofi_cr_handoff, dofi_evd_create, dofi_evd_query, dofi_evd_modify_cno, dofi_evd_enable,
	dofi_evd_disable, dofi_evd_wait, dofi_evd_resize, dofi_evd_post_se, dofi_evd_dequeue,
	dofi_evd_free, dofi_ep_create, dofi_ep_query, dofi_ep_modify, dofi_ep_connect,
	dofi_ep_dup_connect, dofi_ep_disconnect, dofi_ep_post_send, dofi_ep_post_recv,
	dofi_ep_post_rdma_read, dofi_ep_post_rdma_write, dofi_ep_get_status, dofi_ep_free,
	dofi_lmr_create, dofi_lmr_query, dofi_lmr_free, dofi_rmr_create, dofi_rmr_query,
	dofi_rmr_bind, dofi_rmr_free, dofi_psp_create, dofi_psp_query, dofi_psp_free,
	dofi_rsp_create, dofi_rsp_query, dofi_rsp_free, dofi_pz_create, dofi_pz_query, dofi_pz_free,
	dofi_psp_create_any, dofi_ep_reset, dofi_evd_set_unwaitable, dofi_evd_clear_unwaitable,
	dofi_lmr_sync, dofi_lmr_sync, dofi_ep_create_with_srq, dofi_ep_recv_query,
	dofi_ep_set_watermark, dofi_srq_create, dofi_srq_free, dofi_srq_post_recv, dofi_srq_query,
	dofi_srq_resize, dofi_srq_set_lw,
#if DAT_VERSION_MAJOR >= 2
	dofi_csp_create, dofi_csp_query, dofi_csp_free, dofi_ep_common_connect,
	dofi_rmr_create_for_ep, dofi_ep_post_send_with_invalidate, dofi_ep_post_rdma_read_to_rmr,
	dofi_cno_fd_create, dofi_cno_trigger, dofi_ia_ha_related, dofi_extension_op,
#endif
};

/* Returns an entry of @info that is in use, or not. */
static struct entry *entry_of(const DAT_PROVIDER_INFO *info, bool in_use) DOFI_NEEDS(entries_lock)
{
	struct entry *e;

	TAILQ_FOREACH(e, &entries, link)
		if (e->in_use == in_use && !strcmp(e->info.ia_name, info->ia_name) &&
		    e->info.dapl_version_major == info->dapl_version_major &&
		    e->info.dapl_version_minor == info->dapl_version_minor &&
		    e->info.is_thread_safe == info->is_thread_safe)
			break;
	return e;
}

static void entry_end(struct entry *e)
{
	dofi_mutex_lock(&entries_lock);
	e->in_use = false;
	dofi_mutex_unlock(&entries_lock);
}

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *ia_params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

/* Called by a registry for each dat.conf entry that it loads us for. */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *ia_params)
{
	char *copy = strdup(ia_params ? ia_params : "");
	struct entry *e;

	dofi_settings_read();
	if (!copy)
		return;
	dofi_mutex_lock(&entries_lock);
	e = entry_of(info, false);
	if (!e && (e = calloc(1, sizeof(*e)))) {
		e->info = *info;
		e->table = functions;
		e->table.device_name = e->info.ia_name;
		if (!info->is_thread_safe)
			e->table.ia_open_func = ia_open_nonthreadsafe;
		TAILQ_INSERT_TAIL(&entries, e, link);
	}
	if (e) {
		free(e->ia_params);
		e->ia_params = copy;
		e->in_use = true;
	}
	dofi_mutex_unlock(&entries_lock);
	if (!e) {
		free(copy);
	} else if (dat_registry_add_provider(&e->table, info) != DAT_SUCCESS) {
		dofi_log(DOFI_ERR, DOFI_CORE, "the registry refused %s", info->ia_name);
		entry_end(e);
	}
}

/* Called when the last IA of the entry is closed. */
void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct entry *e;

	dofi_mutex_lock(&entries_lock);
	e = entry_of(info, true);
	dofi_mutex_unlock(&entries_lock);
	if (!e)
		return;
	dat_registry_remove_provider(&e->table, info);
	entry_end(e);
}
