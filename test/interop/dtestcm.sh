#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtestcm: 1000 connections, 100 in flight, private data in both directions, and
# disconnects.
set -u
. "${srcdir:-.}/test/interop/lib.sh"

connections=1000

judge_client()
{
	judge client "$tmp/client" "$client_status" \
		"ALL $connections CONNECTED on Client!" 'DAPL Connection Test Complete\.' \
		"Connections: .*Num=$connections"
}

judge_server()
{
	judge server "$tmp/server" "$server_status" \
		"ALL $connections CONNECTED on Server!" 'DAPL Connection Test Complete\.'
}

# mode REGISTRY IA MODE
mode()
{
	args="-P $2 -c $connections $3"
	once "$1" "$2" "$connections connections${3:+, $3}" "dtestcm $args -s" \
		"dtestcm $args -h $host"
}

# all REGISTRY IA - with polling and with waiting
all()
{
	mode "$1" "$2" ''
	mode "$1" "$2" -w
}

few()
{
	mode "$1" "$2" ''
}

need dtestcm 15828 45248
everywhere all few
finish
