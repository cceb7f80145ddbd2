/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Uses the public macros that other DAT headers define in a form that does not compile, and
 * checks the arguments that they pass on. Compiled for both API versions, as C and as C++.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dat_select.h"

static int failures;

#define CHECK(cond) do { \
	if (!(cond)) { \
		printf("%s:%d: %s\n", __FILE__, __LINE__, #cond); \
		failures++; \
	} \
} while (0)

/* DAT 1.0's name of the mask for max_rdma_read_per_ep_in. */
static void check_ia_names(void)
{
	DAT_IA_ATTR attr;

	memset(&attr, 0, sizeof(attr));
	attr.max_rdma_read_per_ep = 7;
	attr.max_mtu_size = 9;
	CHECK(attr.max_rdma_read_per_ep_in == 7);
	CHECK(attr.max_message_size == 9);
	CHECK(DAT_IA_FIELD_IA_MAX_DTO_PER_OP == DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN);
	CHECK(DAT_IA_FIELD_IA_MAX_MTU_SIZE == DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE);
}

static int is_no_agent(DAT_OS_WAIT_PROXY_AGENT agent)
{
	return !agent.instance_data && !agent.proxy_agent_func;
}

/* The null agent can be an initializer, an assigned value and an argument. */
static void check_agent(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = DAT_OS_WAIT_PROXY_AGENT_NULL;

	CHECK(is_no_agent(agent));
	agent.instance_data = &agent;
	CHECK(!is_no_agent(agent));
	agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
	CHECK(is_no_agent(agent));
	CHECK(is_no_agent(DAT_OS_WAIT_PROXY_AGENT_NULL));
}

/* A program can declare provider attributes, also in C++. */
static void check_provider_attr(void)
{
	DAT_PROVIDER_ATTR attr;

	memset((void *)&attr, 0, sizeof(attr));
	CHECK(!attr.evd_stream_merging_supported[5][5]);
}

#if DAT_VERSION_MAJOR >= 2

/* The extension's event numbers compare with event_number, and are cases of a switch over it. */
static int is_completion(const DAT_EVENT *event)
{
	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
	case DAT_IB_DTO_EVENT:
		return 1;
	default:
		return event->event_number == DAT_IB_COLLECTIVE_EVENT;
	}
}

static void check_event_numbers(void)
{
	DAT_EVENT event;

	memset((void *)&event, 0, sizeof(event));
	event.event_number = DAT_IB_DTO_EVENT;
	CHECK(is_completion(&event));
	event.event_number = DAT_IB_UD_CONNECTION_REQUEST_EVENT;
	CHECK(!is_completion(&event));
	CHECK(event.event_number != DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED &&
	      event.event_number != DAT_IB_UD_CONNECTION_REJECT_EVENT &&
	      event.event_number != DAT_IB_UD_CONNECTION_ERROR_EVENT);
}

/* Arguments of the last extension call. */
static struct {
	DAT_HANDLE handle;
	int op;
	DAT_IA_COUNTER_TYPE counter;
	DAT_UINT64 clock;
	DAT_UINT64 *clock_out;
	DAT_PVOID sendbuf, recvbuf;
	DAT_COUNT sendsize;
	DAT_COUNT *sendsizes, *senddispls, *recvsizes, *recvdispls;
	DAT_IB_COLLECTIVE_RANK root;
	DAT_CONTEXT context;
	unsigned int flags;
} got;

static void take_gatherv(va_list *args)
{
	got.sendbuf = va_arg(*args, DAT_PVOID);
	got.sendsize = va_arg(*args, DAT_COUNT);
	got.recvbuf = va_arg(*args, DAT_PVOID);
	got.recvsizes = va_arg(*args, DAT_COUNT *);
	got.recvdispls = va_arg(*args, DAT_COUNT *);
	got.root = va_arg(*args, DAT_IB_COLLECTIVE_RANK);
	got.context = va_arg(*args, DAT_CONTEXT);
	got.flags = va_arg(*args, unsigned int);
}

static void take_alltoallv(va_list *args)
{
	got.sendbuf = va_arg(*args, DAT_PVOID);
	got.sendsizes = va_arg(*args, DAT_COUNT *);
	got.senddispls = va_arg(*args, DAT_COUNT *);
	got.recvbuf = va_arg(*args, DAT_PVOID);
	got.recvsizes = va_arg(*args, DAT_COUNT *);
	got.recvdispls = va_arg(*args, DAT_COUNT *);
	got.context = va_arg(*args, DAT_CONTEXT);
	got.flags = va_arg(*args, unsigned int);
}

/* Replaces the library's function, since only the macros are tested. */
DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, ...)
{
	va_list args;

	memset((void *)&got, 0, sizeof(got));
	got.handle = handle;
	got.op = op;
	va_start(args, op);
	switch (op) {
	case DAT_IB_START_COUNTERS_OP:
	case DAT_IB_STOP_COUNTERS_OP:
		got.counter = (DAT_IA_COUNTER_TYPE)va_arg(args, unsigned int);
		break;
	case DAT_IB_COLLECTIVE_SET_CLOCK_OP:
		got.clock = va_arg(args, DAT_UINT64);
		got.context = va_arg(args, DAT_CONTEXT);
		break;
	case DAT_IB_COLLECTIVE_READ_CLOCK_OP:
		got.clock_out = va_arg(args, DAT_UINT64 *);
		break;
	case DAT_IB_COLLECTIVE_GATHERV_OP:
		take_gatherv(&args);
		break;
	case DAT_IB_COLLECTIVE_ALLTOALLV_OP:
		take_alltoallv(&args);
		break;
	default:
		break;
	}
	va_end(args);
	return DAT_SUCCESS;
}

static char self;

static void check_counters(void)
{
	CHECK(dat_ib_start_counter(&self, DCNT_IA_LNK) == DAT_SUCCESS);
	CHECK(got.handle == &self && got.op == DAT_IB_START_COUNTERS_OP);
	CHECK(got.counter == DCNT_IA_LNK);
	CHECK(dat_ib_stop_counter(&self, DCNT_IA_DIAG) == DAT_SUCCESS);
	CHECK(got.handle == &self && got.op == DAT_IB_STOP_COUNTERS_OP);
	CHECK(got.counter == DCNT_IA_DIAG);
}

static void check_clock(void)
{
	DAT_CONTEXT context;
	DAT_UINT64 now = 0;

	context.as_64 = 42;
	CHECK(dat_ib_collective_set_clock(&self, 5, context) == DAT_SUCCESS);
	CHECK(got.handle == &self && got.op == DAT_IB_COLLECTIVE_SET_CLOCK_OP);
	CHECK(got.clock == 5 && got.context.as_64 == 42);
	CHECK(dat_ib_collective_read_clock(&self, &now) == DAT_SUCCESS);
	CHECK(got.handle == &self && got.op == DAT_IB_COLLECTIVE_READ_CLOCK_OP);
	CHECK(got.clock_out == &now);
}

static void check_collectives(void)
{
	char out[2], in[2];
	DAT_COUNT outsizes[1] = { 1 }, outdispls[1] = { 2 };
	DAT_COUNT insizes[1] = { 3 }, indispls[1] = { 4 };
	DAT_CONTEXT context;

	context.as_64 = 77;
	CHECK(dat_ib_collective_gatherv(&self, out, 2, in, insizes, indispls, 6, context,
					DAT_COMPLETION_SUPPRESS_FLAG) == DAT_SUCCESS);
	CHECK(got.handle == &self && got.op == DAT_IB_COLLECTIVE_GATHERV_OP);
	CHECK(got.sendbuf == out && got.sendsize == 2 && got.recvbuf == in);
	CHECK(got.recvsizes == insizes && got.recvdispls == indispls && got.root == 6);
	CHECK(got.context.as_64 == 77 && got.flags == DAT_COMPLETION_SUPPRESS_FLAG);

	CHECK(dat_ib_collective_alltoallv(&self, out, outsizes, outdispls, in, insizes,
					  indispls, context,
					  DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS);
	CHECK(got.handle == &self && got.op == DAT_IB_COLLECTIVE_ALLTOALLV_OP);
	CHECK(got.sendbuf == out && got.sendsizes == outsizes);
	CHECK(got.senddispls == outdispls && got.recvbuf == in);
	CHECK(got.recvsizes == insizes && got.recvdispls == indispls);
	CHECK(got.context.as_64 == 77 && got.flags == DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer)
{
	*answer = *(DAT_PROVIDER **)ia && !strcmp(name, "other") ? DAT_TRUE : DAT_FALSE;
	return DAT_SUCCESS;
}

/* The call goes through the table that the object's first word points to. */
static void check_ha_related(void)
{
	char name[] = "other";
	DAT_PROVIDER table;
	DAT_PROVIDER *object = &table;
	DAT_BOOLEAN answer = DAT_FALSE;

	memset((void *)&table, 0, sizeof(table));
	table.ia_ha_related_func = related;
	CHECK(DAT_IA_HA_RELATED(&object, name, &answer) == DAT_SUCCESS);
	CHECK(answer == DAT_TRUE);
}

static void check_texts(void)
{
	const char *text = NULL;

	CHECK(dat_strerror_extension(DAT_IB_ERR, &text) == DAT_SUCCESS);
	CHECK(!strcmp(text, "DAT_IB_ERR"));
	CHECK(dat_strerror_extension((DAT_IB_RETURN)7, &text) != DAT_SUCCESS);
	CHECK(dat_strerror_ext_status(DAT_IB_OP_ERR, &text) == DAT_SUCCESS);
	CHECK(!strcmp(text, "DAT_IB_OP_ERR"));
	CHECK(dat_strerror_ext_status((DAT_IB_STATUS)3, &text) != DAT_SUCCESS);
}

static void check_version(void)
{
	check_event_numbers();
	check_counters();
	check_clock();
	check_collectives();
	check_ha_related();
	check_texts();
}

#else

static void check_version(void)
{
}

#endif

int main(void)
{
	check_ia_names();
	check_agent();
	check_provider_attr();
	check_version();
	return failures ? 1 : 0;
}
