/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dynamic registry: registered providers and their uses. */

#include "registry.h"

#include "err.h"
#include "lock.h"
#include "log.h"

#include <stdlib.h>
#include <string.h>

/* A table that a provider has registered. */
struct provider {
	DAT_PROVIDER_INFO info;
	const DAT_PROVIDER *table;
	/* entry of the library that registered it; null if it needed no loading */
	struct dreg_entry *entry;
	unsigned int users;	/* open uses */
	struct provider *next;
};

struct dreg_use {
	struct dreg_entry *entry;	/* null if the registry did not load the provider */
	struct provider *provider;
	DAT_IA_HANDLE ia;
	unsigned int busy;	/* calls the registry is making on ia; under lock */
	struct dreg_use *next;
};

static struct dreg_lock lock = DREG_LOCK_INIT;
static struct provider *providers DREG_GUARDED_BY(lock);
static struct dreg_use *open_ias DREG_GUARDED_BY(lock);
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;	/* signalled when a use is no longer busy */

/* The entry that this thread is loading; a provider that registers now belongs to it. */
static _Thread_local struct dreg_entry *loading_entry;

/* Registered providers */

static struct provider **provider_find(const DAT_PROVIDER_INFO *info) DREG_NEEDS(lock)
{
	struct provider **p;

	for (p = &providers; *p; p = &(*p)->next)
		if (dreg_info_same(&(*p)->info, info))
			break;
	return p;
}

#if DAT_VERSION_MAJOR >= 2
typedef const DAT_PROVIDER table_arg;
#else
typedef DAT_PROVIDER table_arg;
#endif

DAT_RETURN dat_registry_add_provider(table_arg *table, const DAT_PROVIDER_INFO *info)
{
	struct provider *p, **tail;

	if (!table)
		return DREG_BAD_ARG(1);
	if (!info || !memchr(info->ia_name, '\0', sizeof(info->ia_name)))
		return DREG_BAD_ARG(2);
	p = calloc(1, sizeof(*p));
	if (!p)
		return DREG_NO_MEMORY;
	p->info = *info;
	p->table = table;
	p->entry = loading_entry;

	dreg_lock(&lock);
	tail = provider_find(info);
	if (*tail)
		free(p);
	p = *tail ? NULL : (*tail = p);
	dreg_unlock(&lock);

	dreg_log(DREG_LOG_PROVIDERS, "%s %s", p ? "registered" : "already registered:",
		 info->ia_name);
	return p ? DAT_SUCCESS : DREG_ERR(DAT_PROVIDER_ALREADY_REGISTERED, DAT_NO_SUBTYPE);
}

DAT_RETURN dat_registry_remove_provider(table_arg *table, const DAT_PROVIDER_INFO *info)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct provider **at, *p;

	if (!table)
		return DREG_BAD_ARG(1);
	if (!info)
		return DREG_BAD_ARG(2);

	dreg_lock(&lock);
	at = provider_find(info);
	p = *at;
	if (!p)
		ret = DREG_BAD_ARG(2);
	else if (p->table != table)
		ret = DREG_BAD_ARG(1);
	else if (p->users)
		ret = DREG_ERR(DAT_PROVIDER_IN_USE, DAT_NO_SUBTYPE);
	else
		*at = p->next;
	dreg_unlock(&lock);

	if (!ret) {
		dreg_log(DREG_LOG_PROVIDERS, "removed %s", info->ia_name);
		free(p);
	}
	return ret;
}

/* Uses */

/*
 * Also removes the providers that the library left registered, as their tables are about to be
 * unmapped. The entry's lock keeps other threads from loading the library meanwhile.
 */
static void entry_stop(struct dreg_entry *e) DREG_NEEDS(e->lock)
{
	struct provider **at = &providers, *p;

	if (e->lib.fini)
		e->lib.fini(&e->info);
	dreg_lock(&lock);
	while ((p = *at)) {
		if (p->entry != e) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
	dreg_unlock(&lock);
	dreg_library_close(&e->lib);
	dreg_log(DREG_LOG_PROVIDER_API, "unloaded %s", e->library);
}

static void provider_put(struct provider *p)
{
	dreg_lock(&lock);
	p->users--;
	dreg_unlock(&lock);
}

/* Returns null if @e cannot be used; sets *@err to negative errno if its library did not load. */
static struct provider *entry_get(struct dreg_entry *e, int *err)
{
	struct dreg_entry *outer = loading_entry;
	struct provider *p = NULL;
	int ret = 0;

	dreg_lock(&e->lock);
	if (!e->users)
		ret = dreg_library_open(&e->lib, e->library);
	if (ret) {
		*err = ret;
		goto unlock;
	}
	if (!e->users) {
		loading_entry = e;
		e->lib.init(&e->info, e->ia_params);
		loading_entry = outer;
	}
	dreg_lock(&lock);
	p = *provider_find(&e->info);
	if (p)
		p->users++;
	dreg_unlock(&lock);
	if (!p)
		dreg_log(DREG_LOG_ERROR, "%s does not offer %s u%u.%u", e->library,
			 e->info.ia_name, e->info.dapl_version_major,
			 e->info.dapl_version_minor);
	if (p)
		e->users++;
	else if (!e->users)
		entry_stop(e);
unlock:
	dreg_unlock(&e->lock);
	return p;
}

/* Returns a provider that needs no loading: linked to the program, or registered by it. */
static struct provider *provider_present(const struct dreg_request *rq, DAT_RETURN_SUBTYPE *lacking)
{
	uint64_t rank, best_rank = DREG_NO_MATCH;
	struct provider *p, *best = NULL;

	dreg_lock(&lock);
	for (p = providers; p; p = p->next) {
		rank = p->entry ? DREG_NO_MATCH : dreg_match(&p->info, rq, lacking);
		if (rank < best_rank) {
			best_rank = rank;
			best = p;
		}
	}
	if (best)
		best->users++;
	dreg_unlock(&lock);
	return best;
}

DAT_RETURN dreg_use_get(const struct dreg_request *rq, struct dreg_use **use)
{
	DAT_RETURN_SUBTYPE lacking = DAT_NAME_NOT_REGISTERED;
	struct dreg_use *u = calloc(1, sizeof(*u));
	struct dreg_entry **list = NULL, **e;
	DAT_RETURN ret = DREG_NO_MEMORY;
	int err = dreg_entries_read();

	if (err)
		ret = DREG_OUT_OF(err);
	else if (u)
		list = dreg_entry_candidates(rq, &lacking);
	if (!list)
		goto free_use;
	for (e = list; *e && !u->provider; e++) {
		u->entry = *e;
		u->provider = entry_get(*e, &err);
	}
	if (!u->provider) {
		u->entry = NULL;
		u->provider = provider_present(rq, &lacking);
	}
	if (u->provider) {
		free(list);
		*use = u;
		return DAT_SUCCESS;
	}
	/* err is of the last entry that did not load: its name is registered */
	if (err && err != -ENOENT && err != -ENOEXEC && err != -EPERM)
		ret = DREG_OUT_OF(err);
	else
		ret = DREG_ERR(DAT_PROVIDER_NOT_FOUND, *list ? DAT_NO_SUBTYPE : lacking);
	free(list);
free_use:
	free(u);
	return ret;
}

void dreg_use_put(struct dreg_use *use)
{
	struct dreg_entry *e = use->entry;

	if (e) {
		dreg_lock(&e->lock);
		provider_put(use->provider);
		if (!--e->users)
			entry_stop(e);
		dreg_unlock(&e->lock);
	} else {
		provider_put(use->provider);
	}
	free(use);
}

const DAT_PROVIDER *dreg_use_provider(const struct dreg_use *use)
{
	return use->provider->table;
}

const char *dreg_use_origin(const struct dreg_use *use)
{
	return use->entry ? use->entry->origin : NULL;
}

void dreg_use_attach(struct dreg_use *use, DAT_IA_HANDLE ia)
{
	dreg_lock(&lock);
	use->ia = ia;
	use->next = open_ias;
	open_ias = use;
	dreg_unlock(&lock);
}

struct dreg_use *dreg_use_detach(DAT_IA_HANDLE ia)
{
	struct dreg_use **at, *use;

	dreg_lock(&lock);
	for (at = &open_ias; *at && (*at)->ia != ia; at = &(*at)->next)
		;
	use = *at;
	if (use)
		*at = use->next;
	while (use && use->busy)
		dreg_wait(&idle, &lock);
	dreg_unlock(&lock);
	return use;
}

/* Listing */

/* The first entry of @info, or null: lines that repeat it are one provider. */
static const struct dreg_entry *entry_first(const DAT_PROVIDER_INFO *info)
{
	const struct dreg_entry *e;

	for (e = dreg_entries(); e && !dreg_info_same(&e->info, info); e = e->next)
		;
	return e;
}

struct listing {
	DAT_PROVIDER_INFO **list;
	DAT_COUNT max;
	DAT_COUNT filled;
	DAT_COUNT total;
	bool hole;		/* the list, or the next element to be filled, is null */
};

static void list_one(struct listing *l, const DAT_PROVIDER_INFO *info)
{
	l->total++;
	if (l->filled >= l->max || l->hole)
		return;
	l->hole = !l->list[l->filled];
	if (!l->hole)
		*l->list[l->filled++] = *info;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO *dat_provider_list[])
{
	struct listing l = {
		.list = dat_provider_list,
		.max = max_to_return,
		.hole = !dat_provider_list,
	};
	const struct provider *p;
	const struct dreg_entry *e;
	DAT_RETURN ret = DAT_SUCCESS;
	int err;

	if (!entries_returned)
		return DREG_BAD_ARG(2);
	err = dreg_entries_read();
	if (err)
		return DREG_OUT_OF(err);

	for (e = dreg_entries(); e; e = e->next)
		if (dreg_loadable(&e->info) && entry_first(&e->info) == e)
			list_one(&l, &e->info);
	dreg_lock(&lock);
	for (p = providers; p; p = p->next)
		if (dreg_loadable(&p->info) && !entry_first(&p->info))
			list_one(&l, &p->info);
	dreg_unlock(&lock);

	if (max_to_return < 1)
		ret = DREG_BAD_ARG(1);
	else if (l.hole)
		ret = DREG_BAD_ARG(3);
	/* DAT: a call that fails returns the number of elements that the list needs */
	*entries_returned = ret ? l.total : l.filled;
	return ret;
}

#if DAT_VERSION_MAJOR >= 2
/* Relations */

static bool name_known(const char *name)
{
	const struct provider *p;
	const struct dreg_entry *e;

	for (e = dreg_entries(); e; e = e->next)
		if (dreg_loadable(&e->info) && !strcmp(e->info.ia_name, name))
			return true;
	dreg_lock(&lock);
	for (p = providers; p; p = p->next)
		if (!strcmp(p->info.ia_name, name))
			break;
	dreg_unlock(&lock);
	return p;
}

/* Asks an open IA called @name, if there is one, about @other. */
static DAT_HA_RELATIONSHIP ask_related(const char *name, const DAT_NAME_PTR other)
{
	DAT_BOOLEAN related = DAT_FALSE;
	DAT_RETURN ret = DREG_NOT_IMPLEMENTED;
	const DAT_PROVIDER *table;
	struct dreg_use *use;

	dreg_lock(&lock);
	for (use = open_ias; use; use = use->next)
		if (!strcmp(use->provider->info.ia_name, name))
			break;
	if (use)
		use->busy++;
	dreg_unlock(&lock);
	if (!use)
		return DAT_HA_UNKNOWN;

	table = use->provider->table;
	if (table->ia_ha_related_func)
		ret = table->ia_ha_related_func(use->ia, other, &related);

	dreg_lock(&lock);
	if (!--use->busy)
		pthread_cond_broadcast(&idle);
	dreg_unlock(&lock);
	if (ret != DAT_SUCCESS)
		return DAT_HA_UNKNOWN;
	return related ? DAT_HA_TRUE : DAT_HA_FALSE;
}

/* Only an open IA can answer; the relation of two closed IAs is unknown. */
DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia_name_1,
					  const DAT_NAME_PTR ia_name_2,
					  DAT_HA_RELATIONSHIP *relationship)
{
	DAT_HA_RELATIONSHIP one, two;
	int err;

	if (!ia_name_1)
		return DREG_BAD_ARG(1);
	if (!ia_name_2)
		return DREG_BAD_ARG(2);
	if (!relationship)
		return DREG_BAD_ARG(3);
	err = dreg_entries_read();
	if (err)
		return DREG_OUT_OF(err);
	if (!name_known(ia_name_1) || !name_known(ia_name_2))
		return DREG_ERR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);

	one = ask_related(ia_name_1, ia_name_2);
	two = ask_related(ia_name_2, ia_name_1);
	if (one == two || two == DAT_HA_UNKNOWN)
		*relationship = one;
	else if (one == DAT_HA_UNKNOWN)
		*relationship = two;
	else
		*relationship = DAT_HA_CONFLICTING;
	return DAT_SUCCESS;
}
#endif

/* Frees the entries on unload if no IA is open. */
static void __attribute__((destructor)) entries_free_on_unload(void) DREG_UNCHECKED_LOCKS
{
	if (!open_ias)
		dreg_entries_free();
}
