#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checks that the harness of the two-process tests detects failures: sanity2's good cases must
# pass, and each bad case must fail, alone and together with the others.

program=${top_builddir:-.}/test/pair/sanity2
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

"$program" >"$out"
code=$?
cat "$out" | sed 's/^/# /'
[ $code -eq 1 ] || { echo "exit status $code, not 1"; exit 1; }
if grep -q '^ok .* bad:' "$out" || grep -q '^not ok .* good' "$out"; then
	echo "the harness mistook a bad case for a good one, or vice versa"
	exit 1
fi
[ "$(grep -c '^ok .* good' "$out")" -eq 3 ] || { echo "a good case is missing"; exit 1; }
grep -q '^ok .* good when skipped # SKIP because$' "$out" || { echo "the reason for the skip is missing"; exit 1; }
[ "$(grep -c '^not ok ' "$out")" -eq "$("$program" -l | grep -c '^bad:')" ] || {
	echo "a bad case is missing"
	exit 1
}
"$program" good >"$out" || { echo "a good case alone exits with $?"; exit 1; }
