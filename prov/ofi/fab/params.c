/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ia_params of a dat.conf entry: the fabric that the user selects. */

#include "fab/params.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
		snprintf(why, why_size, "\"%.*s\" is not key=value", (int)len, word);
		return -EINVAL;
	}
	slot = param_slot(p, word, eq - word);
	if (!slot) {
		snprintf(why, why_size,
			 "unknown key \"%.*s\" (known: provider, domain, address, endpoint)",
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
	if (slot == p->endpoint && strcmp(slot, "msg") && strcmp(slot, "rdm")) {
		snprintf(why, why_size, "endpoint=%s is neither msg nor rdm", slot);
		return -EINVAL;
	}
	return 0;
}

int dofi_params_parse(const char *text, struct dofi_params *params, char *why, size_t why_size)
{
	static const char blank[] = " \t";

	memset(params, 0, sizeof(*params));
	if (!text)
		return 0;
	for (text += strspn(text, blank); *text; text += strspn(text, blank)) {
		size_t len = strcspn(text, blank);
		int ret = param_word(params, text, len, why, why_size);

		if (ret)
			return ret;
		text += len;
	}
	return 0;
}
