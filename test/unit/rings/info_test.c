/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rings fabric: its fi_info, and how parameters and FI_PROVIDER choose it. */

#include "rings/rings.h"

#include "base/log.h"
#include "capture.h"
#include "nomem.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static struct dofi_fabric_choice choice;

static bool is_chosen_with(const char *filter)
{
	int ret;

	if (filter)
		setenv("FI_PROVIDER", filter, 1);
	else
		unsetenv("FI_PROVIDER");
	ret = dofi_rings_choose_beside(&choice);
	cr_expect(ret == 0 || ret == -FI_ENODATA);
	cr_expect_eq(!ret, choice.info != NULL);
	if (!ret)
		dofi_fabric_release(&choice);
	return !ret;
}

Test(rings_info, a_list_of_providers_has_to_have_shm)
{
	cr_expect(is_chosen_with(NULL));
	cr_expect(is_chosen_with(""));
	cr_expect(is_chosen_with("shm"));
	cr_expect(is_chosen_with("tcp,shm"));
	cr_expect(is_chosen_with("shm,tcp;ofi_rxm"));
	cr_expect(!is_chosen_with("tcp"));
	cr_expect(!is_chosen_with("tcp,sockets"));
	cr_expect(!is_chosen_with("shmem,xshm,sh"));
}

Test(rings_info, a_list_that_excludes_shm_excludes_rings)
{
	cr_expect(is_chosen_with("^verbs"));
	cr_expect(is_chosen_with("^verbs,shmem"));
	cr_expect(!is_chosen_with("^shm"));
	cr_expect(!is_chosen_with("^verbs,shm"));
}

Test(rings_info, rings_promise_what_the_provider_does_itself)
{
	struct dofi_limits limits;

	unsetenv("FI_PROVIDER");
	cr_assert_eq(dofi_rings_choose_beside(&choice), 0);
	cr_expect_str_eq(choice.info->fabric_attr->prov_name, DOFI_RINGS_NAME);
	cr_expect(choice.rdm && choice.target_rdma && choice.write_ordered);
	cr_expect(!choice.shared_memory);
	cr_expect_eq(choice.frame_size, DOFI_LINK_FRAME);
	cr_expect(dofi_is_rings(&choice));
	cr_expect(!dofi_is_rings(&(struct dofi_fabric_choice){ .rdm = true }));
	cr_expect(dofi_fabric_has_immed(&choice) && dofi_fabric_has_atomics(&choice));
	dofi_info_limits(&choice, 0, &limits);
	cr_expect_eq(limits.max_iov, 8);
	cr_expect_eq(limits.max_rdma_iov, 8);
	cr_expect_eq(limits.max_message_size, INT64_MAX);
	cr_expect(limits.max_eps >= 8192 && limits.max_lmrs == 65536 && limits.max_srqs == 65536);
	dofi_fabric_release(&choice);
}

static struct dofi_params params_of(const char *text)
{
	struct dofi_params params;
	char why[160];

	cr_assert_eq(dofi_params_parse(text, &params, why, sizeof(why)), 0, "%s", why);
	return params;
}

static bool is_named(const char *text, const char *filter)
{
	const struct dofi_params params = params_of(text);

	if (filter)
		setenv("FI_PROVIDER", filter, 1);
	else
		unsetenv("FI_PROVIDER");
	return dofi_rings_are_named(&params);
}

Test(rings_info, shm_means_rings_unless_connectionless_endpoints_are_named)
{
	cr_expect(is_named("provider=shm", NULL));
	cr_expect(is_named("provider=shm", "tcp"), "the list is checked later, with a reason");
	cr_expect(is_named("provider=shm endpoint=msg", NULL), "refused later, with a reason");
	cr_expect(!is_named("provider=shm endpoint=rdm", NULL));
	cr_expect(!is_named("provider=tcp", "shm"));
	cr_expect(!is_named("endpoint=rdm", "shm"));
	cr_expect(is_named("", "shm"));
	cr_expect(!is_named("", "shm,tcp"), "tcp reaches other hosts as well");
	cr_expect(!is_named("", "^tcp"));
	cr_expect(!is_named("", NULL));
}

/* Returns the IPv4 address of the IA, in host order; 0 if @text fits no rings because of @why. */
static uint32_t address_with(const char *text, const char *why)
{
	const struct dofi_params params = params_of(text);
	struct sockaddr_storage address;
	struct capture capture;
	const char *log;
	int ret;

	dofi_log_max = DOFI_WARN;
	capture_begin(&capture);
	ret = dofi_rings_choose(&params, &choice);
	log = capture_end(&capture);
	cr_assert(ret == (why ? -FI_ENODATA : 0), "%s: %d", text, ret);
	if (why) {
		cr_expect(strstr(log, why), "%s: %s", text, log);
		cr_expect_eq(choice.info, NULL);
		return 0;
	}
	dofi_fabric_address(&choice, &(struct dofi_params){ .provider = "" }, &address);
	dofi_fabric_release(&choice);
	return ntohl(((struct sockaddr_in *)&address)->sin_addr.s_addr);
}

Test(rings_info, an_ia_has_an_address_of_this_host)
{
	unsetenv("FI_PROVIDER");
	cr_expect_eq(address_with("provider=shm", NULL), INADDR_LOOPBACK);
	cr_expect_eq(address_with("provider=shm address=127.0.0.3", NULL), 0x7f000003);
	cr_expect_eq(address_with("provider=shm domain=rings", NULL), INADDR_LOOPBACK);
	address_with("provider=shm address=192.0.2.1", "does not have the address");
	address_with("provider=shm domain=lo", "domain=lo");
	address_with("provider=shm endpoint=msg", "no connected endpoints");
	setenv("FI_PROVIDER", "tcp", 1);
	address_with("provider=shm", "FI_PROVIDER=tcp excludes shm");
}

Test(rings_info, memory_may_run_out)
{
	const struct dofi_params params = params_of("provider=shm address=127.0.0.1");
	int i, ret = -1;

	unsetenv("FI_PROVIDER");
	for (i = 0; i < 16 && ret; i++) {
		nomem_after(i);
		ret = dofi_rings_choose(&params, &choice);
		cr_expect(!ret || (ret == -FI_ENOMEM && !choice.info));
	}
	cr_assert_eq(ret, 0);
	cr_expect(i > 1);
	nomem_failed();
	dofi_fabric_release(&choice);
}
