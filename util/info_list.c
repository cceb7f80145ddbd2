/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of IAs that datinfo --list prints. */
#include "info_list.h"

#include <string.h>

#define VERSION 4
#define THREADS 13
#define FABRIC 12
#define DOMAIN 11
#define ADDRESS 15 /* of IPv4 */

/* Prints @text in a column of @width, cut if it is longer. */
static void column(FILE *out, const char *text, int width)
{
	const bool cut = strlen(text) > (size_t)width;

	fprintf(out, "%-*.*s%s ", cut ? width - 2 : width, cut ? width - 2 : width, text,
		cut ? ".." : "");
}

static void begin(const struct list_form *form, const char *name, const char *version,
		  const char *threads)
{
	column(form->out, name, form->name);
	if (form->version)
		column(form->out, version, VERSION);
	if (form->threads)
		column(form->out, threads, THREADS);
}

struct list_form list_form_of(FILE *out, size_t name, size_t width)
{
	static const char title[] = "name";
	const size_t least = sizeof(title) - 1;
	struct list_form form = { .out = out, .name = (int)(name > least ? name : least) };
	size_t used = (size_t)form.name + 1 + FABRIC + 1 + DOMAIN + 1 + ADDRESS;

	form.threads = !width || used + THREADS + 1 <= width;
	form.version = !width || used + THREADS + 1 + VERSION + 1 <= width;
	return form;
}

void list_head_print(const struct list_form *form)
{
	begin(form, "name", "API", "threads");
	column(form->out, "fabric", FABRIC);
	column(form->out, "domain", DOMAIN);
	fprintf(form->out, "address\n");
}

void list_row_print(const struct list_form *form, const struct list_row *row)
{
	begin(form, row->name, row->version, row->threads);
	if (!row->fabric) {
		fprintf(form->out, "- %s\n", row->error);
		return;
	}
	column(form->out, row->fabric, FABRIC);
	column(form->out, row->domain, DOMAIN);
	fprintf(form->out, "%s\n", row->address);
}
