/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry of providers, and the names of return codes. */

#include "conform.h"

#include <stdio.h>
#include <string.h>

CHAPTER("registry");

#define MANY 64

static DAT_PROVIDER_INFO infos[MANY];

static DAT_COUNT list_all(void)
{
	static DAT_PROVIDER_INFO *list[MANY];
	DAT_COUNT count = -1, k;

	for (k = 0; k < MANY; k++)
		list[k] = &infos[k];
	OK(dat_registry_list_providers(MANY, &count, list));
	CHECK(count > 0 && count <= MANY, "%d", (int)count);
	return count;
}

CLAUSE("dat_registry_list_providers/SUCCESS/the open IA is listed")
{
	DAT_COUNT count = list_all();
	bool found = false;

	while (count--)
		found |= !strcmp(infos[count].ia_name, pair_ia_name()) &&
			 infos[count].dapl_version_major == DAT_VERSION_MAJOR;
	CHECK(found, "%s is not listed", pair_ia_name());
}

CLAUSE("dat_registry_list_providers/SUCCESS/no duplicates")
{
	DAT_COUNT count = list_all(), k, l;

	for (k = 0; k < count; k++)
		for (l = 0; l < k; l++)
			CHECK(memcmp(&infos[k], &infos[l], sizeof(infos[k])), "%s is listed twice",
			      infos[k].ia_name);
}

CLAUSE("dat_registry_list_providers/SUCCESS/fills no more than requested")
{
	DAT_PROVIDER_INFO first, guard = { .ia_name = "untouched" };
	DAT_PROVIDER_INFO *list[] = { &first, &guard };
	DAT_COUNT count;

	OK(dat_registry_list_providers(1, &count, list));
	SAME(strcmp(guard.ia_name, "untouched"), 0);
	SAME(count, 1);
}

CLAUSE("dat_registry_list_providers/SUCCESS/returns the number of filled entries")
{
	static DAT_PROVIDER_INFO *list[MANY];
	DAT_COUNT all = list_all(), count, max;

	for (max = 1; max <= all; max++) {
		for (count = 0; count < max; count++)
			list[count] = &infos[count];
		OK(dat_registry_list_providers(max, &count, list));
		SAME(count, max);
	}
}

CLAUSE("dat_registry_list_providers/INVALID_PARAMETER/count NULL")
{
	DAT_PROVIDER_INFO *list[] = { &infos[0] };

	FAILS(dat_registry_list_providers(1, NULL, list), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_registry_list_providers/INVALID_PARAMETER/list NULL")
{
	DAT_COUNT count;

	FAILS(dat_registry_list_providers(1, &count, NULL), DAT_INVALID_PARAMETER);
	SAME(count, list_all());
}

CLAUSE("dat_registry_list_providers/INVALID_PARAMETER/element NULL")
{
	DAT_PROVIDER_INFO *list[] = { NULL };
	DAT_COUNT count;

	FAILS(dat_registry_list_providers(1, &count, list), DAT_INVALID_PARAMETER);
	SAME(count, list_all());
}

/* A provider that is never opened. */

static const DAT_PROVIDER_INFO info = {
	.ia_name = "conform-provider",
	.dapl_version_major = DAT_VERSION_MAJOR,
	.dapl_version_minor = DAT_VERSION_MINOR,
};
static DAT_PROVIDER table = { .device_name = "conform-provider" };

CLAUSE("dat_registry_add_provider/SUCCESS")
{
	OK(dat_registry_add_provider(&table, &info));
	OK(dat_registry_remove_provider(&table, &info));
}

CLAUSE("dat_registry_remove_provider/SUCCESS/the provider can be added again")
{
	int k;

	for (k = 0; k < 3; k++) {
		OK(dat_registry_add_provider(&table, &info));
		OK(dat_registry_remove_provider(&table, &info));
	}
}

CLAUSE("dat_registry_add_provider/INVALID_PARAMETER/NULL")
{
	FAILS(dat_registry_add_provider(NULL, &info), DAT_INVALID_PARAMETER);
	FAILS(dat_registry_add_provider(&table, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_registry_add_provider/PROVIDER_ALREADY_REGISTERED")
{
	OK(dat_registry_add_provider(&table, &info));
	FAILS(dat_registry_add_provider(&table, &info), DAT_PROVIDER_ALREADY_REGISTERED);
	OK(dat_registry_remove_provider(&table, &info));
}

CLAUSE("dat_registry_remove_provider/INVALID_PARAMETER/NULL")
{
	FAILS(dat_registry_remove_provider(&table, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_registry_remove_provider/INVALID_PARAMETER/not registered")
{
	FAILS(dat_registry_remove_provider(&table, &info), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_registry_remove_provider/PROVIDER_IN_USE")
{
	DAT_PROVIDER *provider = DAT_HANDLE_TO_PROVIDER(n->pz);
	DAT_PROVIDER_INFO open = {
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.is_thread_safe = n->prov.is_thread_safe,
	};

	snprintf(open.ia_name, sizeof(open.ia_name), "%s", pair_ia_name());
	FAILS(dat_registry_remove_provider(provider, &open), DAT_PROVIDER_IN_USE);
}

#if DAT_VERSION_MAJOR >= 2
CLAUSE("dat_registry_providers_related/INVALID_PARAMETER/NULL")
{
	DAT_NAME_PTR name = (DAT_NAME_PTR)pair_ia_name();
	DAT_HA_RELATIONSHIP relationship;

	FAILS(dat_registry_providers_related(NULL, name, &relationship), DAT_INVALID_PARAMETER);
	FAILS(dat_registry_providers_related(name, NULL, &relationship), DAT_INVALID_PARAMETER);
	FAILS(dat_registry_providers_related(name, name, NULL), DAT_INVALID_PARAMETER);
}

CLAUSE("dat_registry_providers_related/PROVIDER_NOT_FOUND")
{
	DAT_NAME_PTR name = (DAT_NAME_PTR)pair_ia_name(), unknown = (DAT_NAME_PTR)"no-such-ia";
	DAT_HA_RELATIONSHIP relationship;

	FAILS(dat_registry_providers_related(unknown, name, &relationship), DAT_PROVIDER_NOT_FOUND);
	FAILS(dat_registry_providers_related(name, unknown, &relationship), DAT_PROVIDER_NOT_FOUND);
}

CLAUSE("dat_registry_providers_related/SUCCESS")
{
	DAT_NAME_PTR name = (DAT_NAME_PTR)pair_ia_name();
	DAT_HA_RELATIONSHIP relationship = DAT_HA_EXTENSION_BASE;
	DAT_RETURN ret = dat_registry_providers_related(name, name, &relationship);

	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
		skip("ha_supported is %d", (int)n->prov.ha_supported);
	OK(ret);
	CHECK(relationship < DAT_HA_EXTENSION_BASE, "%d", (int)relationship);
}
#endif

/* Names */

static const struct {
	DAT_RETURN type;
	const char *name;
} types[] = {
#define TYPE(t) { t, #t }
	TYPE(DAT_SUCCESS), TYPE(DAT_ABORT), TYPE(DAT_CONN_QUAL_IN_USE),
	TYPE(DAT_INSUFFICIENT_RESOURCES), TYPE(DAT_INTERNAL_ERROR), TYPE(DAT_INVALID_HANDLE),
	TYPE(DAT_INVALID_PARAMETER), TYPE(DAT_INVALID_STATE), TYPE(DAT_LENGTH_ERROR),
	TYPE(DAT_MODEL_NOT_SUPPORTED), TYPE(DAT_PROVIDER_NOT_FOUND),
	TYPE(DAT_PRIVILEGES_VIOLATION), TYPE(DAT_PROTECTION_VIOLATION), TYPE(DAT_QUEUE_EMPTY),
	TYPE(DAT_QUEUE_FULL), TYPE(DAT_TIMEOUT_EXPIRED), TYPE(DAT_PROVIDER_ALREADY_REGISTERED),
	TYPE(DAT_PROVIDER_IN_USE), TYPE(DAT_INVALID_ADDRESS), TYPE(DAT_INTERRUPTED_CALL),
	TYPE(DAT_CONN_QUAL_UNAVAILABLE), TYPE(DAT_NOT_IMPLEMENTED),
#if DAT_VERSION_MAJOR >= 2
	TYPE(DAT_RESERVED_LMR), TYPE(DAT_PORT_IN_USE), TYPE(DAT_COMM_NOT_SUPPORTED),
#endif
};

static void name_name(unsigned i, char *name, size_t size)
{
	snprintf(name, size, "dat_strerror/SUCCESS/%s", types[i].name);
}

FAMILY(COUNT(types), name_name)
{
	DAT_RETURN ret = types[i].type;
	const char *major = NULL, *minor = NULL;

	OK(dat_strerror(ret, &major, &minor));
	CHECK(major && minor && !strcmp(major, types[i].name), "%s", major ? major : "NULL");
	if (!ret)
		return;
	/* with the class bits, as calls return it */
	OK(dat_strerror(ret | DAT_CLASS_ERROR, &major, &minor));
	CHECK(!strcmp(major, types[i].name), "%s", major);
}

CLAUSE("dat_strerror/SUCCESS/subtype")
{
	const char *major, *minor;

	OK(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP, &major,
			&minor));
	SAME(strcmp(major, "DAT_INVALID_HANDLE"), 0);
	SAME(strcmp(minor, "DAT_INVALID_HANDLE_EP"), 0);
}

CLAUSE("dat_strerror/INVALID_PARAMETER/unknown code")
{
	const char *major, *minor;

	FAILS(dat_strerror(DAT_CLASS_ERROR | 0x0ff00000, &major, &minor), DAT_INVALID_PARAMETER);
	FAILS(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_STATE | 0xffff, &major, &minor),
	      DAT_INVALID_PARAMETER);
}
