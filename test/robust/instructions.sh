#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The instructions of an 8-byte send and its completion in the registry and the provider, counted
# by callgrind. The fabric's and the C library's are not counted.
set -u
unset DAT_TEST_WARM
. "${top_srcdir:-.}/test/callgrind.sh"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
most=230
n=0 bad=0

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 77
}

# cost FILE... - instructions per send in this project's libraries; the profiles contain sends
# only
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
	END { printf "%.1f\n", total / sends }' sends="$sends" "$@"
}

# count PROGRAM - sets sends, empty, slow and each
count()
{
	rm -f "$tmp"/profile.*
	DAT_TEST_SCALE=16 valgrind --tool=callgrind --callgrind-out-file="$tmp/profile.%p" \
		--toggle-collect=counted_send "$1" counted_sends >"$tmp/out" 2>&1 || return
	sends=$(sed -n 's/.*sends: \([0-9]*\),.*/\1/p' "$tmp/out")
	empty=$(sed -n 's/.*empty polls: \([0-9]*\).*/\1/p' "$tmp/out")
	slow=$(calls dofi_cq_go_on "$tmp"/profile.* | cut -d' ' -f1)
	each=$(cost "$tmp"/profile.*)
}

check()
{
	name="a send and its completion, ${1##*/}"
	n=$((n + 1))
	# Empty polls do not count, nor the cost while the progress thread serves a program that
	# polls but has lost its processor: if either was frequent, measure again.
	for try in 1 2 3 4 5; do
		if ! count "$1"; then
			echo "not ok $n - $name"
			sed 's/^/# /' "$tmp/out"
			bad=1
			return
		fi
		[ "$empty" -gt $((sends / 100)) ] || [ "$slow" -gt $((sends / 100)) ] || break
	done
	echo "# $each instructions, $empty of $sends sends needed another poll, $slow took the slow path"
	if [ "${each%.*}" -gt 50 ] && [ "${each%.*}" -le $most ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		echo "# expected 50 to $most"
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
for api in 1 2; do
	file=$build/test/robust/quiet$api
	# the program, not Libtool's wrapper script
	[ -x "$build/test/robust/.libs/quiet$api" ] && file=$build/test/robust/.libs/quiet$api
	check "$file"
done
echo "1..$n"
exit $bad
