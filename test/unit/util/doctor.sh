#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# datinfo --doctor: each cause of a failure is named, with what to do, and the exit status says
# whether the default IA works. Runs in the top build directory.
set -u
export IPATH_NO_BACKTRACE=1
unset FI_PROVIDER DAT_OFI_LOG DAPL_DBG_TYPE DAT_DBG_TYPE DAT_OFI_LOCAL
top=${top_builddir:-$PWD}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

: "${UTIL_DIR:=$top/util}" "${PROV_DIR:=$top/prov/ofi}"

if ! [ -x "$UTIL_DIR/datinfo" ]; then
	echo "SKIP: $UTIL_DIR/datinfo is not built"
	exit 77
fi

DAT_OVERRIDE=$tmp/dat.conf
export DAT_OVERRIDE

# line NAME PARAMS [LIBRARY] - lines of dat.conf for both API versions
line()
{
	for v in 1.2 2.0; do
		library=$PROV_DIR/v${v%%.*}/.libs/libdaplofi.so.${v%%.*}
		echo "$1 u$v threadsafe default ${3:-$library} dapl.$v \"$2\" \"\""
	done
}

fail()
{
	echo "FAIL: $*"
	sed 's/^/    | /' "$tmp/out" "$tmp/err"
	bad=1
}

# run STATUS COMMAND... - runs the command, and checks its exit status and that stderr is empty
run()
{
	want=$1
	shift
	echo "run: $*"
	timeout 120 "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$want" ] || fail "exit status $got, not $want: $*"
	[ -s "$tmp/err" ] && fail "messages on stderr"
}

# has PATTERN - a line of the output matches
has()
{
	grep -q -e "$1" "$tmp/out" || fail "no \"$1\""
}

# not_usable NAME PATTERN - the IA's one line says so, for a reason that matches
not_usable()
{
	[ "$(grep -c "^  $1  " "$tmp/out")" -eq 1 ] || fail "not one line on $1"
	has "^  $1  *no  *.*$2"
}

everything_works()
{
	{ line ofi ""; line ofi-tcp provider=tcp; line ofi-shm provider=shm; } >"$DAT_OVERRIDE"
	run 0 "$1" --doctor
	has "^  libfabric  *[12]\.[0-9]*, with the providers .*tcp"
	has "^  dat.conf  *$DAT_OVERRIDE\$"
	for ia in ofi ofi-tcp ofi-shm; do
		has "^  $ia  *yes .*domain .*address .*; 1000 messages: [0-9]*\.[0-9] us each\$"
	done
	has '^  ofi  *takes .*; usable: .*tcp'
	has '^  /dev/shm  *ok  *[1-9]'
	has '^  ports  *'
	has '^  hwloc  *'
	has '^  ofi works$'
	run 0 "$1" --doctor -D ofi-tcp
	has '^  ofi-tcp works$'
	grep -q '^  ofi-shm' "$tmp/out" && fail "an IA that was not requested"
}

wrong_provider()
{
	FI_PROVIDER=tpc run 1 "$1" --doctor
	not_usable ofi 'FI_PROVIDER=tpc: .* has no provider tpc, but .*tcp.*; unset FI_PROVIDER'
	has '^  ofi does not work$'
	FI_PROVIDER=sockets run 1 "$1" --doctor -D ofi-tcp
	not_usable ofi-tcp 'FI_PROVIDER=sockets excludes provider=tcp'
}

wrong_conf()
{
	{
		echo "broken"
		line ofi domain=ib9
		line a-typo provider=tpc
		line no-library "" "$tmp/none.so"
		line no-provider "" libc.so.6
		line no-key speed=high
		line no-address address=203.0.113.7
	} >"$DAT_OVERRIDE"
	run 1 "$1" --doctor
	has "^  dat.conf  *$DAT_OVERRIDE:1: fewer than eight fields"
	not_usable ofi 'domain=ib9: the domains of provider=any here are .*; correct domain='
	not_usable a-typo 'provider=tpc: .* has no such provider, but .*; correct dat.conf'
	not_usable no-library 'cannot load .*none.so.*; correct the fifth field'
	not_usable no-provider 'libc.so.6 is not a provider.*; correct the fifth field'
	not_usable no-key 'unknown key "speed".*; correct the seventh field'
	not_usable no-address 'not an address of this machine; correct address='
	run 1 "$1" --doctor -D missing
	has 'no IA missing is registered for DAT'
	DAT_OVERRIDE=/dev/null run 1 "$1" --doctor
	has 'no IA is registered for DAT'
}

no_device()
{
	if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
		echo "not tested: there is an RDMA device"
		return
	fi
	line ofi-verbs provider=verbs >"$DAT_OVERRIDE"
	run 1 "$1" --doctor
	not_usable ofi-verbs 'provider=verbs finds no device.*; RDMA devices: none in .*; load the'
	has '^  ofi-verbs does not work$'
}

little_memory()
{
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	run 0 sh -c "ulimit -l 64; exec '$1' --doctor"
	has '^  locked memory  *[a-z]*  *limited to 64 KiB, .*/etc/security/limits.conf'
}

no_shm()
{
	if ! unshare -m true 2>/dev/null; then
		echo "not tested: mounting is not permitted"
		return
	fi
	line ofi-shm provider=shm >"$DAT_OVERRIDE"
	mkdir -p "$tmp/dev"
	run 0 unshare -m sh -c "mount --bind '$tmp/dev' /dev && exec '$1' --doctor"
	has '^  ofi-shm  *yes '
	has '^  /dev/shm  *note  *missing'
	line ofi-shm-rdm "provider=shm endpoint=rdm" >>"$DAT_OVERRIDE"
	run 0 unshare -m sh -c "mount -t tmpfs -o size=64k none /dev/shm && exec '$1' --doctor"
	has '^  ofi-shm  *yes '
	not_usable ofi-shm-rdm '; /dev/shm: 64 KiB free, .*remount,size='
}

# The dynamic linker waits for ever for a writer of a FIFO.
hanging_fabric()
{
	mkfifo "$tmp/fifo.so"
	{ line ofi "" "$tmp/fifo.so"; line ofi-tcp provider=tcp; } >"$DAT_OVERRIDE"
	run 1 "$1" --doctor
	not_usable ofi 'opening the IA took more than [0-9]* s, the fabric hangs; run it with'
	has '^  ofi-tcp  *yes'
	rm "$tmp/fifo.so"
}

for program in datinfo datinfo1; do
	prog=$UTIL_DIR/$program
	everything_works "$prog"
	wrong_provider "$prog"
	wrong_conf "$prog"
done
prog=$UTIL_DIR/datinfo
no_device "$prog"
little_memory "$prog"
no_shm "$prog"
hanging_fabric "$prog"
exit $bad
