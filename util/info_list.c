/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of IAs that datinfo --list prints, of at most 100 columns. */
#include "info_list.h"

#include <string.h>

#define COLUMNS 100
#define NAME 16
#define VERSION 4
#define THREADS 13
#define FABRIC 12
#define DOMAIN 11
#define ADDRESS 39 /* of IPv6 */

/* Copies @text, cut to @width columns. */
static const char *cut(const char *text, size_t width, char buf[COLUMNS + 1])
{
	size_t len = strlen(text);

	snprintf(buf, COLUMNS + 1, "%.*s%s", (int)(len > width ? width - 2 : len), text,
		 len > width ? ".." : "");
	return buf;
}

void list_head_print(FILE *out)
{
	fprintf(out, "%-*s %-*s %-*s %-*s %-*s %s\n", NAME, "name", VERSION, "API", THREADS,
		"threads", FABRIC, "fabric", DOMAIN, "domain", "address");
}

void list_row_print(FILE *out, const struct list_row *row)
{
	int used = fprintf(out, "%-*s %-*s %-*s ", NAME, row->name, VERSION, row->version, THREADS,
			   row->threads);
	size_t room = used + 2 < COLUMNS - 2 ? (size_t)(COLUMNS - used - 2) : 2;
	char fabric[COLUMNS + 1], domain[COLUMNS + 1], last[COLUMNS + 1];

	if (!row->fabric)
		fprintf(out, "- %s\n", cut(row->error, room, last));
	else
		fprintf(out, "%-*s %-*s %s\n", FABRIC, cut(row->fabric, FABRIC, fabric), DOMAIN,
			cut(row->domain, DOMAIN, domain), cut(row->address, ADDRESS, last));
}
