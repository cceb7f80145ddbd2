/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that processes share: sealed memfds, positions, and words that show a live thread. */

#include "base/shm.h"

#include "base/mutex.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

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
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("dat-ofi", flags | MFD_NOEXEC_SEAL), ret;
	void *mapped = NULL;

	/* Linux before 6.3 does not know the flag; newer ones may insist on it (vm.memfd_noexec) */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("dat-ofi", flags);
	if (fd < 0)
		return -errno;
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

static bool is_sealed(int fd, size_t size)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return false;
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

/* The file lists mappings in the order of addresses. */
int dofi_shared_find(const void *addr, size_t len, struct dofi_shared *shared)
{
	const uint64_t end = (uintptr_t)addr + len;
	uint64_t at = (uintptr_t)addr, from, to;
	struct dofi_shared object;
	char kind = 0;
	int ret = 0;
	FILE *maps;

	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return -errno;
	while (at < end && fscanf(maps, "%" SCNx64 "-%" SCNx64 " %*c%*c%*c%c %" SCNx64 " %" SCNx32
				  ":%" SCNx32 " %" SCNu64 "%*[^\n]", &from, &to, &kind,
				  &object.offset, &object.major, &object.minor,
				  &object.inode) == 7) {
		if (to <= at)
			continue;
		if (from > at)
			break;
		if (kind != 's') {
			ret = -EPERM;
			break;
		}
		if (at == (uintptr_t)addr) {
			*shared = object;
			shared->offset += at - from;
		}
		at = to;
	}
	fclose(maps);
	return ret ? ret : at < end ? -EFAULT : 0;
}

_Static_assert(sizeof(pthread_mutex_t) <= DOFI_ALIVE_WORDS * sizeof(uint32_t), "a mutex fits");

int dofi_alive_begin(struct dofi_alive *alive)
{
	const uint32_t number = (uint32_t)syscall(SYS_gettid);
	pthread_mutexattr_t attr;
	uint32_t i;
	size_t size;
	void *head;
	int err;

	if (pthread_mutexattr_init(&attr))
		return -ENOTSUP;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!err)
		err = pthread_mutex_init(&alive->mutex, &attr);
	if (!err)
		err = pthread_mutex_trylock(&alive->mutex);
	/* QEMU's user mode has no list of robust mutexes, and the C library does not report that */
	if (!err && (syscall(SYS_get_robust_list, 0, &head, &size) || !head)) {
		pthread_mutex_unlock(&alive->mutex);
		err = ENOTSUP;
	}
	pthread_mutexattr_destroy(&attr);
	if (err)
		return -ENOTSUP;
	/* TSan follows 64 locks of a thread, which may hold more of these: it sees each unlocked */
	DOFI_TSAN_MUTEX(pre_unlock, &alive->mutex, 0);
	DOFI_TSAN_MUTEX(post_unlock, &alive->mutex, 0);
	/* the kernel requires that a word of the mutex is the number of the thread */
	for (i = 0; i < sizeof(alive->mutex) / sizeof(uint32_t); i++) {
		if (atomic_load(&alive->word[i]) != number)
			continue;
		alive->at = i;
		alive->value = number;
		return 0;
	}
	return -ENOTSUP;
}

/* In a forked child the thread is another one, and the word is the parent's. */
void dofi_alive_end(struct dofi_alive *alive)
{
	if (!dofi_alive_is(alive) || alive->value != (uint32_t)syscall(SYS_gettid))
		return;
	DOFI_TSAN_MUTEX(pre_lock, &alive->mutex, 0);
	DOFI_TSAN_MUTEX(post_lock, &alive->mutex, 0, 0);
	pthread_mutex_unlock(&alive->mutex);
}
