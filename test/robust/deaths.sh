#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Many peers that die, one after the other: idle ones, and ones that stream. deaths.sh NAME runs over that
# fabric; without a name, over what the provider takes.
#
# DAT_TEST_DEATHS: how many of each (default 40). Beyond 256, which check-libfabric has, each place of
# shared memory is used again after a death.
set -u
build=${top_builddir:-.}
export IPATH_NO_BACKTRACE=1 DAT_TEST_ROUNDS="${DAT_TEST_DEATHS:-40}" DAT_TEST_IA="ofi${1:+-$1}"
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
n=0 bad=0 skipped=0

for moments in idle stream; do
	n=$((n + 1))
	name="$DAT_TEST_ROUNDS deaths, $moments, $DAT_TEST_IA"
	DAT_TEST_MOMENTS=$moments "$build/test/robust/death2" killed_at_any_moment >"$out" 2>&1
	case $? in
	0)
		echo "ok $n - $name"
		;;
	77)
		skipped=$((skipped + 1))
		echo "ok $n - $name # SKIP"
		;;
	*)
		echo "not ok $n - $name"
		bad=1
		;;
	esac
	sed 's/^/# /' "$out"
done
echo "1..$n"
[ $bad -eq 0 ] || exit 1
[ $skipped -lt $n ] || exit 77
