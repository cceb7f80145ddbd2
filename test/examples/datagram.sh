#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# docs/examples/datagram.c: a server and a client exchange datagrams over the datagram fabric of tcp,
# and print them; without a server, or with a wrong name, the client prints why.
set -u
unset FI_PROVIDER
top=${top_builddir:-.}
src=${top_srcdir:-.}
ia=ofi-tcp
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

program="sh $src/test/run $top/test/examples/datagram"

# talk - a server and a client
talk()
{
	mkfifo "$tmp/ready"
	$program $ia $port >"$tmp/server.out" 2>"$tmp/ready" &
	server=$!
	exec 3<"$tmp/ready"
	while read -r line <&3 && [ "$line" != "waiting for a client" ]; do
		echo "$line"
	done >"$tmp/err"
	$program $ia $port 127.0.0.1 >"$tmp/client.out" 2>>"$tmp/err" || {
		fail "exit status $? of the client"
		kill $server
	}
	cat <&3 >>"$tmp/err"
	exec 3<&-
	wait $server || fail "exit status $? of the server"
}

# received FILE LINE... - each is a line of FILE
received()
{
	file=$1
	shift
	for line; do
		grep -qx "received: $line" "$tmp/$file" || fail "no \"received: $line\" in $file"
	done
}

# fails TEXT ARGUMENT... - the program ends with this line
fails()
{
	text=$1
	shift
	$program "$@" >"$tmp/client.out" 2>"$tmp/err"
	[ $? -eq 1 ] || fail "not exit status 1: $*"
	grep -q -e "$text" "$tmp/err" || fail "no \"$text\": $*"
}

: >"$tmp/server.out"
: >"$tmp/client.out"
: >"$tmp/err"
"$top/util/datinfo" -D $ia >"$tmp/attributes" || fail "datinfo failed"
if grep -q 'DAT_IB_UD  *FALSE' "$tmp/attributes"; then
	echo "SKIP: $ia has no datagrams: $(grep DAT_IB_UD "$tmp/attributes")"
	[ $bad -eq 0 ] && exit 77
	exit 1
fi
talk
received server.out ping bye
received client.out pong
fails "^unexpected event or failed transfer: " $ia $port 127.0.0.1
fails "^dat_ia_open" missing $port
exit $bad
