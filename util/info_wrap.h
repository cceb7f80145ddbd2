/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines that fit a terminal. */
#ifndef INFO_WRAP_H
#define INFO_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* The column where a table's text begins, and where its lines continue. */
#define WRAP_INDENT 25

/*
 * Opens a stream that writes to @out, and breaks lines of more than @width bytes at blanks; words
 * are not broken. A line is shorter than BUFSIZ, and complete before each flush. Returns @out if
 * @width is 0, or without memory.
 */
FILE *wrap_open(FILE *out, size_t width);
/* Closes the result of wrap_open() for @out, which stays open. */
void wrap_close(FILE *f, FILE *out);

/* The width of the terminal @out, or COLUMNS of the environment; 0 if @out is no terminal. */
size_t wrap_width(FILE *out);

#endif
