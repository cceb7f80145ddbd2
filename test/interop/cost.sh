#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How many instructions outside of the kernel an RDMA operation of Debian's dapltest -T P costs on OFED's
# provider and on ours, on the device rxe0; and the functions where ours go. Counted by callgrind as the
# difference of a long and a short run. A program that polls counts its vain looks, too.
#
# usage: test/interop/cost.sh [OPERATION SIZE PIPELINE MODE]	(RW 4 16 p; b is for a program that waits)
#
# Environment: COST_ITERATIONS (1000), INTEROP_HOST (10.77.0.1), top_builddir

set -u

operation=${1:-RW} size=${2:-4} pipeline=${3:-16} mode=${4:-p}
iterations=${COST_ITERATIONS:-1000}
host=${INTEROP_HOST:-10.77.0.1}
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
tmp=$(mktemp -d) || exit 99
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$tmp"' EXIT
[[ -e /sys/class/infiniband/rxe0 ]] || { echo "SKIP: there is no device rxe0"; exit 77; }

export IPATH_NO_BACKTRACE=1 DAT_OVERRIDE=$tmp/dat.conf
cp "$build/test/dat.conf" "$DAT_OVERRIDE" || exit 99
echo 'ofa-v2-rxe0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "rxd0 0" ""' >>"$DAT_OVERRIDE"

# count IA LIBRARIES PORT ITERATIONS - instructions of a client
count()
{
	LD_LIBRARY_PATH=$2 valgrind --tool=callgrind --callgrind-out-file="$tmp/out.$1.$4" \
		dapltest -T P -D "$1" -s "$host" -n "$3" -m "$mode" -i "$4" -p "$pipeline" \
		"$operation" "$size" 1 >"$tmp/client" 2>&1
	sed -n 's/^summary: //p; s/^totals: //p' "$tmp/out.$1.$4" | sort -n | tail -n 1
}

# cost IA LIBRARIES PORT - instructions of one operation
cost()
{
	local few many

	LD_LIBRARY_PATH=$2 dapltest -T S -D "$1" -n "$3" >/dev/null 2>&1 &
	sleep 2
	few=$(count "$@" "$iterations")
	many=$(count "$@" $((3 * iterations)))
	LD_LIBRARY_PATH=$2 dapltest -T Q -D "$1" -n "$3" -s "$host" >/dev/null 2>&1
	echo $(((many - few) / (2 * iterations)))
}

echo "$operation of $size bytes, $pipeline under way, $([[ $mode = p ]] && echo polling || echo waiting)"
echo "OFED: $(cost ofa-v2-rxe0 '' 62000) instructions each"
echo "ours: $(cost ofi-verbs "$build/.libs" 63000) instructions each"
echo "ours, $((3 * iterations)) operations and the program's start, by function:"
callgrind_annotate "$tmp/out.ofi-verbs.$((3 * iterations))" | grep -E '^ *[0-9,]+ \(' | head -n 30
