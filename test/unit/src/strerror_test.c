/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dat_strerror: each code in the recorded ABI of this version has its own name.
 *
 * The codes come from test/abi and not from the headers, so the test finds one that the library
 * lacks.
 */

#include "../recorded.h"

#define UNKNOWN (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1)

static const char *major, *minor;

static DAT_RETURN text(DAT_RETURN code)
{
	major = minor = NULL;
	return dat_strerror(code, &major, &minor);
}

static void check_type(const char *name, DAT_RETURN value)
{
	cr_expect_eq(text(value), DAT_SUCCESS, "%s", name);
	cr_expect_str_eq(major, name);
#if DAT_VERSION_MAJOR >= 2
	if (value == DAT_EXTENSION_BASE) {
		cr_expect_str_eq(minor, "DAT_IB_ERR");
		return;
	}
#endif
	cr_expect_str_eq(minor, "");
	cr_expect_eq(text(value | DAT_CLASS_ERROR), DAT_SUCCESS, "%s", name);
	cr_expect_str_eq(major, name);
	cr_expect_eq(text(value | DAT_CLASS_WARNING), DAT_SUCCESS, "%s", name);
	cr_expect_str_eq(major, name);
}

Test(strerror, every_type)
{
	cr_expect_eq(each_recorded("dat_return_type", check_type),
		     DAT_VERSION_MAJOR >= 2 ? 26 : 22);
}

static void check_subtype(const char *name, DAT_RETURN value)
{
	cr_expect_eq(text(DAT_CLASS_ERROR | DAT_INVALID_STATE | value), DAT_SUCCESS, "%s", name);
	cr_expect_str_eq(major, "DAT_INVALID_STATE");
	cr_expect_str_eq(minor, value ? name : "");
}

Test(strerror, every_subtype)
{
	cr_expect_eq(each_recorded("dat_return_subtype", check_subtype),
		     DAT_VERSION_MAJOR >= 2 ? 104 : 102);
}

Test(strerror, unknown_subtype_keeps_the_type)
{
	cr_expect_eq(text(DAT_CLASS_ERROR | DAT_INVALID_STATE | 0x7fff), UNKNOWN);
	cr_expect_str_eq(major, "DAT_INVALID_STATE");
	cr_expect_str_eq(minor, "unknown subtype");
	cr_expect_eq(text(DAT_THREAD_SAFETY_NOT_FOUND + 1), UNKNOWN);
}

Test(strerror, unknown_type)
{
	cr_expect_eq(text(DAT_CLASS_ERROR | 0x00770000 | DAT_RESOURCE_MEMORY), UNKNOWN);
	cr_expect_str_eq(major, "unknown type");
	cr_expect_str_eq(minor, "DAT_RESOURCE_MEMORY");
	cr_expect_eq(text(0xffffffff), UNKNOWN);
}

Test(strerror, null_arguments)
{
	cr_expect_eq(dat_strerror(DAT_SUCCESS, NULL, &minor),
		     DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	cr_expect_eq(dat_strerror(DAT_ABORT, &major, NULL), DAT_SUCCESS);
	cr_expect_str_eq(major, "DAT_ABORT");
}

#if DAT_VERSION_MAJOR >= 2
Test(strerror, extension_codes)
{
	cr_expect_eq(text(DAT_CLASS_ERROR | (DAT_RETURN)DAT_IB_COLLECTIVE_ERR), DAT_SUCCESS);
	cr_expect_str_eq(minor, "DAT_IB_COLLECTIVE_ERR");
	cr_expect_eq(text(DAT_CLASS_ERROR | 0x10000002), UNKNOWN);
	cr_expect_str_eq(major, "DAT_EXTENSION_BASE");
}
#endif
