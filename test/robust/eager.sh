#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A small MPI over each fabric: each byte of an RDMA write is stored once. Short copies of libfabric
# and of the provider are interrupted between their stores. sockets is left out: its copies are
# memcpy()'s, which no setting avoids.

. "${top_srcdir:-.}/test/robust/tap.sh"

build=${top_builddir:-.}

# eager [VARIABLE=VALUE...] - with copies that are interrupted, where no checker replaces memcpy()
eager()
{
	env "$@" ${preload:+LD_PRELOAD=$preload} $TEST_RUNNER "$program"
}

# The test must find the fault that a receive buffer of libfabric causes.
finds_a_second_store()
{
	[ -n "$preload" ] || return 77
	! eager "$@" >"$tap_out.found" || return
	cat "$tap_out.found"
	grep -q 'eager\.c:' "$tap_out.found"
}

trap 'rm -f "$tap_out" "$tap_out.found"' EXIT
preload=$build/test/robust/.libs/preempt.so
program=$build/test/robust/eager2
if [ -n "$TEST_RUNNER" ] || grep -q '^CFLAGS = .*-fsanitize' "$build/Makefile"; then
	preload=
else
	# the program, not Libtool's wrapper script: a shell copies, too
	[ ! -x "$build/test/robust/.libs/eager2" ] || program=$build/test/robust/.libs/eager2
	export LD_LIBRARY_PATH="$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
for ia in ofi ofi-tcp ofi-shm ofi-rxm ofi-tcp-rdm ofi-shm-rdm; do
	try "$ia" eager DAT_TEST_IA=$ia
done
try "frames within a host" eager DAT_TEST_IA=ofi-shm DAT_OFI_CMA=0
try "a second store is found" finds_a_second_store DAT_TEST_IA=ofi-tcp FI_TCP_PREFETCH_RBUF_SIZE=128
finish
