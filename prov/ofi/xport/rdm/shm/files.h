/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of IAs in /dev/shm: locked while the owner is alive, removed after it died.
 *
 * A file has a random name. The fabric's files for the IA's endpoints have names that begin with
 * that name and a dot. The owner locks the file before it gives it the name; the lock ends with the
 * process, however that ends, and works across PID namespaces. So any process may remove a file
 * that is not locked, and files of endpoints without such a file.
 *
 * The lock belongs to the open file description (F_OFD_SETLK). A lock of the process (F_SETLK)
 * would end when another IA of the process, in search of dead owners, closes the file.
 */
#ifndef DOFI_SHM_FILES_H
#define DOFI_SHM_FILES_H

#include <stdint.h>

/* Where shm_open() of the C library creates files, and so libfabric. */
#define DOFI_SHM_FOLDER "/dev/shm"
#define DOFI_SHM_NAME 25		/* size of a file's name, with its terminator */
#define DOFI_SHM_FILE_LEN 4096

/*
 * Creates a file, all zero, and maps it. Returns a descriptor that holds the lock, and that a
 * forked child must not keep; or a negative errno.
 */
int dofi_shm_file_make(char name[DOFI_SHM_NAME], void **at);

/* Removes the file, and files that the fabric has left. The owner calls it. */
void dofi_shm_file_remove(const char *name);

/*
 * Opens the file of an owner that is alive. Returns a descriptor; -EINVAL if @name, which may be
 * any string, is no name of such a file; -ENOENT if there is none, perhaps because it is in another
 * /dev/shm; -EACCES if it is another user's; -EPROTO if it has another format; -ESTALE if its owner
 * is dead; or another negative errno.
 */
int dofi_shm_file_open(const char *name);
int dofi_shm_file_map(int fd, void **at);

/*
 * Returns 0 if the fabric has what it needs for the file @name of an endpoint, or a negative errno:
 * libfabric since 2.2 crashes if it cannot create or enlarge the file, and every version if the
 * first write to it finds no memory.
 */
int dofi_shm_file_fits(const char *name);

/* Returns the random number that the name of a page ends with; 0 if @name is no such name. */
uint64_t dofi_shm_file_number(const char *name);

/*
 * Returns 0 if the owner of the page with this number is alive, or an error of
 * dofi_shm_file_open().
 */
int dofi_shm_file_is_alive(uint64_t number);

/* Removes the files of all owners that are dead. */
void dofi_shm_files_reap(void);

#endif
