/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints the settings of this provider, which reports them as named attributes. */
#include "info_settings.h"

#include <string.h>
#include <unistd.h>

static const char prefix[] = "OFI_SETTING:";

enum { UNIT, ORIGIN, HELP, VALUE, FIELDS };

struct setting {
	const char *name;
	char field[FIELDS][512];
};

bool setting_is(const char *name)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/* Fields are separated by tabs; the last field may contain tabs. */
static bool setting_parse(const DAT_NAMED_ATTR *attr, struct setting *s)
{
	const char *text = attr->value;
	int i;

	if (!setting_is(attr->name))
		return false;
	s->name = attr->name + strlen(prefix);
	for (i = 0; i < FIELDS; i++) {
		size_t len = i == VALUE ? strlen(text) : strcspn(text, "\t");

		snprintf(s->field[i], sizeof(s->field[i]), "%.*s", (int)len, text);
		text += len;
		text += *text == '\t';
	}
	return true;
}

bool settings_reported(const DAT_PROVIDER_ATTR *pa)
{
	int i;

	for (i = 0; i < pa->num_provider_specific_attr; i++)
		if (setting_is(pa->provider_specific_attr[i].name))
			return true;
	return false;
}

static void line_print(FILE *out, const char *name, const char *value, const char *unit,
		       const char *origin, const char *meaning)
{
	fprintf(out, "%-26s %-10s %-6s %-13s %s\n", name, value, unit, origin, meaning);
}

void settings_print(FILE *out, const DAT_PROVIDER_ATTR *pa)
{
	struct setting s;
	int i;

	line_print(out, "setting", "value", "unit", "origin", "meaning");
	for (i = 0; i < pa->num_provider_specific_attr; i++)
		if (setting_parse(&pa->provider_specific_attr[i], &s))
			line_print(out, s.name, s.field[VALUE], s.field[UNIT], s.field[ORIGIN],
				   s.field[HELP]);
}

/* The rows of @pa have all settings: the setting of the variable @name, or false. */
static bool setting_find(const DAT_PROVIDER_ATTR *pa, const char *name, struct setting *s)
{
	int i;

	for (i = 0; i < pa->num_provider_specific_attr; i++)
		if (setting_parse(&pa->provider_specific_attr[i], s) && !strcmp(s->name, name))
			return true;
	return false;
}

void settings_judge(const DAT_PROVIDER_ATTR *pa, char *text, size_t len)
{
	static const char ours[] = "DAT_OFI_";
	size_t used = 0;
	char name[64];
	struct setting s;
	char **e;

	text[0] = '\0';
	for (e = environ; e && *e && used < len; e++) {
		if (strncmp(*e, ours, strlen(ours)))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
		if (!setting_find(pa, name, &s))
			used += (size_t)snprintf(text + used, len - used, "%s%s is no setting",
						 used ? "; " : "", name);
		else if (!strcmp(s.field[ORIGIN], "default"))
			used += (size_t)snprintf(text + used, len - used,
						 "%s%s is no valid value: %s counts",
						 used ? "; " : "", *e, s.field[VALUE]);
	}
}

void settings_json(struct json *j, const DAT_PROVIDER_ATTR *pa)
{
	struct setting s;
	int i;

	for (i = 0; i < pa->num_provider_specific_attr; i++) {
		if (!setting_parse(&pa->provider_specific_attr[i], &s))
			continue;
		json_object(j, NULL);
		json_string(j, "name", s.name);
		json_string(j, "value", s.field[VALUE]);
		json_string(j, "unit", s.field[UNIT]);
		json_string(j, "origin", s.field[ORIGIN]);
		json_string(j, "help", s.field[HELP]);
		json_end(j, '}');
	}
}
