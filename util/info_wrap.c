/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines that fit a terminal. */
#include "info_wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct wrap {
	FILE *out;
	size_t width;
};

/* Returns how many of @len bytes go to a line of @width: up to a blank, or to the first one. */
static size_t fitting(const char *line, size_t len, size_t width)
{
	size_t n = width;

	if (len <= width)
		return len;
	while (n && line[n] != ' ')
		n--;
	/* blanks at the beginning are of the table */
	if (n > strspn(line, " "))
		return n;
	n = strspn(line, " ");
	while (n < len && line[n] != ' ')
		n++;
	return n;
}

static void line_write(const struct wrap *w, const char *line, size_t len)
{
	size_t width = w->width, n = fitting(line, len, width);
	const int indent = width > 2 * WRAP_INDENT ? WRAP_INDENT : 0;

	fprintf(w->out, "%.*s", (int)n, line);
	for (width -= (size_t)indent; n < len;) {
		line += n + 1;
		len -= n + 1;
		n = fitting(line, len, width);
		fprintf(w->out, "\n%*s%.*s", indent, "", (int)n, line);
	}
}

static ssize_t wrap_write(void *cookie, const char *text, size_t size)
{
	const struct wrap *w = cookie;
	const char *end = text + size, *line, *next;

	for (line = text; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		if (!next)
			next = end;
		line_write(w, line, (size_t)(next - line));
		if (next < end)
			fputc('\n', w->out);
	}
	return fflush(w->out) ? -1 : (ssize_t)size;
}

static int wrap_free(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *wrap_open(FILE *out, size_t width)
{
	static const cookie_io_functions_t functions = { .write = wrap_write, .close = wrap_free };
	struct wrap *w = width ? malloc(sizeof(*w)) : NULL;
	FILE *f;

	if (!w)
		return out;
	*w = (struct wrap){ out, width };
	f = fopencookie(w, "w", functions);
	if (f) {
		setvbuf(f, NULL, _IOLBF, BUFSIZ);
		return f;
	}
	free(w);
	return out;
}

void wrap_close(FILE *f, FILE *out)
{
	if (f != out)
		fclose(f);
}

size_t wrap_width(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	size_t width = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize size;

	if (!isatty(fileno(out)))
		return 0;
	if (!width && !ioctl(fileno(out), TIOCGWINSZ, &size))
		width = size.ws_col;
	return width;
}
