#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dapltest: one server, transaction and performance tests of many clients, and a client
# that ends the server.
set -u
. "${srcdir:-.}/test/interop/lib.sh"

# client REGISTRY IA PATTERN TYPE NAME ARGUMENTS - one test against the running server
client()
{
	name="dapltest -T $4 $5, $2, $1 libdat2"
	expected=$3
	run_client "$1" dapltest -T "$4" -D "$2" -s $host $6
	if judge client "$tmp/client" "$client_status" 'End of Work -- Client Exiting' "$expected" &&
	   judge server "$tmp/server" 0; then
		passed "$name"
	else
		failed "$name" "$why"
	fi
}

# quit REGISTRY IA TRANSACTIONS PERFORMANCES - ends the server, which must have completed these
# tests
quit()
{
	name="dapltest -T Q after $3 transaction and $4 performance tests, $2, $1 libdat2"
	run_client "$1" dapltest -T Q -D "$2" -s $host
	[ "$client_status" -eq 0 ] || kill "$server_job"
	end_server
	if judge client "$tmp/client" "$client_status" 'End of Work -- Client Exiting' &&
	   judge server "$tmp/server" "$server_status" 'DT_cs_Server .*Exiting' &&
	   server_printed "$3" 'Transaction Test Finished for this client' &&
	   server_printed "$4" 'Finished performance test\.  Exiting'; then
		passed "$name"
	else
		failed "$name" "$why"
	fi
}

# server_printed COUNT PATTERN
server_printed()
{
	n=$(grep -c "$2" "$tmp/server")
	why="the server printed \"$2\" $n times, not $1"
	[ "$n" -eq "$1" ]
}

# serve REGISTRY IA
serve()
{
	start_server "$1" dapltest -T S -D "$2" || {
		failed "dapltest -T S, $2, $1 libdat2" "$why"
		return 1
	}
}

iterations=${full:+1000}
: "${iterations:=200}"
many="-t 2 -w 4 -i $iterations"
ops='client SR 4096 1 server SR 4096 2 client RW 8192 2 server RW 4096 1 client RR 4096 2 server RR 65536 1'
stats='Stats ---- : 2 threads, 4 EPs'

# performance REGISTRY IA OPERATION HOW
performance()
{
	client "$1" "$2" "Operation Type +: $3" P "$3 -m $4" "-m $4 -i $iterations $3 4096 1"
}

# all REGISTRY IA
all()
{
	serve "$1" "$2" || return
	for how in '' '-P'; do
		for verb in SR RW RR; do
			# a transaction needs a send in each direction
			few="client $verb 4096 1 server $verb 4096 1"
			[ $verb = SR ] || few="$few client SR 256 1 server SR 256 1"
			client "$1" "$2" "$stats" T "$verb${how:+ $how}" "$how $many $few"
		done
		client "$1" "$2" "$stats" T "all -V${how:+ $how}" "$how -V $many $ops"
		# with reserved service points
		client "$1" "$2" "$stats" T "all -r${how:+ $how}" "$how -r $many $ops"
	done
	for verb in RW RR; do
		performance "$1" "$2" $verb b
		performance "$1" "$2" $verb p
	done
	for quality in HT LL EC PM; do
		client "$1" "$2" 'Operation Type +: RW' P "RW -R $quality" \
			"-R $quality -i $iterations RW 4096 1"
	done
	quit "$1" "$2" 10 8
}

few()
{
	serve "$1" "$2" || return
	client "$1" "$2" "$stats" T "all -V" "-V $many $ops"
	performance "$1" "$2" RW b
	performance "$1" "$2" RR p
	quit "$1" "$2" 1 2
}

need dapltest 62000
everywhere all few
finish
