/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The grammar of dat.conf, and where the file is found. Knows no DAT type. */
#ifndef DREG_CONF_H
#define DREG_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One line of dat.conf. The texts point into the line that was parsed. */
struct dreg_conf_entry {
	const char *name;		/* of the IA, as programs open it */
	const char *library;		/* the provider's file, with or without a path */
	const char *version;		/* "id.major.minor" of the provider, for people */
	const char *ia_params;		/* for the provider alone */
	const char *platform_params;	/* likewise; read by nobody */
	uint32_t major;			/* DAT version */
	uint32_t minor;
	bool user;			/* for user-level libraries, not for the kernel's */
	bool threadsafe;
	bool usable;			/* "default"; a "nondefault" line is only kept, not used */
};

enum dreg_conf_kind {
	DREG_CONF_BLANK,	/* nothing, or a comment */
	DREG_CONF_ENTRY,
	DREG_CONF_BAD,
};

/*
 * dreg_conf_parse - takes a line apart, without its newline.
 *
 * The line is changed: texts are unquoted in place. @len may be more than
 * strlen(@line), which tells a line with a null byte. For a bad line *@reason says
 * why, as static text.
 */
enum dreg_conf_kind dreg_conf_parse(char *line, size_t len, struct dreg_conf_entry *entry,
				    const char **reason);

/* What dreg_conf_read() reports to. Texts last until the function returns. */
struct dreg_conf_sink {
	void (*entry)(void *arg, unsigned int line, const struct dreg_conf_entry *entry);
	void (*bad)(void *arg, unsigned int line, const char *reason);
	void *arg;
};

#define DREG_CONF_LINE_SIZE 8192	/* of the longest line, with its end */
#define DREG_CONF_FILE_SIZE (1 << 20)

/*
 * dreg_conf_read - parses a whole file, and reports each entry and each bad line.
 *
 * A line that is too long is bad. So is the one with which the file becomes too long, and
 * nothing after it is read. Returns 0, or negative errno if reading failed half-way.
 */
int dreg_conf_read(FILE *file, const struct dreg_conf_sink *sink);

/*
 * dreg_conf_open - opens the file to read.
 *
 * @override names it if not null; else it is the first of the null-terminated @paths
 * that exists. Returns null if there is none, with *@path null, or if it cannot be
 * read, with *@path its name and errno the reason: EINVAL if it is no regular file.
 */
FILE *dreg_conf_open(const char *override, const char *const *paths, const char **path);

#endif
