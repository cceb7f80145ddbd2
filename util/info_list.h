/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of IAs that datinfo --list prints, of at most 100 columns. */
#ifndef INFO_LIST_H
#define INFO_LIST_H

#include <stdio.h>

/* A line of the table; without @fabric the IA cannot be opened because of @error. */
struct list_row {
	const char *name, *version, *threads;
	const char *fabric, *domain, *address;
	const char *error;
};

void list_head_print(FILE *out);
/* Prints a line; text that exceeds its column, except the name, is cut and ends with "..". */
void list_row_print(FILE *out, const struct list_row *row);

#endif
