/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* dat_extension_op() as a registry calls it: operations and their arguments. */

#include "ext.h"

#include "obj/fixture.h"
#include "obj/service.h"
#include "registry.h"

#if DAT_VERSION_MAJOR >= 2
void DAT_PROVIDER_INIT_FUNC_NAME(const DAT_PROVIDER_INFO *info, const char *ia_params);
void DAT_PROVIDER_FINI_FUNC_NAME(const DAT_PROVIDER_INFO *info);

static DAT_PROVIDER_INFO info = { .ia_name = "test-ia" };
static DAT_EP_HANDLE ep;

static void init(void)
{
	objects_init();
	DAT_PROVIDER_INIT_FUNC_NAME(&info, "");
	ia->fabric.cq_data = true;
	ep = ep_make();
	make_connected(ep);
	((struct dofi_ep *)ep)->mailbox.key = 1;
}

static void fini(void)
{
	DAT_PROVIDER_FINI_FUNC_NAME(&info);
	ia_fini();
}

TestSuite(ext, .init = init, .fini = fini);

/* The macros of dat_ib_extensions.h call this function, which works as in a registry. */
DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, ...)
{
	va_list args;
	DAT_RETURN ret;

	va_start(args, op);
	if (op == (DAT_EXTENDED_OP)DAT_IB_OPEN_QUERY_OP)
		handle = va_arg(args, DAT_NAME_PTR);
	ret = dofi_extension_op(handle, op, args);
	va_end(args);
	return ret;
}

static const DAT_DTO_COOKIE cookie = { .as_64 = 0x123456789abcdef0 };

static struct dofi_dto *posted(uint8_t kind)
{
	struct dofi_dto *dto = transport.dto[0];

	cr_assert_eq(transport.n, 1);
	cr_expect_eq(dto->kind, kind);
	cr_expect_eq(dto->cookie, cookie.as_64);
	cr_expect_eq(dto->flags, DAT_COMPLETION_SUPPRESS_FLAG);
	return dto;
}

Test(ext, write_with_immediate_data)
{
	DAT_LMR_TRIPLET s = segment(8, 16);
	DAT_RMR_TRIPLET r = remote_segment(16);

	succeed(dat_ib_post_rdma_write_immed(ep, 1, &s, cookie, &r, 0xfedcba98,
					     DAT_COMPLETION_SUPPRESS_FLAG));
	cr_expect_eq(posted(DOFI_DTO_WRITE_IMMED)->immed, 0xfedcba98);
	cr_expect_eq(posted(DOFI_DTO_WRITE_IMMED)->remote_addr, r.virtual_address);
	cr_expect_eq(posted(DOFI_DTO_WRITE_IMMED)->length, 16);
}

Test(ext, send_with_immediate_data)
{
	DAT_LMR_TRIPLET s = segment(8, 16);

	succeed(dat_ib_post_send_immed(ep, 1, &s, cookie, 0xfedcba98,
				       DAT_COMPLETION_SUPPRESS_FLAG));
	cr_expect_eq(posted(DOFI_DTO_SEND_IMMED)->immed, 0xfedcba98);
}

Test(ext, fetch_and_add)
{
	DAT_LMR_TRIPLET s = segment(8, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dat_ib_post_fetch_and_add(ep, 0x1122334455667788, &s, cookie, &r,
					  DAT_COMPLETION_SUPPRESS_FLAG));
	cr_expect_eq(posted(DOFI_DTO_FETCH_ADD)->operand, 0x1122334455667788);
}

Test(ext, compare_and_swap)
{
	DAT_LMR_TRIPLET s = segment(8, 8);
	DAT_RMR_TRIPLET r = remote_segment(8);

	succeed(dat_ib_post_cmp_and_swap(ep, 0x1122334455667788, 9, &s, cookie, &r,
					 DAT_COMPLETION_SUPPRESS_FLAG));
	cr_expect_eq(posted(DOFI_DTO_CMP_SWAP)->compare, 0x1122334455667788);
	cr_expect_eq(posted(DOFI_DTO_CMP_SWAP)->operand, 9);
}

/* The datagrams of an IA that has the service. */
static void datagrams_init(void)
{
	service_init();
	DAT_PROVIDER_INIT_FUNC_NAME(&info, "");
	ep = datagram_ep();
}

TestSuite(ext_datagrams, .init = datagrams_init, .fini = fini);

static struct dofi_dto *sent(uint8_t kind)
{
	struct dofi_dto *dto = service.dto[0];

	cr_assert_eq(service.n, 1);
	cr_expect_eq(dto->kind, kind);
	cr_expect_eq(dto->cookie, cookie.as_64);
	cr_expect_eq(dto->flags, DAT_COMPLETION_SUPPRESS_FLAG);
	cr_expect_eq(dto->remote_addr, (uintptr_t)&service.ah[1]);
	cr_expect_eq(dto->remote_key, 0xabcdef);
	cr_expect_eq(dto->length, 16);
	return dto;
}

Test(ext_datagrams, send)
{
	DAT_IB_ADDR_HANDLE ah = { .ah = ah_make(1), .qpn = 0xabcdef };
	DAT_LMR_TRIPLET s = segment(8, 16);

	succeed(dat_ib_post_send_ud(ep, 1, &s, &ah, cookie, DAT_COMPLETION_SUPPRESS_FLAG));
	sent(DOFI_DTO_SEND_UD);
	expect_arg(dat_ib_post_send_ud(ep, 1, &s, NULL, cookie, DAT_COMPLETION_SUPPRESS_FLAG), 5);
}

Test(ext_datagrams, send_with_immediate_data)
{
	DAT_IB_ADDR_HANDLE ah = { .ah = ah_make(1), .qpn = 0xabcdef };
	DAT_LMR_TRIPLET s = segment(8, 16);

	succeed(dat_ib_post_send_ud_immed(ep, 1, &s, &ah, cookie, 0xfedcba98,
					  DAT_COMPLETION_SUPPRESS_FLAG));
	cr_expect_eq(sent(DOFI_DTO_SEND_UD_IMMED)->immed, 0xfedcba98);
	expect_arg(dat_ib_post_send_ud_immed(ep, 1, &s, NULL, cookie, 0,
					     DAT_COMPLETION_SUPPRESS_FLAG), 5);
}

Test(ext_datagrams, free_what_an_event_brought)
{
	const struct dofi_exchanged how = {
		.event = DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, .ah = ah_make(1),
	};
	DAT_IB_EXTENSION_EVENT_DATA x;
	DAT_EVENT event;

	service.answer = &how;
	succeed(dofi_ep_connect(ep, some_address(), 7, DAT_TIMEOUT_INFINITE, 0, NULL,
				DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	settle();
	event = event_take(evd, how.event);
	memcpy(&x, event.event_extension_data, sizeof(x));
	succeed(dat_ib_ud_ah_free(ep, &x.remote_ah));
	cr_expect_eq(service.ah[1].references, 0);
	expect_arg(dat_ib_ud_ah_free(ep, &x.remote_ah), 3);
	succeed(dat_ib_ud_cm_free(ep, x.context.as_ptr));
	expect_arg(dat_ib_ud_cm_free(ep, x.context.as_ptr), 3);
}

Test(ext, what_there_is_not)
{
	static const int absent[] = {
		DAT_IB_UD_SEND_OP, DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, DAT_IB_COLLECTIVE_BARRIER_OP,
		DAT_IB_UD_CM_FREE_OP, DAT_IB_UD_AH_FREE_OP, DAT_IB_UD_SEND_IMMED_OP,
	};
	static const int unknown[] = { 30, 99, 0xfff, -1 };
	size_t i;

	for (i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		expect_type(dat_extension_op(ep, (DAT_EXTENDED_OP)absent[i]),
			    DAT_MODEL_NOT_SUPPORTED);
		expect_type(dat_extension_op(NULL, (DAT_EXTENDED_OP)absent[i]), DAT_INVALID_HANDLE);
	}
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		expect_type(dat_extension_op(ep, (DAT_EXTENDED_OP)unknown[i]), DAT_NOT_IMPLEMENTED);
}

Test(ext, a_query_opens_and_closes)
{
	DAT_PROVIDER_ATTR prov;
	DAT_IA_ATTR attr;
	DAT_HANDLE query = NULL;

	succeed(dat_ib_open_query("test-ia", &query, DAT_IA_FIELD_ALL, &attr,
				  DAT_PROVIDER_FIELD_ALL, &prov));
	cr_expect_eq(attr.extension_supported, DAT_EXTENSION_IB);
	cr_expect_eq(attr.extension_version, DAT_IB_EXTENSION_VERSION);
	succeed(dat_ib_close_query(query));
	expect_handle(dat_ib_close_query(query), IA);
	expect_handle(dat_ib_close_query(ep), IA);
}

Test(ext, an_ia_of_the_program_is_not_closed_as_a_query)
{
	DAT_PZ_HANDLE still;

	ia->async_evd = evd;	/* only a query has none */
	expect_handle(dat_ib_close_query(ia), IA);
	ia->async_evd = NULL;
	succeed(dofi_pz_create(ia, &still));
}

Test(ext, a_query_that_fails_leaves_nothing_open)
{
	DAT_HANDLE query = NULL;

	expect_arg(dat_ib_open_query(NULL, &query, 0, NULL, 0, NULL), 3);
	expect_arg(dat_ib_open_query("test-ia", NULL, 0, NULL, 0, NULL), 4);
	expect_type(dat_ib_open_query("other", &query, 0, NULL, 0, NULL), DAT_PROVIDER_NOT_FOUND);
	expect_type(dat_ib_open_query("test-ia", &query, DAT_IA_FIELD_ALL, NULL, 0, NULL),
		    DAT_INVALID_PARAMETER);
	cr_expect_eq(query, NULL);
}
#endif
