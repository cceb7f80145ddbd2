#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The two-process tests over another fabric than tcp: fabric.sh NAME; or, without a name, over
# what the provider takes by itself. Each runs with one API version, which is another on the next
# fabric: the versions differ above the fabrics, and over tcp they have both. Of the two forms of sockets, which
# are deprecated and slow, each has half of the programs. PAIR_FULL=1 runs all with both versions.
# Exits with 77 where libfabric has no such fabric.

: "${top_builddir:=.}"
DAT_TEST_IA=ofi${1:+-$1} DAT_TEST_WARM=1
export DAT_TEST_IA DAT_TEST_WARM
failed=0 passed=0
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT

# The way test/run does: under $TEST_RUNNER if there is one.
run()
{
	if [ -n "$TEST_RUNNER" ]; then
		"$top_builddir/libtool" --silent --mode=execute $TEST_RUNNER "$1"
	else
		"$1"
	fi
}

# versions NUMBER PROGRAM - the API versions with which it runs here; what is of one version alone has
# that on each fabric
versions()
{
	if [ -z "${PAIR_FULL:-}" ] && [ $(($1 / 2 % 2)) = "$not" ]; then
		:
	elif [ ! -x "$top_builddir/test/pair/${2}1" ]; then
		echo 2
	elif [ -n "${PAIR_FULL:-}" ]; then
		echo 1 2
	else
		echo $((($1 + first) % 2 + 1))
	fi
}

# Fabrics that are alike differ in this: sockets and its connectionless form, shared memory alone and
# beside another.
case ${1:-} in
shm | net | sockets | tcp-rdm) first=0 ;;
*) first=1 ;;
esac

# The half of the programs that does not run, in pairs of neighbours.
case ${1:-} in
sockets) not=0 ;;
sockets-rdm) not=1 ;;
*) not= ;;
esac

n=0
for program in connect passive qualifier foreign part linger data rdma errors events cno modify rmr memory \
	freed zones invalidate ext limits srq; do
	n=$((n + 1))
	for api in $(versions $n $program); do
		echo "# $program$api"
		run "$top_builddir/test/pair/$program$api" >"$out" 2>&1
		status=$?
		cat "$out"
		case $status in
		0) passed=$((passed + 1)) ;;
		77) ! grep -q '^1\.\.0 # SKIP no fabric' "$out" || exit 77 ;;
		*) failed=$((failed + 1)) ;;
		esac
	done
done

[ $failed -eq 0 ] || { echo "# $failed programs failed over $DAT_TEST_IA"; exit 1; }
[ $passed -gt 0 ] || exit 77
