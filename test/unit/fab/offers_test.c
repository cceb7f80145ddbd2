/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of names in a string. */

#include "fab/offers.h"

#include <criterion/criterion.h>
#include <unistd.h>

Test(names, a_name_is_a_whole_word)
{
	cr_expect(dofi_names_have("tcp;ofi_rxm tcp shm", "tcp"));
	cr_expect(dofi_names_have("shm", "shm"));
	cr_expect(!dofi_names_have("tcp;ofi_rxm", "tcp"));
	cr_expect(!dofi_names_have("xtcp tcpx", "tcp"));
	cr_expect(!dofi_names_have("", "tcp"));
}

Test(names, each_is_added_once)
{
	char names[16] = "";

	dofi_names_add(names, sizeof(names), "tcp");
	dofi_names_add(names, sizeof(names), "shm");
	dofi_names_add(names, sizeof(names), "tcp");
	dofi_names_add(names, sizeof(names), NULL);
	cr_expect_str_eq(names, "tcp shm");
	dofi_names_add(names, sizeof(names), "too-long-for-it");
	cr_expect_str_eq(names, "tcp shm too-lon");
}

Test(names, an_address_of_this_machine_takes_no_descriptor)
{
	const int next = dup(STDERR_FILENO);
	int after;

	close(next);
	cr_expect(dofi_address_is_local("127.0.0.1"));
	cr_expect(!dofi_address_is_local("192.0.2.77"));
	cr_expect(!dofi_address_is_local("no address"));
	after = dup(STDERR_FILENO);
	cr_expect_eq(after, next);
	close(after);
}
