/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of a table that fits the terminal. */
#include "perf_table.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>

static void heading(size_t width, bool fits)
{
	perf_cells("%4s[ %3s]%s", "size", "low", "{ high}");
	cr_expect_eq(perf_cells_fit(width), fits);
	perf_cells_end();
}

static void prints(const char *wanted)
{
	fflush(stdout);
	cr_assert_stdout_eq_str(wanted);
}

TestSuite(perf_table, .init = cr_redirect_stdout);

Test(perf_table, a_file_has_all_cells)
{
	heading(0, true);
	prints("size low high\n");
}

Test(perf_table, a_wide_terminal_has_all_cells)
{
	heading(13, true);
	prints("size low high\n");
}

Test(perf_table, the_least_important_cells_are_left_out_first)
{
	heading(12, true);
	prints("size high\n");
}

Test(perf_table, the_narrowest_terminal_that_fits)
{
	heading(4, true);
	prints("size\n");
}

Test(perf_table, nothing_fits)
{
	heading(3, false);
	prints("size\n");
}

Test(perf_table, lines_leave_out_what_their_heading_does)
{
	heading(12, true);
	perf_cells("%4d[ %3d]", 8, 1);
	perf_cells("{ %4d}", 2);
	perf_cells_end();
	prints("size high\n   8    2\n");
}

Test(perf_table, another_heading_decides_anew)
{
	heading(4, true);
	perf_cells("dropped");
	perf_cells_drop();
	heading(0, true);
	prints("size\nsize low high\n");
}
