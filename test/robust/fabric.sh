#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The robustness tests over another fabric than tcp: fabric.sh NAME. Runs as many rounds as the
# environment of those tests says, and few by default.
set -u
. "${top_srcdir:-.}/test/robust/tap.sh"
fabric=$1
: "${DAT_TEST_ROUNDS:=10}" "${DAT_TEST_CYCLES:=100}" "${DAT_TEST_MANY:=100}"
export DAT_TEST_ROUNDS DAT_TEST_CYCLES DAT_TEST_MANY IPATH_NO_BACKTRACE=1 DAT_TEST_IA="ofi-$fabric"

# The threads of sockets need the processors that the programs poll with: a turn takes from
# milliseconds to a tenth of a second beside other tests. When a peer dies while it connects, sockets
# now and then reports nothing, or frees something twice.
if [ "$fabric" = sockets ]; then
	tests='cycles peers fork threads waits quiet stranger crowd' DAT_TEST_TURNS=100
else
	tests='death cycles peers fork threads waits quiet stranger crowd' DAT_TEST_TURNS=1000
fi
export DAT_TEST_TURNS

for test in $tests; do
	try "$test, $fabric" "${top_builddir:-.}/test/robust/${test}2"
done
finish
