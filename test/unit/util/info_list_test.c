/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of datinfo --list. */
#include "info_list.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *print(size_t name, size_t width, const struct list_row *row)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	const struct list_form form = list_form_of(out, name, width);

	if (row)
		list_row_print(&form, row);
	else
		list_head_print(&form);
	fclose(out);
	return text;
}

#define LONG                                                                                   \
	"a-text-of-more-than-one-hundred-characters-which-cannot-be-in-one-column-of-a-table-" \
	"that-has-to-fit-a-terminal"

static void aligned(size_t name, size_t width)
{
	char *head = print(name, width, NULL), *line = print(name, width, &(struct list_row){
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

Test(list, columns_are_aligned)
{
	aligned(3, 0);
	aligned(40, 0);
	aligned(40, 80);
}

static void becomes(size_t name, size_t width, const struct list_row *row, const char *wanted)
{
	char *line = print(name, width, row);

	cr_expect_str_eq(line, wanted);
	free(line);
}

Test(list, a_narrow_terminal_has_fewer_columns)
{
	becomes(20, 0, NULL,
		"name                 API  threads       fabric       domain      address\n");
	becomes(20, 80, NULL,
		"name                 API  threads       fabric       domain      address\n");
	becomes(25, 80, NULL,
		"name                      threads       fabric       domain      address\n");
	becomes(26, 80, NULL, "name                       fabric       domain      address\n");
}

Test(list, a_fabric_or_domain_is_cut)
{
	becomes(3, 0,
		&(struct list_row){ "ofi", "u2.0", "nonthreadsafe", LONG, LONG,
				    "2001:0db8:0000:0000:0000:0000:1234:5678", NULL },
		"ofi  u2.0 nonthreadsafe a-text-of-.. a-text-of.. "
		"2001:0db8:0000:0000:0000:0000:1234:5678\n");
}

Test(list, a_reason_is_whole)
{
	becomes(3, 0, &(struct list_row){ "ofi", "u1.2", "threadsafe", NULL, NULL, NULL, LONG },
		"ofi  u1.2 threadsafe    - " LONG "\n");
	becomes(3, 50, &(struct list_row){ "ofi", "u1.2", "threadsafe", NULL, NULL, NULL, LONG },
		"ofi  - " LONG "\n");
}

Test(list, a_long_name_is_whole)
{
	becomes(strlen(LONG), 0,
		&(struct list_row){ LONG, "u2.0", "threadsafe", NULL, NULL, NULL, "no device" },
		LONG " u2.0 threadsafe    - no device\n");
}
