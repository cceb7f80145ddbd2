#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# datperf on $DAT_TEST_IA and on bare libfabric: both measure each test and size; also with
# several connections at once.
set -u
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
: "${DAT_OVERRIDE:=$build/test/dat.conf}"
export DAT_OVERRIDE
program=$build/util/.libs/datperf
[ -x "$program" ] || program=$build/util/datperf

perf()
{
	out=$(LD_LIBRARY_PATH=$build/.libs timeout 120 "$program" --local -D "${DAT_TEST_IA:-ofi-tcp}" \
		--iters 100 "$@" 2>&1)
	status=$?
	echo "$out"
	return $status
}

perf --raw --sizes 4,64K && [ "$(echo "$out" | grep -cE '(send|write|read)( +[0-9.]+\*?){8}$')" -eq 6 ] &&
	perf --peers 1,8 && [ "$(echo "$out" | grep -cE '^ +[18]( +[0-9.]+){7}$')" -eq 2 ]
