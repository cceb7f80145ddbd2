/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rings fabric: what its fi_info reports, and how FI_PROVIDER disables it. */

#include "rings/rings.h"

#include "nomem.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct dofi_fabric_choice choice;

static bool is_chosen_with(const char *filter)
{
	int ret;

	if (filter)
		setenv("FI_PROVIDER", filter, 1);
	else
		unsetenv("FI_PROVIDER");
	ret = dofi_rings_choose(&choice);
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

Test(rings_info, it_promises_what_the_provider_does_itself)
{
	struct dofi_limits limits;

	unsetenv("FI_PROVIDER");
	cr_assert_eq(dofi_rings_choose(&choice), 0);
	cr_expect_str_eq(choice.info->fabric_attr->prov_name, DOFI_RINGS_NAME);
	cr_expect(choice.rdm && choice.target_rdma && choice.write_ordered);
	cr_expect(!choice.shared_memory);
	cr_expect_eq(choice.frame_size, DOFI_LINK_FRAME);
	cr_expect(dofi_fabric_has_immed(&choice) && dofi_fabric_has_atomics(&choice));
	dofi_info_limits(&choice, 0, &limits);
	cr_expect_eq(limits.max_iov, 8);
	cr_expect_eq(limits.max_rdma_iov, 8);
	cr_expect_eq(limits.max_message_size, INT64_MAX);
	cr_expect(limits.max_eps >= 8192 && limits.max_lmrs == 65536 && limits.max_srqs == 65536);
	dofi_fabric_release(&choice);
}

Test(rings_info, memory_may_run_out)
{
	int i, ret = -1;

	unsetenv("FI_PROVIDER");
	for (i = 0; i < 4 && ret; i++) {
		nomem_after(i);
		ret = dofi_rings_choose(&choice);
		cr_expect(!ret || (ret == -FI_ENOMEM && !choice.info));
	}
	cr_assert_eq(ret, 0);
	cr_expect(i > 1);
	nomem_failed();
	dofi_fabric_release(&choice);
}
