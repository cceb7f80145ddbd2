#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# How many instructions outside of the kernel an RDMA operation of Debian's dapltest -T P costs on OFED's
# provider and on ours, on the device rxe0, and the functions where ours go; counted by callgrind. In all it
# is the difference of a long and a short run, with the vain looks of a program that polls: how many
# those are is up to the device. So the post and a look are told apart.
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
	LD_LIBRARY_PATH=$2 valgrind --tool=callgrind --fair-sched=yes --callgrind-out-file="$tmp/out.$1.$4" \
		dapltest -T P -D "$1" -s "$host" -n "$3" -m "$mode" -i "$4" -p "$pipeline" \
		"$operation" "$size" 1 >"$tmp/client" 2>&1
	sed -n 's/^summary: //p; s/^totals: //p' "$tmp/out.$1.$4" | sort -n | tail -n 1
}

# calls FUNCTION FILE - how often it was called, and instructions of one call
calls()
{
	awk -v name="$1" '
		/^c?fn=/ {
			id = $0; sub(/^c?fn=/, "", id); text = id
			sub(/\).*/, ")", id); sub(/^[^)]*\) ?/, "", text)
			if (text != "") known[id] = text
			if (/^cfn=/) callee = known[id]
		}
		/^calls=/ {
			split($1, n, "="); getline
			if (callee ~ "^" name "(@|$)") { count += n[2]; cost += $2 }
		}
		END { printf "%d of %d instructions\n", count, count ? cost / count : 0 }' "$2"
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
	echo "  in all $(((many - few) / (2 * iterations))) instructions each"
	for name in dat_ep_post_rdma_write dat_ep_post_rdma_read dat_evd_dequeue dat_evd_wait; do
		echo "  $name: $(calls $name "$tmp/out.$1.$((3 * iterations))")"
	done
}

echo "$((3 * iterations)) $operation of $size bytes, $pipeline under way, by a program that" \
	"$([[ $mode = p ]] && echo polls || echo waits)"
echo "OFED:"
cost ofa-v2-rxe0 '' 62000
echo "ours:"
cost ofi-verbs "$build/.libs" 63000
echo "ours, with the program's start, by function:"
callgrind_annotate "$tmp/out.ofi-verbs.$((3 * iterations))" | grep -E '^ *[0-9,]+ \(' | head -n 30
