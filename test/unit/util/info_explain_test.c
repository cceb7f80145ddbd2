/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Explaining event numbers and return codes: every one in the recorded ABI, and other numbers. */
#include "info_explain.h"

#include "../recorded.h"

static char *text;
static size_t length;

static bool ask(const char *what)
{
	FILE *out = open_memstream(&text, &length);
	bool known;

	cr_assert(out);
	known = explain(out, what);
	fclose(out);
	return known;
}

static bool ask_number(DAT_UINT32 number)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%#x", (unsigned int)number);
	return ask(digits);
}

static bool has(const char *part)
{
	return strstr(text, part);
}

/* Checks that @name is explained, and prints @number in eight digits or five. */
static void check_name(const char *name, const char *format, DAT_UINT32 number)
{
	char wanted[16];

	snprintf(wanted, sizeof(wanted), format, (unsigned int)number);
	cr_expect(ask(name), "%s", name);
	cr_expect_eq(strncmp(text, wanted, strlen(wanted)), 0, "%s: %s", name, text);
	cr_expect(has(name), "%s: %s", name, text);
	cr_expect_not(has("note"), "%s: %s", name, text);
}

static void check_event(const char *name, DAT_UINT32 value)
{
	check_name(name, "0x%05x ", value);
	cr_expect(has("  data      "));
	cr_expect(has("  meaning   "));
	cr_expect(ask_number(value), "%s", name);
	cr_expect(has("event of "));
}

Test(info_explain, every_event)
{
	cr_expect_eq(each_recorded("dat_event_number", check_event),
		     DAT_VERSION_MAJOR >= 2 ? 22 : 17);
}

static void check_type(const char *name, DAT_UINT32 value)
{
	check_name(name, "0x%08x ", value ? value | DAT_CLASS_ERROR : 0);
	cr_expect(ask_number(value), "%s", name);
	cr_expect(has(name));
	cr_expect(ask_number(value | DAT_CLASS_WARNING) == !!value, "%s", name);
	cr_expect_not(ask_number(value | DAT_CLASS_ERROR | DAT_CLASS_WARNING), "%s", name);
}

Test(info_explain, every_type)
{
	cr_expect_eq(each_recorded("dat_return_type", check_type),
		     DAT_VERSION_MAJOR >= 2 ? 26 : 22);
}

static void check_subtype(const char *name, DAT_UINT32 value)
{
	DAT_UINT32 code;

	if (!value)
		return;
	cr_expect(ask(name), "%s", name);
	code = (DAT_UINT32)strtoul(text, NULL, 16);
	cr_expect_eq(DAT_GET_SUBTYPE(code), value, "%s: %s", name, text);
	cr_expect_neq(DAT_GET_TYPE(code), 0, "%s: %s", name, text);
	cr_expect_neq(code & DAT_CLASS_ERROR, 0, "%s: %s", name, text);
	cr_expect(has(name), "%s: %s", name, text);
	cr_expect_not(has("note"), "%s: %s", name, text);
	cr_expect(ask_number(code), "%s", name);
}

Test(info_explain, every_subtype)
{
	cr_expect_eq(each_recorded("dat_return_subtype", check_subtype),
		     DAT_VERSION_MAJOR >= 2 ? 104 : 102);
}

/* The public header has the names of the recorded ABI, too. */
static void check_public_event(const char *name, DAT_UINT32 value)
{
	/* two names have this number */
	if (strcmp(name, "DAT_IB_EXTENSION_RANGE_BASE"))
		cr_expect_str_eq(dat_event_name(value), name);
}

static void check_public_status(const char *name, DAT_UINT32 value)
{
	cr_expect_str_eq(dat_dto_status_name((DAT_DTO_COMPLETION_STATUS)value), name);
}

static void check_public_ep_state(const char *name, DAT_UINT32 value)
{
	cr_expect_str_eq(dat_ep_state_name((DAT_EP_STATE)value), name);
}

static void check_public_srq_state(const char *name, DAT_UINT32 value)
{
	cr_expect_str_eq(dat_srq_state_name((DAT_SRQ_STATE)value), name);
}

/* The second word of a reason's name is its object, except for DAT_SRQ_SOFT_..., which EPs have. */
static void check_public_reason(const char *name, DAT_UINT32 value)
{
	static const struct {
		const char *prefix;
		DAT_HANDLE_TYPE type;
	} objects[] = {
		{ "DAT_SRQ_SOFT_", DAT_HANDLE_TYPE_EP }, { "DAT_EP_", DAT_HANDLE_TYPE_EP },
		{ "DAT_IA_", DAT_HANDLE_TYPE_IA }, { "DAT_EVD_", DAT_HANDLE_TYPE_EVD },
		{ "DAT_SRQ_", DAT_HANDLE_TYPE_SRQ }, { "DAT_LMR_", DAT_HANDLE_TYPE_LMR },
		{ "DAT_RMR_", DAT_HANDLE_TYPE_RMR }, { "DAT_PZ_", DAT_HANDLE_TYPE_PZ },
	};
	size_t i = 0;

	while (strncmp(name, objects[i].prefix, strlen(objects[i].prefix)))
		i++;
	cr_expect_str_eq(dat_async_reason_name(objects[i].type, (DAT_COUNT)value), name);
}

Test(info_explain, the_public_header_has_every_name)
{
	static const char *const reasons[] = {
		"ia_async_error_reason", "ep_async_error_reason", "lmr_async_error_reason",
		"rmr_async_error_reason", "pz_async_error_reason",
		DAT_VERSION_MAJOR >= 2 ? "evd_async_error_reason" : "ep_evd_error_reason",
		DAT_VERSION_MAJOR >= 2 ? "srq_async_error_reason" : "ep_srq_error_reason",
	};
	size_t i;

	cr_expect(each_recorded("dat_event_number", check_public_event));
	cr_expect(each_recorded("dat_dto_completion_status", check_public_status));
	cr_expect(each_recorded("dat_ep_state", check_public_ep_state));
	cr_expect(each_recorded("dat_srq_state", check_public_srq_state));
	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		cr_expect(each_recorded(reasons[i], check_public_reason));
	cr_expect_str_eq(dat_event_name(2), "unknown value");
	cr_expect_str_eq(dat_ep_state_name((DAT_EP_STATE)99), "unknown value");
	cr_expect_str_eq(dat_async_reason_name(DAT_HANDLE_TYPE_CR, 0), "unknown value");
}

#if DAT_VERSION_MAJOR >= 2
static void check_public_operation(const char *name, DAT_UINT32 value)
{
	cr_expect_str_eq(dat_dto_name((DAT_DTOS)value), name);
}

Test(info_explain, the_public_header_has_the_names_of_version_2)
{
	cr_expect_eq(each_recorded("dat_dtos", check_public_operation), 9);
	cr_expect(each_recorded("dat_ib_event_number", check_public_event));
}
#endif

static void check_value(const char *name, DAT_UINT32 value)
{
	cr_expect(ask(name), "%s", name);
	cr_expect_eq(strtoul(text, NULL, 10), value, "%s: %s", name, text);
	cr_expect(has(name), "%s: %s", name, text);
	cr_expect(has("  meaning   "), "%s: %s", name, text);
	cr_expect(ask_number(value), "%s", name);
	cr_expect(has(name), "%s: %s", name, text);
}

Test(info_explain, every_value_of_a_field)
{
	const bool v2 = DAT_VERSION_MAJOR >= 2;

	cr_expect_eq(each_recorded("dat_dto_completion_status", check_value), v2 ? 13 : 12);
	cr_expect_eq(each_recorded("dat_ep_state", check_value), v2 ? 15 : 13);
	cr_expect_eq(each_recorded("dat_evd_state", check_value), 7);
	cr_expect_eq(each_recorded("dat_srq_state", check_value), v2 ? 3 : 2);
	cr_expect_eq(each_recorded("ia_async_error_reason", check_value), 2);
	cr_expect_eq(each_recorded("ep_async_error_reason", check_value), 3);
	cr_expect_eq(each_recorded(v2 ? "evd_async_error_reason" : "ep_evd_error_reason",
				   check_value), 2);
	cr_expect_eq(each_recorded(v2 ? "srq_async_error_reason" : "ep_srq_error_reason",
				   check_value), 3);
	cr_expect_eq(each_recorded("lmr_async_error_reason", check_value), 1);
	cr_expect_eq(each_recorded("rmr_async_error_reason", check_value), 1);
	cr_expect_eq(each_recorded("pz_async_error_reason", check_value), 1);
	cr_expect_eq(each_recorded("dat_dtos", check_value), v2 ? 9 : 0);
	cr_expect_eq(each_recorded("dat_ib_status", check_value), v2 ? 3 : 0);
}

Test(info_explain, values_of_one_number_are_apart)
{
	cr_expect(ask("1"));
	cr_expect(has("1           status of a completion event of "));
	cr_expect(has("\n\n1           ep_state of dat_ep_query and dat_ep_get_status of "));
	cr_expect_not(has("return code"));
}

Test(info_explain, event_has_its_data_and_meaning)
{
	cr_expect(ask("0x4006"));
	cr_expect(has("0x04006     event of "));
	cr_expect(has("  name      DAT_CONNECTION_EVENT_BROKEN\n"));
	cr_expect(has("  data      connect_event_data\n"));
	cr_expect(has("  meaning   The connection failed: "));
	cr_expect_not(has("return code"));
}

Test(info_explain, code_has_its_class_type_and_subtype)
{
	cr_expect(ask("DAT_INVALID_STATE_EP_CONNECTED"));
	cr_expect(has("  class     0x80000000  error: the call failed\n"));
	cr_expect(
		has("  type      0x00070000  DAT_INVALID_STATE: The state of the object does not"));
	cr_expect(has("  subtype   0x000000"));
	cr_expect(has("  DAT_INVALID_STATE_EP_CONNECTED: The EP is connected.\n"));
	cr_expect(has(DAT_VERSION_MAJOR >= 2 ? "0x80070033  return code of DAT 2.0\n" :
					       "0x80070032  return code of uDAPL 1.2\n"));
}

Test(info_explain, success)
{
	cr_expect(ask("0"));
	cr_expect(has("  class     0x00000000  success\n"));
	cr_expect(has("  type      0x00000000  DAT_SUCCESS: "));
}

Test(info_explain, code_without_a_class)
{
	cr_expect(ask("0xd0000"));
	cr_expect(has("DAT_QUEUE_EMPTY"));
	cr_expect(has("  class     0x00000000  none: the call failed nevertheless\n"));
	cr_expect(has("  subtype   0x00000000  none\n"));
}

Test(info_explain, event_whose_number_is_a_type_and_subtype)
{
	cr_expect(ask("0x10001"));
	cr_expect(has("DAT_SOFTWARE_EVENT"));
	cr_expect_not(has("return code of"));
}

Test(info_explain, subtype_of_another_type)
{
	cr_expect(ask_number(DAT_CLASS_ERROR | DAT_QUEUE_FULL | DAT_INVALID_ARG1));
	cr_expect(
		has("  note      This subtype belongs to DAT_INVALID_PARAMETER; the code may be"));
}

Test(info_explain, numbers_as_programs_print_them)
{
	cr_expect(ask("16390"));
	cr_expect(has("DAT_CONNECTION_EVENT_BROKEN"));
	cr_expect(ask("0X04006"));
	cr_expect(has("DAT_CONNECTION_EVENT_BROKEN"));
	cr_expect(ask("-2147024896"));
	cr_expect(has("0x80070000  return code of "));
	cr_expect(ask("dat_connection_event_broken"));
	cr_expect(has("0x04006 "));
}

Test(info_explain, neither)
{
	static const char *const none[] = {
		"", "-", "0x", "x", "0xg", "4003", "010001", "0x4003x", " 0x4003", "0x4003 ", "+1",
		"0x4009", "0x80000000", "0x40000000", "0x80000001", "0xffffffff",
		"0x100000000", "-2147483649", "99999999999999999999", "DAT",
		"DAT_", "DAT_NO_SUBTYPE",
		"DAT_CONNECTION_EVENT", "DAT_CONNECTION_EVENT_BROKEN ", "CONNECTION_EVENT_BROKEN",
		"unknown subtype", "unknown type",
	};
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		cr_expect_not(ask(none[i]), "\"%s\"", none[i]);
		cr_expect_str_empty(text, "\"%s\"", none[i]);
	}
}

#if DAT_VERSION_MAJOR >= 2
Test(info_explain, number_of_an_event_and_a_code)
{
	cr_expect(ask("0x20000"));
	cr_expect(has("DAT_EXTENSION_EVENT"));
	cr_expect(has("\n\n0x00020000  return code of "));
	cr_expect(has("DAT_CONN_QUAL_IN_USE"));
}

Test(info_explain, extension)
{
	cr_expect(ask("DAT_IB_COLLECTIVE_ERR"));
	cr_expect(has("0x90000001  return code of DAT 2.0\n"));
	cr_expect(has("  type      0x10000000  DAT_EXTENSION_BASE: "));
	cr_expect(has("  subtype   0x00000001  DAT_IB_COLLECTIVE_ERR\n"));
	cr_expect_not(ask("0x90000002"));
	cr_expect(ask("DAT_IB_DTO_EVENT"));
	cr_expect(has("0x40000 "));
}
#else
Test(info_explain, no_code_of_the_later_version)
{
	cr_expect_not(ask("DAT_HA_DOWN_TO_1"));
	cr_expect_not(ask("0x8101"));
	cr_expect_not(ask("DAT_INVALID_HANDLE_CSP"));
	cr_expect_not(ask("DAT_RESERVED_LMR"));
	cr_expect_not(ask("DAT_IB_ERR"));
}
#endif
