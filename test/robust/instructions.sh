#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The instructions of operations of 8 bytes in the registry and the provider, counted by callgrind:
# over tcp a send and its completion, without a flag and with one, and of two segments; over rings a
# send, a receive and its completion, and polls that find nothing. The fabric's and the C library's are not counted.
set -u
unset DAT_TEST_WARM
. "${top_srcdir:-.}/test/callgrind.sh"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 77
}

# cost FILE... - instructions per operation in this project's libraries; the profiles contain the
# counted operations only
cost()
{
	awk '
	/^c?ob=/ {
		id = $1; sub(/^c?ob=/, "", id)
		if (NF > 1) name[id] = $2
		if ($1 ~ /^ob=/) ours = name[id] ~ /\/(libdat2?|libdaplofi)\.so/
		next
	}
	/^calls=/ { getline; next }	# skip the cost of the called function
	/^[0-9+*-]/ { total += ours ? $2 : 0 }
	END { printf "%.1f\n", total / counted }' counted="$counted" "$@"
}

# count PROGRAM CASE FUNCTION - sets counted, empty, each, and slow: each's part in the slow path
count()
{
	rm -f "$tmp"/profile.*
	DAT_TEST_SCALE=16 valgrind --tool=callgrind --callgrind-out-file="$tmp/profile.%p" \
		--toggle-collect="$3" "$1" "$2" >"$tmp/out" 2>&1 || return
	counted=$(sed -n 's/.*counted: \([0-9]*\),.*/\1/p' "$tmp/out")
	empty=$(sed -n 's/.*empty polls: \([0-9]*\).*/\1/p' "$tmp/out")
	slow=$(calls dofi_cq_go_on "$tmp"/profile.* | cut -d' ' -f2)
	slow=$((slow / counted))
	each=$(cost "$tmp"/profile.*)
}

# check WHAT CASE FUNCTION MOST [API...] - counts FUNCTION in CASE with API, or with version 2
check()
{
	for api in ${5:-2}; do
		file=$build/test/robust/quiet$api
		# the program, not Libtool's wrapper script
		[ -x "$build/test/robust/.libs/quiet$api" ] &&
			file=$build/test/robust/.libs/quiet$api
		check_one "$1, $DAT_TEST_IA, quiet$api" "$file" "$2" "$3" "$4"
	done
}

# check_one NAME PROGRAM CASE FUNCTION MOST
check_one()
{
	n=$((n + 1))
	# The progress thread serves a program that polls but has lost its processor. That, polls that
	# come too early, and handles that share a place of the registry's table, can only add to the
	# cost: if it is too high, measure again, with other handles.
	for try in 1 2 3 4 5; do
		export DAT_TEST_BEFORE=$((try - 1))
		if ! count "$2" "$3" "$4"; then
			echo "not ok $n - $1"
			sed 's/^/# /' "$tmp/out"
			bad=1
			return
		fi
		[ "${each%.*}" -gt "$5" ] || break
		echo "# $each instructions at try $try, $slow of them in the slow path"
	done
	echo "# $each instructions, $slow of them in the slow path; $empty of $counted needed another poll"
	if [ "${each%.*}" -gt 50 ] && [ "${each%.*}" -le "$5" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "# expected 50 to $5"
		bad=1
	fi
}

# Without ticks the progress thread takes no lock from a program that callgrind slows down.
export DAT_OFI_PROBE_US=100000 DAT_OFI_TICK_US=1000000 IPATH_NO_BACKTRACE=1

[ -z "${TEST_RUNNER:-}" ] || skip_all "instructions under a checker are not counted"
command -v valgrind >/dev/null || skip_all "no valgrind"

build=${top_builddir:-.}
grep -q '^CFLAGS = .*-O[2-9]' "$build/Makefile" || skip_all "not an optimised build"
export LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

DAT_TEST_IA=ofi-tcp
export DAT_TEST_IA
check "a send and its completion" counted_sends counted_send 310 '1 2'
check "a receive and its completion" counted_recvs 'counted_recv_*' 340
# DAT_COMPLETION_BARRIER_FENCE_FLAG, which waits for nothing here
export DAT_TEST_FLAGS=8
check "a send with a flag and its completion" counted_sends counted_send 450
unset DAT_TEST_FLAGS
export DAT_TEST_SEGMENTS=2
check "a send of two segments and its completion" counted_sends counted_send 650
unset DAT_TEST_SEGMENTS
DAT_TEST_IA=ofi
check "a send and its completion" counted_sends counted_send 460
check "a receive and its completion" counted_recvs 'counted_recv_*' 430
for eps in 1 8 9 40; do
	export DAT_TEST_EPS=$eps
	# with more than 8 rings a poll reads the marks of all, and one ring
	case $eps in
	1) most=150 ;;
	8) most=230 ;;
	*) most=170 ;;
	esac
	check "an empty poll of $eps rings" counted_polls counted_poll $most
done
echo "1..$n"
exit $bad
