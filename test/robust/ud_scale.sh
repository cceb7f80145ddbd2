#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One datagram EP and twenty peers: on each kind of fabric, in few processes, and with few
# descriptors, where most exchanges of addresses must wait for earlier ones.

. "${top_srcdir:-.}/test/robust/tap.sh"
program=${top_builddir:-.}/test/robust/ud_scale2

# scale IA OPTION... - runs the program, which must print its line
scale()
{
	ia=$1
	shift
	DAT_TEST_IA=$ia ${TEST_RUNNER-} "$program" "$@" 20
}

descriptors_of_connections()
{
	scale ofi-tcp -m rc -c | awk -F , '{ print } NR == 2 { exit !($13 >= 20) }'
}

# Datagrams share the descriptors of their endpoint.
descriptors_of_datagrams()
{
	scale ofi-tcp -c | awk -F , '{ print } NR == 2 { exit !($13 < 20) }'
}

for ia in ofi-tcp ofi-shm ofi-rxm; do
	try "$ia" scale $ia
	try "$ia, connections" scale $ia -m rc
done
try "three processes" scale ofi-shm -p 3
try "few descriptors" scale ofi-tcp -n 8
try "a connection has a descriptor" descriptors_of_connections
try "a datagram peer has none" descriptors_of_datagrams
finish
