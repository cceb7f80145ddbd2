#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# CM messages that a proxy changes (live.c), over each fabric with CM sockets of this provider:
# with one seed for "make check"; for "make fuzz", over FABRIC for FUZZ_SECONDS, with a new seed
# for each run.
#
# usage: test/fuzz/live.sh [FABRIC]    shm, rxm, or local: shared memory on an IA with tcp
#
# Environment: FUZZ_SECONDS   duration (60)
#              DAT_TEST_SEED  the first seed
set -u
. "${top_srcdir:-.}/test/robust/tap.sh"
program=${top_builddir:-.}/test/fuzz/live2
export IPATH_NO_BACKTRACE=1 DAT_TEST_SEED

ia_of()
{
	case $1 in
	local) echo ofi ;;
	*) echo "ofi-$1" ;;
	esac
}

fuzz()
{
	end=$(($(date +%s) + ${FUZZ_SECONDS:-60})) runs=0
	: "${DAT_TEST_SEED:=$(($(date +%s) % 1000000))}"
	while [ "$(date +%s)" -lt $end ]; do
		if ! "$program" >"$tap_out" 2>&1; then
			cat "$tap_out"
			echo "FAIL: fuzz live, $1: DAT_TEST_SEED=$DAT_TEST_SEED make fuzz-live-$1 FUZZ_SECONDS=1"
			exit 1
		fi
		runs=$((runs + 1)) DAT_TEST_SEED=$((DAT_TEST_SEED + 1))
	done
	[ $runs -gt 0 ] || { echo "FAIL: fuzz live, $1: no run"; exit 1; }
	echo "PASS: fuzz live, $1, $runs runs, the last of them with DAT_TEST_SEED=$((DAT_TEST_SEED - 1))"
}

if [ $# -gt 0 ]; then
	DAT_TEST_IA=$(ia_of "$1")
	export DAT_TEST_IA
	fuzz "$1"
	exit
fi
# a seed with which an unchecked address crashes libfabric 1.17
: "${DAT_TEST_SEED:=201}"
for fabric in shm rxm local; do
	DAT_TEST_IA=$(ia_of $fabric)
	export DAT_TEST_IA
	try "changed CM messages, $fabric" ${TEST_RUNNER:-} "$program"
done
finish
