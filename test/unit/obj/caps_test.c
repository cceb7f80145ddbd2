/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of the capability table: none is missing, and dat_ofi(7) describes each. */

#include "obj/fixture.h"

#include "obj/caps.h"
#include "obj/ep/ep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(caps);

#define each_row(row) (row) = dofi_caps; (row) < dofi_caps + dofi_n_caps; (row)++

static const struct {
	uint64_t fields;	/* all bits of a query mask */
	size_t size;		/* of the attribute structure */
} whole[] = {
	[DOFI_CAP_IA] = { DAT_IA_FIELD_ALL, sizeof(DAT_IA_ATTR) },
	[DOFI_CAP_PROVIDER] = { DAT_PROVIDER_FIELD_ALL, sizeof(DAT_PROVIDER_ATTR) },
	[DOFI_CAP_EP] = { DAT_EP_FIELD_ALL, sizeof(DAT_EP_ATTR) },
};

Test(caps, every_bit_of_every_mask_has_its_row)
{
	uint64_t found[] = { 0, 0, 0 };
	const struct dofi_cap *row;
	int of;

	for (each_row(row)) {
		cr_expect(!(row->field & (row->field - 1)), "%s is of several bits", row->name);
		cr_expect(!(found[row->of] & row->field), "%s has the bit of another", row->name);
		found[row->of] |= row->field;
	}
	for (of = DOFI_CAP_IA; of <= DOFI_CAP_EP; of++)
		cr_expect_eq(found[of], whole[of].fields, "%#" PRIx64,
			     found[of] ^ whole[of].fields);
}

/* The rows of a structure are in its order and leave no gap that could be a member. */
Test(caps, every_member_has_its_row)
{
	size_t end[] = { 0, 0, 0 };
	const struct dofi_cap *row;
	int of;

	for (each_row(row)) {
		if (!row->size)
			continue;
		cr_expect(row->offset >= end[row->of], "%s", row->name);
		cr_expect(row->offset - end[row->of] < sizeof(uint64_t), "before %s", row->name);
		end[row->of] = row->offset + row->size;
	}
	for (of = DOFI_CAP_IA; of <= DOFI_CAP_EP; of++)
		cr_expect(whole[of].size - end[of] < sizeof(uint64_t));
}

Test(caps, a_row_is_found_by_its_bit)
{
	const struct dofi_cap *row;

	for (each_row(row))
		cr_expect_eq(dofi_caps_row(row->of, row->field), row);
	cr_expect(!dofi_caps_row(DOFI_CAP_EP, (uint64_t)1 << 63));
}

Test(caps, the_prefixes_stand_before_the_names)
{
	static const char *const prefix[] = { "OFI_SOURCE:", "OFI_ADDS:", "OFI_LIMIT:",
					      "OFI_MODIFY:" };
	const struct dofi_cap *row;
	char name[96];
	int i;

	for (each_row(row)) {
		for (i = 0; i < DOFI_NAMED_KINDS; i++) {
			snprintf(name, sizeof(name), "%s%s", prefix[i], row->name);
			cr_expect_str_eq(row->named[i], name);
		}
	}
}

Test(caps, states_are_called_by_their_names)
{
	const struct dofi_cap *row;
	char words[256];
	int state;

	for (each_row(row)) {
		if (!row->when)
			continue;
		words[0] = 0;
		for (state = 0; state < 32; state++) {
			if (!(row->when->bits & (1u << state)))
				continue;
			snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
				 words[0] ? " " : "", dofi_ep_states[state].name);
		}
		cr_expect_eq(strlen(words), strlen(row->when->words), "%s", row->name);
		for (state = 0; state < 32; state++)
			if (row->when->bits & (1u << state))
				cr_expect(strstr(row->when->words, dofi_ep_states[state].name),
					  "%s", row->name);
	}
}

Test(caps, limits_are_numbers_of_the_ia)
{
	const struct dofi_cap *row, *limit;

	for (each_row(row)) {
		if (!row->limit)
			continue;
		limit = dofi_caps_row(DOFI_CAP_IA, row->limit);
		cr_assert(limit && !limit->fill, "%s", row->name);
		cr_expect_eq(limit->size, row->size, "%s", row->name);
	}
}

/* The text of dat_ofi(7) */

#if DAT_VERSION_MAJOR >= 2

static void render_most(FILE *out, const struct dofi_cap *row)
{
	if (row->word)
		fprintf(out, "%s.Dv %s .\n", row->from_size || row->where ? "At most\n" : "",
			row->word);
	else if (row->most == UINT64_MAX || row->most == (dofi_seg_length)-1)
		fputs("At most what its type holds.\n", out);
	else if (row->from_size)
		fprintf(out, "At most %" PRIu64 ".\n", row->most);
	else
		fprintf(out, "%" PRIu64 ".\n", row->most);
}

/* Writes the states by their initials, as datinfo shows them. */
static void render_states(FILE *out, const char *words)
{
	fputs("Modified in", out);
	for (; words; words = strchr(words, ' ')) {
		words += *words == ' ';
		fprintf(out, " %c", *words);
	}
	fputs(".\n", out);
}

static bool has_most(const struct dofi_cap *row)
{
	if (row->word)
		return true;
	return row->size && !row->fill && !row->take &&
	       !(row->from_size && row->most == UINT64_MAX);
}

static void render_row(FILE *out, const struct dofi_cap *row)
{
	fprintf(out, ".It Fa %s\n", row->name);
	if (row->source)
		fprintf(out, "From %s.\n", row->source);
	if (row->limit)
		fprintf(out, "At most\n.Fa %s .\n", dofi_caps_row(DOFI_CAP_IA, row->limit)->name);
	else if (has_most(row))
		render_most(out, row);
	if (row->limit && row->def == UINT64_MAX)
		fputs("Default: all of that.\n", out);
	else if (row->limit)
		fprintf(out, "Default %" PRIu64 ".\n", row->def);
	if (row->adds)
		fprintf(out, "Provider: %s.\n", row->adds);
	if (row->when)
		render_states(out, row->when->words);
	else if (row->of == DOFI_CAP_EP)
		fputs("Never modified.\n", out);
}

static void render(FILE *out)
{
	static const char *const title[] = { "The IA", "The provider", "An endpoint" };
	const struct dofi_cap *row;
	int of = -1;

	for (each_row(row)) {
		if ((int)row->of != of) {
			if (of >= 0)
				fputs(".El\n.Pp\n", out);
			of = row->of;
			fprintf(out, "%s:\n.Bl -tag -width Ds\n", title[of]);
		}
		render_row(out, row);
	}
	fputs(".El\n", out);
}

/* The page from the line after @begin to the line before @end. */
static char *part_of_page(const char *begin, const char *end)
{
	const char *top = getenv("top_srcdir");
	char path[4096], *text = calloc(1, 1 << 18), *from, *to;
	FILE *in;

	snprintf(path, sizeof(path), "%s/man/man7/dat_ofi.7", top ? top : ".");
	in = fopen(path, "r");
	cr_assert(in && text, "%s", path);
	cr_expect(fread(text, 1, (1 << 18) - 1, in));
	fclose(in);
	from = strstr(text, begin);
	to = strstr(text, end);
	cr_assert(from && to, "no capability table");
	*to = 0;
	memmove(text, from + strlen(begin), strlen(from + strlen(begin)) + 1);
	return text;
}

#define TABLE_NOW "dat_ofi.7.table"

Test(caps, the_manual_page_has_the_table_as_it_is)
{
	char *page = part_of_page(".\\\" the capability table\n", ".\\\" its end\n");
	char *now = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&now, &size);

	render(out);
	fclose(out);
	if (strcmp(page, now)) {
		out = fopen(TABLE_NOW, "w");
		fputs(now, out);
		fclose(out);
	}
	cr_expect(!strcmp(page, now),
		  "put " TABLE_NOW " in the place of the table in man/man7/dat_ofi.7");
	free(page);
	free(now);
}

#endif
