/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes JSON to a stream: only for datinfo and datperf. */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

#include <stdbool.h>
#include <stdio.h>

#define JSON_DEPTH 16

/* State of the writer; initialise with the stream and zeroes. */
struct json {
	FILE *out;
	int depth;
	bool more[JSON_DEPTH]; /* this level already has a member */
};

/* @name is the member's name, NULL inside an array and for the outermost value. */
void json_object(struct json *j, const char *name);
void json_array(struct json *j, const char *name);
/* Ends the innermost object with '}' or array with ']'. */
void json_end(struct json *j, char bracket);
/* A NULL @value becomes null; bytes that are not valid UTF-8 become U+FFFD. */
void json_string(struct json *j, const char *name, const char *value);
void json_bool(struct json *j, const char *name, bool value);
void json_uint(struct json *j, const char *name, unsigned long long value);
void json_int(struct json *j, const char *name, long long value);
/* Writes four decimals; a value that is not finite becomes null. */
/* NAN is null. */
void json_double(struct json *j, const char *name, double value);

#endif
