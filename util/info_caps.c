/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the capabilities of an IA, which its provider reports as named attributes. */
#include "info_caps.h"

#include <string.h>

bool caps_is_note(const char *name)
{
	static const char *const prefixes[] = { "OFI_SOURCE:", "OFI_ADDS:", "OFI_LIMIT:",
						"OFI_MODIFY:" };
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* Returns the IA attribute that limits endpoint attribute @attr; NULL if none does. */
static const struct attr *limit_of(const struct attr *attr, const DAT_PROVIDER_ATTR *pa)
{
	const char *name = attr_note(attr, "OFI_LIMIT", pa);
	int i;

	for (i = 0; name && i < ia_nattrs; i++)
		if (!strcmp(ia_attrs[i].name, name))
			return &ia_attrs[i];
	return NULL;
}

/* --- text --------------------------------------------------------------- */

/* Prints a row or the heading. The last column may be empty; @value holds one or more columns. */
static void print_row(FILE *out, const char *name, const char *value, const char *source,
		      const char *adds)
{
	fprintf(out, "    %-38s %s %-*s%s\n", name, value, *adds ? 50 : 0, source, adds);
}

static void print_head(FILE *out, const char *title, const char *value)
{
	fprintf(out, "  %s\n", title);
	print_row(out, "attribute", value, "source", "what the provider adds");
}

#define VALUE "%-40s"
#define EP_VALUES "%-20s %-20s %-8s"

/* Returns the initials of blank-separated words, which all differ; "-" for NULL. */
static const char *initials(const char *words, char *buf, size_t len)
{
	size_t used = 0;

	if (!words)
		return "-";
	for (; words && used + 2 < len; words = strchr(words, ' ')) {
		words += *words == ' ';
		if (used)
			buf[used++] = ' ';
		buf[used++] = *words;
	}
	buf[used] = '\0';
	return buf;
}

static const char *text_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

void caps_print_transport(FILE *out, const DAT_PROVIDER_ATTR *pa)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
		{ "OFI_ENDPOINT", "endpoints: msg, or connectionless rdm" },
		{ "OFI_FRAME_SIZE", "largest frame in bytes" },
		{ "OFI_GOODBYE", "DISCONNECTED and BROKEN distinguished" },
		{ "OFI_LOCAL", "peers on the same host reached by" },
		{ "OFI_RDMA", "RDMA executed by" },
		{ "OFI_RDMA_REFUSED", "refused RDMA completes with" },
		{ "OFI_WRITES_ORDERED", "sends ordered after RDMA writes" },
	};
	size_t i;

	fputs("  transport\n", out);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *value = dat_named_attr(pa, rows[i].name);

		if (value)
			fprintf(out, "    %-38s %s\n", rows[i].text, value);
	}
}

void caps_print(FILE *out, const char *title, const struct attr *attrs, int n, const void *base,
		const DAT_PROVIDER_ATTR *pa)
{
	char text[ATTR_TEXT_MAX], value[ATTR_TEXT_MAX];
	int i;

	snprintf(value, sizeof(value), VALUE, "value");
	print_head(out, title, value);
	for (i = 0; i < n; i++) {
		snprintf(value, sizeof(value), VALUE,
			 attr_text(&attrs[i], base, text, sizeof(text)));
		print_row(out, attrs[i].name, value,
			  text_or(attr_note(&attrs[i], "OFI_SOURCE", pa), "-"),
			  text_or(attr_note(&attrs[i], "OFI_ADDS", pa), ""));
	}
}

void caps_print_ep(FILE *out, const char *title, const DAT_IA_ATTR *ia, const DAT_EP_PARAM *ep,
		   const DAT_PROVIDER_ATTR *pa)
{
	char most[ATTR_TEXT_MAX], def[ATTR_TEXT_MAX], modify[16], values[2 * ATTR_TEXT_MAX + 32];
	int i;

	snprintf(values, sizeof(values), EP_VALUES, "limit", "default", "modify");
	print_head(out, title, values);
	for (i = 0; i < ep_nattrs; i++) {
		const struct attr *attr = &ep_attrs[i], *limit = limit_of(attr, pa);

		snprintf(values, sizeof(values), EP_VALUES,
			 limit ? attr_text(limit, ia, most, sizeof(most)) : "-",
			 ep ? attr_text(attr, ep, def, sizeof(def)) : "-",
			 initials(attr_note(attr, "OFI_MODIFY", pa), modify, sizeof(modify)));
		print_row(out, attr->name, values, text_or(attr_note(attr, "OFI_SOURCE", pa), "-"),
			  text_or(attr_note(attr, "OFI_ADDS", pa), ""));
	}
	fputs("    modify: by dat_ep_modify in U UNCONNECTED, R RESERVED, "
	      "P PASSIVE_CONNECTION_PENDING, T TENTATIVE_CONNECTION_PENDING\n", out);
}

/* --- JSON --------------------------------------------------------------- */

static void json_notes(struct json *j, const struct attr *attr, const DAT_PROVIDER_ATTR *pa)
{
	json_string(j, "source", attr_note(attr, "OFI_SOURCE", pa));
	json_string(j, "adds", attr_note(attr, "OFI_ADDS", pa));
}

void caps_json(struct json *j, const char *title, const struct attr *attrs, int n,
	       const void *base, const DAT_PROVIDER_ATTR *pa)
{
	int i;

	json_object(j, title);
	for (i = 0; i < n; i++) {
		json_object(j, attrs[i].name);
		attr_json(&attrs[i], "value", base, j);
		json_notes(j, &attrs[i], pa);
		json_end(j, '}');
	}
	json_end(j, '}');
}

/* Writes blank-separated words as an array. */
static void json_words(struct json *j, const char *name, const char *words)
{
	char copy[256], *word, *save;

	snprintf(copy, sizeof(copy), "%s", text_or(words, ""));
	json_array(j, name);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		json_string(j, NULL, word);
	json_end(j, ']');
}

void caps_json_ep(struct json *j, const char *title, const DAT_IA_ATTR *ia,
		  const DAT_EP_PARAM *ep, const DAT_PROVIDER_ATTR *pa)
{
	int i;

	json_object(j, title);
	for (i = 0; i < ep_nattrs; i++) {
		const struct attr *attr = &ep_attrs[i], *limit = limit_of(attr, pa);

		json_object(j, attr->name);
		json_string(j, "limit", limit ? limit->name : NULL);
		if (limit)
			attr_json(limit, "most", ia, j);
		if (ep)
			attr_json(attr, "default", ep, j);
		json_words(j, "modify", attr_note(attr, "OFI_MODIFY", pa));
		json_notes(j, attr, pa);
		json_end(j, '}');
	}
	json_end(j, '}');
}
