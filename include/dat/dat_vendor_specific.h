/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Place for vendors' additions to dat.h; this implementation has none. */

#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

#endif /* _DAT_VENDOR_SPECIFIC_H_ */
