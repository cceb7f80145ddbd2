#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The conformance suite, also for a device without RDMA, and the two-process tests that depend on the
# fabric (PAIR_PROGRAMS), over a fabric with the attributes, limits and manners of EFA; and random
# operations, some of which fail (faults.c). Exits with 77 if libfabric lacks sockets, the base of the
# fabric.

libraries=$(cd "${top_builddir:=.}/test/chaos/.libs" && pwd) && [ -e "$libraries/efa.so" ] &&
	[ -e "$libraries/faults.so" ] || { echo "1..0 # SKIP the preload libraries are not built"; exit 77; }
export LD_PRELOAD="$libraries/efa.so"
export PAIR_PROGRAMS="${PAIR_PROGRAMS:-connect disconnect data rdma errors rmr memory invalidate
	srq datagram mixed}"
DAT_TEST_FLIGHT=$(mktemp) || exit 99
export DAT_TEST_FLIGHT
trap 'rm -f "$DAT_TEST_FLIGHT"' EXIT
head -c 8 /dev/zero >"$DAT_TEST_FLIGHT"
status=0
for suite in conform pair; do
	"${top_srcdir:-.}/test/$suite/fabric.sh" efa || status=$?
done
# test/pair/rdma.c posts 64 writes at once
most=$(od -An -td8 "$DAT_TEST_FLIGHT")
echo "# at most $((most)) RDMA operations in flight"
[ "$((most))" -ge 48 ] || status=1
DAT_TEST_EMULATED=1 "${top_srcdir:-.}/test/conform/fabric.sh" efa || status=$?
export LD_PRELOAD="$libraries/faults.so:$libraries/efa.so" DAT_TEST_IA=ofi-efa DAT_TEST_WARM=1
export DAT_CHAOS=seed=1,open=32,error=8,stall=1000
for version in 1 2; do
	"$top_builddir/test/chaos/random$version" || status=$?
done
exit $status
