/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The return codes of errors that libfabric and the system report. */

#include "obj/dat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* More descriptors than any call of the fabric opens, as a call that failed has closed its own. */
#define DESCRIPTORS 16

/*
 * Libfabric reports a lack of descriptors as EIO (tcp of 1.17), or as a fabric that does not exist.
 */
static bool descriptors_are_short(void)
{
	int fd[DESCRIPTORS], n = 0;
	bool few;

	while (n < DESCRIPTORS && (fd[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		n++;
	few = n < DESCRIPTORS && (errno == EMFILE || errno == ENFILE);
	while (n--)
		close(fd[n]);
	return few;
}

DAT_RETURN dofi_ret(int err)
{
	if (err < 0)
		err = -err;
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case ENOMEM:
	case ENOSPC:	/* in /dev/shm */
	case EFBIG:	/* the same, by RLIMIT_FSIZE */
		return DOFI_NO_RESOURCE(MEMORY);
	case EMFILE:
	case ENFILE:
	case EAGAIN:	/* too many threads */
	case EACCES:	/* from here to EROFS: /dev/shm cannot be written, or does not exist */
	case ENOENT:
	case EPERM:
	case EROFS:
	case EADDRNOTAVAIL: /* the interface has lost the address of the IA */
		return DOFI_NO_RESOURCE(DEVICE);
	case EINVAL:
		return DOFI_RET(DAT_INVALID_PARAMETER, 0);
	}
	if (descriptors_are_short())
		return DOFI_NO_RESOURCE(DEVICE);
	/* no fabric, or none that is used; the name is registered, so no subtype fits */
	if (err == ENODATA || err == EOPNOTSUPP)
		return DOFI_RET(DAT_PROVIDER_NOT_FOUND, DAT_NO_SUBTYPE);
	return DOFI_RET(DAT_INTERNAL_ERROR, 0);
}

DAT_RETURN dofi_ret_short(int err)
{
	DAT_RETURN ret = dofi_ret(err);

	return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ? ret : DOFI_NO_RESOURCE(MEMORY);
}
