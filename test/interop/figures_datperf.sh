#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The speed of datperf on OFED's provider and on this one, both with this registry, and on bare
# libfabric, on the device rxe0. As in figures.sh they alternate, and a ratio is the median of the
# ratios of the rounds. Client and server have a processor each if there are two, which makes it
# less random which of them does the device's work. On one processor the sends of a stream find no
# receive and are repeated when the device decides, on all three: their bandwidth is meaningless
# there.
#
# Environment: FIGURES_ROUNDS (5), FIGURES_ITERATIONS (by the size), top_builddir

. "$(dirname "$0")/rxe.sh"

rounds=${FIGURES_ROUNDS:-5}
declare -A iterations=([4]=2000 [4K]=1000 [64K]=200)
program=$build/util/.libs/datperf
[[ -x $program ]] || program=$build/util/datperf

# perf NAME SIZE ARGUMENT... - one line per test: NAME, test, latency, bandwidth; with --raw
# another line for bare libfabric, with the name "raw"
perf()
{
	local side=$1 size=$2

	shift 2
	LD_LIBRARY_PATH=$build/.libs timeout 300 "$program" --local --bind --rotate --json -S "$size" \
		-n "${FIGURES_ITERATIONS:-${iterations[$size]}}" "$@" >"$tmp/output" 2>&1 || return
	tr -d '",' <"$tmp/output" | awk -v dat="$side" '
		$1 == "test:" { test = $2 }
		$1 == "dat:" { side = dat }
		$1 == "raw:" { side = "raw" }
		$1 == "lat_us:" { us = $2 }
		$1 == "bw_MBps:" { print side, test, us, $2 }'
}

# row SIZE TEST METRIC COLUMN - prints the medians of all rounds
row()
{
	local side

	for side in ofed raw ours; do
		awk -v side=$side -v test="$2" -v c="$4" '$1 == side && $2 == test { print $c }' "$tmp/rounds" >"$tmp/$side"
		(($(wc -l <"$tmp/$side") == rounds)) || { echo "datperf did not report $3 of $2 for $side"; exit 1; }
	done
	printf '%-6s %5s %-5s %10.3f %10.3f %10.3f   %9.3f %9.3f\n' "$2" "$1" "$3" \
		"$(median <"$tmp/ofed")" "$(median <"$tmp/raw")" "$(median <"$tmp/ours")" \
		"$(ratio "$tmp/raw")" "$(ratio "$tmp/ours")"
}

# ratio FILE - to OFED's figures
ratio()
{
	paste "$1" "$tmp/ofed" | awk '{ print $1 / $2 }' | median
}

printf '%-18s %10s %10s %10s   %9s %9s\n' datperf OFED bare ours bare/OFED ours/OFED
for size in 4 4K 64K; do
	for ((round = 0; round < rounds; round++)); do
		perf ofed $size -D ofa-v2-rxe0 && perf ours $size -D ofi-verbs --raw || { cat "$tmp/output"; exit 1; }
	done >"$tmp/rounds"
	for test in send write read; do
		row $size $test us 3
		row $size $test MB/s 4
	done
done
