/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Captures stderr, and finds the messages of the provider and the registry in it. */
#ifndef LOG_LINES_H
#define LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define LOG_TEXT_MAX 8192

struct log_capture {
	int file, stderr_before;
};

/*
 * Sets DAT_OFI_LOG so that the provider logs why calls fail, unless the user's settings do so.
 * Returns whether this function has set it. Providers read the settings when the first IA opens.
 */
bool log_raise(void);

/* Lets the logs of provider and registry go to stderr only. Call before the first IA opens. */
void log_to_stderr(void);

/* Redirects stderr to a file in memory. Returns false, without effect, if that fails. */
bool log_capture_begin(struct log_capture *c);
/* Ends the redirection; @text gets the output. */
void log_capture_end(struct log_capture *c, char text[LOG_TEXT_MAX]);

/* Reads the beginning of @file to @text. */
void log_read(int file, char text[LOG_TEXT_MAX]);

/*
 * Copies the text of the last message in @text to @reason, without process and level; @reason is
 * empty if there is none. If @reason is NULL, the last message is one of the other lines. Writes
 * all other lines to @rest unless it is NULL, warnings of the provider only with @warnings.
 */
void log_reason(char *text, FILE *rest, bool warnings, char *reason, size_t len);

/* Returns the part of @message behind "IA: ", with the name @ia; all of it if that is missing. */
const char *log_without_ia(const char *message, const char *ia);

#endif
