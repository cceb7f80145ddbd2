/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that two processes share by a descriptor: a memfd without a name and with a sealed size.
 */

#include "base/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Linux before 6.3 does not know the flag; newer ones may insist on it (vm.memfd_noexec). */
static int memfd_make(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("dat-ofi", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("dat-ofi", flags);
	return fd < 0 ? -errno : fd;
}

static int map(int fd, size_t size, int access, void **at)
{
	void *mapped = mmap(NULL, size, access, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	*at = mapped;
	return 0;
}

/* Seals the memory once it is mapped, because one of the seals forbids the mapping. */
static int make(size_t size, int seals, void **at)
{
	int fd = memfd_make(), ret;
	void *mapped = NULL;

	if (fd < 0)
		return fd;
	ret = ftruncate(fd, (off_t)size) ? -errno : map(fd, size, PROT_READ | PROT_WRITE, &mapped);
	if (ret)
		goto close_fd;
	if (!fcntl(fd, F_ADD_SEALS, seals)) {
		*at = mapped;
		return fd;
	}
	ret = errno == EINVAL ? -ENOTSUP : -errno;
	munmap(mapped, size);
close_fd:
	close(fd);
	return ret;
}

int dofi_sealed_make(size_t size, void **at)
{
	return make(size, SEALS, at);
}

int dofi_sealed_make_own(size_t size, void **at)
{
	return make(size, SEALS | F_SEAL_FUTURE_WRITE, at);
}

static int is_sealed(int fd, size_t size)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return 0;
	return !fstat(fd, &st) && (size_t)st.st_size == size && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC;
}

int dofi_sealed_map(int fd, size_t size, void **at)
{
	return is_sealed(fd, size) ? map(fd, size, PROT_READ | PROT_WRITE, at) : -EPROTO;
}

int dofi_sealed_map_to_read(int fd, size_t size, void **at)
{
	return is_sealed(fd, size) ? map(fd, size, PROT_READ, at) : -EPROTO;
}

void dofi_sealed_unmap(void *at, size_t size)
{
	munmap(at, size);
}
