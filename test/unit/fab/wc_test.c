/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which errno a work completion status of verbs stands for. */

#include "fab/wc.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(wc, what_verbs_say_is_taken_apart)
{
	cr_expect_eq(dofi_wc_errno(1, EIO), EMSGSIZE);
	cr_expect_eq(dofi_wc_errno(4, EIO), EFAULT);
	cr_expect_eq(dofi_wc_errno(5, EIO), ECANCELED);
	cr_expect_eq(dofi_wc_errno(9, EIO), EREMOTEIO);
	cr_expect_eq(dofi_wc_errno(10, EIO), EKEYREJECTED);
	cr_expect_eq(dofi_wc_errno(13, EIO), ETIMEDOUT);
}

Test(wc, what_says_nothing_leaves_the_fabrics_error)
{
	cr_expect_eq(dofi_wc_errno(0, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(6, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(14, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(-1, EIO), EIO);
	cr_expect_eq(dofi_wc_errno(1 << 30, EIO), EIO);
}
