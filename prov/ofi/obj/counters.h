/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the counters of IAs, EPs and EVDs. Their numbers are the extension's. */
#ifndef DOFI_OBJ_COUNTERS_H
#define DOFI_OBJ_COUNTERS_H

#include "obj/ia.h"

#include <stdio.h>

/*
 * Stores counter @which of the object @handle in *@out, or all of them if @which is their number;
 * then lets them begin at 0 again if @reset. DAT_INVALID_HANDLE for another kind of object,
 * DAT_INVALID_PARAMETER as dat_extension_op() counts its arguments.
 */
DAT_RETURN dofi_counters_query(DAT_HANDLE handle, int which, DAT_UINT64 *out, bool reset);

/*
 * Writes the counter @which, or all, as lines of a name and a value. The errors
 * are those of dofi_counters_query().
 */
DAT_RETURN dofi_counters_print(FILE *to, DAT_HANDLE handle, int which, bool reset);

/*
 * Makes the counters of @group, a DAT_IA_COUNTER_TYPE, of an IA count from 0, or keep their values.
 * Connections count from the beginning; there are no other groups.
 */
DAT_RETURN dofi_counters_run(DAT_IA_HANDLE ia_handle, int group, bool run);

/*
 * Writes all counters that are not 0, of the IA @arg and its EPs and EVDs:
 * dofi_counter_server.render.
 */
void dofi_counters_render(FILE *to, void *arg);

/*
 * Writes the counters of @obj, which is being freed and was of @type, to stderr:
 * dofi_ia.log_counters.
 */
void dofi_counters_log(struct dofi_obj *obj, DAT_HANDLE_TYPE type);

#endif
