/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The examples for IAs, and for objects in general. */

#include "examples.h"

#include "pages/dat_get_handle_type.h"
#include "pages/dat_ia_close.h"
#include "pages/dat_ia_open.h"
#include "pages/dat_ia_openv.h"
#include "pages/dat_ia_query.h"
#include "pages/dat_provider_init.h"
#include "pages/dat_pz_query.h"
#include "pages/dat_registry_list_providers.h"
#include "pages/dat_set_consumer_context.h"
#include "pages/dat_strerror.h"
#if DAT_VERSION_MAJOR >= 2
#include "pages/dat_registry_providers_related.h"
#include "pages/dats_get_ia_handle.h"
#endif

#include <string.h>

CHAPTER("ia");

static int open_named(const char *name)
{
	char *argv[] = { "program", (char *)name, NULL };

	return dat_ia_open_main(name ? 2 : 1, argv);
}

CLAUSE("dat_ia_open")
{
	const char *text;
	int status;

	SAME(open_named(pair_ia_name()), 0);
	SAME(open_named(NULL), 2);
	capture(2);
	status = open_named("no-such-ia");
	text = captured();
	SAME(status, 1);
	CHECK(strstr(text, "no-such-ia: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED\n"), "%s",
	      text);
}

static void try_threads(int threads)
{
	DAT_PROVIDER_ATTR attr;
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;

	OK(open_for(threads, pair_ia_name(), &async, &ia));
	CHECK(async, "no asynchronous EVD");
	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	SAME(!!attr.is_thread_safe, threads > 1);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

CLAUSE("dat_ia_openv")
{
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;

	try_threads(1);
	try_threads(2);
	FAILS(open_for(1, "no-such-ia", &async, &ia), DAT_PROVIDER_NOT_FOUND);
}

CLAUSE("dat_ia_close")
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE empty;
	const char *text;
	DAT_RETURN ret;

	OK(dat_ia_open((DAT_NAME_PTR)pair_ia_name(), 1, &async, &empty));
	capture(2);
	ret = close_ia(empty);
	text = captured();
	OK(ret);
	CHECK(!*text, "%s", text);

	capture(2);
	ret = close_ia(n->ia);
	text = captured();
	OK(ret);
	CHECK(!strcmp(text, "some objects are still open\n"), "%s", text);
	FAILS(close_ia(n->ia), DAT_INVALID_HANDLE);
	n->ia = DAT_HANDLE_NULL;
}

CLAUSE("dat_ia_query")
{
	const char *host = host_of(n), *text;
	char wanted[256];
	DAT_RETURN ret;

	snprintf(wanted, sizeof(wanted),
		 "%s at %s: messages of %llu bytes, %d bytes of private data\n", pair_ia_name(),
		 host, (unsigned long long)n->attr.max_message_size,
		 (int)n->prov.max_private_data_size);
	capture(1);
	ret = describe(n->ia);
	text = captured();
	OK(ret);
	CHECK(!strcmp(text, wanted), "\"%s\", not \"%s\"", text, wanted);
	FAILS(describe(n->pz), DAT_INVALID_HANDLE);
}

CLAUSE("dat_registry_list_providers")
{
	const char *text;
	char line[256];
	int status;

	snprintf(line, sizeof(line), "%s\n", pair_ia_name());
	capture(1);
	status = dat_registry_list_providers_main();
	text = captured();
	SAME(status, 0);
	CHECK(strstr(text, line), "not listed in \"%s\"", text);
}

/* The registry directs an open to the example's function while it is registered. */
CLAUSE("dat_provider_init")
{
	DAT_PROVIDER_INFO info = { .ia_name = "example-provider",
				   .dapl_version_major = DAT_VERSION_MAJOR,
				   .dapl_version_minor = DAT_VERSION_MINOR };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	FAILS(dat_ia_open(info.ia_name, 1, &async, &ia), DAT_PROVIDER_NOT_FOUND);
	dat_provider_init(&info, "");
	FAILS(dat_ia_open(info.ia_name, 1, &async, &ia), DAT_INSUFFICIENT_RESOURCES);
	dat_provider_fini(&info);
	FAILS(dat_ia_open(info.ia_name, 1, &async, &ia), DAT_PROVIDER_NOT_FOUND);
}

CLAUSE("dat_pz_query")
{
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;

	OK(evd_for_pz(n->pz, 5, &evd));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.ia_handle == n->ia, "wrong IA");
	CHECK(param.evd_qlen >= 5, "%d", param.evd_qlen);
	FAILS(evd_for_pz(n->recv, 5, &evd), DAT_INVALID_HANDLE);
}

#if DAT_VERSION_MAJOR >= 2

CLAUSE("dat_registry_providers_related")
{
	char name[DAT_NAME_MAX_LENGTH];

	(void)n;
	snprintf(name, sizeof(name), "%s", pair_ia_name());
	SAME(is_spare(name, name), DAT_FALSE);
	SAME(is_spare(name, "no-such-ia"), DAT_FALSE);
}

CLAUSE("dats_get_ia_handle")
{
	DAT_PZ_PARAM param;

	OK(pz_describe(n->ia, &param));
	CHECK(param.ia_handle == n->ia, "wrong IA");
	FAILS(pz_describe(n->pz, &param), DAT_INVALID_HANDLE);
}

#endif

CLAUSE("dat_strerror")
{
	const char *text;

	capture(2);
	print_error("dat_ep_create", dat_pz_free(n->recv));
	text = captured();
	CHECK(!strcmp(text, "dat_ep_create: DAT_INVALID_HANDLE DAT_INVALID_HANDLE_PZ\n"), "%s",
	      text);
}

/* Expects this report of an asynchronous event about @handle. */
static void expect_report(DAT_HANDLE handle, const char *what)
{
	DAT_EVENT event = { .event_number = DAT_ASYNC_ERROR_EVD_OVERFLOW };
	const char *text;
	char wanted[256];

	event.event_data.asynch_error_event_data.dat_handle = handle;
	event.event_data.asynch_error_event_data.reason = 3;
	snprintf(wanted, sizeof(wanted), "event %#x of %s, reason 3\n",
		 (unsigned)event.event_number, what);
	capture(2);
	report(&event);
	text = captured();
	CHECK(!strcmp(text, wanted), "\"%s\", not \"%s\"", text, wanted);
}

CLAUSE("dat_get_handle_type")
{
	DAT_EVD_HANDLE freed = node_evd(n, 1, DAT_EVD_CR_FLAG);

	expect_report(n->ia, "the IA");
	expect_report(n->recv, "an EVD");
	expect_report(node_ep(n, NULL), "an EP");
	expect_report(n->pz, "an object");
	OK(dat_evd_free(freed));
	expect_report(freed, "a freed object");
}

CLAUSE("dat_set_consumer_context")
{
	struct session one = { .number = 1 }, two = { .number = 2 };
	DAT_EVENT event;
	struct attempt c;

	attempt_accept(n, &c);
	one.ep = c.a.ep;
	two.ep = c.b.ep;
	OK(attach(&one));
	OK(attach(&two));
	expect_event(c.a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	SAME(session_of(&event)->number, 1);
	expect_event(c.b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	SAME(session_of(&event)->number, 2);
	OK(dat_ep_free(c.b.ep));
	CHECK(!session_of(&event), "the context of a freed EP");
	FAILS(attach(&two), DAT_INVALID_HANDLE);
}
