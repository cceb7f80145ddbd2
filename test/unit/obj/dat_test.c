/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The return codes of errors that libfabric and the system report. */

#include "obj/fixture.h"

#include <errno.h>

TestSuite(dat, .init = objects_init, .fini = ia_fini);

Test(dat, errors_of_the_system_have_return_codes)
{
	cr_expect_eq(dofi_ret(0), DAT_SUCCESS);
	expect_ret(dofi_ret(-ENOMEM), DOFI_NO_RESOURCE(MEMORY));
	expect_ret(dofi_ret(-ENOSPC), DOFI_NO_RESOURCE(MEMORY));
	expect_ret(dofi_ret(-EFBIG), DOFI_NO_RESOURCE(MEMORY));
	expect_ret(dofi_ret(-EMFILE), DOFI_NO_RESOURCE(DEVICE));
	expect_ret(dofi_ret(-EAGAIN), DOFI_NO_RESOURCE(DEVICE));
	expect_ret(dofi_ret(-EROFS), DOFI_NO_RESOURCE(DEVICE));
	expect_ret(dofi_ret(-EADDRNOTAVAIL), DOFI_NO_RESOURCE(DEVICE));
	expect_ret(dofi_ret_short(-EMFILE), DOFI_NO_RESOURCE(DEVICE));
	expect_ret(dofi_ret_short(-EIO), DOFI_NO_RESOURCE(MEMORY));
	expect_ret(dofi_ret(-ENODATA), DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NO_SUBTYPE));
	expect_ret(dofi_ret(-EOPNOTSUPP), DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NO_SUBTYPE));
	expect_type(dofi_ret(EINVAL), DAT_INVALID_PARAMETER);
	expect_type(dofi_ret(-EIO), DAT_INTERNAL_ERROR);
	cr_expect(dofi_ret(-EIO) & DAT_CLASS_ERROR);
}
