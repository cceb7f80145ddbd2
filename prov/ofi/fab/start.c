/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Starts the progress thread of a fabric: with what its event queues need, and near its device. */

#include "fab/topo.h"

#include "fab/quirks.h"
#include "loop/progress.h"

int dofi_fabric_start(struct dofi_progress *p, const struct dofi_progress_ops *ops,
		      struct fi_info *info)
{
	const struct dofi_quirk *quirk = dofi_quirk_of(info->fabric_attr->prov_name);
	const struct dofi_eq_traits traits = {
		.data_in_eq = quirk->data_in_eq, .fails_for_one = quirk->eq_fails_for_one,
	};
	int ret = dofi_progress_start(p, ops, info, &traits);

	if (!ret)
		dofi_topo_bind(p->thread, info);
	return ret;
}
