#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The number of instructions outside the kernel per RDMA operation of Debian's dapltest -T P, on
# OFED's provider and on this one, on the device rxe0, counted by callgrind, and this provider's
# functions with the most instructions. The cost is the difference between a long run and a short
# one. Polls of the EVD are counted apart: their number depends on the device and on callgrind's
# scheduling.
#
# usage: test/interop/cost.sh [OPERATION SIZE PIPELINE MODE]	(RW 4 16 p; mode b waits)
#
# Environment: COST_ITERATIONS (1000), INTEROP_HOST (10.77.0.1), top_builddir

. "$(dirname "$0")/rxe.sh"
. "$(dirname "$0")/../callgrind.sh"

operation=${1:-RW} size=${2:-4} pipeline=${3:-16} mode=${4:-p}
iterations=${COST_ITERATIONS:-1000}

# run_counted IA LIBRARIES PORT ITERATIONS - runs a client, and counts in out.IA.ITERATIONS
run_counted()
{
	LD_LIBRARY_PATH=$2 valgrind --tool=callgrind --fair-sched=yes --callgrind-out-file="$tmp/out.$1.$4" \
		dapltest -T P -D "$1" -s "$host" -n "$3" -m "$mode" -i "$4" -p "$pipeline" \
		"$operation" "$size" 1 >"$tmp/client" 2>&1
}

# instructions FILE - all except in polls of the EVD, as their number varies
instructions()
{
	local sum

	read -r _ sum < <(calls dat_evd_dequeue "$1")
	echo $(($(sed -n 's/^totals: //p' "$1") - sum))
}

# cost IA LIBRARIES PORT - instructions per operation, divided by the posts, since dapltest runs
# each operation twice
cost()
{
	local few=$tmp/out.$1.$iterations many=$tmp/out.$1.$((3 * iterations)) post name
	local posts more n sum

	[[ $operation = RR ]] && post=dat_ep_post_rdma_read || post=dat_ep_post_rdma_write
	LD_LIBRARY_PATH=$2 dapltest -T S -D "$1" -n "$3" >/dev/null 2>&1 &
	sleep 2
	run_counted "$@" "$iterations"
	run_counted "$@" $((3 * iterations))
	LD_LIBRARY_PATH=$2 dapltest -T Q -D "$1" -n "$3" -s "$host" >/dev/null 2>&1
	read -r posts _ < <(calls $post "$few")
	read -r more _ < <(calls $post "$many")
	((more > posts)) || { echo "  no operation was posted:"; tail -n 5 "$tmp/client"; return; }
	echo "  $((($(instructions "$many") - $(instructions "$few")) / (more - posts))) instructions each, without polls of the EVD"
	for name in $post dat_evd_dequeue dat_evd_wait; do
		read -r n sum < <(calls $name "$many")
		((n)) && echo "  $name: $n of $((sum / n))"
	done
}

echo "$((3 * iterations)) $operation of $size bytes, $pipeline in flight, by a program that" \
	"$([[ $mode = p ]] && echo polls || echo waits)"
echo "OFED:"
cost ofa-v2-rxe0 '' 62000
echo "ours:"
cost ofi-verbs "$build/.libs" 63000
echo "ours, including program start, by function:"
callgrind_annotate "$tmp/out.ofi-verbs.$((3 * iterations))" | grep -E '^ *[0-9,]+ \(' | head -n 30
