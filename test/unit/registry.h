/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the provider calls of a registry, noting what it was told. */
#ifndef UNIT_REGISTRY_H
#define UNIT_REGISTRY_H

#include "dat_select.h"

struct registry {
	int added, removed;
	DAT_RETURN answer;		/* to the next dat_registry_add_provider */
	const DAT_PROVIDER *provider;	/* the last that was added */
	DAT_PROVIDER_INFO info;
	DAT_IA_HANDLE shown;		/* what consumers know an IA by; NULL: the provider's handle */
};

extern struct registry registry;

#endif
