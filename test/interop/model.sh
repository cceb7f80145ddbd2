#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The model of DAT (test/model) against OFED's provider and this one on the same device: counts the
# seeds that find a difference, by difference. Fails if this provider differs from the model.
#
# Environment: MODEL_SEEDS  how many seeds, from 1 (50); MODEL_CALLS: see test/model/drive.c

. "${top_srcdir:-.}/test/interop/rxe.sh"
program=$build/test/model/.libs/model2	# Libtool's
[[ -x $program ]] || program=$build/test/model/model2
[[ -x $program ]] || { echo "$program is not built"; exit 99; }
export LD_LIBRARY_PATH=$build/.libs MODEL_SEQUENCES=1

# difference IA SEED - runs the seed; prints one line if it fails: the difference without its numbers
difference()
{
	local status

	DAT_TEST_IA=$1 MODEL_SEED=$2 timeout -k 5 60 "$program" >"$tmp/out" 2>&1 </dev/null
	status=$?
	case $status in
	0) ;;
	1) grep -qE ' returns |^seed ' "$tmp/out" || { echo "failed: $(tail -n 1 "$tmp/out")"; return; }
		sed -n -E '/ returns |^seed /{
		s/seed [0-9]+, call [0-9]+ of [^:]*: *//; s/; the model permits.*//; s/0x[0-9a-f]+ ?//g
		s/\b([a-z]+)[0-9]+\.[0-9]+/\1/g; s/\b[0-9]+\b/N/g; p; q }' "$tmp/out" ;;
	124 | 137) echo "no end within 60 s" ;;
	*) echo "exit status $status: $(tail -n 1 "$tmp/out")" ;;
	esac
}

((${MODEL_SEEDS:-50} > 0)) || { echo "MODEL_SEEDS is no number"; exit 99; }
status=0
for ia in ofi-verbs ofa-v2-rxe0; do
	for ((seed = 1; seed <= ${MODEL_SEEDS:-50}; seed++)); do
		difference $ia $seed
	done >"$tmp/$ia"
	echo "$ia: $(wc -l <"$tmp/$ia") of ${MODEL_SEEDS:-50} seeds found a difference"
	sort "$tmp/$ia" | uniq -c | sort -rn
	[[ $ia == ofa-* || ! -s $tmp/$ia ]] || status=1
done
exit $status
