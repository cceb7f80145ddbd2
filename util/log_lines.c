/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Captures stderr, and finds the messages of the provider and the registry in it. */
#include "log_lines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* DAPL_DBG_TYPE applies if DAT_OFI_LOG is unset; its bit 1 alone stands for errors. */
static bool logs_warnings(void)
{
	const char *level = secure_getenv("DAT_OFI_LOG"), *types = secure_getenv("DAPL_DBG_TYPE");

	if (level)
		return strtol(level, NULL, 0) > 0;
	return types && strtol(types, NULL, 0) > 1;
}

void log_to_stderr(void)
{
	unsetenv("DAT_OFI_LOG_FILE");
	setenv("DAT_OFI_LOG_DEST", "1", 1);
	setenv("DAT_DBG_DEST", "1", 1);
}

bool log_raise(void)
{
	static bool raised;

	if (!raised && !logs_warnings())
		raised = !setenv("DAT_OFI_LOG", "1", 1);
	return raised;
}

bool log_capture_begin(struct log_capture *c)
{
	c->file = memfd_create("stderr", MFD_CLOEXEC);
	c->stderr_before = c->file < 0 ? -1 : dup(STDERR_FILENO);
	fflush(stderr);
	if (c->stderr_before >= 0 && dup2(c->file, STDERR_FILENO) >= 0)
		return true;
	if (c->stderr_before >= 0)
		close(c->stderr_before);
	if (c->file >= 0)
		close(c->file);
	return false;
}

void log_read(int file, char text[LOG_TEXT_MAX])
{
	ssize_t n = pread(file, text, LOG_TEXT_MAX - 1, 0);

	text[n > 0 ? n : 0] = '\0';
}

void log_capture_end(struct log_capture *c, char text[LOG_TEXT_MAX])
{
	fflush(stderr);
	dup2(c->stderr_before, STDERR_FILENO);
	close(c->stderr_before);
	log_read(c->file, text);
	close(c->file);
}

/*
 * Returns the message in a line "dat-ofi[PID] TIMES PART: LEVEL: [IA: ]MESSAGE" or "libdat2[PID]:
 * MESSAGE"; NULL if the line has another form.
 */
static const char *message_of(const char *line)
{
	const bool provider = !strncmp(line, "dat-ofi[", 8);
	const char *p = strstr(line, ": ");

	if (!p || (!provider && strncmp(line, "libdat[", 7) && strncmp(line, "libdat2[", 8)))
		return NULL;
	if (provider)
		p = strstr(p + 2, ": ");
	return p ? p + 2 : NULL;
}

static bool is_warning(const char *line)
{
	return !strncmp(line, "dat-ofi[", 8) && strstr(line, ": warning: ");
}

static void line_print(FILE *rest, const char *line, bool warnings)
{
	if (line && rest && (warnings || !is_warning(line)))
		fprintf(rest, "%s\n", line);
}

void log_reason(char *text, FILE *rest, bool warnings, char *reason, size_t len)
{
	const char *last = NULL;
	char *line, *save;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (reason && message_of(line)) {
			line_print(rest, last, warnings);
			last = line;
		} else {
			line_print(rest, line, warnings);
		}
	}
	if (reason)
		snprintf(reason, len, "%s", last ? message_of(last) : "");
}

const char *log_without_ia(const char *message, const char *ia)
{
	const size_t len = strlen(ia);

	return strncmp(message, ia, len) || strncmp(message + len, ": ", 2) ? message :
									    message + len + 2;
}
