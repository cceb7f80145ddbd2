/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parses dat.conf and finds its files. Uses no DAT type. */
#ifndef DREG_CONF_H
#define DREG_CONF_H

#include <dirent.h>
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
 * Parses a line, without its newline. Modifies the line: texts are unquoted in place. A @len above
 * strlen(@line) means that the line contains a null byte. For a bad line *@reason is a static text.
 */
enum dreg_conf_kind dreg_conf_parse(char *line, size_t len, struct dreg_conf_entry *entry,
				    const char **reason);

/* Callbacks of dreg_conf_read(). Texts are valid until the callback returns. */
struct dreg_conf_sink {
	void (*entry)(void *arg, unsigned int line, const struct dreg_conf_entry *entry);
	/* @ends: reading ends at this line */
	void (*bad)(void *arg, unsigned int line, const char *reason, bool ends);
	void *arg;
};

#define DREG_CONF_LINE_SIZE 8192	/* longest line, with its terminating null */
#define DREG_CONF_FILE_SIZE (1 << 20)

/*
 * Parses a whole file, and reports each entry and each bad line. A line that is too long is bad.
 * The line that makes the file longer than DREG_CONF_FILE_SIZE is bad too, and reading stops there.
 * Returns 0, or negative errno if reading failed half-way.
 */
int dreg_conf_read(FILE *file, const struct dreg_conf_sink *sink);

#define DREG_CONF_FILE "dat.conf"
#define DREG_CONF_INCLUDE "dat.conf.d"	/* directory of further files, next to dat.conf */
#define DREG_CONF_PATH_SIZE 4096

/* Returns the first of the null-terminated @dirs that has dat.conf or dat.conf.d, or null. */
const char *dreg_conf_dir(const char *const *dirs);

/*
 * Lists the files *.conf of the directory @path, in the order of their bytes. Returns their number,
 * or negative errno. The caller frees each element of *@list, and *@list.
 */
int dreg_conf_included(const char *path, struct dirent ***list);

/* Opens a regular file to read. Returns null and sets errno on failure: EINVAL for another file. */
FILE *dreg_conf_open(const char *path);

#endif
