/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The provider's settings: tables, and the environment that is read once. */

#include "base/env.h"

#include "base/log.h"
#include "secure_env.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct dofi_settings dofi_settings;

/* Bits of DAPL_DBG_TYPE, as programs for other providers of uDAPL set it. */
enum {
	DAPL_ERR = 0x1,
	DAPL_WARN = 0x2,
	DAPL_EVD = 0x4,
	DAPL_CM = 0x8,
	DAPL_EP = 0x10,
	DAPL_DTO_COMP_ERR = 0x80,
	DAPL_EXCEPTION = 0x400,
	DAPL_CM_STATS = 0x40000,
	/* a level each, of no part */
	DAPL_LEVELS = DAPL_ERR | DAPL_WARN | DAPL_DTO_COMP_ERR | DAPL_EXCEPTION,
};

#define PART(subsys) (1L << (subsys))
#define ALL_PARTS (PART(DOFI_MEM + 1) - 1)

/* A bit of a part enables debugging information; each other bit stands for a level. */
static int64_t level_of_types(int64_t types)
{
	if (types & ~(int64_t)DAPL_LEVELS)
		return DOFI_DEBUG;
	if (types & ~(int64_t)DAPL_ERR)
		return DOFI_WARN;
	return types ? DOFI_ERR : DOFI_SILENT;
}

static int64_t parts_of_types(int64_t types)
{
	const int64_t ours = DAPL_EVD | DAPL_CM | DAPL_CM_STATS | DAPL_EP | DAPL_LEVELS;

	return (types & DAPL_EVD ? PART(DOFI_EVD) : 0) |
	       (types & (DAPL_CM | DAPL_CM_STATS) ? PART(DOFI_CM) : 0) |
	       (types & DAPL_EP ? PART(DOFI_EP) : 0) |
	       (types & ~ours ? PART(DOFI_CORE) | PART(DOFI_FAB) | PART(DOFI_MEM) : 0);
}

/* DAPL_DBG_DEST means stdout by the bit of stderr here: the program's stdout is its own. */
static int64_t dest_of_dest(int64_t dest)
{
	return dest & (DOFI_LOG_STDERR | DOFI_LOG_SYSLOG);
}

const struct dofi_setting dofi_setting_table[] = {
	{ "DAT_OFI_LOG", "level", "-1 nothing, 0 failures, 1 warnings, 2 information, 3 debug",
	  DOFI_ERR, DOFI_SILENT, DOFI_DEBUG, &dofi_settings.log, "DAPL_DBG_TYPE", level_of_types },
	{ "DAT_OFI_LOG_PARTS", "bits",
	  "parts that log levels 2 and 3: 1 core, 2 fabric, 4 cm, 8 ep, 16 evd, 32 memory",
	  ALL_PARTS, 0, ALL_PARTS, &dofi_settings.log_parts, "DAPL_DBG_TYPE", parts_of_types },
	{ "DAT_OFI_LOG_DEST", "bits", "where the log goes: 1 stderr, 2 system log",
	  DOFI_LOG_STDERR, 0, DOFI_LOG_STDERR | DOFI_LOG_SYSLOG, &dofi_settings.log_dest,
	  "DAPL_DBG_DEST", dest_of_dest },
	{ "DAT_OFI_SPIN_US", "us", "how long a blocking wait polls before it sleeps",
	  50, 0, 1000000, &dofi_settings.spin_us, NULL, NULL },
	{ "DAT_OFI_PROBE_US", "us",
	  "the progress thread serves a queue that was not polled for this long",
	  20, 1, 100000, &dofi_settings.probe_us, NULL, NULL },
	{ "DAT_OFI_TICK_US", "us",
	  "a queue that the program polls is checked at least once in four times this",
	  1000, 10, 1000000, &dofi_settings.tick_us, NULL, NULL },
	{ "DAT_OFI_LINGER_MS", "ms",
	  "how long data that a peer does not take is kept after disconnecting; tcp only",
	  2000, 0, 600000, &dofi_settings.linger_ms, NULL, NULL },
	{ "DAT_OFI_LOCAL", "0/1",
	  "1: shared memory for peers on this host where the IA names no fabric; 0: off",
	  1, 0, 1, &dofi_settings.local, NULL, NULL },
	{ "DAT_OFI_CMA", "0/1",
	  "1: processes on one host may access each other's memory; 0: never",
	  1, 0, 1, &dofi_settings.cma, NULL, NULL },
	{ "DAT_OFI_KEEPALIVE_S", "s",
	  "a peer that is silent for this long is probed, 0 never; tcp only",
	  60, 0, 32767, &dofi_settings.keepalive_s, NULL, NULL },
	{ "DAT_OFI_NUMA", "level",
	  "0 nothing, 1 prefers a near device, 2 also runs the progress thread near it",
	  DOFI_NUMA_BIND, DOFI_NUMA_OFF, DOFI_NUMA_BIND, &dofi_settings.numa, NULL, NULL },
	{ "DAT_OFI_STRICT", "0/1",
	  "1: refuses what the text of DAT forbids; 0: accepts what OFED's provider accepts; "
	  "-1: 0, unless dat.conf has strict=1",
	  -1, -1, 1, &dofi_settings.strict, NULL, NULL },
	{ "DAT_OFI_COUNTERS", "level",
	  "0 nothing, 1 shows them to datinfo --counters, "
	  "2 also writes them when an object is freed",
	  1, 0, 2, &dofi_settings.counters, NULL, NULL },
	{ NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL },
};

#define LIBFABRIC_1_17 (1u << 16 | 17)

const struct dofi_foreign dofi_foreign_table[] = {
	/*
	 * Programs poll memory that an RDMA write fills, and reuse it at once. libfabric's tcp
	 * receives the header in a buffer of this size, and copies bytes that follow it by
	 * memcpy(), which stores some of them twice: a thread that is preempted in between makes
	 * the second store after the program has reused the memory. Without the buffer the kernel
	 * stores each byte once. A smaller buffer does not suffice: short writes fit in any.
	 */
	{ "FI_TCP_PREFETCH_RBUF_SIZE", "bytes",
	  "of libfabric: receive buffer; with 0 each byte of an RDMA write is stored once",
	  .given = "0" },
	/*
	 * libfabric's tcp (1.18 and newer) allocates and clears 1,024 entries per domain, each with
	 * room for a tagged message without a receive: 17 MiB and 10 ms by default. This provider
	 * posts the receives first; a longer message gets memory of its own. The minimum is 128.
	 */
	{ "FI_TCP_MAX_RX_SIZE", "bytes",
	  "of libfabric: room for a tagged message without a receive, of which each PZ has 1,024",
	  .given = "128" },
	/*
	 * An endpoint of the rxm layer writes to all of its 2,048 buffers. A message that is longer
	 * than a buffer, or than the eager limit over tcp, is overtaken: fab/quirks.c. libfabric
	 * reads the limit with each endpoint. Without it, small buffers make a message of 4 KiB
	 * take four times as long.
	 */
	{ "FI_OFI_RXM_BUFFER_SIZE", "bytes",
	  "of libfabric: size of a buffer of the rxm layer, "
	  "which needs most of its memory for buffers",
	  .given = "4096", .up_to = LIBFABRIC_1_17, .later = "16384" },
	{ "FI_OFI_RXM_TX_SIZE", "operations", "of libfabric: the layer's send queue",
	  .given = "256", .how = DOFI_GIVE_ATTRIBUTE },
	{ "FI_OFI_RXM_RX_SIZE", "operations", "of libfabric: the layer's receive queue",
	  .given = "256", .how = DOFI_GIVE_ATTRIBUTE },
	{ "FI_OFI_RXM_MSG_TX_SIZE", "operations", "of libfabric: the send queue below the layer",
	  .given = "64" },
	{ "FI_OFI_RXM_MSG_RX_SIZE", "operations", "of libfabric: the receive queue below the layer",
	  .given = "64" },
	{ "FI_OFI_RXM_EAGER_LIMIT", "bytes",
	  "of libfabric: the longest message that the layer sends over tcp without a buffer",
	  .given = "65600", .up_to = LIBFABRIC_1_17, .how = DOFI_GIVE_AT_ENDPOINT },
	/*
	 * The cache keeps a closed registration, with the rights of peers, and saves little: a
	 * registration of 4 KiB took 35 us over verbs, of which verbs took 32.
	 */
	{ "FI_MR_CACHE_MAX_COUNT", "registrations",
	  "of libfabric: registrations that outlive dat_lmr_free(), with the rights of peers",
	  .given = "0" },
	{ "FI_TCP_IO_URING", "0/1",
	  "of libfabric: always 0 here, as connections stall with it",
	  .given = "0", .fixed = true },
	{ "FI_TCP_ZEROCOPY_SIZE", "bytes",
	  "of libfabric: always -1 (never) here, as connections over IPv6 break with it",
	  .given = "-1", .fixed = true },
	{ "FI_VERBS_DGRAM_USE_NAME_SERVER", "0/1",
	  "of libfabric: a thread of verbs listens at a TCP port for names of datagram endpoints",
	  .given = "0" },
	{ "FI_VERBS_INLINE_SIZE", "bytes", "of libfabric: the longest message that verbs copies",
	  .given = NULL },
	{ "FI_VERBS_MIN_RNR_TIMER", "code",
	  "of libfabric: pause before a peer without a receive is tried again", .given = NULL },
	{ "FI_PROVIDER", "names", "of libfabric: the providers that it offers", .given = NULL },
	{ "DAT_OVERRIDE", "path", "of the registry: the file in place of dat.conf", .given = NULL },
	{ "DAT_DBG_TYPE", "bits", "of the registry: what it logs", .given = NULL },
	{ "DAT_DBG_DEST", "bits", "of the registry: where it logs to", .given = NULL },
	{ .name = NULL },
};

#define DATAGRAMS "connections are not made by datagrams"
#define PATH "the kernel's connection manager takes it from the path"
#define HEADER "the kernel's connection manager makes the routing header"
#define RESOLVE "libfabric's verbs waits two seconds for an address and for a route"
#define RETRIES "libfabric's verbs has a number of its own"
#define TIMEOUT "the timeout of dat_ep_connect limits an attempt"
#define COPROCESSOR "coprocessors are not supported"

/* With less than 20 bytes verbs has no SRQs: a header has to fit. Timers are InfiniBand codes. */
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

_Static_assert(sizeof(dofi_foreign_table) / sizeof(dofi_foreign_table[0]) - 1 <= DOFI_LOANS,
	       "each may be lent");
_Static_assert(sizeof(dofi_ofed_table) / sizeof(dofi_ofed_table[0]) <= DOFI_OFED_MOST,
	       "given has 64 bits");

#define N_SETTINGS (sizeof(dofi_setting_table) / sizeof(dofi_setting_table[0]) - 1)
#define N_FOREIGN (sizeof(dofi_foreign_table) / sizeof(dofi_foreign_table[0]) - 1)

static const char by_default[] = "default", by_environment[] = "environment";

/* The origin of each row of dofi_setting_table; written once. */
static struct {
	const char *origin;
	const char *refused;	/* text that is no valid value, or NULL */
	const char *refused_name; /* the variable with that text */
} found[N_SETTINGS];

static struct dofi_setting_line lines[N_SETTINGS + N_FOREIGN + DOFI_OFED_MOST];

bool dofi_number(const char *text, int64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoll(text, &end, 0);
	return !errno && end != text && !*end;
}

static void setting_read(size_t i)
{
	const struct dofi_setting *s = &dofi_setting_table[i];
	const char *text = secure_getenv(s->name);
	const char *alias = text || !s->alias ? NULL : secure_getenv(s->alias);
	int64_t v;

	*s->value = s->def;
	found[i].origin = by_default;
	if (text && dofi_number(text, &v) && v >= s->min && v <= s->max) {
		*s->value = v;
		found[i].origin = by_environment;
	} else if (alias && dofi_number(alias, &v) && v >= 0) {
		*s->value = s->of_alias(v);
		found[i].origin = s->alias;
	} else if (text || alias) {
		found[i].refused = text ? text : alias;
		found[i].refused_name = text ? s->name : s->alias;
	}
}

#define MAX_NAME 64

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns Levenshtein's distance of @a and @b. */
static unsigned edits(const char *a, size_t a_len, const char *b)
{
	size_t b_len = strlen(b), i, k;
	unsigned row[MAX_NAME + 1], diagonal, above;

	for (k = 0; k <= b_len; k++)
		row[k] = k;
	for (i = 1; i <= a_len; i++) {
		diagonal = row[0];
		row[0] = i;
		for (k = 1; k <= b_len; k++) {
			above = row[k];
			row[k] = least(diagonal + (a[i - 1] != b[k - 1]),
				       least(above, row[k - 1]) + 1);
			diagonal = above;
		}
	}
	return row[b_len];
}

/* Logs settings with a wrong value, and misspelt ones. */
static void settings_log(void)
{
	const struct dofi_setting *s;
	unsigned fewest, n;
	const char *like;
	size_t i, len;
	char **e;

	for (i = 0; i < N_SETTINGS; i++) {
		s = &dofi_setting_table[i];
		if (!found[i].refused)
			continue;
		if (found[i].refused_name == s->name)
			dofi_log(DOFI_ERR, DOFI_CORE, "%s=%s is not a number from %" PRId64 " to %"
				 PRId64 "; using %" PRId64, s->name, found[i].refused, s->min,
				 s->max, s->def);
		else
			dofi_log(DOFI_ERR, DOFI_CORE, "%s=%s is not a sum of bits; using %s=%"
				 PRId64, s->alias, found[i].refused, s->name, s->def);
	}
	/* a privileged process uses no setting */
	for (e = secure_env_is_on() ? NULL : environ; e && *e; e++) {
		if (strncmp(*e, "DAT_OFI_", strlen("DAT_OFI_")))
			continue;
		len = strcspn(*e, "=");
		like = NULL;
		fewest = 4;	/* more edits make another word */
		for (s = dofi_setting_table; s->name && len <= MAX_NAME; s++) {
			n = edits(*e, len, s->name);
			if (n < fewest) {
				fewest = n;
				like = s->name;
			}
		}
		if (fewest)
			dofi_log(DOFI_ERR, DOFI_CORE, "unknown setting %.*s%s%s", (int)len, *e,
				 like ? "; the nearest setting is: " : "", like ? like : "");
	}
}

/* The variables of OFED */

static bool is_valid(const struct dofi_ofed *o, const char *text)
{
	int64_t v;

	return dofi_number(text, &v) && v >= o->min && v <= o->max;
}

/* One bit per row of dofi_ofed_table whose value is given to libfabric; written once. */
static uint64_t ofed_given;

/* Returns OFED's variable from which @name was set; NULL if there is none. */
static const char *ofed_source(const char *name)
{
	const struct dofi_ofed *o;

	for (o = dofi_ofed_table; o->name; o++)
		if (ofed_given & UINT64_C(1) << (o - dofi_ofed_table) && !strcmp(o->sets, name))
			return o->name;
	return NULL;
}

/* Logs each variable of OFED that is set and has no effect, or has a wrong value. */
static void ofed_log(void)
{
	const struct dofi_ofed *o;
	const char *value;
	size_t len;
	char **e;

	/* a privileged process uses no variable */
	for (e = secure_env_is_on() ? NULL : environ; e && *e; e++) {
		value = strchr(*e, '=');
		if (strncmp(*e, "DAPL_", 5) || !value)
			continue;
		len = value++ - *e;
		for (o = dofi_ofed_table; o->name; o++)
			if (strlen(o->name) == len && !strncmp(o->name, *e, len))
				break;
		if (!o->name)
			dofi_log(DOFI_WARN, DOFI_CORE,
				 "%s has no effect: no provider of OFED documents it", *e);
		else if (o->why)
			dofi_log(DOFI_WARN, DOFI_CORE, "%s has no effect: %s", *e, o->why);
		else if (o->max && !is_valid(o, value))
			dofi_log(DOFI_ERR, DOFI_CORE,
				 "%s is not a number from %ld to %ld; it is not used", *e, o->min,
				 o->max);
		else if (o->max && !ofed_source(o->sets))
			dofi_log(DOFI_WARN, DOFI_CORE, "%s has no effect: %s is set", *e, o->sets);
	}
}

/* Lines for datinfo */

/* The value is last, because it may contain tabs. */
static void line_write(struct dofi_setting_line *line, const char *name, const char *unit,
		       const char *origin, const char *help, const char *value)
{
	snprintf(line->name, sizeof(line->name), DOFI_SETTING_PREFIX "%s", name);
	snprintf(line->text, sizeof(line->text), "%s\t%s\t%s\t%s", unit, origin, help, value);
}

/* The version of libfabric that the values were chosen for; 0 before. */
static _Atomic uint32_t chosen_for;

static const char *given(const struct dofi_foreign *f)
{
	return f->up_to && chosen_for > f->up_to ? f->later : f->given;
}

/* Returns the value of @f, or NULL, and its origin. */
static const char *in_force(const struct dofi_foreign *f, const char **origin)
{
	const char *value = f->fixed ? NULL : secure_getenv(f->name), *source;

	*origin = by_environment;
	if (value)
		return value;
	source = ofed_source(f->name);
	*origin = source ? source : given(f) ? "provider" : by_default;
	return source ? secure_getenv(source) : given(f);
}

static void foreign_line_write(struct dofi_setting_line *line, const struct dofi_foreign *f)
{
	const char *origin, *value = in_force(f, &origin);

	line_write(line, f->name, f->unit, origin, f->help, value ? value : "-");
}

static void lines_write(void)
{
	struct dofi_setting_line *line = lines;
	const struct dofi_setting *s;
	const struct dofi_ofed *o;
	char text[160];
	const char *value;
	size_t i;

	for (i = 0; i < N_SETTINGS; i++) {
		s = &dofi_setting_table[i];
		snprintf(text, sizeof(text), "%" PRId64, *s->value);
		line_write(line++, s->name, s->unit, found[i].origin, s->help, text);
	}
	for (i = 0; i < N_FOREIGN; i++)
		foreign_line_write(line++, &dofi_foreign_table[i]);
	for (o = dofi_ofed_table; o->name; o++) {
		value = secure_getenv(o->name);
		snprintf(text, sizeof(text), "of OFED: %s%s", o->sets ? "sets " : "no effect: ",
			 o->sets ? o->sets : o->why);
		line_write(line++, o->name, o->unit, value ? by_environment : by_default, text,
			   value ? value : "-");
	}
}

static void settings_read_once(void)
{
	const struct dofi_ofed *o;
	const char *text;
	cpu_set_t set;
	size_t i;

	/* our registry has done so, but another may not have */
	secure_env_drop();
	for (i = 0; i < N_SETTINGS; i++)
		setting_read(i);
	/* before the first message, which must go to the destination that the user chose */
	dofi_log_max = (enum dofi_log_level)dofi_settings.log;
	dofi_log_parts = dofi_settings.log_parts;
	dofi_log_dest = dofi_settings.log_dest;
	/* with one processor, a thread that polls only keeps the event's producer from running */
	if (!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1) {
		dofi_settings.spin_us = 0;
		for (i = 0; i < N_SETTINGS; i++)
			if (dofi_setting_table[i].value == &dofi_settings.spin_us)
				found[i].origin = "one processor";
	}
	/* libfabric's variables from OFED's, unless the user set them or has privileges */
	for (o = dofi_ofed_table; o->name; o++) {
		text = o->max ? secure_getenv(o->name) : NULL;
		if (text && !secure_getenv(o->sets) && is_valid(o, text))
			ofed_given |= UINT64_C(1) << (o - dofi_ofed_table);
	}
	lines_write();
	settings_log();
	ofed_log();
}

void dofi_settings_read(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, settings_read_once);
}

/* Returns whether libfabric takes the value for a switch that is on. */
static bool is_on(const char *value)
{
	static const char *const on[] = { "1", "yes", "true", "on" };
	size_t i;

	for (i = 0; value && i < sizeof(on) / sizeof(on[0]); i++)
		if (!strcasecmp(value, on[i]))
			return true;
	return false;
}

/* Returns whether @value, which the user set, differs from the value of the fixed row @f. */
static bool differs(const struct dofi_foreign *f, const char *value)
{
	/* a switch may be spelt in several ways */
	return value && (strcmp(f->unit, "0/1") ? strcmp(f->given, value) != 0 : is_on(value));
}

/* The entry of each row for the environment, NULL if it needs none. Never freed. */
static char *entries[N_FOREIGN];

static void choose_once(void)
{
	const struct dofi_foreign *f;
	struct dofi_setting_line *line = &lines[N_SETTINGS];
	const char *value, *origin;

	for (f = dofi_foreign_table; f->name; f++, line++) {
		value = secure_getenv(f->name);
		if (f->fixed && differs(f, value))
			dofi_log(DOFI_WARN, DOFI_CORE,
				 "%s=%s is not used: it does not work with this provider", f->name,
				 value);
		/* the line had the value for an older libfabric */
		if (f->up_to && line->name[0])
			foreign_line_write(line, f);
		value = in_force(f, &origin);
		if (value && origin != by_environment &&
		    (!f->fixed || differs(f, secure_getenv(f->name))) &&
		    asprintf(&entries[f - dofi_foreign_table], "%s=%s", f->name, value) < 0)
			entries[f - dofi_foreign_table] = NULL;
	}
}

void dofi_settings_choose(uint32_t libfabric)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	chosen_for = libfabric;
	pthread_once(&once, choose_once);
}

void dofi_settings_lend(enum dofi_give how)
{
	const struct dofi_foreign *f;
	char *some[N_FOREIGN];
	unsigned n = 0, i;

	for (i = 0; i < N_FOREIGN; i++) {
		f = &dofi_foreign_table[i];
		/* the program may have set it meanwhile */
		if (entries[i] && f->how == how && (f->fixed || !secure_getenv(f->name)))
			some[n++] = entries[i];
	}
	dofi_environ_lend(some, n);
}

const char *dofi_foreign_value(const char *name)
{
	const struct dofi_foreign *f = dofi_foreign_table;
	const char *origin;

	while (f->name && strcmp(f->name, name))
		f++;
	return f->name ? in_force(f, &origin) : NULL;
}

const struct dofi_setting_line *dofi_settings_line(unsigned i)
{
	return i < sizeof(lines) / sizeof(lines[0]) && lines[i].name[0] ? &lines[i] : NULL;
}
