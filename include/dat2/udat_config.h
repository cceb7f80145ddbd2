/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The API version these headers describe, and the choices of a program before it
 * includes them.
 */

#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

#define DAT_VERSION_MAJOR	2	/* passed to dat_ia_openv() by dat_ia_open() */
#define DAT_VERSION_MINOR	0

/*
 * The thread safety that dat_ia_open() asks for. A program that calls DAT from several
 * threads without its own serialisation defines this as DAT_TRUE before it includes udat.h.
 */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE		DAT_FALSE
#endif

/* The extension interface, dat_extension_op(), is part of these headers. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS		1
#endif

#endif /* _UDAT_CONFIG_H_ */
