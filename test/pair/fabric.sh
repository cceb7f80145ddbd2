#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The two-process tests over another fabric than tcp: fabric.sh NAME; or, without a name, over
# what the provider takes by itself.
# Exits with 77 where libfabric has no such fabric.

: "${top_builddir:=.}"
DAT_TEST_IA=ofi${1:+-$1} DAT_TEST_WARM=1
export DAT_TEST_IA DAT_TEST_WARM
failed=0 passed=0

# The way test/run does: under $TEST_RUNNER if there is one.
run()
{
	if [ -n "$TEST_RUNNER" ]; then
		"$top_builddir/libtool" --silent --mode=execute $TEST_RUNNER "$1"
	else
		"$1"
	fi
}

for program in connect passive qualifier foreign part linger data rdma errors events cno args modify rmr memory \
	zones invalidate ext limits srq; do
	for api in 1 2; do
		# what a version lacks has no program
		[ -x "$top_builddir/test/pair/$program$api" ] || continue
		echo "# $program$api"
		run "$top_builddir/test/pair/$program$api"
		case $? in
		0) passed=$((passed + 1)) ;;
		77) ;;
		*) failed=$((failed + 1)) ;;
		esac
	done
done

[ $failed -eq 0 ] || { echo "# $failed programs failed over $DAT_TEST_IA"; exit 1; }
[ $passed -gt 0 ] || exit 77
