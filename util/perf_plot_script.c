/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The program that lets gnuplot draw a plot: two panels over a common key. */
#include "perf_plot.h"

#define WIDTH 1100
#define PANELS 440 /* height of the title and the panels */
#define KEY_ROW 24

/* Distinguishable with any kind of colour vision (Okabe and Ito). */
static const char *const colours[] = {
	"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
};

/*
 * gnuplot's filled form of a point, and the open form, for unsteady figures. It has six pairs: fadd
 * and cswap are never in one run with send and write.
 */
static const int points[PERF_NTESTS][2] = {
	[PERF_SEND] = { 7, 6 },
	[PERF_WRITE] = { 5, 4 },
	[PERF_READ] = { 9, 8 },
	[PERF_MPI] = { 15, 14 },
	[PERF_IMM] = { 11, 10 },
	[PERF_FADD] = { 7, 6 },
	[PERF_CSWAP] = { 5, 4 },
	[PERF_UD] = { 13, 12 },
};

/* Writes @text as a string of gnuplot; a character that could end the line becomes a blank. */
static void quoted(FILE *out, const char *text)
{
	putc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			putc('\'', out);
		putc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
	putc('\'', out);
}

/* The labels of several runs are longer. */
static int key_columns(const struct perf_plot *plot)
{
	return plot->nruns > 1 ? 2 : 3;
}

/* --- data --------------------------------------------------------------- */

/* The columns: size, latency, bandwidth, and the points of both. */
static void data(const struct perf_curve *c, int number, FILE *out)
{
	const struct perf_plot_point *p;

	fprintf(out, "$curve%d << EOD\n", number);
	for (p = c->point; p < c->point + c->n; p++)
		fprintf(out, "%.0f %.4f %.4f %d %d\n", p->size, p->lat, p->bw,
			points[c->test][p->lat_scatters], points[c->test][p->bw_scatters]);
	fprintf(out, "EOD\n");
}

/* Labels at every eighth power of two that the curves cover. */
static void size_tics(const struct perf_plot *plot, FILE *out)
{
	double least = PERF_SIZE_MAX, most = 1;
	const struct perf_curve *c;
	char name[32];
	size_t size;
	int i, k;

	for (i = 0; i < plot->ncurves; i++) {
		c = &plot->curve[i];
		for (k = 0; k < c->n; k++) {
			least = c->point[k].size < least ? c->point[k].size : least;
			most = c->point[k].size > most ? c->point[k].size : most;
		}
	}
	fprintf(out, "set xrange [%f:%f]\nset xtics (", least / 1.4, most * 1.4);
	for (size = 1; size <= PERF_SIZE_MAX; size *= 8)
		fprintf(out, "%s\"%s\" %zu", size == 1 ? "" : ", ",
			perf_size_name(size, name, sizeof(name)), size);
	fprintf(out, ")\n");
}

/* --- curves ------------------------------------------------------------- */

/* The name of a curve in the key. */
static void label(const struct perf_plot *plot, const struct perf_curve *c, FILE *out)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s%s%s", plot->nruns > 1 ? plot->run[c->run] : "",
		 plot->nruns > 1 ? ": " : "", c->side == PERF_SIDE_RAW ? "bare libfabric " : "",
		 perf_test_name(c->test), c->test == PERF_READ ? " (round trip)" : "");
	quoted(out, text);
}

/*
 * One run has a colour for each test, several runs have a colour each; bare libfabric's curves are
 * dashed.
 */
static void style(const struct perf_plot *plot, const struct perf_curve *c, FILE *out)
{
	int colour = plot->nruns > 1 ? c->run : (int)c->test;

	fprintf(out, "with linespoints lc rgb '%s' lw 2 dt %d ps 0.7 pt ", colours[colour],
		c->side == PERF_SIDE_RAW ? 2 : 1);
}

static void panel(const struct perf_plot *plot, int column, FILE *out)
{
	int i;

	fprintf(out, "plot ");
	for (i = 0; i < plot->ncurves; i++) {
		fprintf(out, "%s$curve%d using 1:%d:%d notitle ", i ? ", \\\n  " : "", i, column,
			column + 2);
		style(plot, &plot->curve[i], out);
		fprintf(out, "variable");
	}
	fprintf(out, "\n");
}

static bool has_unsteady(const struct perf_plot *plot)
{
	const struct perf_curve *c;
	int k;

	for (c = plot->curve; c < plot->curve + plot->ncurves; c++)
		for (k = 0; k < c->n; k++)
			if (c->point[k].lat_scatters || c->point[k].bw_scatters)
				return true;
	return false;
}

static void key(const struct perf_plot *plot, FILE *out)
{
	int i;

	fprintf(out, "unset border\nunset tics\nunset grid\nunset xlabel\nunset ylabel\n"
		     "unset logscale\nset xrange [0:1]\nset yrange [0:1]\n"
		     "set key center center Left reverse noenhanced samplen 3 maxcols %d\n"
		     "plot ", key_columns(plot));
	for (i = 0; i < plot->ncurves; i++) {
		fprintf(out, "%sNaN title ", i ? ", \\\n  " : "");
		label(plot, &plot->curve[i], out);
		fprintf(out, " ");
		style(plot, &plot->curve[i], out);
		fprintf(out, "%d", points[plot->curve[i].test][0]);
	}
	if (has_unsteady(plot))
		fprintf(out, ", NaN title 'open points: unsteady' with points lc black pt %d",
			points[PERF_SEND][1]);
	fprintf(out, "\n");
}

void perf_plot_script(const struct perf_plot *plot, FILE *out)
{
	int entries = plot->ncurves + has_unsteady(plot);
	int rows = (entries + key_columns(plot) - 1) / key_columns(plot), i;
	int keys = rows * KEY_ROW + 16, height = PANELS + keys;
	double low = (double)keys / height, high = 0.93 - low;

	fprintf(out, "set encoding utf8\n"
		     "set terminal %s size %d,%d background 'white'\n",
		plot->terminal, WIDTH, height);
	for (i = 0; i < plot->ncurves; i++)
		data(&plot->curve[i], i, out);
	fprintf(out, "set multiplot title ");
	quoted(out, plot->title);
	fprintf(out, " noenhanced\n"
		     "set logscale xy\nset format y '%%g'\nset grid lc rgb '#d0d0d0' lw 1\n"
		     "set lmargin 10\nset rmargin 2\nset tmargin 2\nset bmargin 4\n"
		     "set xlabel 'message size (bytes)'\nset border 3\nset tics nomirror\n");
	size_tics(plot, out);
	fprintf(out, "set size 0.5,%f\nset origin 0,%f\n"
		     "set ylabel 'latency (µs)'\n", high, low);
	panel(plot, 2, out);
	fprintf(out, "set origin 0.5,%f\nset ylabel 'bandwidth%s (MB/s)'\n", low,
		plot->bidir ? " both ways" : "");
	panel(plot, 3, out);
	fprintf(out, "set size 1,%f\nset origin 0,0\nset lmargin 0\nset rmargin 0\nset tmargin 0\n"
		     "set bmargin 0\n", low);
	key(plot, out);
	fprintf(out, "unset multiplot\n");
}
