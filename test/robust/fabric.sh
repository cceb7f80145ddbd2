#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The robustness tests over another fabric than tcp: fabric.sh NAME. Runs as many rounds as the
# environment of those tests says, and few by default.
set -u
build=${top_builddir:-.}
: "${DAT_TEST_ROUNDS:=10}" "${DAT_TEST_CYCLES:=100}" "${DAT_TEST_MANY:=100}"
export DAT_TEST_ROUNDS DAT_TEST_CYCLES DAT_TEST_MANY IPATH_NO_BACKTRACE=1
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT
n=0 bad=0 skipped=0

# A turn takes sockets, whose threads want the processors that the programs poll with, from
# milliseconds to a tenth of a second where others are at work, too.
turns()
{
	[ "$1" = sockets ] && echo 100 || echo 1000
}

# What sockets, which libfabric has given up, does when a peer dies while it connects, is up to
# the moment: now and then it tells nobody, or frees something twice.
tests()
{
	[ "$1" = sockets ] || echo death
	echo cycles peers fork threads quiet stranger
}

fabric=$1
for test in $(tests "$fabric"); do
	n=$((n + 1))
	name="$test, $fabric"
	DAT_TEST_IA=ofi-$fabric DAT_TEST_TURNS=$(turns "$fabric") "$build/test/robust/${test}2" >"$out" 2>&1
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
