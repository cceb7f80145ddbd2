#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtestx: RDMA writes with immediate data, compare and swap, fetch and add, counters,
# datagrams (UD), and an IA that is opened for queries only.
set -u
endpoints=	# of a run with datagrams
. "${srcdir:-.}/test/interop/lib.sh"

# judge_datagrams ROLE STATUS - each endpoint of a program with $endpoints of them gets one datagram
judge_datagrams()
{
	judge "$1" "$tmp/$1" "$2" "Connected! $endpoints endpoints" || return
	[ "$(grep -c 'Recv RMR message' "$tmp/$1")" -eq "$endpoints" ] && return
	why="the $1 received fewer than $endpoints datagrams"
	return 1
}

judge_client()
{
	[ -z "$endpoints" ] || { judge_datagrams client "$client_status"; return; }
	judge client "$tmp/client" "$client_status" 'RDMA_WRITE_WITH_IMMEDIATE_DATA test - PASSED' \
		'CMP_SWAP test - PASSED' 'FETCH_ADD test - PASSED' 'immed/atomic test PASSED'
}

judge_server()
{
	[ -z "$endpoints" ] || { judge_datagrams server "$server_status"; return; }
	judge server "$tmp/server" "$server_status" 'RDMA_WRITE_WITH_IMMEDIATE_DATA test - PASSED' \
		'CMP_SWAP test - PASSED' 'FETCH_ADD test - PASSED' 'immed/atomic test PASSED'
}

# in_time REGISTRY IA NAME SERVER CLIENT - like once, but repeats a client that is refused: dtestx
# sends the client its address before it listens
in_time()
{
	for try in 1 2 3 4 5; do
		verdict=$(once "$@"; cat "$tmp/client" >"$tmp/try")
		grep -q 'conn established: 0x4003' "$tmp/try" || break
	done
	case $verdict in
	ok*) ;;
	*) n_bad=$((n_bad + 1)) ;;
	esac
	n_run=$((n_run + 1))
	echo "$verdict"
}

# datagrams REGISTRY IA N - with N endpoints on each side
datagrams()
{
	endpoints=$3
	in_time "$1" "$2" "-U $3" "dtestx -P $2 -U $3 -s -h $host" "dtestx -P $2 -U $3 -c -h $host"
	endpoints=
}

# mode REGISTRY IA MODE
mode()
{
	args="-P $2 $3"
	in_time "$1" "$2" "${3:-default}" "dtestx $args -s" "dtestx $args -h $host"
}

# all REGISTRY IA
all()
{
	mode "$1" "$2" ''
	mode "$1" "$2" -p
	query "$1" "$2"
	datagrams "$1" "$2" 1
	datagrams "$1" "$2" 10
}

few()
{
	mode "$1" "$2" ''
	datagrams "$1" "$2" 10
}

# query REGISTRY IA - dtestx -q only prints the attributes of an IA
query()
{
	name="dtestx, -q, $2, $1 libdat2"
	rm -f "$tmp/server"
	run_client "$1" dtestx -P "$2" -q -s
	if judge client "$tmp/client" "$client_status" "Open_Query: $2 num_attrs" \
		'DAT_IB_IMMED_DATA=TRUE' 'DAT_IB_FETCH_AND_ADD=TRUE' 'DAT_IB_CMP_AND_SWAP=TRUE'; then
		passed "$name"
	else
		failed "$name" "$why"
	fi
}

need dtestx 15828
everywhere all few
finish
