#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The conformance suite, and the two-process tests that depend on the fabric (PAIR_PROGRAMS), over a
# fabric with the attributes, limits and manners of EFA. Exits with 77 if libfabric lacks sockets,
# which it is made of.

export LD_PRELOAD="${top_builddir:=.}/test/chaos/.libs/efa.so"
case $LD_PRELOAD in
/*) ;;
*) LD_PRELOAD=$PWD/$LD_PRELOAD ;;
esac
[ -e "$LD_PRELOAD" ] || { echo "1..0 # SKIP $LD_PRELOAD is not built"; exit 77; }
export PAIR_PROGRAMS="${PAIR_PROGRAMS:-connect disconnect data rdma errors rmr memory invalidate
	srq datagram mixed}"
status=0
for suite in conform pair; do
	"${top_srcdir:-.}/test/$suite/fabric.sh" efa || status=$?
done
exit $status
