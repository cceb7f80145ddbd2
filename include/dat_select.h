/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the DAT headers a file is compiled against. Not installed.
 *
 * Every file that sees a DAT type is built twice; the build sets DAT_API to 1
 * (uDAPL 1.2) or 2 (DAT 2.0). Where the two differ, code tests
 * DAT_VERSION_MAJOR, which the chosen header defines.
 */
#ifndef DAT_SELECT_H
#define DAT_SELECT_H

#if DAT_API == 2
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_names.h>
#elif DAT_API == 1
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <dat/dat_names.h>
#else
#error "DAT_API must be 1 (uDAPL 1.2) or 2 (DAT 2.0)"
#endif

#endif
