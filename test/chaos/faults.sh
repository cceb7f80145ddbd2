#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# With faults in libfabric's calls (faults.c): the two-process tests over tcp, and many connections with
# random operations over each fabric. Prints how many faults of each kind all processes had; a kind
# without any is a failure.
#
# Environment: CHAOS_SEED  the seed of all programs (1)
#              CHAOS_IAS   the IAs of the random operations (ofi ofi-tcp ofi-rxm ofi-shm-rdm ofi-tcp-rdm)

. "${top_srcdir:-.}/test/robust/tap.sh"
library=${top_builddir:=.}/test/chaos/.libs/faults.so
case $library in
/*) ;;
*) library=$PWD/$library ;;
esac
[ -e "$library" ] || { echo "$library is not built"; exit 99; }
counts=$(mktemp) || exit 99
trap 'rm -f "$counts" "$tap_out"' EXIT
head -c 128 /dev/zero >"$counts"
CHAOS_SEED=${CHAOS_SEED:-1}
DAT_CHAOS_COUNTS=$counts
export CHAOS_SEED DAT_CHAOS_COUNTS DAT_TEST_WARM=1

# with_faults IA RATES PROGRAM [CASE...]
with_faults()
{
	ia=$1 rates=$2 program=$top_builddir/test/$3
	shift 3
	DAT_TEST_IA=$ia DAT_CHAOS=seed=$CHAOS_SEED$rates LD_PRELOAD=$library "$program" "$@"
}

# Prints the number of faults of each kind. Fails if a kind has none.
injected()
{
	od -A n -t u8 -w8 -v "$counts" |
		awk -v kinds="again stall batch hold late order error events trywait wake open accept connect" '
			BEGIN { n = split(kinds, kind) }
			NR <= n { print kind[NR], $1; if (!$1) bad = 1 }
			END { exit bad }'
}

# Without late completions, which take long. events has a full EVD, which would have room for
# completions that are read later, so it has no fault that delays them. Left out: errors needs its
# receives at the fabric before it frees their memory, disconnect and linger need theirs within the
# linger time.
brief=,late=0
for program in connect1 passive1 data2 rdma1 mixed2 cno1 modify2 srq1 rmr2 datagram2; do
	try "$program, ofi-tcp" with_faults ofi-tcp $brief "pair/$program"
done
try "events1, ofi-tcp" with_faults ofi-tcp $brief,hold=0,batch=0 pair/events1
try "a disconnect while the peer sends, ofi-tcp" \
	with_faults ofi-tcp $brief pair/disconnect2 "disconnect while the peer sends"
for ia in ${CHAOS_IAS:-ofi ofi-tcp ofi-rxm ofi-shm-rdm ofi-tcp-rdm}; do
	for version in 1 2; do
		try "random operations $version, $ia" with_faults "$ia" ,open=32 "chaos/random$version"
	done
done
for ia in ${CHAOS_IAS:-ofi-tcp ofi-rxm ofi-shm-rdm}; do
	try "random operations, some of which fail, $ia" with_faults "$ia" ,open=32,error=8,stall=1000 chaos/random2
done
for version in 1 2; do
	try "random operations $version, connecting and accepting fail, ofi-tcp" \
		with_faults ofi-tcp ,accept=4,connect=8 "chaos/random$version"
done
try "faults of all kinds were injected" injected
finish
