#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dapltest without a peer: its tests of functions (-T F) and of limits (-T L).
set -u
. "${srcdir:-.}/test/interop/lib.sh"

# results - the number of cases per result, as in "17 PASS 1 UNSUPP"
results()
{
	tr -d '\0' <"$tmp/client" | sed -n 's/^Result: *\([A-Z]*\).*/\1/p' | sort | uniq -c |
		awk '{ printf "%s%d %s", sep, $1, $2; sep = " " }'
}

# feature REGISTRY IA FEATURE RESULTS [CASE...]
feature()
{
	name="dapltest -T F -f $3${5:+, some cases}, $2, $1 libdat2"
	registry=$1 device=$2 feature=$3 wanted=$4
	shift 4
	run_client "$registry" dapltest -T F -D "$device" -f "$feature" "$@"
	if [ "$client_status" -eq 0 ] && [ "$(results)" = "$wanted" ]; then
		passed "$name"
	else
		failed "$name" "exit status $client_status, results $(results), not $wanted"
	fi
}

# limit REGISTRY IA TEST PATTERN [FAILURE] - runs TEST, with its options, which must print PATTERN once it has
# reached its limit; FAILURE may fail at the end
limit()
{
	name="dapltest -T L $3, $2, $1 libdat2"
	run_client "$1" dapltest -T L -D "$2" $3
	if [ "$client_status" -eq 0 ] && grep -aqE "$4" "$tmp/client" &&
	   ! grep -a ' fails' "$tmp/client" | grep -qv "^${5:-$}"; then
		passed "$name"
	else
		failed "$name" "exit status $client_status, or \"$4\" was not printed"
	fi
}

# few REGISTRY IA
few()
{
	feature "$1" "$2" hwconn '4 PASS'
	feature "$1" "$2" endpoint '3 PASS'
	feature "$1" "$2" pz '3 PASS'
	feature "$1" "$2" mem '5 PASS'
	feature "$1" "$2" connmgt '2 PASS'
	limit "$1" "$2" limit_ep 'EPs created: 1000$'
	# eight instances of the IA, of which EPs deliver to the EVDs of the first
	limit "$1" "$2" '-w 8 limit_psp' 'PSPs created: 1000$'
}

# dapltest reports the query of a connection request, which it cannot test, as UNSUPP.
all()
{
	few "$1" "$2"
	if [ "$1" = debian ]; then
		# cases 13 and 15 pass the IA as another type of handle, which Debian's registry
		# dereferences beyond its end: it crashes
		feature "$1" "$2" queryinfo '15 PASS 1 UNSUPP' case0 case1 case2 case3 case4 case5 \
			case6 case7 case8 case9 case10 case11 case12 case14 case16 case17
	else
		feature "$1" "$2" queryinfo '17 PASS 1 UNSUPP'
	fi
	limit "$1" "$2" limit_ia 'IAs opened: 1000$'
	limit "$1" "$2" limit_pz 'PZs created: 1000$'
	limit "$1" "$2" limit_cno 'CNOs created: 1000$'
	limit "$1" "$2" limit_evd 'EVDs created: 1000$'
	limit "$1" "$2" limit_rsp 'RSPs created: 1000$'
	limit "$1" "$2" limit_psp 'PSPs created: 1000$'
	limit "$1" "$2" limit_lmr 'LMRs created: 1000$'
	limit "$1" "$2" limit_rpost 'recv buffers posted per EP: 64$' \
		'LimitTest: dat_ep_post_recv fails: DAT_INSUFFICIENT_RESOURCES'
	limit "$1" "$2" limit_size_lmr 'LMR of 0x40000000 bytes OK'
}

need dapltest 62000
everywhere all few
finish
