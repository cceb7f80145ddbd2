/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters that the processes of a test share. */
#ifndef TEST_CHAOS_WORDS_H
#define TEST_CHAOS_WORDS_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps @size bytes of the file that @variable names; returns @own, of this process, without one. */
static inline void *words_map(const char *variable, void *own, size_t size)
{
	const char *path = getenv(variable);
	const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *words = own;

	if (fd < 0)
		return words;
	words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (words == MAP_FAILED)
		abort();
	return words;
}

#endif
