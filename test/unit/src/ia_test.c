/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opening and closing IAs, with a registry that is part of this program: the requests to it,
 * that each use is released exactly once, and the live objects after a failure.
 */

#include "handles.h"

#include "registry.h"

#include <stdarg.h>
#include <string.h>

#define IA	NTH(1)
#define ASYNC	NTH(2)
#define FOREIGN	NTH(3)	/* an EVD of another IA */
#define OTHER	NTH(4)	/* the IA of FOREIGN */
#define FAILED	DREG_ERR(DAT_INTERNAL_ERROR, 0)

/*
 * The registry
 */

struct dreg_use {
	DAT_IA_HANDLE ia;	/* while attached */
	int held;
};

static DAT_PROVIDER table;
static struct dreg_use the_use;
static DAT_RETURN none_because;	/* returned by dreg_use_get() */
static struct dreg_request asked;
static char trace[256];

DAT_RETURN dreg_use_get(const struct dreg_request *request, struct dreg_use **use)
{
	strcat(trace, "get ");
	asked = *request;
	if (none_because != DAT_SUCCESS)
		return none_because;
	the_use.held++;
	*use = &the_use;
	return DAT_SUCCESS;
}

void dreg_use_put(struct dreg_use *use)
{
	strcat(trace, "put ");
	use->held--;
}

const DAT_PROVIDER *dreg_use_provider(const struct dreg_use *use)
{
	return &table;
}

const char *dreg_use_origin(const struct dreg_use *use)
{
	return "dat.conf:7";
}

void dreg_use_attach(struct dreg_use *use, DAT_IA_HANDLE ia)
{
	strcat(trace, "attach ");
	use->ia = ia;
}

struct dreg_use *dreg_use_detach(DAT_IA_HANDLE ia)
{
	strcat(trace, "detach ");
	if (the_use.ia != ia)
		return NULL;
	the_use.ia = NULL;
	return &the_use;
}

/*
 * The provider
 */

static char name[] = "fake";
static DAT_RETURN outcome;
static DAT_COUNT got_qlen;
static DAT_CLOSE_FLAGS got_flags;
static DAT_EVD_HANDLE queried;

static DAT_RETURN ia_open(const DAT_NAME_PTR as, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia)
{
	strcat(trace, "open ");
	cr_expect_str_eq(as, name);
	got_qlen = qlen;
	if (outcome != DAT_SUCCESS)
		return outcome;
	if (*evd == DAT_HANDLE_NULL)
		*evd = ASYNC;
	*ia = IA;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	strcat(trace, "close ");
	cr_expect_eq(ia, IA);
	got_flags = flags;
	return outcome;
}

/* Another thread opens an IA at this address before the close returns. */
static DAT_RETURN ia_close_reused(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	enter(IA, DAT_HANDLE_TYPE_IA, &table, IA, 0);
	return ia_close(ia, flags);
}

#if DAT_VERSION_MAJOR >= 2
static DAT_EXTENSION extension = DAT_EXTENSION_NONE;
#endif

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK mask,
			   DAT_IA_ATTR *attr, DAT_PROVIDER_ATTR_MASK pmask,
			   DAT_PROVIDER_ATTR *pattr)
{
#if DAT_VERSION_MAJOR >= 2
	if (attr)
		attr->extension_supported = extension;
#else
#endif
	if (evd)
		*evd = queried;
	return outcome;
}

static void set_up(void)
{
	table.ia_open_func = ia_open;
	table.ia_close_func = ia_close;
	table.ia_query_func = ia_query;
	enter(OTHER, DAT_HANDLE_TYPE_IA, &table, OTHER, 0);
	enter(FOREIGN, DAT_HANDLE_TYPE_EVD, &table, OTHER, 0);
}

TestSuite(ia, .init = set_up);

static DAT_RETURN open_with(DAT_EVD_HANDLE *evd, DAT_IA_HANDLE *ia)
{
	return dat_ia_openv(name, 33, evd, ia, 5, 6, DAT_TRUE);
}

/* Opens an IA and clears the trace. */
static void opened(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	cr_assert_eq(open_with(&evd, &ia), DAT_SUCCESS);
	trace[0] = '\0';
}

/*
 * Opening
 */

Test(ia, bad_arguments_are_refused_before_a_library_is_loaded)
{
	char long_name[DAT_NAME_MAX_LENGTH];
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	memset(long_name, 'x', sizeof(long_name));
	cr_expect_eq(dat_ia_openv(NULL, 8, &evd, &ia, 1, 2, DAT_FALSE), DREG_BAD_ARG(1));
	cr_expect_eq(dat_ia_openv(long_name, 8, &evd, &ia, 1, 2, DAT_FALSE), DREG_BAD_ARG(1));
	cr_expect_eq(open_with(NULL, &ia), DREG_BAD_ARG(3));
	cr_expect_eq(open_with(&evd, NULL), DREG_BAD_HANDLE(IA));
	cr_expect_str_eq(trace, "");
}

Test(ia, longest_name_is_asked_for)
{
	char long_name[DAT_NAME_MAX_LENGTH];
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	none_because = DREG_ERR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	cr_expect_eq(dat_ia_openv(long_name, 8, &evd, &ia, 1, 2, DAT_FALSE), none_because);
	cr_expect_eq(asked.name, (const char *)long_name);
}

Test(ia, request_is_what_the_program_wants)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	cr_expect_eq(open_with(&evd, &ia), DAT_SUCCESS);
	cr_expect_eq(asked.name, (const char *)name);
	cr_expect_eq(asked.major, 5);
	cr_expect_eq(asked.minor, 6);
	cr_expect(asked.threadsafe);
	cr_expect_eq(got_qlen, 33);
}

Test(ia, without_a_provider_nothing_is_opened)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = NTH(9);

	none_because = DREG_ERR(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
	cr_expect_eq(open_with(&evd, &ia), none_because);
	cr_expect_str_eq(trace, "get ");
	cr_expect_eq(ia, NTH(9));
}

Test(ia, failed_open_gives_the_use_back)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	outcome = FAILED;
	cr_expect_eq(open_with(&evd, &ia), FAILED);
	cr_expect_str_eq(trace, "get open put ");
	cr_expect_eq(the_use.held, 0);
}

/* The entry of dat.conf is named, but only if the program's arguments are not the reason. */
Test(ia, refused_entry_is_reported)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	outcome = DREG_ERR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	open_with(&evd, &ia);
	cr_expect_eq(errors_logged, 0);
	outcome = DREG_ERR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	cr_expect_eq(open_with(&evd, &ia), outcome);
	cr_expect_eq(errors_logged, 1);
}

Test(ia, provider_that_opens_nothing_is_not_implemented)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	table.ia_open_func = NULL;
	cr_expect_eq(open_with(&evd, &ia), DREG_NOT_IMPLEMENTED);
	cr_expect_eq(the_use.held, 0);
}

/* There is room for @room handles. An open needs two: the IA's and the EVD's. */
static void open_without_room(int room)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = NTH(9);

	adds_left = room;
	cr_expect_eq(open_with(&evd, &ia), DREG_NO_MEMORY);
	cr_expect_str_eq(trace, "get open close put ");
	cr_expect_eq(got_flags, DAT_CLOSE_ABRUPT_FLAG);
	cr_expect_eq(the_use.held, 0);
	cr_expect_eq(evd, DAT_HANDLE_NULL);
	cr_expect_eq(ia, NTH(9));
	cr_expect(!is_live(IA));
	cr_expect(!is_live(ASYNC));
}

Test(ia, ia_without_room_is_closed_again)
{
	open_without_room(0);
}

Test(ia, evd_without_room_closes_its_ia_again)
{
	open_without_room(1);
}

Test(ia, opened_ia_owns_itself_and_its_evd)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	cr_expect_eq(open_with(&evd, &ia), DAT_SUCCESS);
	cr_expect_str_eq(trace, "get open attach ");
	cr_expect_eq(ia, IA);
	cr_expect_eq(evd, ASYNC);
	cr_expect_eq(the_use.ia, IA);
	cr_expect_eq(found(IA).owner, IA);
	cr_expect_eq(found(IA).kind, DAT_HANDLE_TYPE_IA);
	cr_expect_eq(found(ASYNC).owner, IA);
	cr_expect_eq(found(ASYNC).kind, DAT_HANDLE_TYPE_EVD);
}

Test(ia, given_evd_must_be_one)
{
	DAT_EVD_HANDLE evd = OTHER;
	DAT_IA_HANDLE ia;

	cr_expect_eq(open_with(&evd, &ia), DREG_BAD_HANDLE(EVD_ASYNC));
	cr_expect_str_eq(trace, "get put ");
}

Test(ia, given_evd_stays_the_other_ias)
{
	DAT_EVD_HANDLE evd = FOREIGN;
	DAT_IA_HANDLE ia;

	cr_expect_eq(open_with(&evd, &ia), DAT_SUCCESS);
	cr_expect_eq(found(FOREIGN).owner, OTHER);
}

Test(ia, evd_that_exists_elsewhere_is_not_entered)
{
	DAT_EVD_HANDLE evd = DAT_EVD_ASYNC_EXISTS;
	DAT_IA_HANDLE ia;

	cr_expect_eq(open_with(&evd, &ia), DAT_SUCCESS);
	cr_expect(!is_live(DAT_EVD_ASYNC_EXISTS));
	cr_expect(!is_live(ASYNC));
}

/*
 * Querying
 */

Test(ia, query_without_room_for_the_evd)
{
	DAT_EVD_HANDLE evd;

	opened();
	queried = NTH(7);
	adds_left = 0;
	cr_expect_eq(dat_ia_query(IA, &evd, 0, NULL, 0, NULL), DREG_NO_MEMORY);
	cr_expect(!is_live(NTH(7)));
}

Test(ia, evd_of_a_failed_query_is_not_entered)
{
	DAT_EVD_HANDLE evd;

	opened();
	queried = NTH(7);
	outcome = FAILED;
	cr_expect_eq(dat_ia_query(IA, &evd, 0, NULL, 0, NULL), FAILED);
	cr_expect(!is_live(NTH(7)));
}

Test(ia, evd_known_before_a_query_keeps_its_owner)
{
	DAT_EVD_HANDLE evd;

	opened();
	queried = FOREIGN;
	cr_expect_eq(dat_ia_query(IA, &evd, 0, NULL, 0, NULL), DAT_SUCCESS);
	cr_expect_eq(evd, FOREIGN);
	cr_expect_eq(found(FOREIGN).owner, OTHER);
}

/*
 * Closing
 */

Test(ia, second_close_does_not_reach_the_provider)
{
	opened();
	cr_expect_eq(dat_ia_close(IA, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	trace[0] = '\0';
	cr_expect_eq(dat_ia_close(IA, DAT_CLOSE_GRACEFUL_FLAG), DREG_BAD_HANDLE(IA));
	cr_expect_str_eq(trace, "");
}

Test(ia, failed_close_attaches_the_use_again)
{
	opened();
	outcome = FAILED;
	cr_expect_eq(dat_ia_close(IA, DAT_CLOSE_GRACEFUL_FLAG), FAILED);
	cr_expect_str_eq(trace, "detach close attach ");
	cr_expect_eq(the_use.ia, IA);
	cr_expect_eq(the_use.held, 1);
	cr_expect(is_live(IA));
	cr_expect(is_live(ASYNC));
}

Test(ia, close_ends_the_use_after_the_provider_is_done)
{
	opened();
	cr_expect_eq(dat_ia_close(IA, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	cr_expect_str_eq(trace, "detach close put ");
	cr_expect_eq(got_flags, DAT_CLOSE_GRACEFUL_FLAG);
	cr_expect(!is_live(IA));
	cr_expect(!is_live(ASYNC));
	cr_expect(is_live(FOREIGN));
}

Test(ia, ia_opened_at_the_same_address_lives)
{
	opened();
	table.ia_close_func = ia_close_reused;
	cr_expect_eq(dat_ia_close(IA, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	cr_expect(is_live(IA));
	cr_expect(!is_live(ASYNC));
}

Test(ia, provider_that_closes_nothing_keeps_the_use)
{
	opened();
	table.ia_close_func = NULL;
	cr_expect_eq(dat_ia_close(IA, DAT_CLOSE_ABRUPT_FLAG), DREG_NOT_IMPLEMENTED);
	cr_expect_str_eq(trace, "");
	cr_expect(is_live(IA));
}

#if DAT_VERSION_MAJOR >= 2
/*
 * Extensions
 */

#define OPEN_OP		((DAT_EXTENDED_OP)(DAT_OPEN_EXTENSION_BASE + 1))
#define CLOSE_OP	((DAT_EXTENDED_OP)(DAT_CLOSE_EXTENSION_BASE + 1))

static DAT_RETURN extendedop(DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args)
{
	strcat(trace, "extension ");
	if (op == OPEN_OP && outcome == DAT_SUCCESS) {
		cr_expect_str_eq((const char *)h, name);
		*va_arg(args, DAT_HANDLE *) = IA;
		cr_expect_eq(va_arg(args, int), 99);
	}
	return outcome;
}

static unsigned int flags_of_opened(void)
{
	opened();
	return found(IA).flags;
}

Test(ia, no_extension_without_the_attribute)
{
	table.handle_extendedop_func = extendedop;
	cr_expect_eq(flags_of_opened(), 0);
}

Test(ia, no_extension_without_the_function)
{
	extension = DAT_EXTENSION_IB;
	cr_expect_eq(flags_of_opened(), 0);
}

Test(ia, no_extension_without_a_query)
{
	extension = DAT_EXTENSION_IB;
	table.handle_extendedop_func = extendedop;
	table.ia_query_func = NULL;
	cr_expect_eq(flags_of_opened(), 0);
}

Test(ia, extension_is_inherited_by_the_evd)
{
	extension = DAT_EXTENSION_IB;
	table.handle_extendedop_func = extendedop;
	cr_expect_eq(flags_of_opened(), DREG_EXTENSIONS);
	cr_expect_eq(found(ASYNC).flags, DREG_EXTENSIONS);
}

Test(ia, opening_operation_with_bad_arguments)
{
	char long_name[DAT_NAME_MAX_LENGTH];
	DAT_HANDLE ia;

	memset(long_name, 'x', sizeof(long_name));
	cr_expect_eq(dat_extension_op(NULL, OPEN_OP, NULL, &ia), DREG_BAD_ARG(3));
	cr_expect_eq(dat_extension_op(NULL, OPEN_OP, long_name, &ia), DREG_BAD_ARG(3));
	cr_expect_eq(dat_extension_op(NULL, OPEN_OP, name, NULL), DREG_BAD_ARG(4));
	cr_expect_str_eq(trace, "");
}

Test(ia, opening_operation_that_the_provider_lacks)
{
	DAT_HANDLE ia;

	cr_expect_eq(dat_extension_op(NULL, OPEN_OP, name, &ia, 99), DREG_NOT_IMPLEMENTED);
	cr_expect_eq(the_use.held, 0);
}

Test(ia, failed_opening_operation_gives_the_use_back)
{
	DAT_HANDLE ia = NTH(9);

	table.handle_extendedop_func = extendedop;
	outcome = FAILED;
	cr_expect_eq(dat_extension_op(NULL, OPEN_OP, name, &ia, 99), FAILED);
	cr_expect_str_eq(trace, "get extension put ");
	cr_expect_eq(the_use.held, 0);
	cr_expect(!is_live(NTH(9)));
}

Test(ia, opening_operation_attaches_the_use)
{
	DAT_HANDLE ia;

	table.handle_extendedop_func = extendedop;
	cr_expect_eq(dat_extension_op(NULL, OPEN_OP, name, &ia, 99), DAT_SUCCESS);
	cr_expect_str_eq(trace, "get extension attach ");
	cr_expect_eq(found(IA).kind, DAT_HANDLE_TYPE_IA);
	cr_expect_eq(found(IA).flags, DREG_EXTENSIONS);
	cr_expect_eq(asked.major, DAT_VERSION_MAJOR);
}

Test(ia, failed_closing_operation_keeps_the_ia)
{
	extension = DAT_EXTENSION_IB;
	table.handle_extendedop_func = extendedop;
	opened();
	outcome = FAILED;
	cr_expect_eq(dat_extension_op(IA, CLOSE_OP), FAILED);
	cr_expect_str_eq(trace, "detach extension attach ");
	cr_expect(is_live(IA));
}

/* The operation closes IAs only. */
Test(ia, closing_operation_on_an_evd_ends_nothing)
{
	extension = DAT_EXTENSION_IB;
	table.handle_extendedop_func = extendedop;
	opened();
	cr_expect_eq(dat_extension_op(ASYNC, CLOSE_OP), DAT_SUCCESS);
	cr_expect_str_eq(trace, "extension ");
	cr_expect(is_live(ASYNC));
	cr_expect(is_live(IA));
}
#endif
