#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The robustness tests over a fabric other than tcp: fabric.sh NAME. Runs as many rounds as the
# tests' environment variables set, by default few.
set -u
. "${top_srcdir:-.}/test/robust/tap.sh"
fabric=$1
: "${DAT_TEST_ROUNDS:=10}" "${DAT_TEST_CYCLES:=100}" "${DAT_TEST_MANY:=100}"
export DAT_TEST_ROUNDS DAT_TEST_CYCLES DAT_TEST_MANY IPATH_NO_BACKTRACE=1 DAT_TEST_IA="ofi-$fabric"

# The threads of sockets compete with the polling programs for processors: with other tests
# running a turn takes from milliseconds to a tenth of a second. When a peer dies while it
# connects, sockets occasionally reports nothing, or frees memory twice.
if [ "$fabric" = sockets ]; then
	tests='cycles peers fork threads waits quiet foreign_client crowd datagrams' DAT_TEST_TURNS=100
else
	tests='death cycles peers fork handles std_fds environ inherit threads waits quiet foreign_client crowd datagrams' DAT_TEST_TURNS=1000
fi
export DAT_TEST_TURNS

for test in $tests; do
	try "$test, $fabric" "${top_builddir:-.}/test/robust/${test}2"
done
finish
