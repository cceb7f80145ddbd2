#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One datagram EP and twenty peers: on each kind of fabric, in few processes, and with few
# descriptors, where most exchanges of addresses must wait for earlier ones. Within a host there may
# be more peers than libfabric's shm has. And processes that are connected, each with each.

. "${top_srcdir:-.}/test/robust/tap.sh"
program=${top_builddir:-.}/test/robust/ud_scale2

# scale IA OPTION... - runs the program, which must print its line
scale()
{
	ia=$1
	shift
	DAT_TEST_IA=$ia ${TEST_RUNNER-} "$program" "$@" "${peers:-20}"
}

many_within_a_host()
{
	peers=300 scale ofi -p 10
}

descriptors_of_connections()
{
	scale ofi-tcp -m rc -c | awk -F , '{ print } NR == 2 { ok = $13 >= 20 } END { exit !ok }'
}

# Datagrams share the descriptors of their endpoint.
descriptors_of_datagrams()
{
	scale "$1" -c | awk -F , '{ print } NR == 2 { ok = NF >= 13 && $13 < 20 } END { exit !ok }'
}

mesh()
{
	DAT_TEST_IA=$1 ${TEST_RUNNER-} "${top_builddir:-.}/test/robust/mesh2"
}

for ia in ofi ofi-tcp ofi-shm ofi-rxm; do
	try "$ia" scale $ia
	try "$ia, connections" scale $ia -m rc
	try "$ia, each process with each" mesh $ia
done
try "three processes" scale ofi-shm -p 3
try "more than 256 within a host" many_within_a_host
try "few descriptors" scale ofi-tcp -n 8
try "few descriptors, within a host" scale ofi -n 12
try "a connection has a descriptor" descriptors_of_connections
try "a datagram peer has none" descriptors_of_datagrams ofi-tcp
try "a datagram peer within a host has none" descriptors_of_datagrams ofi
finish
