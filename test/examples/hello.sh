#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The program in dat(7): a server and a client of either API version connect over tcp, and print
# what the page says; without a server, or with a wrong name, the client prints why.
set -u
top=${top_builddir:-.}
src=${top_srcdir:-.}
page=$src/man/man7/dat.7
port=$((20000 + $$ % 10000))
bad=0

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

fail()
{
	echo "FAIL: $*"
	sed 's/^/    | /' "$tmp/server.out" "$tmp/client.out" "$tmp/err"
	bad=1
}

hello="sh $src/test/run $top/test/examples/hello"

# prints FILE TEXT - checks that FILE is this line, which the page quotes
prints()
{
	printf '%s\n' "$2" | cmp -s - "$tmp/$1" || fail "not \"$2\" in $1"
	grep -q "^\.Dq $2 " "$page" || fail "the page does not have \"$2\""
}

# talk VERSION VERSION - a server and a client
talk()
{
	mkfifo "$tmp/ready"
	$hello$1 ofi-tcp $port >"$tmp/server.out" 2>"$tmp/ready" &
	server=$!
	exec 3<"$tmp/ready"
	while read -r line <&3 && [ "$line" != "waiting for a client" ]; do
		echo "$line"
	done >"$tmp/err"
	$hello$2 ofi-tcp $port 127.0.0.1 >"$tmp/client.out" 2>>"$tmp/err" || {
		fail "exit status $? of the client of version $2"
		kill $server
	}
	cat <&3 >>"$tmp/err"
	exec 3<&-
	wait $server || fail "exit status $? of the server of version $1"
	rm "$tmp/ready"
	prints server.out "received: hello, server"
	prints client.out "received: hello, client"
	[ -s "$tmp/err" ] && [ -z "${TEST_RUNNER:-}" ] && fail "something on the standard error output"
}

# fails TEXT VERSION ARGUMENT... - the program ends with this line
fails()
{
	text=$1
	shift
	version=$1
	shift
	$hello$version "$@" >"$tmp/client.out" 2>"$tmp/err"
	[ $? -eq 1 ] || fail "not exit status 1: $*"
	grep -q -e "$text" "$tmp/err" || fail "no \"$text\": $*"
}

: >"$tmp/server.out"
: >"$tmp/client.out"
: >"$tmp/err"
for versions in "1 1" "2 2" "1 2" "2 1"; do
	talk ${versions% *} ${versions#* }
done
for version in 1 2; do
	fails "^unexpected event or failed transfer: 0x4003$" $version ofi-tcp $port 127.0.0.1
	fails "^dat_ia_open.*: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED$" $version missing $port
done
exit $bad
