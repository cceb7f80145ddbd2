/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Place for vendors' additions to udat.h; this implementation has none. */

#ifndef _UDAT_VENDOR_SPECIFIC_H_
#define _UDAT_VENDOR_SPECIFIC_H_

#include <dat2/udat.h>

#endif /* _UDAT_VENDOR_SPECIFIC_H_ */
