#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtest: sends, RDMA writes and reads, burst, ping-pong by messages and by memory, writes
# with immediate data.
set -u
. "${srcdir:-.}/test/interop/lib.sh"

client_says()
{
	judge client "$tmp/client" "$client_status" 'CONNECTED!' 'DAPL Test Complete\. PASSED'
}

server_says()
{
	judge server "$tmp/server" "$server_status" 'CONNECTED!' 'DAPL Test Complete\. PASSED'
}

# modes REGISTRY FABRIC
modes()
{
	size=${full:+4194304}
	for mode in '' -c -p -u -D -W '-W -D' '-B 20' -w '-w -D'; do
		args="-P ofi-$2 -b ${size:-65536} $mode"
		once "$1" "$2" "${mode:-default}" "dtest $args -s" "dtest $args -h 127.0.0.1"
	done
}

# the port of its service point comes after it has told the client of it
need dtest 15828
everywhere modes
finish
