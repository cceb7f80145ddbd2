/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The directories that may have a dat.conf; the first that has one counts. */
#ifndef DREG_CONF_DIRS_H
#define DREG_CONF_DIRS_H

#include "dat_select.h"

#include <stddef.h>

static const char *const conf_dirs[] = {
	DAT_CONFDIR,
	"/etc",
#if DAT_VERSION_MAJOR < 2
	"/etc/dat",
#endif
	NULL,
};

#endif
