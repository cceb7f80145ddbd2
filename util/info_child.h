/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a function in a child process, with a time limit for each of its steps. */
#ifndef INFO_CHILD_H
#define INFO_CHILD_H

#include <stdbool.h>
#include <stddef.h>

struct child;

enum child_end {
	CHILD_DONE,   /* the function returned true */
	CHILD_FAILED, /* the function returned false */
	CHILD_HUNG,   /* a step took longer than the limit, and the child was killed */
	CHILD_DIED,   /* a signal or exit() ended the child */
};

struct child_result {
	enum child_end end;
	int signal;    /* of CHILD_DIED, 0 if the child exited */
	char step[64]; /* the last step that began */
	char log[512]; /* the last message that the provider or the registry logged */
};

/* Names the step that begins. Call in the child. */
void child_step(struct child *c, const char *name);

/*
 * Calls @body(child, @shared) in a child process, where @shared is memory of @size bytes that both
 * processes see; a copy of its end state is in *@shared afterwards. Standard error of the child is
 * captured. Returns 0, or -1 if no child could be started, with the reason in @result->log.
 */
int child_run(bool (*body)(struct child *c, void *shared), void *shared, size_t size,
	      unsigned step_seconds, struct child_result *result);

#endif
