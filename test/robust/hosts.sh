#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two hosts, for both API versions and each fabric between hosts. The programs mostly wait, and
# share nothing, so all run at once.
set -u
unset DAT_TEST_WARM	# libfabric must find the network that a role creates
build=${top_builddir:-.}
export IPATH_NO_BACKTRACE=1
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

for fabric in ofi-tcp ofi ofi-rxm; do
	for api in 1 2; do
		(
			DAT_TEST_IA=$fabric "$build/test/robust/hosts$api" >"$tmp/$fabric.$api" 2>&1
			echo $? >"$tmp/$fabric.$api.status"
		) &
	done
done
wait

bad=0 skipped=0 n=0
for status in "$tmp"/*.status; do
	out=${status%.status}
	name="DAT ${out##*.} over $(basename "${out%.*}")"
	n=$((n + 1))
	sed 's/^/# /' "$out"
	case $(cat "$status") in
	0) echo "ok $n - $name" ;;
	77) echo "ok $n - $name # SKIP"; skipped=$((skipped + 1)) ;;
	*) echo "not ok $n - $name"; bad=1 ;;
	esac
done
echo "1..$n"
[ $bad -eq 0 ] || exit 1
[ $skipped -lt $n ] || exit 77
