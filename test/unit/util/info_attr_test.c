/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datinfo's attribute tables. Built for each API version. */
#include "info_attr.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

/* Replaces the library's function, which is not under test here. */
DAT_RETURN dat_strerror(DAT_RETURN ret, const char **major, const char **minor)
{
	*major = ret == 1 ? "MAJOR" : NULL;
	*minor = "MINOR";
	return ret == 1 ? DAT_SUCCESS : DAT_INVALID_PARAMETER;
}

/*
 * No member is missing from a table: each begins at the end of the one before it, except for
 * alignment.
 */
static void no_gaps(const struct attr *attrs, int n, size_t end)
{
	size_t at = 0;
	int i;

	for (i = 0; i < n; i++) {
		size_t align = attrs[i].size % 8 ? 4 : 8;

		cr_assert_geq(attrs[i].offset, at, "%s", attrs[i].name);
		cr_assert_lt(attrs[i].offset - at, align, "before %s", attrs[i].name);
		at = attrs[i].offset + attrs[i].size;
	}
	cr_assert_leq(at, end);
	cr_assert_lt(end - at, 8, "something is missing at the end");
}

/* The arrays of named attributes are shown separately, so they are not in the table. */
Test(attr, every_ia_attribute_is_listed)
{
	cr_assert_str_eq(ia_attrs[ia_nattrs - 2].name, "num_transport_attr");
	no_gaps(ia_attrs, ia_nattrs - 1, offsetof(DAT_IA_ATTR, transport_attr));
	cr_assert_str_eq(ia_attrs[ia_nattrs - 1].name, "num_vendor_attr");
}

Test(attr, every_provider_attribute_is_listed)
{
	no_gaps(provider_attrs, provider_nattrs,
		offsetof(DAT_PROVIDER_ATTR, provider_specific_attr));
}

Test(attr, every_endpoint_attribute_is_listed)
{
	no_gaps(ep_attrs, ep_nattrs, sizeof(DAT_EP_PARAM));
}

static const struct attr *find(const struct attr *attrs, int n, const char *name)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(attrs[i].name, name))
			return &attrs[i];
	cr_assert_fail("no attribute %s", name);
	return NULL;
}

static const char *ia_text(const DAT_IA_ATTR *attr, const char *name)
{
	static char buf[ATTR_TEXT_MAX];

	return attr_text(find(ia_attrs, ia_nattrs, name), attr, buf, sizeof(buf));
}

static const char *provider_text(const DAT_PROVIDER_ATTR *attr, const char *name)
{
	static char buf[ATTR_TEXT_MAX];

	return attr_text(find(provider_attrs, provider_nattrs, name), attr, buf, sizeof(buf));
}

Test(attr, numbers_keep_their_width_and_sign)
{
	DAT_IA_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	attr.max_lmr_virtual_address = UINT64_MAX;
	attr.max_evds = -2;
	attr.max_message_size = 0xffffffff;
	cr_assert_str_eq(ia_text(&attr, "max_lmr_virtual_address"), "18446744073709551615");
	cr_assert_str_eq(ia_text(&attr, "max_evds"), "-2");
	cr_assert_str_eq(ia_text(&attr, "max_message_size"), "4294967295");
}

Test(attr, unterminated_name_stays_within_its_array)
{
	DAT_IA_ATTR attr;

	memset(&attr, 'x', sizeof(attr));
	cr_assert_eq(strlen(ia_text(&attr, "adapter_name")), sizeof(attr.adapter_name));
}

Test(attr, addresses_are_numeric)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr other = { .sa_family = AF_UNIX };
	DAT_IA_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	cr_assert_str_eq(ia_text(&attr, "ia_address_ptr"), "?");
	inet_pton(AF_INET, "192.0.2.7", &in.sin_addr);
	attr.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&in;
	cr_assert_str_eq(ia_text(&attr, "ia_address_ptr"), "192.0.2.7");
	in6.sin6_addr = in6addr_loopback;
	attr.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&in6;
	cr_assert_str_eq(ia_text(&attr, "ia_address_ptr"), "::1");
	attr.ia_address_ptr = (DAT_IA_ADDRESS_PTR)&other;
	cr_assert_str_eq(ia_text(&attr, "ia_address_ptr"), "?");
}

Test(attr, flags_are_spelled_out_with_the_rest_in_hexadecimal)
{
	DAT_PROVIDER_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	cr_assert_str_eq(provider_text(&attr, "completion_flags_supported"), "default");
	attr.completion_flags_supported = DAT_COMPLETION_SUPPRESS_FLAG |
					  DAT_COMPLETION_BARRIER_FENCE_FLAG | 0x100;
	cr_assert_str_eq(provider_text(&attr, "completion_flags_supported"),
			 "suppress, barrier fence, 0x100");
}

Test(attr, unknown_enumerator_is_a_number)
{
	DAT_PROVIDER_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	attr.ep_creator = (DAT_EP_CREATOR_FOR_PSP)42;
	cr_assert_str_eq(provider_text(&attr, "ep_creator"), "42");
}

Test(attr, merging_matrix_is_all_or_its_rows)
{
	DAT_PROVIDER_ATTR attr;
	DAT_BOOLEAN m[6][6];
	int i;

	for (i = 0; i < 36; i++)
		m[i / 6][i % 6] = DAT_TRUE;
	memset(&attr, 0, sizeof(attr));
	memcpy((void *)attr.evd_stream_merging_supported, m, sizeof(m));
	cr_assert_str_eq(provider_text(&attr, "evd_stream_merging_supported"), "all");
	m[0][5] = m[5][0] = DAT_FALSE;
	memcpy((void *)attr.evd_stream_merging_supported, m, sizeof(m));
	cr_assert_str_eq(provider_text(&attr, "evd_stream_merging_supported"),
			 "111110 111111 111111 111111 111111 011111");
}

Test(attr, source_is_what_the_provider_names)
{
	DAT_NAMED_ATTR named[] = {
		{ "OFI_PROVIDER", "tcp" },
		{ "OFI_SOURCE:max_eps", "ep_cnt" },
	};
	DAT_PROVIDER_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	attr.num_provider_specific_attr = 2;
	attr.provider_specific_attr = named;
	cr_assert_str_eq(attr_note(find(ia_attrs, ia_nattrs, "max_eps"), "OFI_SOURCE", &attr),
			 "ep_cnt");
	cr_assert_null(attr_note(find(ia_attrs, ia_nattrs, "max_evds"), "OFI_SOURCE", &attr));
	cr_assert_str_eq(dat_named_attr(&attr, "OFI_PROVIDER"), "tcp");
	cr_assert_null(dat_named_attr(&attr, "OFI"));
}

Test(dat_text, error_without_a_name_is_a_number)
{
	char buf[64];

	cr_assert_str_eq(dat_text_error(1, buf, sizeof(buf)), "MAJOR (MINOR)");
	cr_assert_str_eq(dat_text_error(0x123, buf, sizeof(buf)), "DAT error 0x123");
}
