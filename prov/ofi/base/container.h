/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a member to the structure that contains it. */
#ifndef DOFI_BASE_CONTAINER_H
#define DOFI_BASE_CONTAINER_H

#include <stddef.h>

/* Returns the @type that contains @pointer as its @member. @pointer is not NULL. */
#define DOFI_CONTAINER_OF(pointer, type, member) \
	((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
