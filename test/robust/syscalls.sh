#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Traces the system calls of a thread that posts and polls: all are the fabric's, none this
# project's. strace identifies the caller by the stack.
set -u
unset DAT_TEST_WARM
tmp=$(mktemp -d) || exit 99
tracer= program=
trap '[ -z "$program" ] || kill $program 2>/dev/null; [ -z "$tracer" ] || kill $tracer 2>/dev/null
	rm -rf "$tmp"' EXIT
n=0 bad=0

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 77
}

# wait_until COMMAND... - repeats COMMAND for half a minute, until it succeeds
wait_until()
{
	tries=600
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.05
	done
}

both_stopped()
{
	pids=$(sed -n 's/.*stops as process \([0-9]*\)$/\1/p' "$tmp/out" | sort -u)
	set -- $pids
	[ $# -eq 2 ] && is_stopped "$1" && is_stopped "$2"
}

is_stopped()
{
	grep -q '^State:.*stopped' "/proc/$1/status"
}

both_traced()
{
	for pid in $pids; do
		! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$pid/status" || return 1
	done
}

# Prints "thread call library" for each call of the steady state, with the library of the first
# function on the stack outside the C library and the loader.
callers()
{
	awk '
	/^[0-9]+ / {
		thread = $1
		call = $2 == "<..." ? $3 : $2
		sub(/\(.*/, "", call)
		if (index($0, "\"steady state ends\"")) on[thread] = 0
		wanted = on[thread] > 1
		# from the next call on: the mark itself may be split into two lines
		if (on[thread]) on[thread] = 2
		if (index($0, "\"steady state begins\"")) on[thread] = index($0, "unfinished") ? 1 : 2
		next
	}
	wanted && /^ > / {
		file = $2; sub(/\(.*/, "", file); sub(/.*\//, "", file)
		if (file ~ /^(libc|libpthread|ld-linux)[.-]/) next
		print thread, call, file
		wanted = 0
	}' "$1"
}

# trace PROGRAM - runs its case, with both roles traced once they have stopped
trace()
{
	: >"$tmp/out"
	DAT_TEST_STOP=1 DAT_TEST_SCALE=4 "$1" steady_state >"$tmp/out" 2>&1 &
	program=$!
	if ! wait_until both_stopped; then
		kill $program
		return 1
	fi
	set -- $pids
	strace -k -o "$tmp/trace" -p "$1" -p "$2" 2>"$tmp/strace" &
	tracer=$!
	wait_until both_traced || return 1
	kill -CONT $pids
	wait $program
	status=$?
	wait $tracer
	program= tracer=
	return $status
}

check()
{
	name="posting and polling make no system calls of this project, ${1##*/}"
	n=$((n + 1))
	if ! trace "$1"; then
		echo "not ok $n - $name"
		sed 's/^/# /' "$tmp/out" "$tmp/strace"
		bad=1
		return
	fi
	callers "$tmp/trace" >"$tmp/callers"
	sort "$tmp/callers" | uniq -c | sed 's/^ */# /'
	# 20 turns of a write, a read and a send by each role
	if [ "$(grep -c ' libfabric\.' "$tmp/callers")" -lt 120 ]; then
		echo "not ok $n - $name"
		echo "# the trace lacks the fabric's system calls"
		bad=1
	elif grep -qE ' (libdat|libdaplofi)' "$tmp/callers"; then
		echo "not ok $n - $name"
		bad=1
	else
		echo "ok $n - $name"
	fi
}

# Without ticks the progress thread takes no lock from a thread that a tracer slows down.
export DAT_OFI_PROBE_US=100000 DAT_OFI_TICK_US=1000000 IPATH_NO_BACKTRACE=1

[ -z "${TEST_RUNNER:-}" ] || skip_all "system calls under a checker are not traced"
command -v strace >/dev/null || skip_all "no strace"
strace -V | grep -q stack-trace || skip_all "strace has no stack traces"
strace -o "$tmp/trace" true 2>/dev/null || skip_all "tracing is not permitted"

build=${top_builddir:-.}
export LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
for api in 1 2; do
	file=$build/test/robust/quiet$api
	# the program, not Libtool's wrapper script
	[ -x "$build/test/robust/.libs/quiet$api" ] && file=$build/test/robust/.libs/quiet$api
	check "$file"
done
echo "1..$n"
exit $bad
