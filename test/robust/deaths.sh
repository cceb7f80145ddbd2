#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many peers die one after the other, while idle and while streaming. deaths.sh NAME runs over
# that fabric, deaths.sh without a name over the provider's own choice.
#
# DAT_TEST_DEATHS: number of each (default 40).
set -u
. "${top_srcdir:-.}/test/robust/tap.sh"
export IPATH_NO_BACKTRACE=1 DAT_TEST_ROUNDS="${DAT_TEST_DEATHS:-40}" DAT_TEST_IA="ofi${1:+-$1}"

for DAT_TEST_MOMENTS in idle stream; do
	export DAT_TEST_MOMENTS
	try "$DAT_TEST_ROUNDS deaths, $DAT_TEST_MOMENTS, $DAT_TEST_IA" \
		"${top_builddir:-.}/test/robust/death2" killed_at_any_moment
done
finish
