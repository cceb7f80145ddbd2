/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry: the fabric that the user selects. */

#include "fab/params.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blank[] = " \t";

static char *param_slot(struct dofi_params *p, const char *key, size_t len)
{
	static const struct {
		const char *key;
		size_t offset;
	} slot[] = {
		{ "provider", offsetof(struct dofi_params, provider) },
		{ "domain", offsetof(struct dofi_params, domain) },
		{ "address", offsetof(struct dofi_params, address) },
		{ "endpoint", offsetof(struct dofi_params, endpoint) },
		{ "strict", offsetof(struct dofi_params, strict) },
	};
	size_t i;

	for (i = 0; i < sizeof(slot) / sizeof(slot[0]); i++)
		if (strlen(slot[i].key) == len && !strncmp(slot[i].key, key, len))
			return (char *)p + slot[i].offset;
	return NULL;
}

static int param_word(struct dofi_params *p, const char *word, size_t len,
		      char *why, size_t why_size)
{
	const char *eq = memchr(word, '=', len);
	size_t value_len;
	char *slot;

	if (!eq || eq == word) {
		snprintf(why, why_size, "\"%.*s\" is neither key=value nor a name with a port",
			 (int)len, word);
		return -EINVAL;
	}
	slot = param_slot(p, word, eq - word);
	if (!slot) {
		snprintf(why, why_size,
			 "unknown key \"%.*s\" (known: provider, domain, address, endpoint, "
			 "strict)",
			 (int)(eq - word), word);
		return -EINVAL;
	}
	value_len = len - (eq + 1 - word);
	if (!value_len || value_len >= sizeof(p->provider)) {
		snprintf(why, why_size, "the value of \"%.*s\" has %zu characters, not 1 to %zu",
			 (int)(eq - word), word, value_len, sizeof(p->provider) - 1);
		return -EINVAL;
	}
	memcpy(slot, eq + 1, value_len);
	slot[value_len] = 0;
	if (slot == p->address && value_len > 2 && slot[0] == '[' && slot[value_len - 1] == ']') {
		slot[value_len - 1] = 0;
		memmove(slot, slot + 1, value_len - 1);
	}
	if (slot == p->endpoint && strcmp(slot, "msg") && strcmp(slot, "rdm")) {
		snprintf(why, why_size, "endpoint=%s is neither msg nor rdm", slot);
		return -EINVAL;
	}
	if (slot == p->strict && strcmp(slot, "0") && strcmp(slot, "1")) {
		snprintf(why, why_size, "strict=%s is neither 0 nor 1", slot);
		return -EINVAL;
	}
	return 0;
}

#define MOST_PORT 255	/* ports have 8 bits */

/* Whether @text is a name and a number; sets their lengths. */
static bool is_named(const char *text, size_t *name_len, size_t *port_len)
{
	const char *port;

	*name_len = strcspn(text, blank);
	port = text + *name_len + strspn(text + *name_len, blank);
	*port_len = strspn(port, "0123456789");
	return *port_len && !memchr(text, '=', *name_len) &&
	       (!port[*port_len] || strchr(blank, port[*port_len]));
}

/* Parses OFED's form. */
static int named_parse(struct dofi_params *p, const char *text, char *why, size_t why_size)
{
	size_t name_len, port_len;
	const char *port, *rest;

	is_named(text, &name_len, &port_len);
	port = text + name_len + strspn(text + name_len, blank);
	rest = port + port_len + strspn(port + port_len, blank);
	if (*rest) {
		snprintf(why, why_size, "\"%s\" follows the name and port", rest);
		return -EINVAL;
	}
	if (name_len >= sizeof(p->name) || memchr(text, '/', name_len)) {
		snprintf(why, why_size, "\"%.*s\" is not the name of a device or interface",
			 (int)name_len, text);
		return -EINVAL;
	}
	if (strtoul(port, NULL, 10) > MOST_PORT) {
		snprintf(why, why_size, "port %.*s of \"%.*s\" is above %d", (int)port_len, port,
			 (int)name_len, text, MOST_PORT);
		return -EINVAL;
	}
	memcpy(p->name, text, name_len);
	p->port = strtoul(port, NULL, 10);
	return 0;
}

int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size)
{
	size_t name_len, port_len;

	memset(params, 0, sizeof(*params));
	if (!text)
		return 0;
	text += strspn(text, blank);
	if (is_named(text, &name_len, &port_len))
		return named_parse(params, text, why, why_size);
	for (; *text; text += strspn(text, blank)) {
		size_t len = strcspn(text, blank);
		int ret = param_word(params, text, len, why, why_size);

		if (ret)
			return ret;
		text += len;
	}
	return 0;
}
