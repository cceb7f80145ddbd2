/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of IAs that datinfo --list prints. */
#ifndef INFO_LIST_H
#define INFO_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A line of the table; without @fabric the IA cannot be opened because of @error. */
struct list_row {
	const char *name, *version, *threads;
	const char *fabric, *domain, *address;
	const char *error;
};

/* The columns of the table: the width of the names, and whether API and threads are shown. */
struct list_form {
	FILE *out;
	int name;
	bool version, threads;
};

/*
 * Leaves out columns so that a line with an IPv4 address fits @width; 0: none. Names have at most
 * @name bytes.
 */
struct list_form list_form_of(FILE *out, size_t name, size_t width);
void list_head_print(const struct list_form *form);
/*
 * Prints a line. A fabric or domain that exceeds its column is cut and ends with "..". The address
 * and the error, which come last, are whole: the caller breaks lines that are too long.
 */
void list_row_print(const struct list_form *form, const struct list_row *row);

#endif
