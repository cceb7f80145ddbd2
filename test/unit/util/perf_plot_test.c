/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures of results: the program for gnuplot, and how gnuplot is run. A script replaces gnuplot.
 */
#include "perf_plot.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *perf_dat_api(void)
{
	return "9.9";
}

static struct perf_plot plot;
static char dir[] = "/tmp/perf_plot_XXXXXX", path[64], err[256];

static void add(enum perf_test test, enum perf_side side, double size, double lat, double bw)
{
	const struct perf_plot_point point = { .size = size, .lat = lat, .bw = bw };

	perf_plot_add(&plot, test, side, &point);
}

static void set_up(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/picture.svg", dir);
	plot.terminal = perf_plot_terminal(path);
	plot.nruns = 1;
	strcpy(plot.title, "a title");
	add(PERF_SEND, PERF_SIDE_DAT, 8, 1.5, 100);
	add(PERF_SEND, PERF_SIDE_DAT, 1024, 2.5, 900);
	add(PERF_READ, PERF_SIDE_RAW, 8, 1.25, 50);
}

static void tear_down(void)
{
	char command[128];

	setenv("PATH", "/usr/bin:/bin", 1);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(perf_plot, .init = set_up, .fini = tear_down);

static const char *script(void)
{
	static char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	perf_plot_script(&plot, out);
	fclose(out);
	return text;
}

static void check_has(const char *want)
{
	cr_expect(strstr(script(), want), "no %s in %s", want, script());
}

/*
 * The program
 */

Test(perf_plot, curves_have_their_points)
{
	check_has("$curve0 << EOD\n8 1.5000 100.0000 7 7\n1024 2.5000 900.0000 7 7\nEOD\n");
	check_has("$curve1 << EOD\n8 1.2500 50.0000 9 9\nEOD\n");
	check_has("set logscale xy\n");
	check_has("plot $curve0 using 1:2:4 notitle ");
	check_has("plot $curve0 using 1:3:5 notitle ");
}

Test(perf_plot, unsteady_points_are_open)
{
	const struct perf_plot_point point = { 8, 3, 200, .bw_scatters = true };

	cr_expect(!strstr(script(), "unsteady"));
	perf_plot_add(&plot, PERF_WRITE, PERF_SIDE_DAT, &point);
	check_has("$curve2 << EOD\n8 3.0000 200.0000 5 4\nEOD\n");
	check_has(", NaN title 'open points: unsteady' with points ");
}

Test(perf_plot, figures_that_a_logarithmic_axis_lacks_are_left_out)
{
	add(PERF_WRITE, PERF_SIDE_DAT, 8, 0, 1);
	add(PERF_WRITE, PERF_SIDE_DAT, 8, 1, 0);
	add(PERF_WRITE, PERF_SIDE_DAT, 0, 1, 1);
	add(PERF_WRITE, PERF_SIDE_DAT, 8, INFINITY, 1);
	add(PERF_WRITE, PERF_SIDE_DAT, 8, NAN, 1);
	cr_expect_eq(plot.ncurves, 2);
}

Test(perf_plot, key_names_tests_and_sides)
{
	check_has("NaN title 'send' with ");
	check_has("NaN title 'bare libfabric read (round trip)' with ");
}

Test(perf_plot, key_names_several_runs)
{
	strcpy(plot.run[0], "one");
	strcpy(plot.run[1], "two");
	plot.nruns = 2;
	add(PERF_SEND, PERF_SIDE_DAT, 8, 9, 7);
	check_has("NaN title 'one: send' with ");
	check_has("NaN title 'two: send' with ");
	check_has("$curve2 << EOD\n8 9.0000 7.0000 7 7\nEOD\n");
}

Test(perf_plot, text_cannot_leave_its_quotes)
{
	strcpy(plot.title, "it's\n!reboot");
	check_has("title 'it''s !reboot' noenhanced\n");
}

Test(perf_plot, both_directions_are_named)
{
	plot.bidir = true;
	check_has("'bandwidth both ways (MB/s)'");
}

/*
 * Running gnuplot
 */

/* Makes a script of these commands the only gnuplot. */
static void gnuplot(const char *commands)
{
	char name[128];
	FILE *f;

	snprintf(name, sizeof(name), "%s/gnuplot", dir);
	f = fopen(name, "w");
	cr_assert(f);
	fprintf(f, "#!/bin/sh\nPATH=/usr/bin:/bin\n%s\n", commands);
	fclose(f);
	cr_assert_eq(chmod(name, 0755), 0);
	setenv("PATH", dir, 1);
}

static void check_file(const char *want)
{
	char got[65536] = "";
	FILE *f = fopen(path, "r");

	cr_assert(f);
	cr_assert(fread(got, 1, sizeof(got) - 1, f) > 0);
	fclose(f);
	cr_expect(!strncmp(got, want, strlen(want)), "%s", got);
}

static void keep_old_file(void)
{
	FILE *f = fopen(path, "w");

	cr_assert(f);
	fputs("old", f);
	fclose(f);
}

Test(perf_plot, gnuplot_gets_the_program_and_its_output_is_the_file)
{
	gnuplot("[ \"$1\" = - ] && echo '<svg>' && cat");
	cr_expect_eq(perf_plot_draw(&plot, path, err, sizeof(err)), 0, "%s", err);
	check_file("<svg>\nset encoding utf8\n");
}

Test(perf_plot, the_suffix_selects_the_terminal)
{
	strcpy(strrchr(path, '.'), ".png");
	gnuplot("cat");
	cr_expect_eq(perf_plot_draw(&plot, path, err, sizeof(err)), 0, "%s", err);
	check_has("\nset terminal pngcairo ");
	strcpy(strrchr(path, '.'), ".svg");
	cr_expect_eq(perf_plot_draw(&plot, path, err, sizeof(err)), 0, "%s", err);
	check_has("\nset terminal svg ");
}

Test(perf_plot, failure_leaves_an_earlier_file)
{
	keep_old_file();
	gnuplot("cat >/dev/null; echo half; exit 1");
	cr_expect_eq(perf_plot_draw(&plot, path, err, sizeof(err)), -1);
	cr_expect_str_eq(err, "gnuplot failed");
	check_file("old");
}

static void add_many(void)
{
	int t, s, i;

	for (t = 0; t < PERF_NTESTS; t++)
		for (s = 0; s < PERF_NSIDES; s++)
			for (i = 0; i < PERF_MAX_SIZES; i++)
				add(t, s, 1e9 + i, 1e12 + i, 1e12 + i);
}

/* The program is longer than a pipe: the writer must not be killed. */
Test(perf_plot, gnuplot_that_does_not_read)
{
	for (plot.nruns = 1; plot.nruns <= PERF_FILES_MAX; plot.nruns++)
		add_many();
	plot.nruns--;
	cr_assert_gt(strlen(script()), 65536);
	gnuplot("exit 1");
	cr_expect_eq(perf_plot_draw(&plot, path, err, sizeof(err)), -1);
	cr_expect_str_eq(err, "gnuplot failed");
}

Test(perf_plot, no_gnuplot)
{
	setenv("PATH", dir, 1);
	cr_expect_eq(perf_plot_check(err, sizeof(err)), -1);
	cr_expect_str_eq(err, "--plot needs the program gnuplot, which is not installed");
	gnuplot("exit 0");
	cr_expect_eq(perf_plot_check(err, sizeof(err)), 0);
}

Test(perf_plot, directory_that_does_not_exist)
{
	gnuplot("cat");
	snprintf(path, sizeof(path), "%s/none/picture.svg", dir);
	cr_expect_eq(perf_plot_draw(&plot, path, err, sizeof(err)), -1);
	cr_expect(strstr(err, "none/picture.svg.part: No such file"), "%s", err);
}
