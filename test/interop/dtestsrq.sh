#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtestsrq: bursts of messages in both directions over connections with a shared receive
# queue, and their disconnects, each of which both peers report twice.
set -u
. "${srcdir:-.}/test/interop/lib.sh"

connections=10

judge_client()
{
	judge client "$tmp/client" "$client_status" \
		"ALL $connections CONNECTED on client!" 'DAPL RC SRQ Test Complete\.'
}

judge_server()
{
	judge server "$tmp/server" "$server_status" \
		"ALL $connections CONNECTED on server!" 'DAPL RC SRQ Test Complete\.'
}

# mode REGISTRY IA MODE
mode()
{
	args="-P $2 -c $connections $3"
	once "$1" "$2" "$connections connections${3:+, $3}" "dtestsrq $args -s" \
		"dtestsrq $args -h $host"
}

# all REGISTRY IA - buffers of the "device MTU", smaller than the data that fits into an RTS, and
# larger; one message in flight and many
all()
{
	for m in '' '-b 64' '-b 100000 -B 10'; do
		mode "$1" "$2" "$m"
	done
}

few()
{
	mode "$1" "$2" ''
}

need dtestsrq 45248
everywhere all few
finish
