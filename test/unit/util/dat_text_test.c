/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* DAT values as text, with a dat_strerror() of the test. */
#include "dat_text.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

static DAT_RETURN answer;
static const char *major_text, *minor_text;

DAT_RETURN dat_strerror(DAT_RETURN ret, const char **major, const char **minor)
{
	*major = major_text;
	*minor = minor_text;
	return answer;
}

static const char *error(const char *major, const char *minor)
{
	static char buf[64];

	major_text = major;
	minor_text = minor;
	return dat_text_error((DAT_RETURN)0x80030007, buf, sizeof(buf));
}

Test(dat_text, unknown_error_is_a_number)
{
	answer = (DAT_RETURN)0x80000000;
	cr_expect_str_eq(error("DAT_X", "DAT_Y"), "DAT error 0x80030007");
}

Test(dat_text, error_without_a_name_is_a_number)
{
	cr_expect_str_eq(error(NULL, "DAT_Y"), "DAT error 0x80030007");
}

Test(dat_text, error_without_a_subtype)
{
	cr_expect_str_eq(error("DAT_X", ""), "DAT_X");
	cr_expect_str_eq(error("DAT_X", NULL), "DAT_X");
}

Test(dat_text, error_with_a_subtype)
{
	cr_expect_str_eq(error("DAT_X", "DAT_Y"), "DAT_X (DAT_Y)");
}

Test(dat_text, error_is_cut_to_its_buffer)
{
	char buf[8] = "1234567";

	major_text = "DAT_X";
	minor_text = "DAT_Y";
	cr_expect_eq(dat_text_error(0, buf, 6), (const char *)buf);
	cr_expect_str_eq(buf, "DAT_X");
	cr_expect_eq(buf[6], '7');
}

static const char *address(int family, const char *text)
{
	static char buf[64];
	struct sockaddr_in6 sa6 = { .sin6_family = (sa_family_t)family };
	struct sockaddr_in sa4 = { .sin_family = (sa_family_t)family };

	if (family == AF_INET6) {
		cr_assert_eq(inet_pton(AF_INET6, text, &sa6.sin6_addr), 1);
		return dat_text_address((struct sockaddr *)&sa6, buf, sizeof(buf));
	}
	cr_assert_eq(inet_pton(AF_INET, text, &sa4.sin_addr), 1);
	return dat_text_address((struct sockaddr *)&sa4, buf, sizeof(buf));
}

Test(dat_text, no_address)
{
	char buf[8];

	cr_expect_str_eq(dat_text_address(NULL, buf, sizeof(buf)), "?");
}

Test(dat_text, address_of_another_family)
{
	cr_expect_str_eq(address(AF_UNIX, "127.0.0.1"), "?");
}

Test(dat_text, address_that_does_not_fit)
{
	const struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { 0xffffffff } };
	char buf[8];

	cr_expect_str_eq(dat_text_address((const struct sockaddr *)&sa, buf, sizeof(buf)), "?");
}

Test(dat_text, addresses_of_both_families)
{
	cr_expect_str_eq(address(AF_INET, "192.0.2.255"), "192.0.2.255");
	cr_expect_str_eq(address(AF_INET6, "2001:db8::7"), "2001:db8::7");
}

/* The type of the strings is not const in 1.2, and const in 2.0. */
static char name_a[] = "a", value_a[] = "1", name_ab[] = "ab", value_ab[] = "2", value_last[] = "3";
static DAT_NAMED_ATTR named[] = {
	{ name_a, value_a }, { name_ab, value_ab }, { name_a, value_last },
};

static const char *value_of(const char *name, int count)
{
	DAT_PROVIDER_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	attr.num_provider_specific_attr = count;
	attr.provider_specific_attr = count ? named : NULL;
	return dat_named_attr(&attr, name);
}

Test(dat_text, attribute_of_none)
{
	cr_expect_null(value_of("a", 0));
}

Test(dat_text, attribute_by_its_whole_name)
{
	cr_expect_null(value_of("abc", 3));
	cr_expect_null(value_of("", 3));
	cr_expect_null(value_of("ab", 1));
	cr_expect_eq(value_of("ab", 3), (const char *)value_ab);
}

Test(dat_text, first_attribute_of_a_name)
{
	cr_expect_eq(value_of("a", 3), (const char *)value_a);
}
