#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The chapters that depend on DAT_OFI_STRICT, with 1, the text of DAT: conform1 and conform2 test the
# default.

failed=0
export DAT_OFI_STRICT=1
for api in 1 2; do
	for chapter in handle rmr evd ep modify dto flags; do
		"${top_builddir:-.}/test/conform/conform$api" --chapter $chapter || failed=1
	done
done
exit $failed
