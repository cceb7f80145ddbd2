#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# datinfo --doctor: each cause of a failure is named, with a remedy, and the exit status says
# whether the default IA works. Runs in the top build directory.
set -u
export IPATH_NO_BACKTRACE=1
unset FI_PROVIDER DAT_OFI_LOG DAPL_DBG_TYPE DAT_DBG_TYPE DAT_OFI_LOCAL
top=${top_builddir:-$PWD}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

: "${UTIL_DIR:=$top/util}" "${PROV_DIR:=$top/prov/ofi}"

[ -x "$UTIL_DIR/datinfo" ] || { echo "$UTIL_DIR/datinfo is not built"; exit 99; }

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
	has '^  registry  */.*/libdat2*\.so\.[12]'
	has '^  interfaces  *[a-z]*  *.*lo'
	has '^  ofi works$'
	run 0 "$1" --doctor -D ofi-tcp
	has '^  ofi-tcp works$'
	has '^  ports  *ok'
	grep -qE '^  (RDMA devices|/dev/shm)' "$tmp/out" && fail "a row on other fabrics"
	grep -q '^  ofi-shm' "$tmp/out" && fail "an IA that was not requested"
}

# server_start DATPERF IA - starts a server of the IA; sets server and port
server_start()
{
	while :; do
		tries=$((${tries:-0} + 1))
		port=$((20000 + ($$ * 7 + tries) % 10000))
		"$1" --server --keep -D "$2" -p $port 2>"$tmp/server" &
		server=$!
		until grep -q 'waiting for a client' "$tmp/server"; do
			kill -0 $server 2>/dev/null || break
		done
		# otherwise the port is in use
		kill -0 $server 2>/dev/null && return
	done
}

# path_to_peer DATINFO DATPERF - to a server on this host, by the network and by shared memory
path_to_peer()
{
	{ line ofi ""; line ofi-tcp provider=tcp; line ofi-shm provider=shm; } >"$DAT_OVERRIDE"
	for ia in ofi-tcp ofi ofi-shm; do
		server_start "$2" $ia
		run 0 "$1" --doctor -D $ia -p "$port" 127.0.0.1
		has '^  route  *ok  *127.0.0.1 is .*; from .* on lo, MTU [1-9]'
		has "^  connection  *ok  *$ia on .* in .* ms\$"
		has '^  messages  *ok  *8 bytes: [0-9]*\.[0-9] us$'
		has '^  long messages  *ok'
		has '^  RDMA  *ok'
		[ "$1" = "$UTIL_DIR/datinfo1" ] || has '^  datagrams  *ok'
		case $ia in
		ofi-tcp) has '^  this host  *note .* the IAs ofi and ofi-shm have shared memory to it' ;;
		*) has '^  this host  *ok  *the peer is reached by shared memory' ;;
		esac
		has "^  $ia reaches 127.0.0.1\$"
		kill $server
		wait $server 2>/dev/null
	done
	run 1 "$1" --doctor -D ofi-tcp -p "$port" 127.0.0.1
	has "^  connection  *bad  *ofi-tcp: refused, no program listens at the port"
	has "^  port  *bad  *nothing listens at TCP port $port; run \"datperf --server"
	has '^  ofi-tcp does not reach 127.0.0.1$'
	run 1 "$1" --doctor -D ofi-tcp no-such-host.invalid
	has '^  route  *bad  *no-such-host.invalid: '
	"$1" --doctor -p 65536 127.0.0.1 >"$tmp/out" 2>"$tmp/err"
	[ $? -eq 2 ] || fail "a port above 65535"
}

# A request of libfabric's tcp ends a process that listens on its sockets: none is sent.
sockets_server()
{
	{ line ofi-tcp provider=tcp; line ofi-sockets provider=sockets; } >"$DAT_OVERRIDE"
	server_start "$2" ofi-sockets
	run 1 "$1" --doctor -D ofi-tcp -p "$port" 127.0.0.1
	has '^  connection  *bad  *ofi-tcp: the program at the port does not answer: .* such as sockets'
	run 0 "$1" --doctor -D ofi-sockets -p "$port" 127.0.0.1
	kill $server || fail "the server has ended"
	wait $server 2>/dev/null
}

# A program at the port that greets its clients, as many do.
foreign_program()
{
	if ! command -v python3 >/dev/null; then
		echo "not tested: no python3"
		return
	fi
	python3 -c '
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
clients = []
while True:
    clients.append(listener.accept()[0])
    clients[-1].send(b"220 ready\r\n" * 10)' >"$tmp/port" &
	server=$!
	until [ -s "$tmp/port" ]; do
		kill -0 $server || return
	done
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	run 1 "$1" --doctor -p "$(cat "$tmp/port")" 127.0.0.1
	has '^  connection  *bad  *ofi-tcp: another program or fabric listens there'
	has '^  port  *ok  *TCP port [0-9]* accepts connections; "ss -ltnp" there names the program'
	kill $server
	wait $server 2>/dev/null
}

# No interface has the peer's link address, so the kernel discards each packet, as a firewall does.
silent_peer()
{
	net='ip link set lo up && ip link add d0 type veth peer name d1 && ip addr add 10.99.0.1/24 dev d0 &&
		ip link set d0 up && ip link set d1 up &&
		ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev d0'
	if ! unshare -n sh -c "$net" 2>/dev/null; then
		echo "not tested: no network namespace, or no ip"
		return
	fi
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	run 1 unshare -n sh -c "$net && exec '$1' --doctor 10.99.0.2"
	has '^  route  *ok  *10.99.0.2 is 10.99.0.2; from 10.99.0.1 on d0'
	has '^  port  *bad  *no answer from TCP port 62050: a firewall discards it'
	run 1 unshare -n sh -c "$net && exec '$1' --doctor 10.98.0.2"
	has '^  route  *bad  *10.98.0.2 is 10.98.0.2: Network is unreachable; "ip route get'
	# No host has this address: connect() fails with EHOSTUNREACH, as behind a firewall that rejects.
	net="$net && echo 100 >/proc/sys/net/ipv4/neigh/d0/retrans_time_ms"
	run 1 unshare -n sh -c "$net && exec '$1' --doctor 10.99.0.3"
	has '^  connection  *bad  *ofi-tcp: the host cannot be reached'
	has '^  port  *bad  *TCP port 62050: No route to host: a firewall rejects it, or a router'
}

wrong_provider()
{
	FI_PROVIDER=tpc run 1 "$1" --doctor
	not_usable ofi 'FI_PROVIDER=tpc: .* has no provider tpc, but .*tcp.*; unset FI_PROVIDER'
	has '^  ofi does not work$'
	FI_PROVIDER= run 1 "$1" --doctor -D ofi-tcp
	not_usable ofi-tcp 'FI_PROVIDER is set, but empty: that excludes all.*; unset FI_PROVIDER'
	FI_PROVIDER=sockets run 1 "$1" --doctor -D ofi-tcp
	not_usable ofi-tcp 'for provider=tcp; FI_PROVIDER=sockets excludes it: unset FI_PROVIDER'
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
	grep -q 'such lines' "$tmp/out" && fail "one line is counted"
	not_usable ofi 'domain=ib9: the domains of provider=any here are .*; correct domain='
	not_usable a-typo 'offers none for provider=tpc; libfabric has no such provider.*: correct dat.conf'
	not_usable no-library 'cannot load .*none.so.*; correct the fifth field'
	not_usable no-provider 'libc.so.6 is not a provider.*; correct the fifth field'
	not_usable no-key 'unknown key "speed".*; correct the seventh field'
	not_usable no-address 'not an address of this machine; correct address='
	yes broken | head -n 80 >>"$DAT_OVERRIDE"
	"$1" --list >"$tmp/out" 2>"$tmp/err"
	[ "$(grep -c "$DAT_OVERRIDE" "$tmp/err")" -eq 2 ] || fail "more than two lines on dat.conf"
	run 1 "$1" --doctor -D missing
	[ "$(grep -c '^  dat.conf ' "$tmp/out")" -eq 3 ] || fail "not three rows on dat.conf"
	has "^  dat.conf  *$DAT_OVERRIDE: 81 such lines are ignored"
	has 'no IA missing is registered for DAT.*; registered are: ofi, a-typo, no-library'
	run 1 "$1" --doctor -D no_libary
	has 'no IA no_libary is registered for DAT ...; the nearest name is no-library; registered'
	DAT_OVERRIDE=/dev/null run 1 "$1" --doctor
	has 'no IA is registered for DAT ...; "datinfo --conf"'
	DAT_OVERRIDE=$tmp/missing run 1 "$1" --doctor
	has "^  dat.conf  *cannot read $tmp/missing: No such file"
	has 'no IA is registered for DAT ...; correct DAT_OVERRIDE, or unset it$'
}

no_device()
{
	if [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
		echo "not tested: there is an RDMA device"
		return
	fi
	line ofi-verbs provider=verbs >"$DAT_OVERRIDE"
	run 1 "$1" --doctor
	not_usable ofi-verbs 'offers none for provider=verbs; RDMA devices: none in .*; load the'
	has '^  ofi-verbs does not work$'
}

wrong_settings()
{
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	DAT_OFI_TICK_US=soon DAT_OFI_SPIM_US=1 run 0 "$1" --doctor
	has '^  settings  *.*DAT_OFI_TICK_US=soon is no valid value: [0-9]* counts'
	has '^  settings  *.*DAT_OFI_SPIM_US is no setting'
	DAT_OFI_TICK_US=2000 run 0 "$1" --doctor
	grep -q '^  settings' "$tmp/out" && fail "a valid setting"
}

# OFED's registry in place of ours: Debian's libdat2 has the same name.
other_registry()
{
	other=$(ls /usr/lib/*/libdat2.so.2 2>/dev/null | head -n 1)
	if [ -z "$other" ]; then
		echo "not tested: libdat2 is not installed"
		return
	fi
	if nm "$PROV_DIR/v2/.libs/libdaplofi.so.2" -D | grep -q -e __asan -e __tsan; then
		echo "not tested: a sanitizer's library has to be loaded first"
		return
	fi
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	LD_PRELOAD=$other run 0 "$1" --conf
	has '^ofi-tcp u2.0 .* "provider=tcp" ""$'
	LD_PRELOAD=$other run 0 "$1" --doctor
	has "^  registry  *.*libdat2.so.2, another implementation, such as OFED's"
}

little_memory()
{
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	run 0 sh -c "ulimit -l 64; exec '$1' --doctor"
	has '^  locked memory  *[a-z]*  *limited to 64 KiB, .*/etc/security/limits.conf'
	run 0 sh -c "ulimit -n 200; exec '$1' --doctor"
	has '^  descriptors  *note  *limited to 200, .*ulimit -n 4096'
}

# Each step of an IA fails in its own way without descriptors: the doctor names no such failure. With
# fewer than 5, the program or a checker of memory cannot be loaded.
few_descriptors()
{
	line ofi-tcp provider=tcp >"$DAT_OVERRIDE"
	first=5 program=$UTIL_DIR/.libs/${1##*/}
	# Libtool's wrapper script needs more descriptors than its program
	[ -x "$program" ] || program=$1
	! grep -q '^CFLAGS = .*-fsanitize' "$top/Makefile" 2>/dev/null || first=32
	for n in $(seq $first 64); do
		run 1 env LD_LIBRARY_PATH="$top/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
			sh -c "ulimit -n $n; exec '$program' --doctor"
		has "^  descriptors  *bad  *limited to $n, and [0-9]* are free: .*ulimit -n 4096"
		[ "$(wc -l <"$tmp/out")" -eq 5 ] || fail "another cause is named at $n"
	done
	run 1 sh -c "ulimit -n 32; exec '$1' --doctor 127.0.0.1"
	has '^  descriptors  *bad  *limited to 32'
}

loopback_only()
{
	if ! unshare -n ip link set lo up 2>/dev/null; then
		echo "not tested: no network namespace, or no ip"
		return
	fi
	{ line ofi-tcp provider=tcp; line ofi-shm provider=shm; } >"$DAT_OVERRIDE"
	run 0 unshare -n sh -c "ip link set lo up && exec '$1' --doctor -D ofi-tcp"
	has '^  ofi-tcp  *has the loopback address 127.0.0.1: other hosts cannot connect'
	has '^  interfaces  *note  *only lo is up: other hosts cannot be reached'
	run 0 unshare -n sh -c "ip link set lo up && exec '$1' --doctor -D ofi-shm"
	grep -q 'loopback address' "$tmp/out" && fail "shared memory needs no interface"
	run 0 unshare -n "$1" --doctor -D ofi-shm
	has '^  interfaces  *note  *lo is down: .*ip link set lo up'
	run 1 unshare -n "$1" --doctor -D ofi-tcp
	has '^  ofi-tcp  *no  .*; lo is down: .*ip link set lo up'
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
	mib=$((12 * $(getconf _NPROCESSORS_ONLN)))	# which is too little with 1.17, 2.1 and 2.6
	run 0 unshare -m sh -c "mount -t tmpfs -o size=${mib}m none /dev/shm && exec '$1' --doctor"
	has '^  ofi-shm  *yes '
	not_usable ofi-shm-rdm "; /dev/shm: $mib MiB free, .*remount,size="
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
	path_to_peer "$prog" "$UTIL_DIR/datperf${program#datinfo}"
	wrong_provider "$prog"
	wrong_conf "$prog"
done
prog=$UTIL_DIR/datinfo
no_device "$prog"
little_memory "$prog"
few_descriptors "$prog"
wrong_settings "$prog"
other_registry "$prog"
no_shm "$prog"
loopback_only "$prog"
silent_peer "$prog"
foreign_program "$prog"
sockets_server "$prog" "$UTIL_DIR/datperf"
hanging_fabric "$prog"
exit $bad
