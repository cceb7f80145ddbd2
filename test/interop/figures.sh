#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The speed of Debian's dapltest -T P on OFED's provider and on this one, on the device rxe0: RDMA
# writes and reads, one at a time (latency) and 16 at a time (bandwidth), with polling (-m p) and
# with waiting (-m b, dapltest's default). The two providers alternate, so that other load on the
# machine affects both; the ratio is the median of the ratios of the rounds. The number of
# operations per size is chosen to take about half a second in a guest.
#
# Environment: FIGURES_MODES ("p b"), FIGURES_ROUNDS (5), FIGURES_ITERATIONS (by the size),
# INTEROP_HOST (10.77.0.1), top_builddir

. "$(dirname "$0")/rxe.sh"

modes=${FIGURES_MODES:-p b}
rounds=${FIGURES_ROUNDS:-5}

declare -A iterations=([4]=16000 [4096]=6000 [65536]=800)
declare -A ia=([ofed]=ofa-v2-rxe0 [ours]=ofi-verbs)
declare -A port=([ofed]=62000 [ours]=63000)
declare -A libraries=([ofed]='' [ours]=$build/.libs)

# dapltest_on WHICH ARGUMENT... - runs dapltest with WHICH's libraries and port
dapltest_on()
{
	local which=$1 type=$2

	shift 2
	LD_LIBRARY_PATH=${libraries[$which]} timeout 120 dapltest -T "$type" -D "${ia[$which]}" \
		-n "${port[$which]}" "$@" 2>&1
}

# measure WHICH MODE PIPELINE OPERATION SIZE - latency in us and bandwidth in MB/s, or "failed"
measure()
{
	dapltest_on "$1" P -s "$host" -m "$2" \
		-i "${FIGURES_ITERATIONS:-${iterations[$5]}}" -p "$3" "$4" "$5" 1 |
		awk -F', *' '/^raw:/ { print $9, $7 * $3 / 1048576; n++ } END { if (!n) print "failed" }'
}

# column N - of the input, without failed runs
column()
{
	awk -v c="$1" '$1 != "failed" { print $c }'
}

# row MODE PIPELINE OPERATION SIZE - latency for a PIPELINE of one, else bandwidth
row()
{
	local round which column=$((1 + ($2 > 1))) ofed ours ratio

	rm -f "$tmp/ofed" "$tmp/ours"
	for ((round = 0; round < rounds; round++)); do
		for which in ofed ours; do
			measure $which "$@" >>"$tmp/$which"
		done
	done
	ofed=$(column $column <"$tmp/ofed" | median)
	ours=$(column $column <"$tmp/ours" | median)
	ratio=$(paste "$tmp/ofed" "$tmp/ours" | awk -v c=$column 'NF == 4 { print $(c + 2) / $c }' | median)
	printf '%-3s %6d  %2d in flight  %10.3f %10.3f %s  %5.2f\n' "$3" "$4" "$2" "${ofed:-0}" "${ours:-0}" \
		"$( (($2 > 1)) && echo MiB/s || echo 'us   ')" "${ratio:-0}"
}

for which in ofed ours; do
	LD_LIBRARY_PATH=${libraries[$which]} dapltest -T S -D "${ia[$which]}" -n "${port[$which]}" \
		>"$tmp/server-$which" 2>&1 &
done
for which in ofed ours; do
	wait_until 30 listening ${port[$which]} || { echo "the server on ${ia[$which]} does not listen"; exit 1; }
done
for mode in $modes; do
	[[ $mode = p ]] && title='a program that polls' || title='a program that waits'
	printf '%-26s %10s %10s       %s\n' "$title" OFED ours 'ours/OFED'
	for pipeline in 1 16; do
		for operation in RW RR; do
			for size in 4 4096 65536; do
				row $mode $pipeline $operation $size
			done
		done
	done
done
for which in ofed ours; do
	dapltest_on $which Q -s "$host" >/dev/null
done
