/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of IAs in /dev/shm: locked as long as the owner lives, removed when it is dead.
 *
 * A file has a random name, and the names of the fabric's files of the IA's endpoints begin with
 * that and a dot. Its owner has a lock on it from before it has its name; the lock ends with the
 * process, however that ends, and is seen in every PID namespace. So whoever finds it free may
 * remove the file, and a file of an endpoint without one belongs to nobody.
 *
 * The lock is of the open file (F_OFD_SETLK). That of a process (F_SETLK) would end as soon as
 * anybody in it, another IA that looks for the dead, say, closed the file.
 */
#ifndef DOFI_SHM_FILES_H
#define DOFI_SHM_FILES_H

#include <stdint.h>

/* Where shm_open() of the C library puts its files, and so the fabric. */
#define DOFI_SHM_FOLDER "/dev/shm"
#define DOFI_SHM_NAME 25		/* of a file, with its end */
#define DOFI_SHM_FILE_LEN 4096

/*
 * Makes a file, mapped and all zero. A descriptor that has the lock, and that a forked child must
 * not keep; or a negative errno.
 */
int dofi_shm_file_make(char name[DOFI_SHM_NAME], void **at);

/* The owner's: removes it, and the fabric's files if it left any. */
void dofi_shm_file_remove(const char *name);

/*
 * A descriptor of a living owner's file, or a negative errno. @name may be anything: -EINVAL if it
 * is none of such a file. -ENOENT: perhaps it is in another /dev/shm; -EACCES: another user's;
 * -EPROTO: not of our making; -ESTALE: its owner is dead.
 */
int dofi_shm_file_open(const char *name);
int dofi_shm_file_map(int fd, void **at);

/* The random number that a page's name ends with; 0 if @name is none of a page. */
uint64_t dofi_shm_file_number(const char *name);

/* Whether the owner of the page with this number lives: 0, or as dofi_shm_file_open(). */
int dofi_shm_file_is_alive(uint64_t number);

/* Removes the files of all owners that are dead. */
void dofi_shm_files_reap(void);

#endif
