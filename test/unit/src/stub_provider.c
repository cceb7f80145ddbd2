/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A provider library for the registry's tests. It reports its calls to the program that loads it.
 * Its ia_params select a misbehaviour:
 *
 *   silent	does not register		other	registers under another name
 *   closed	no IA can be opened		stay	does not take its registration back
 *   busy	no IA can be closed but abruptly
 */

#include "dat_select.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defined by the test, and absent in any other program. */
void stub_saw(const char *what) __attribute__((weak));

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *ia_params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

static struct offer {
	DAT_PROVIDER table;
	DAT_PROVIDER_INFO info;
	int stay;
} offers[16];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards offers */

static void record(const char *what, const DAT_PROVIDER_INFO *info, const char *ia_params)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s %s %u.%u%s%s%s", what, info->ia_name,
		 info->dapl_version_major, info->dapl_version_minor,
		 info->is_thread_safe ? " threadsafe" : "", *ia_params ? " " : "", ia_params);
	if (stub_saw)
		stub_saw(text);
}

/* Every handle of this library points to an object. */
struct object {
	const DAT_PROVIDER *provider;
};

/* Called with the lock held. */
static struct offer *offer_named(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(offers) / sizeof(offers[0]); i++)
		if (!strcmp(offers[i].info.ia_name, name))
			return &offers[i];
	return NULL;
}

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia)
{
	struct object *o = malloc(sizeof(*o));

	pthread_mutex_lock(&lock);
	o->provider = &offer_named(name)->table;
	pthread_mutex_unlock(&lock);
	*ia = o;
	if (stub_saw)
		stub_saw("open");
	return DAT_SUCCESS;
}

static DAT_RETURN ia_open_closed(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
				 DAT_IA_HANDLE *ia)
{
	return DAT_CLASS_ERROR | (DAT_RETURN)DAT_INTERNAL_ERROR;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	free(ia);
	if (stub_saw)
		stub_saw("close");
	return DAT_SUCCESS;
}

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK mask,
			   DAT_IA_ATTR *attr, DAT_PROVIDER_ATTR_MASK pmask,
			   DAT_PROVIDER_ATTR *pattr)
{
	return DAT_SUCCESS;
}

static DAT_RETURN ia_close_busy(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	if (flags == DAT_CLOSE_GRACEFUL_FLAG)
		return DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_STATE;
	return ia_close(ia, flags);
}

#if DAT_VERSION_MAJOR >= 2
/* A name is related to names that begin with the same letter. */
static DAT_RETURN ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer)
{
	const struct object *o = ia;

	*answer = *o->provider->device_name == *name ? DAT_TRUE : DAT_FALSE;
	return DAT_SUCCESS;
}
#endif

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *ia_params)
{
	struct offer *o;

	record("init", info, ia_params);
	if (!strcmp(ia_params, "silent"))
		return;
	pthread_mutex_lock(&lock);
	o = offer_named("");
	o->info = *info;
	if (!strcmp(ia_params, "other"))
		strcpy(o->info.ia_name, "other");
	pthread_mutex_unlock(&lock);
	o->stay = !strcmp(ia_params, "stay");
	o->table.device_name = o->info.ia_name;
	o->table.ia_open_func = strcmp(ia_params, "closed") ? ia_open : ia_open_closed;
	o->table.ia_close_func = strcmp(ia_params, "busy") ? ia_close : ia_close_busy;
	o->table.ia_query_func = ia_query;
#if DAT_VERSION_MAJOR >= 2
	o->table.ia_ha_related_func = ia_ha_related;
#endif
	if (dat_registry_add_provider(&o->table, &o->info) != DAT_SUCCESS && stub_saw)
		stub_saw("refused");
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct offer *o;

	record("fini", info, "");
	pthread_mutex_lock(&lock);
	o = offer_named(info->ia_name);
	pthread_mutex_unlock(&lock);
	if (!o)
		return;
	if (!o->stay && dat_registry_remove_provider(&o->table, &o->info) != DAT_SUCCESS &&
	    stub_saw)
		stub_saw("not removed");
	pthread_mutex_lock(&lock);
	memset(o, 0, sizeof(*o));
	pthread_mutex_unlock(&lock);
}
