#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# usage: shapes.sh [efa | cxi | psm3 | refused]...
#
# For fabrics with the attributes, limits and manners of a device (shapes.c), all without arguments:
# the conformance suite, two-process tests that depend on the fabric (PAIR_PROGRAMS), the model of DAT
# (MODEL_SEQUENCES), and random operations, some of which fail (faults.c). efa: also the conformance
# suite on a device without RDMA. refused: offers that must not be used, with the reason in the log.
# Exits with 77 if libfabric lacks sockets, the base of the shapes.

libraries=$(cd "${top_builddir:=.}/test/chaos/.libs" && pwd) && [ -e "$libraries/shapes.so" ] &&
	[ -e "$libraries/faults.so" ] || { echo "the preload libraries are not built"; exit 99; }
: "${top_srcdir:=.}"
flight=$(mktemp) && conf=$(mktemp) || exit 99
trap 'rm -f "$flight" "$conf"' EXIT
head -c 8 /dev/zero >"$flight"
status=0

# on SHAPE COMMAND... - sets status: 1 after any failure, otherwise 77 if a command was skipped
on()
{
	shape=$1
	shift
	DAT_TEST_IA=ofi-$shape LD_PRELOAD=$preload "$@"
	case $? in
	0) ;;
	77) [ $status -ne 0 ] || status=77 ;;
	*) status=1 ;;
	esac
}

# all SHAPE PAIR-PROGRAMS
all()
{
	preload=$libraries/shapes.so
	on "$1" "$top_srcdir/test/conform/fabric.sh" "$1"
	on "$1" env PAIR_PROGRAMS="${PAIR_PROGRAMS:-$2}" "$top_srcdir/test/pair/fabric.sh" "$1"
	on "$1" env MODEL_SEQUENCES="${MODEL_SEQUENCES:-10}" "$top_builddir/test/model/model2"
	preload=$libraries/faults.so:$libraries/shapes.so
	# with many messages outstanding sockets of 1.17 may lose one: docs/libfabric-defects.md
	for version in 1 2; do
		on "$1" env DAT_TEST_WARM=1 CHAOS_CONNECTIONS="${CHAOS_CONNECTIONS:-8}" \
			DAT_CHAOS=seed=1,open=32,error=8,stall=1000 \
			"$top_builddir/test/chaos/random$version"
	done
}

efa()
{
	export DAT_TEST_FLIGHT="$flight"
	all efa 'connect disconnect data rdma errors rmr memory invalidate srq datagram mixed'
	# test/pair/rdma.c posts 64 writes at once
	most=$(od -An -td8 "$flight")
	unset DAT_TEST_FLIGHT
	echo "# at most $((most)) RDMA operations in flight"
	[ "$((most))" -ge 48 ] || status=1
	preload=$libraries/shapes.so
	on efa env DAT_TEST_EMULATED=1 "$top_srcdir/test/conform/fabric.sh" efa
}

# is_refused PROVIDER SHAPE REASON
is_refused()
{
	sed -n "s/^ofi-tcp \(u2.* nonthreadsafe .*\)provider=tcp/shape \1provider=$2/p" \
		"$top_builddir/test/dat.conf" >"$conf"
	if said=$(DAT_OVERRIDE=$conf LD_PRELOAD=$libraries/shapes.so "$top_builddir/util/datinfo" -D shape 2>&1); then
		echo "# $2 is not refused"
		status=1
	elif ! echo "$said" | grep "fabric $1 is not used: .*$3"; then
		printf '# %s is refused without %s: %s\n' "$2" "$3" "$said"
		status=1
	fi
}

refused()
{
	is_refused efa efa-direct FI_ORDER_SAS
	is_refused opx opx FI_ORDER_SAS
	is_refused opx opx-in-order fi_info.mode
	is_refused lnx lnx FI_MSG
	is_refused ucx ucx '1024 bytes of each address'
}

for shape in ${*:-efa cxi psm3 refused}; do
	[ $status -ne 77 ] || break
	case $shape in
	efa | refused) $shape ;;
	*) all "$shape" 'disconnect data rdma errors mixed' ;;
	esac
done
exit $status
