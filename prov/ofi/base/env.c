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
	{ "DAT_OFI_COUNTERS_GROUP", "group ID",
	  "also shows the counters to processes of this group; -1: none",
	  -1, -1, UINT32_MAX - 1, &dofi_settings.counters_group, NULL, NULL },
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
	 * When the layer closes a connection, it processes the messages that have arrived, and
	 * posts their buffers again. If each connection has receives of its own, as over verbs by
	 * default, it posts them to the inner endpoint that it has just freed (1.17; read: 2.6).
	 * libfabric reads the variable with each endpoint.
	 */
	{ "FI_OFI_RXM_USE_SRX", "0/1",
	  "of libfabric: the layer's peers share receives; with 0 over verbs a close may crash",
	  .given = "1", .how = DOFI_GIVE_AT_ENDPOINT },
	{ "FI_UNIVERSE_SIZE", "peers",
	  "of libfabric: over verbs the rxm layer's completion queue has 64 entries for each",
	  .given = NULL },
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
	/* with less than 20 bytes verbs has no SRQs: a header has to fit */
	{ "FI_VERBS_INLINE_SIZE", "bytes", "of libfabric: the longest message that verbs copies",
	  .alias = "DAPL_MAX_INLINE", .min = 20, .max = 65536 },
	{ "FI_VERBS_MIN_RNR_TIMER", "code",
	  "of libfabric: pause before a peer without a receive is tried again",
	  .alias = "DAPL_RNR_TIMER", .min = 0, .max = 31 },
	{ "DAT_OFI_LOG_FILE", "path",
	  "the file that the log goes to in place of stderr; %p is the process", .given = NULL },
	{ "FI_PROVIDER", "names", "of libfabric: the providers that it offers", .given = NULL },
	{ "DAT_OVERRIDE", "path", "of the registry: the file in place of dat.conf", .given = NULL },
	{ "DAT_DBG_TYPE", "bits", "of the registry: what it logs", .given = NULL },
	{ "DAT_DBG_DEST", "bits", "of the registry: where it logs to", .given = NULL },
	{ .name = NULL },
};

_Static_assert(sizeof(dofi_foreign_table) / sizeof(dofi_foreign_table[0]) - 1 <= DOFI_LOANS,
	       "each may be lent");

#define N_SETTINGS (sizeof(dofi_setting_table) / sizeof(dofi_setting_table[0]) - 1)
#define N_FOREIGN (sizeof(dofi_foreign_table) / sizeof(dofi_foreign_table[0]) - 1)

static const char by_default[] = "default", by_environment[] = "environment";

/* The origin of each row of dofi_setting_table; written once. */
static struct {
	const char *origin;
	const char *refused;	/* text that is no valid value, or NULL */
	const char *refused_name; /* the variable with that text */
} found[N_SETTINGS];

static struct dofi_setting_line lines[N_SETTINGS + N_FOREIGN];

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

/* Returns the value of @f's alias; NULL if it has none, or none that is valid. */
static const char *alias_value(const struct dofi_foreign *f)
{
	const char *text = f->alias ? secure_getenv(f->alias) : NULL;
	int64_t v;

	return text && dofi_number(text, &v) && v >= f->min && v <= f->max ? text : NULL;
}

/* Returns whether the @len characters at @entry are the variable @name, which may be NULL. */
static bool is_name(const char *entry, size_t len, const char *name)
{
	return name && strlen(name) == len && !strncmp(name, entry, len);
}

/* Returns whether the provider reads the variable at @entry, with a name of @len characters. */
static bool is_read(const char *entry, size_t len)
{
	const struct dofi_setting *s;
	const struct dofi_foreign *f;

	for (s = dofi_setting_table; s->name; s++)
		if (is_name(entry, len, s->name) || is_name(entry, len, s->alias))
			return true;
	for (f = dofi_foreign_table; f->name; f++)
		if (is_name(entry, len, f->name) || is_name(entry, len, f->alias))
			return true;
	return false;
}

/* The log's file, which the program may unset meanwhile. Without memory the log goes to stderr. */
static void log_file_take(void)
{
	const char *path = secure_getenv("DAT_OFI_LOG_FILE");

	if (path && *path)
		dofi_log_file = strdup(path);
}

/* Logs settings with a wrong value, and variables that the provider does not read. */
static void settings_log(void)
{
	const struct dofi_setting *s;
	const struct dofi_foreign *f;
	size_t i;
	int len;
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
	for (f = dofi_foreign_table; f->name; f++)
		if (f->alias && secure_getenv(f->alias) && !alias_value(f))
			dofi_log(DOFI_ERR, DOFI_CORE,
				 "%s=%s is not a number from %ld to %ld; it is not used", f->alias,
				 secure_getenv(f->alias), f->min, f->max);
	/* a privileged process uses no variable */
	for (e = secure_env_is_on() ? NULL : environ; e && *e; e++) {
		len = strcspn(*e, "=");
		if (is_read(*e, len))
			continue;
		if (!strncmp(*e, "DAT_OFI_", strlen("DAT_OFI_")))
			dofi_log(DOFI_ERR, DOFI_CORE, "unknown setting %.*s", len, *e);
		else if (!strncmp(*e, "DAPL_", strlen("DAPL_")))
			dofi_log(DOFI_WARN, DOFI_CORE, "%.*s has no effect", len, *e);
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
	const char *value = f->fixed ? NULL : secure_getenv(f->name);

	*origin = by_environment;
	if (value)
		return value;
	value = alias_value(f);
	*origin = value ? f->alias : given(f) ? "provider" : by_default;
	return value ? value : given(f);
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
	char text[24];
	size_t i;

	for (i = 0; i < N_SETTINGS; i++) {
		s = &dofi_setting_table[i];
		snprintf(text, sizeof(text), "%" PRId64, *s->value);
		line_write(line++, s->name, s->unit, found[i].origin, s->help, text);
	}
	for (i = 0; i < N_FOREIGN; i++)
		foreign_line_write(line++, &dofi_foreign_table[i]);
}

static void settings_read_once(void)
{
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
	log_file_take();
	/* with one processor, a thread that polls only keeps the event's producer from running */
	if (!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1) {
		dofi_settings.spin_us = 0;
		for (i = 0; i < N_SETTINGS; i++)
			if (dofi_setting_table[i].value == &dofi_settings.spin_us)
				found[i].origin = "one processor";
	}
	lines_write();
	settings_log();
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
