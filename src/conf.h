/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses dat.conf and finds the file. Uses no DAT type. */
#ifndef DREG_CONF_H
#define DREG_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One line of dat.conf. The texts point into the line that was parsed. */
struct dreg_conf_entry {
	const char *name;		/* name of the IA, as passed to dat_ia_open() */
	const char *library;		/* the provider's file, with or without a path */
	const char *version;		/* "id.major.minor" of the provider, for humans */
	const char *ia_params;		/* passed to the provider */
	const char *platform_params;	/* not used */
	uint32_t major;			/* DAT version */
	uint32_t minor;
	bool user;			/* for user-level libraries, not for the kernel */
	bool threadsafe;
	bool usable;			/* "default"; a "nondefault" line is ignored */
};

enum dreg_conf_kind {
	DREG_CONF_BLANK,	/* nothing, or a comment */
	DREG_CONF_ENTRY,
	DREG_CONF_BAD,
};

/*
 * dreg_conf_parse - parses a line, without its newline.
 *
 * Modifies the line: texts are unquoted in place. A @len above strlen(@line) means that the line
 * contains a null byte. For a bad line *@reason is a static text.
 */
enum dreg_conf_kind dreg_conf_parse(char *line, size_t len, struct dreg_conf_entry *entry,
				    const char **reason);

/* Callbacks of dreg_conf_read(). Texts are valid until the callback returns. */
struct dreg_conf_sink {
	void (*entry)(void *arg, unsigned int line, const struct dreg_conf_entry *entry);
	void (*bad)(void *arg, unsigned int line, const char *reason);
	void *arg;
};

#define DREG_CONF_LINE_SIZE 8192	/* longest line, with its terminating null */
#define DREG_CONF_FILE_SIZE (1 << 20)

/*
 * dreg_conf_read - parses a whole file, and reports each entry and each bad line.
 *
 * A line that is too long is bad. The line that makes the file longer than DREG_CONF_FILE_SIZE is
 * bad too, and reading stops there. Returns 0, or negative errno if reading failed half-way.
 */
int dreg_conf_read(FILE *file, const struct dreg_conf_sink *sink);

/*
 * dreg_conf_open - opens the file to read.
 *
 * Opens @override if it is not null, else the first file of the null-terminated @paths that exists.
 * If none of @paths exists, returns null and sets *@path to null. If the file cannot be read,
 * returns null and sets *@path to its name and errno to the reason: EINVAL if it is not a regular
 * file.
 */
FILE *dreg_conf_open(const char *override, const char *const *paths, const char **path);

#endif
