#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The programs in docs/examples, over tcp and over shared memory: a server of echoes has several
# clients at once, and one client is killed; clients read a table by RDMA; the Python program prints
# its results. Each program prints its usage. datagram.sh and hello.sh test datagram and hello.
set -u
unset FI_PROVIDER
top=${top_builddir:-.}
src=${top_srcdir:-.}
port=$((20000 + $$ % 10000))
bad=0

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
mkfifo "$tmp/ready" "$tmp/input" "$tmp/in1" "$tmp/in2" "$tmp/in3"
: >"$tmp/out"
: >"$tmp/err"

fail()
{
	echo "FAIL: $ia: $*"
	sed 's/^/    | /' "$tmp/out" "$tmp/err"
	bad=1
}

program="sh $src/test/run $top/test/examples"

# prints WANTED COMMAND... - a command that succeeds, and its output
prints()
{
	wanted=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" || fail "exit status $?: $*"
	[ "$(cat "$tmp/out")" = "$wanted" ] || fail "not \"$wanted\": $*"
}

# fails STATUS PATTERN COMMAND... - a command that fails with a message
fails()
{
	status=$1
	pattern=$2
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err"
	[ $? -eq "$status" ] || fail "not exit status $status: $*"
	grep -q "$pattern" "$tmp/err" || fail "no \"$pattern\": $*"
}

# await LINE - reads the output of the server and its clients, up to LINE; ends the test at an error
await()
{
	while read -r line <&3; do
		case $line in
		"$1") return ;;
		dat_* | unexpected*) break ;;
		esac
	done
	fail "\"$line\" where \"$1\" was expected"
	exit 1
}

# gets NUMBER TEXT ANSWER - a client sends the text, ends, and has printed the answer
gets()
{
	echo "$2" >&"$(($1 + 4))"
	eval "exec $(($1 + 4))>&-"
	eval "wait \$client$1" || fail "exit status $? of client $1"
	[ "$(cat "$tmp/out$1")" = "$3" ] || fail "client $1 got \"$(cat "$tmp/out$1")\""
}

# The clients are connected at a time, and end in the other order: a client has the write ends of the
# pipes to those before it.
echoes()
{
	$program/echo_server $ia $port 2>"$tmp/ready" <"$tmp/input" &
	server=$!
	exec 3<"$tmp/ready" 4>"$tmp/input"
	await "waiting for clients"
	for n in 1 2 3; do
		$program/echo_client $ia $port 127.0.0.1 <"$tmp/in$n" >"$tmp/out$n" 2>"$tmp/ready" &
		eval "client$n=$! && exec $((n + 4))>$tmp/in$n"
	done
	await "3 clients"
	gets 3 "hello from 3" "HELLO FROM 3"
	kill $client2
	wait $client2 && fail "client 2 was not killed"
	exec 6>&-
	gets 1 "hello from 1" "HELLO FROM 1"
	exec 4>&-
	wait $server || fail "exit status $? of the server of echoes"
	exec 3<&-
}

tables()
{
	$program/table $ia $port 3 2>"$tmp/ready" &
	server=$!
	exec 3<"$tmp/ready"
	await "waiting for clients"
	prints "Fuji 3776 m
Everest 8849 m" $program/table $ia $port 127.0.0.1 2 0
	fails 1 "^no such row: " $program/table $ia $port 127.0.0.1 3
	prints "Elbrus 5642 m" $program/table $ia $port 127.0.0.1 1
	wait $server || fail "exit status $? of the server of the table"
	exec 3<&-
}

# Python cannot load a library that is built with a sanitizer.
python()
{
	command -v python3 >/dev/null && ! grep -qE '__[at]san_init' "$top/.libs/libdat2.so.2" ||
		{ echo "without python3, or with a sanitizer: ia.py is not run"; return; }
	prints "$(printf '%s: libfabric %s, 65536 endpoints\nLMR 42: 4096 bytes\nevent 0x10001: 4711' \
		$ia "$1")" python3 "$src/docs/examples/ia.py" $ia
	fails 1 "^dat_ia_openv: DAT_PROVIDER_NOT_FOUND" python3 "$src/docs/examples/ia.py" missing
	fails 1 "^usage: " python3 "$src/docs/examples/ia.py"
}

LD_LIBRARY_PATH=$top/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
for ia in ofi-tcp ofi-shm; do
	echoes
	tables
done
ia=ofi-tcp
python tcp
ia=ofi-shm
python rings
for name in datagram echo_client echo_server table; do
	fails 2 "^usage: " $program/$name
done
exit $bad
