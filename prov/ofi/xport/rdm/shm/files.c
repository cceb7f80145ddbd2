/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of IAs in /dev/shm: locked while the owner is alive, removed after it died. */

#include "xport/rdm/shm/files.h"

#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PREFIX "dat-ofi-"

/* Returns the length of the page's name that @file begins with, or 0. */
static size_t name_len(const char *file)
{
	size_t len = DOFI_SHM_NAME - 1;

	if (strncmp(file, PREFIX, strlen(PREFIX)) ||
	    strspn(file + strlen(PREFIX), "0123456789abcdef") != len - strlen(PREFIX))
		return 0;
	return len;
}

static bool is_page(const char *file)
{
	size_t len = name_len(file);

	return len && !file[len];
}

static bool is_endpoint(const char *file)
{
	size_t len = name_len(file);

	return len && file[len] == '.';
}

static int page_lock(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &whole) ? -errno : 0;
}

/* Returns true if in doubt. */
static bool page_is_locked(int fd)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &whole) || whole.l_type != F_UNLCK;
}

int dofi_shm_file_map(int fd, void **at)
{
	void *mapped = mmap(NULL, DOFI_SHM_FILE_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	*at = mapped;
	return 0;
}

/* Opens a page of this user. Returns a descriptor or a negative errno. */
static int page_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (st.st_uid != geteuid())
		ret = -EACCES;
	else if (!S_ISREG(st.st_mode) || st.st_size != DOFI_SHM_FILE_LEN)
		ret = -EPROTO;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/*
 * Removes the page if its owner is dead. Returns 0, -EBUSY if the owner is alive, or an error of
 * page_open().
 */
static int page_remove_stale(int dir, const char *name)
{
	int fd = page_open(dir, name), ret = -EBUSY;

	if (fd < 0)
		return fd;
	/* names are not reused, so this removes the file that was checked */
	if (!page_is_locked(fd))
		ret = unlinkat(dir, name, 0) ? -errno : 0;
	close(fd);
	return ret;
}

static bool is_ours(int dir, const char *file)
{
	struct stat st;

	return !fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) && st.st_uid == geteuid();
}

static bool has_page(int dir, const char *file)
{
	char name[DOFI_SHM_NAME];
	struct stat st;

	memcpy(name, file, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT;
}

/* Removes files of endpoints without a page: those of page @name, or all if @name is NULL. */
static void orphans_remove(DIR *folder, const char *name)
{
	const struct dirent *e;
	int dir = dirfd(folder);

	rewinddir(folder);
	while ((e = readdir(folder)))
		if (is_endpoint(e->d_name) && (!name || !strncmp(e->d_name, name, strlen(name))) &&
		    !has_page(dir, e->d_name) && is_ours(dir, e->d_name) &&
		    !unlinkat(dir, e->d_name, 0))
			dofi_log(DOFI_DEBUG, DOFI_FAB, "removed %s/%s", DOFI_SHM_FOLDER, e->d_name);
}

void dofi_shm_files_reap(void)
{
	DIR *folder = opendir(DOFI_SHM_FOLDER);
	const struct dirent *e;

	if (!folder)
		return;
	while ((e = readdir(folder)))
		if (is_page(e->d_name) && !page_remove_stale(dirfd(folder), e->d_name))
			dofi_log(DOFI_INFO, DOFI_FAB, "%s/%s: its owner is dead", DOFI_SHM_FOLDER,
				 e->d_name);
	orphans_remove(folder, NULL);
	closedir(folder);
}

int dofi_shm_file_open(const char *name)
{
	int dir, fd;

	if (!is_page(name))
		return -EINVAL;
	dir = open(DOFI_SHM_FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = page_open(dir, name);
	close(dir);
	if (fd >= 0 && !page_is_locked(fd)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

uint64_t dofi_shm_file_number(const char *name)
{
	return is_page(name) ? strtoull(name + strlen(PREFIX), NULL, 16) : 0;
}

static void name_of(uint64_t number, char name[DOFI_SHM_NAME])
{
	snprintf(name, DOFI_SHM_NAME, PREFIX "%016llx", (unsigned long long)number);
}

int dofi_shm_file_is_alive(uint64_t number)
{
	char name[DOFI_SHM_NAME];
	int fd;

	name_of(number, name);
	fd = dofi_shm_file_open(name);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Creates a file without a name and maps it. Returns a descriptor or a negative errno. */
static int nameless_make(void **at)
{
	int fd = open(DOFI_SHM_FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), ret;

	/* a directory of that name in a chroot may be no tmpfs */
	if (fd < 0)
		return errno == EOPNOTSUPP ? -ENOENT : -errno;
	/* allocate now: with a full /dev/shm the first write would raise SIGBUS */
	ret = -posix_fallocate(fd, 0, DOFI_SHM_FILE_LEN);
	if (!ret)
		ret = dofi_shm_file_map(fd, at);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* The length of an endpoint's file, and how much of it is written at once (1.17 to 2.6). */
#define ENDPOINT_LEN (16UL << 20)
#define ENDPOINT_BEGIN (4UL << 20)

static bool is_full(int fd)
{
	struct statvfs fs;

	/* a tmpfs without a limit has no blocks */
	return !fstatvfs(fd, &fs) && fs.f_blocks && fs.f_bavail < ENDPOINT_BEGIN / fs.f_frsize;
}

int dofi_shm_file_fits(const char *name)
{
	char path[sizeof(DOFI_SHM_FOLDER) + NAME_MAX + 1];
	struct rlimit limit;
	int fd, ret;

	/* a longer file would raise SIGXFSZ */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < ENDPOINT_LEN)
		return -EFBIG;
	snprintf(path, sizeof(path), DOFI_SHM_FOLDER "/%s", name);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = is_full(fd) ? -ENOSPC : 0;
	close(fd);
	unlink(path);
	return ret;
}

static int link_by_random(const char *file, char name[DOFI_SHM_NAME])
{
	char path[sizeof(DOFI_SHM_FOLDER) + DOFI_SHM_NAME];
	uint64_t number;

	/* getrandom() returns so few bytes together or not at all */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	name_of(number, name);
	snprintf(path, sizeof(path), DOFI_SHM_FOLDER "/%s", name);
	return linkat(AT_FDCWD, file, AT_FDCWD, path, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/*
 * Locks the file @made, then gives it a name. Returns a descriptor that holds the lock: a new
 * description, as the mapping keeps the description of @made open, and with it its locks, also in a
 * forked child.
 */
static int publish(int made, char name[DOFI_SHM_NAME])
{
	char path[32];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", made);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = page_lock(fd);
	if (!ret)
		ret = link_by_random(path, name);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int dofi_shm_file_make(char name[DOFI_SHM_NAME], void **at)
{
	void *mapped;
	int made = nameless_make(&mapped), fd;

	if (made < 0)
		return made;
	fd = publish(made, name);
	close(made);
	if (fd < 0)
		munmap(mapped, DOFI_SHM_FILE_LEN);
	else
		*at = mapped;
	return fd;
}

void dofi_shm_file_remove(const char *name)
{
	DIR *folder = opendir(DOFI_SHM_FOLDER);

	if (!folder)
		return;
	unlinkat(dirfd(folder), name, 0);
	orphans_remove(folder, name);
	closedir(folder);
}
