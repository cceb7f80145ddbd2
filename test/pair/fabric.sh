#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The two-process tests over a fabric other than tcp: fabric.sh NAME; or without a name over the
# provider's own choice. Each test runs with one API version, alternating between fabrics: the
# versions differ above the fabrics, and tcp has both. Each of the two forms of sockets, which are
# deprecated and slow, has half of the programs. PAIR_FULL=1 runs all with both versions. Exits
# with 77 if libfabric lacks the fabric. PAIR_PROGRAMS: the programs to run (all).

: "${top_builddir:=.}"
DAT_TEST_IA=ofi${1:+-$1} DAT_TEST_WARM=1
export DAT_TEST_IA DAT_TEST_WARM
failed=0 passed=0
out=$(mktemp) || exit 99
trap 'rm -f "$out"' EXIT

# Like test/run: under $TEST_RUNNER if that is set.
run()
{
	if [ -n "$TEST_RUNNER" ]; then
		"$top_builddir/libtool" --silent --mode=execute $TEST_RUNNER "$1"
	else
		"$1"
	fi
}

# versions NUMBER PROGRAM - the API versions that PROGRAM runs with here; a program of one version
# runs on each fabric
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

# Similar fabrics get different API versions: sockets and its connectionless form, shared memory
# alone and with another fabric.
case ${1:-} in
shm | sockets | tcp-rdm) first=0 ;;
*) first=1 ;;
esac

# Selects the half of the programs that does not run, in pairs of neighbors.
case ${1:-} in
sockets) not=0 ;;
sockets-rdm) not=1 ;;
*) not= ;;
esac

all='connect passive qualifier foreign disconnect linger data rdma errors events cno modify rmr
	memory freed pz invalidate ext limits srq datagram mixed'
n=0
for program in ${PAIR_PROGRAMS:-$all}; do
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
