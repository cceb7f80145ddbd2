/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The capabilities that datinfo shows. Built for each API version. */
#include "info_caps.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Replaces the library's function, which is not under test here. */
DAT_RETURN dat_strerror(DAT_RETURN ret, const char **major, const char **minor)
{
	*major = *minor = NULL;
	return ret;
}

static DAT_NAMED_ATTR named[] = {
	{ "OFI_PROVIDER", "tcp" },
	{ "OFI_ENDPOINT", "rdm" },
	{ "OFI_RDMA", "target" },
	{ "OFI_LOCAL", "shm" },
	{ "OFI_FRAME_SIZE", "4096" },
	{ "OFI_SOURCE:max_dto_per_ep", "tx_attr.size" },
	{ "OFI_ADDS:max_dto_per_ep", "slots" },
	{ "OFI_SOURCE:max_eps", "ep_cnt" },
	{ "OFI_LIMIT:ep_attr.max_recv_dtos", "max_dto_per_ep" },
	{ "OFI_MODIFY:ep_attr.max_recv_dtos", "UNCONNECTED RESERVED PASSIVE_CONNECTION_PENDING" },
	{ "OFI_LIMIT:ep_attr.max_request_dtos", "max_of_another_version" },
};

static DAT_PROVIDER_ATTR pa;
static DAT_IA_ATTR ia;
static DAT_EP_PARAM ep;
static char *text;
static size_t size;
static FILE *out;
static struct json json;

static void init(void)
{
	memset(&pa, 0, sizeof(pa));
	pa.num_provider_specific_attr = sizeof(named) / sizeof(named[0]);
	pa.provider_specific_attr = named;
	ia.max_dto_per_ep = 100;
	ia.max_eps = 7;
	ep.ep_attr.max_recv_dtos = 64;
	out = open_memstream(&text, &size);
	json.out = out;
}

static void fini(void)
{
	fclose(out);
	free(text);
}

TestSuite(caps, .init = init, .fini = fini);

/* The text has a line of these words and nothing else, with any blanks between them. */
static void has_line(const char *words)
{
	char line[512], squeezed[512], *to;
	const char *from, *end;

	fflush(out);
	for (from = text; (end = strchr(from, '\n')); from = end + 1) {
		snprintf(line, sizeof(line), "%.*s", (int)(end - from), from);
		to = squeezed;
		for (char *c = line + strspn(line, " "); *c; c++)
			if (*c != ' ' || (c[1] != ' ' && c[1]))
				*to++ = *c;
		*to = '\0';
		if (!strcmp(squeezed, words))
			return;
	}
	cr_assert_fail("no line \"%s\" in:\n%s", words, text);
}

Test(caps, notes_are_recognised)
{
	cr_assert(caps_is_note("OFI_SOURCE:max_eps"));
	cr_assert(caps_is_note("OFI_ADDS:max_eps"));
	cr_assert(caps_is_note("OFI_LIMIT:ep_attr.max_recv_dtos"));
	cr_assert(caps_is_note("OFI_MODIFY:pz_handle"));
	cr_assert_not(caps_is_note("OFI_PROVIDER"));
	cr_assert_not(caps_is_note("OFI_SOURCE"));
}

Test(caps, reported_properties_of_the_transport_are_printed)
{
	caps_print_transport(out, &pa);
	has_line("transport");
	has_line("endpoints: msg, or connectionless rdm rdm");
	has_line("RDMA executed by target");
	has_line("peers on the same host reached by shm");
	has_line("largest frame in bytes 4096");
	cr_expect_null(strstr(text, "behind writes"));
}

Test(caps, an_attribute_of_the_ia_is_a_line)
{
	caps_print(out, "IA", ia_attrs, ia_nattrs, &ia, &pa);
	has_line("IA");
	has_line("max_dto_per_ep 100 tx_attr.size slots");
	has_line("max_eps 7 ep_cnt");
	has_line("max_evds 0 -");
}

Test(caps, an_attribute_of_an_endpoint_has_the_limit_of_the_ia)
{
	caps_print_ep(out, "endpoints", &ia, &ep, &pa);
	has_line("ep_attr.max_recv_dtos 100 64 U R P -");
	has_line("ep_attr.max_request_dtos - 0 - -");
	has_line("pz_handle - - - -");
}

Test(caps, a_provider_that_makes_no_endpoint_shows_no_default)
{
	caps_print_ep(out, "endpoints", &ia, NULL, &pa);
	has_line("ep_attr.max_recv_dtos 100 - U R P -");
}

Test(caps, json_has_all_of_an_attribute)
{
	caps_json(&json, NULL, ia_attrs, ia_nattrs, &ia, &pa);
	has_line("\"max_dto_per_ep\": {");
	has_line("\"value\": 100,");
	has_line("\"source\": \"tx_attr.size\",");
	has_line("\"adds\": \"slots\"");
	has_line("\"adds\": null");
}

Test(caps, json_has_all_of_an_endpoints)
{
	caps_json_ep(&json, NULL, &ia, &ep, &pa);
	has_line("\"limit\": \"max_dto_per_ep\",");
	has_line("\"most\": 100,");
	has_line("\"default\": 64,");
	has_line("\"UNCONNECTED\",");
	has_line("\"PASSIVE_CONNECTION_PENDING\"");
}
