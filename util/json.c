/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes JSON to a stream: only for datinfo and datperf. */
#include "json.h"

#include <math.h>

/* Length of the UTF-8 sequence at @s, 0 if it is not a valid one. */
static int utf8_len(const unsigned char *s)
{
	static const unsigned long low[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned long code;
	int len, i;

	if (*s < 0x80)
		return 1;
	len = *s >= 0xf0 && *s < 0xf8 ? 4 :
	      *s >= 0xe0 && *s < 0xf0 ? 3 :
	      *s >= 0xc0 && *s < 0xe0 ? 2 :
					0;
	code = *s & (0x7f >> len);
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	/* overlong forms, surrogates and values beyond Unicode */
	if (!len || code < low[len] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff)
		return 0;
	return len;
}

static void put_text(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int len;

	putc('"', out);
	for (; *s; s += len ? len : 1) {
		len = utf8_len(s);
		if (!len)
			fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else
			fwrite(s, 1, len, out);
	}
	putc('"', out);
}

/* Writes the text before a value: comma, newline, indentation, name. */
static void begin_value(struct json *j, const char *name)
{
	if (j->depth) {
		fputs(j->more[j->depth] ? ",\n" : "\n", j->out);
		fprintf(j->out, "%*s", 2 * j->depth, "");
	}
	j->more[j->depth] = true;
	if (name) {
		put_text(j->out, name);
		fputs(": ", j->out);
	}
}

static void open_level(struct json *j, const char *name, char bracket)
{
	begin_value(j, name);
	putc(bracket, j->out);
	if (j->depth < JSON_DEPTH - 1)
		j->depth++;
	j->more[j->depth] = false;
}

void json_object(struct json *j, const char *name)
{
	open_level(j, name, '{');
}

void json_array(struct json *j, const char *name)
{
	open_level(j, name, '[');
}

void json_end(struct json *j, char bracket)
{
	bool more = j->more[j->depth];

	j->depth--;
	if (more)
		fprintf(j->out, "\n%*s", 2 * j->depth, "");
	putc(bracket, j->out);
	if (!j->depth)
		putc('\n', j->out);
}

void json_string(struct json *j, const char *name, const char *value)
{
	begin_value(j, name);
	if (value)
		put_text(j->out, value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *name, bool value)
{
	begin_value(j, name);
	fputs(value ? "true" : "false", j->out);
}

void json_uint(struct json *j, const char *name, unsigned long long value)
{
	begin_value(j, name);
	fprintf(j->out, "%llu", value);
}

void json_int(struct json *j, const char *name, long long value)
{
	begin_value(j, name);
	fprintf(j->out, "%lld", value);
}

void json_double(struct json *j, const char *name, double value)
{
	begin_value(j, name);
	if (isfinite(value))
		fprintf(j->out, "%.4f", value);
	else
		fputs("null", j->out);
}
