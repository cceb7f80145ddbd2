/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starts the progress thread of a fabric: with what its event queues need, and near its device. */
#ifndef DOFI_FAB_START_H
#define DOFI_FAB_START_H

struct dofi_progress;
struct dofi_progress_ops;
struct fi_info;

/* Like dofi_progress_start(), with the traits of the fabric of @info. */
int dofi_fabric_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
		      struct fi_info *info);

#endif
