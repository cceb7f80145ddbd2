/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bells without a progress thread: the test reads their sockets. */
#ifndef TEST_RINGS_BELLS_H
#define TEST_RINGS_BELLS_H

#include "rings/bell.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Opens @bell with a name of this process and @number. */
static inline void bell_make(struct dofi_bell *bell, int number)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int len;

	snprintf(bell->name, sizeof(bell->name), "%d-%d", (int)getpid(), number);
	len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dat-ofi-bell-%s", bell->name);
	bell->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(bell->fd, (struct sockaddr *)&name,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
		     0);
}

/* Returns whether @bell was rung since the last call. */
static inline bool bell_rang(const struct dofi_bell *bell)
{
	char byte;

	return recv(bell->fd, &byte, 1, MSG_DONTWAIT) == 1;
}

#endif
