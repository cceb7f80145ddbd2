/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The environment variables of OFED's uDAPL providers. */

#include "base/ofed.h"

#include "base/env.h"
#include "base/log.h"
#include "secure_env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATAGRAMS "connections are not made by datagrams"
#define PATH "the kernel's connection manager takes it from the path"
#define HEADER "the kernel's connection manager makes the routing header"
#define RESOLVE "libfabric's verbs waits two seconds for an address and for a route"
#define RETRIES "libfabric's verbs has a number of its own"
#define TIMEOUT "the timeout of dat_ep_connect limits an attempt"
#define COPROCESSOR "coprocessors are not supported"

/*
 * With less than 20 bytes verbs would have no SRQs: the header of a message has to fit. A timer is
 * a code of the InfiniBand specification in both variables.
 */
const struct dofi_ofed dofi_ofed_table[] = {
	{ "DAPL_DBG_TYPE", "bits", "DAT_OFI_LOG", NULL, 0, 0 },
	{ "DAPL_DBG_DEST", "bits", "DAT_OFI_LOG_DEST", NULL, 0, 0 },
	{ "DAPL_MAX_INLINE", "bytes", "FI_VERBS_INLINE_SIZE", NULL, 20, 65536 },
	{ "DAPL_RNR_TIMER", "code", "FI_VERBS_MIN_RNR_TIMER", NULL, 0, 31 },
	{ "DAPL_DBG_LEVEL", "level", NULL, "DAPL_DBG_TYPE alone selects what is logged", 0, 0 },
	{ "DAPL_DBG_SYS_MEM", "%", NULL, "the system's free memory is not observed", 0, 0 },
	{ "DAPL_RNR_RETRY", "count", NULL, "libfabric's verbs retries without a limit", 0, 0 },
	{ "DAPL_ACK_RETRY", "count", NULL, RETRIES, 0, 0 },
	{ "DAPL_ACK_TIMER", "code", NULL, PATH, 0, 0 },
	{ "DAPL_IB_MTU", "bytes", NULL, PATH, 0, 0 },
	{ "DAPL_IB_SL", "level", NULL, PATH, 0, 0 },
	{ "DAPL_IB_PKEY", "key", NULL, "the interface determines the partition", 0, 0 },
	{ "DAPL_GLOBAL_ROUTING", "0/1", NULL, HEADER, 0, 0 },
	{ "DAPL_HOP_LIMIT", "hops", NULL, HEADER, 0, 0 },
	{ "DAPL_TCLASS", "class", NULL, HEADER, 0, 0 },
	{ "DAPL_CM_TOS", "class", NULL, "libfabric's verbs sets no type of service", 0, 0 },
	{ "DAPL_CM_ARP_TIMEOUT_MS", "ms", NULL, RESOLVE, 0, 0 },
	{ "DAPL_CM_ARP_RETRY_COUNT", "count", NULL, RESOLVE, 0, 0 },
	{ "DAPL_CM_ROUTE_TIMEOUT_MS", "ms", NULL, RESOLVE, 0, 0 },
	{ "DAPL_CM_ROUTE_RETRY_COUNT", "count", NULL, RESOLVE, 0, 0 },
	{ "DAPL_MAX_CM_RESPONSE_TIME", "code", NULL, TIMEOUT, 0, 0 },
	{ "DAPL_MAX_CM_RETRIES", "count", NULL, TIMEOUT, 0, 0 },
	{ "DAPL_SCM_NETDEV", "name", NULL, "ia_params in dat.conf selects the interface", 0, 0 },
	{ "DAPL_LOOPBACK", "0/1", NULL, "connections within a host need no setting", 0, 0 },
	{ "DAPL_WR_MAX", "count", NULL,
	  "the attributes of an endpoint set the length of its queues", 0, 0 },
	{ "DAPL_UCM_RETRY", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_REP_TIME", "ms", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_RTU_TIME", "ms", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_DREQ_RETRY", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_DREP_TIME", "ms", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_WAIT_TIME", "ms", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_TIMER", "ms", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_QP_SIZE", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_CQ_SIZE", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_TX_BURST", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_ENTRY_BITS", "bits", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_UCM_ARRAY_BITS", "bits", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_NETWORK_NODES", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_NETWORK_PPN", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_NETWORK_PROCESS_NUM", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_NETWORK_TRESHOLD", "count", NULL, DATAGRAMS, 0, 0 },
	{ "DAPL_MCM_WR_MAX", "count", NULL, COPROCESSOR, 0, 0 },
	{ "DAPL_MCM_MSG_MAX", "bytes", NULL, COPROCESSOR, 0, 0 },
	{ "DAPL_MCM_MFO", "0/1", NULL, COPROCESSOR, 0, 0 },
	{ "DAPL_MCM_ALWAYS_PROXY", "0/1", NULL, COPROCESSOR, 0, 0 },
	{ "DAPL_MCM_PORT_ID", "number", NULL, COPROCESSOR, 0, 0 },
	{ NULL, NULL, NULL, NULL, 0, 0 },
};

_Static_assert(sizeof(dofi_ofed_table) / sizeof(dofi_ofed_table[0]) <= DOFI_OFED_MOST,
	       "given has 64 bits");

/* Whether the value is for libfabric. */
static bool is_given(const struct dofi_ofed *o)
{
	return o->max;
}

static bool is_valid(const struct dofi_ofed *o, const char *text)
{
	int64_t v;

	return dofi_number(text, &v) && v >= o->min && v <= o->max;
}

/* One bit per row of the table that dofi_ofed_give() gave to libfabric; written once. */
static uint64_t given;

void dofi_ofed_give(void)
{
	const struct dofi_ofed *o;

	for (o = dofi_ofed_table; o->name; o++) {
		const char *text = is_given(o) ? secure_getenv(o->name) : NULL;

		if (!text || secure_getenv(o->sets) || !is_valid(o, text))
			continue;
		if (!setenv(o->sets, text, 0))
			given |= UINT64_C(1) << (o - dofi_ofed_table);
	}
}

const char *dofi_ofed_source(const char *name)
{
	const struct dofi_ofed *o;

	for (o = dofi_ofed_table; o->name; o++)
		if (given & UINT64_C(1) << (o - dofi_ofed_table) && !strcmp(o->sets, name))
			return o->name;
	return NULL;
}

static const struct dofi_ofed *find(const char *name, size_t len)
{
	const struct dofi_ofed *o;

	for (o = dofi_ofed_table; o->name; o++)
		if (strlen(o->name) == len && !strncmp(o->name, name, len))
			return o;
	return NULL;
}

/* @entry is "NAME=VALUE". */
static void log_one(const char *entry)
{
	const char *value = strchr(entry, '=');
	const struct dofi_ofed *o;

	if (!value++)
		return;
	o = find(entry, value - 1 - entry);
	if (!o)
		dofi_log(DOFI_WARN, DOFI_CORE, "%s has no effect: no provider of OFED documents it",
			 entry);
	else if (o->why)
		dofi_log(DOFI_WARN, DOFI_CORE, "%s has no effect: %s", entry, o->why);
	else if (is_given(o) && !is_valid(o, value))
		dofi_log(DOFI_ERR, DOFI_CORE, "%s is not a number from %ld to %ld; it is not used",
			 entry, o->min, o->max);
	else if (is_given(o) && !dofi_ofed_source(o->sets))
		dofi_log(DOFI_WARN, DOFI_CORE, "%s has no effect: %s is set", entry, o->sets);
}

void dofi_ofed_log(void)
{
	char **e;

	if (secure_env_is_on())
		return; /* none counts */
	for (e = environ; e && *e; e++)
		if (!strncmp(*e, "DAPL_", 5))
			log_one(*e);
}
