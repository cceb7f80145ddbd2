/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The log of a call that is refused. */
#ifndef UNIT_OBJ_REASON_H
#define UNIT_OBJ_REASON_H

#include "base/log.h"
#include "capture.h"

#include <criterion/criterion.h>
#include <string.h>

static struct capture reason_capture;

/* Whether the log has one line, with @words. Ends the capture. */
static inline void reason_check(const char *call, const char *words)
{
	const char *text = capture_end(&reason_capture), *end = strchr(text, '\n');

	dofi_log_max = DOFI_ERR;
	cr_expect(strstr(text, ": warning: ") && strstr(text, words), "%s: %s", call, text);
	cr_expect(end && !end[1], "%s: %s", call, text);
}

/* The call fails, and the log at level 1 has the reason in one line. */
#define REASON(call, words)                                         \
	do {                                                        \
		dofi_log_max = DOFI_WARN;                           \
		capture_begin(&reason_capture);                     \
		cr_expect((call) != DAT_SUCCESS, "%s", #call);      \
		reason_check(#call, words);                         \
	} while (0)

#endif
