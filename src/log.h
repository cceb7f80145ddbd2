/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry's log: one line per message, by kind, on stderr or to syslog. */
#ifndef DREG_LOG_H
#define DREG_LOG_H

/* Bits of DAT_DBG_TYPE. The default is DREG_LOG_ERROR. */
enum dreg_log_type {
	DREG_LOG_ERROR = 0x01,		/* an administrator must act: dat.conf, loading */
	DREG_LOG_GENERIC = 0x02,	/* why a call was refused */
	DREG_LOG_CONF = 0x04,		/* the static registry: entries read, taken, ignored */
	DREG_LOG_PROVIDERS = 0x08,	/* the dynamic registry: providers added and removed */
	DREG_LOG_PROVIDER_API = 0x10,	/* libraries loaded, started, stopped, unloaded */
	DREG_LOG_CONSUMER_API = 0x20,	/* IAs opened and closed */
	DREG_LOG_LINES = 0x40,		/* the static registry: bad lines after a file's first */
};

void dreg_log(enum dreg_log_type type, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
