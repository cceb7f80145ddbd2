#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtest: sends, RDMA writes and reads, bursts, ping-pong by messages and by memory,
# writes with immediate data.
set -u
. "${srcdir:-.}/test/interop/lib.sh"

judge_client()
{
	judge client "$tmp/client" "$client_status" 'CONNECTED!' 'DAPL Test Complete\. PASSED'
}

judge_server()
{
	judge server "$tmp/server" "$server_status" 'CONNECTED!' 'DAPL Test Complete\. PASSED'
}

# mode REGISTRY IA MODE
mode()
{
	size=${full:+4194304}
	args="-P $2 -b ${size:-65536} $3"
	once "$1" "$2" "${3:-default}" "dtest $args -s" "dtest $args -h $host"
}

# all REGISTRY IA. A ping-pong by memory takes seconds, so -D and -W alone are left to full runs;
# "-W -D" has both.
all()
{
	for m in '' -c -p -u ${full:+-D -W} '-W -D' '-B 20' -w '-w -D'; do
		mode "$1" "$2" "$m"
	done
}

few()
{
	mode "$1" "$2" ''
	mode "$1" "$2" '-W -D'
}

# the port of the service point, which the server creates after a client has connected
also_port=45248
need dtest 15828
everywhere all few
finish
