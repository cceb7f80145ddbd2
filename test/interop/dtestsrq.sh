#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtestsrq: bursts of messages both ways over connections that share a receive queue,
# and the end of each, which both sides are told of twice.
set -u
. "${srcdir:-.}/test/interop/lib.sh"

connections=10

client_says()
{
	judge client "$tmp/client" "$client_status" \
		"ALL $connections CONNECTED on client!" 'DAPL RC SRQ Test Complete\.'
}

server_says()
{
	judge server "$tmp/server" "$server_status" \
		"ALL $connections CONNECTED on server!" 'DAPL RC SRQ Test Complete\.'
}

# modes REGISTRY FABRIC - buffers of the "device MTU" and of a size that is smaller than what
# goes along with its announcement, and larger; one message in flight and many
modes()
{
	for mode in '' '-b 64' '-b 100000 -B 10'; do
		args="-P ofi-$2 -c $connections $mode"
		once "$1" "$2" "$connections connections${mode:+, $mode}" \
			"dtestsrq $args -s" "dtestsrq $args -h 127.0.0.1"
	done
}

need dtestsrq 45248
everywhere modes
finish
