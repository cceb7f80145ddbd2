/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens an IA and finds out why that failed, from the log of the provider and the registry. */
#include "open_reason.h"

#include "dat_text.h"
#include "log_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static DAT_RETURN ia_open(const DAT_PROVIDER_INFO *info, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			  DAT_IA_HANDLE *ia)
{
	return dat_ia_openv((DAT_NAME_PTR)info->ia_name, qlen, async_evd, ia,
			    info->dapl_version_major, info->dapl_version_minor,
			    info->is_thread_safe);
}

static bool keeps_level;

void reason_keep_level(void)
{
	keeps_level = true;
}

DAT_RETURN reason_open_info(const DAT_PROVIDER_INFO *info, DAT_COUNT qlen,
			    DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia, char *reason, size_t len)
{
	char text[LOG_TEXT_MAX] = "", why[REASON_MAX] = "", code[128];
	const char *what;
	const bool raised = !keeps_level && log_raise();
	struct log_capture capture;
	DAT_RETURN ret;

	if (log_capture_begin(&capture)) {
		ret = ia_open(info, qlen, async_evd, ia);
		log_capture_end(&capture, text);
	} else {
		ret = ia_open(info, qlen, async_evd, ia);
	}
	log_reason(text, stderr, !raised, ret == DAT_SUCCESS ? NULL : why, sizeof(why));
	dat_text_error(ret, code, sizeof(code));
	what = log_without_ia(why, info->ia_name);	/* the caller prints the name */
	if (ret != DAT_SUCCESS && !*what && secure_getenv("DAT_OFI_LOG_FILE"))
		what = "the reason is in the file that DAT_OFI_LOG_FILE names";
	snprintf(reason, len, "%s%s%s", code, *what ? ": " : "", what);
	return ret;
}

DAT_RETURN reason_open(const char *name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
		       DAT_IA_HANDLE *ia, char *reason, size_t len)
{
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.is_thread_safe = DAT_THREADSAFE,
	};

	snprintf(info.ia_name, sizeof(info.ia_name), "%s", name);
	return reason_open_info(&info, qlen, async_evd, ia, reason, len);
}

const char *reason_text(const char *reason)
{
	static const char common[] = "no usable fabric: ";
	const char *text = strstr(reason, ": ");

	if (strncmp(reason, "DAT_", 4) || !text)
		return reason;
	text += 2;
	return strncmp(text, common, strlen(common)) ? text : text + strlen(common);
}
