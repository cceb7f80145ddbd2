/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Captures stderr of a test. */
#ifndef UNIT_CAPTURE_H
#define UNIT_CAPTURE_H

#include <sys/mman.h>
#include <unistd.h>

struct capture {
	int file, stderr_before;
	char text[4096];
};

static inline void capture_begin(struct capture *c)
{
	c->file = memfd_create("stderr", MFD_CLOEXEC);
	c->stderr_before = dup(STDERR_FILENO);
	dup2(c->file, STDERR_FILENO);
}

/* Ends the capture. Returns the captured text. */
static inline const char *capture_end(struct capture *c)
{
	ssize_t n = pread(c->file, c->text, sizeof(c->text) - 1, 0);

	c->text[n > 0 ? n : 0] = 0;
	dup2(c->stderr_before, STDERR_FILENO);
	close(c->stderr_before);
	close(c->file);
	return c->text;
}

#endif
