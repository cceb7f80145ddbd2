/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of datinfo --list. */
#include "info_list.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *print(const struct list_row *row)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (row)
		list_row_print(out, row);
	else
		list_head_print(out);
	fclose(out);
	return text;
}

#define LONG                                                                                   \
	"a-text-of-more-than-one-hundred-characters-which-cannot-be-in-one-column-of-a-table-" \
	"that-has-to-fit-a-terminal"

Test(list, columns_are_aligned)
{
	char *head = print(NULL), *line = print(&(struct list_row){
					  .name = "ofi",
					  .version = "u2.0",
					  .threads = "threadsafe",
					  .fabric = "tcp",
					  .domain = "eth0",
					  .address = "10.0.0.1",
				  });

	cr_expect_eq(strstr(head, "fabric") - head, strstr(line, "tcp") - line);
	cr_expect_eq(strstr(head, "domain") - head, strstr(line, "eth0") - line);
	cr_expect_eq(strstr(head, "address") - head, strstr(line, "10.0.0.1") - line);
	free(head);
	free(line);
}

static void fits(const struct list_row *row, const char *part)
{
	char *line = print(row);

	cr_expect_eq(strlen(line), strcspn(line, "\n") + 1);
	cr_expect_leq(strcspn(line, "\n"), 100, "%s", line);
	cr_expect(strstr(line, part), "%s", line);
	free(line);
}

Test(list, no_line_is_too_long)
{
	fits(&(struct list_row){ "ofi-sockets-rdm", "u2.0", "nonthreadsafe", LONG, LONG,
				 "2001:0db8:0000:0000:0000:0000:1234:5678", NULL },
	     ".. 2001:0db8:0000:0000:0000:0000:1234:5678\n");
	fits(&(struct list_row){ "ofi", "u1.2", "nonthreadsafe", NULL, NULL, NULL, LONG }, "..\n");
	fits(&(struct list_row){ "ofi", "u1.2", "nonthreadsafe", NULL, NULL, NULL, "no device" },
	     "nonthreadsafe - no device\n");
}

Test(list, a_long_name_is_printed_whole)
{
	char *line =
		print(&(struct list_row){ LONG, "u2.0", "threadsafe", NULL, NULL, NULL, LONG });

	cr_expect(!strncmp(line, LONG " u2.0", strlen(LONG " u2.0")), "%s", line);
	free(line);
}
