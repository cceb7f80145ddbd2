/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry functions that the provider calls. They record their arguments. */
#ifndef UNIT_REGISTRY_H
#define UNIT_REGISTRY_H

#include "dat_select.h"

struct registry {
	int added, removed;
	DAT_RETURN answer;		/* of the next dat_registry_add_provider */
	const DAT_PROVIDER *provider;	/* the last one that was added */
	DAT_PROVIDER_INFO info;
	DAT_IA_HANDLE shown;		/* the consumer's IA; NULL: the provider's */
};

extern struct registry registry;

#endif
