#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# datinfo and datperf as a user runs them: output, exit status, one line per error. Runs in the
# top build directory, on the libraries that were built and are not installed.
set -u
export IPATH_NO_BACKTRACE=1
unset FI_PROVIDER
top=${top_builddir:-$PWD}
port=$((20000 + $$ % 10000))	# and the next three
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

: "${UTIL_DIR:=$top/util}" "${PROV_DIR:=$top/prov/ofi}"

[ -x "$UTIL_DIR/datperf" ] || { echo "$UTIL_DIR/datperf is not built"; exit 99; }

DAT_OVERRIDE=$tmp/dat.conf
export DAT_OVERRIDE
for v in "2.0 2" "1.2 1"; do
	set -- $v
	echo "ofi-device u$1 nonthreadsafe default" \
	     "$PROV_DIR/v$2/.libs/libdaplofi.so.$2 dapl.$1 \"nosuch 1\" \"\""
	for p in "" -tcp -shm -nosuch; do
		params=${p:+provider=${p#-}}
		echo "ofi$p u$1 nonthreadsafe default" \
		     "$PROV_DIR/v$2/.libs/libdaplofi.so.$2 dapl.$1 \"$params\" \"\""
	done
done >"$DAT_OVERRIDE"

# Programs that look at the first eight entries find these among them.
for v in u2.0 u1.2; do
	first=$(awk -v v=$v '$2 == v { print $1 }' "$top/dat.conf" | head -8 | tr '\n' ' ')
	case $first in
	"ofi ofi-verbs ofi-efa ofi-shm ofi-tcp "*)
		;;
	*)
		echo "FAIL: the entries of $v begin with $first"
		bad=1
		;;
	esac
done

fail()
{
	echo "FAIL: $*"
	sed 's/^/    | /' "$tmp/out" "$tmp/err"
	bad=1
}

# run STATUS COMMAND... - runs the command and checks its exit status
run()
{
	want=$1
	shift
	echo "run: $*"
	timeout 180 "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	[ $got -eq "$want" ] || fail "exit status $got, not $want: $*"
}

# has FILE PATTERN
has()
{
	grep -q -e "$2" "$tmp/$1" || fail "no \"$2\" in its $1"
}

# terminal COLUMNS COMMAND... - the command's lines fit a terminal
terminal()
{
	columns=$1
	shift
	command -v script >/dev/null || return 0
	run 0 env -u COLUMNS script -qec "stty cols $columns; $* 2>/dev/null" /dev/null
	[ "$(tr -d '\r' <"$tmp/out" | awk '{ if (length > n) n = length } END { print n }')" -le "$columns" ] ||
		fail "a line of more than $columns columns"
}

# one_line PROGRAM - the program wrote one error line, and nothing on stdout
one_line()
{
	[ "$(grep -c "^[^ ]*$1" "$tmp/err")" -eq 1 ] || fail "not one line"
	[ -s "$tmp/out" ] && fail "output in spite of the error"
}

# one_line_of_error PROGRAM - the program wrote one line, which is its own, on stderr
one_line_of_error()
{
	[ "$(grep -c "^$1: " "$tmp/err")" -eq 1 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ] ||
		fail "not one line on stderr"
}

json()
{
	command -v python3 >/dev/null || return 0
	python3 -m json.tool <"$tmp/out" >/dev/null || fail "no valid JSON"
}

info()
{
	prog=$UTIL_DIR/$1
	run 2 "$prog" --counters nobody
	one_line datinfo
	has err '--counters takes a process ID, not "nobody"'
	run 2 "$prog" --doctor --port 65536 localhost
	one_line datinfo
	has err '--port takes a number from 1 to 65535, not "65536"'
	run 1 "$prog" --counters 1
	one_line datinfo
	run 0 "$prog" --help
	has out "^Usage: datinfo"
	run 0 "$prog" --version
	has out "DAT $2"
	run 2 "$prog" --nosuchoption
	run 2 "$prog" unexpected
	one_line datinfo
	run 0 "$prog" --list
	has out "^ofi-tcp .* tcp "
	has out "^name  *API  *threads  *fabric  *domain  *address$"
	grep -q " - " "$tmp/out" && fail "entries that cannot be opened"
	others=$(sed -n '$s/^\([0-9]*\) other names cannot be opened here: --all shows the reasons$/\1/p' "$tmp/out")
	run 1 "$prog" --list -D ofi-nosuch
	has out "^ofi-nosuch .* - "
	run 2 "$prog" --all
	one_line datinfo
	has err "^datinfo: --all needs --list$"
	run 0 "$prog" --list --all
	grep " - " "$tmp/out" >"$tmp/closed"
	tail -n "$(wc -l <"$tmp/closed")" "$tmp/out" | cmp -s - "$tmp/closed" ||
		fail "an entry that can be opened is not among the first"
	[ "$(cut -d ' ' -f 1 "$tmp/closed" | sort -u | wc -l)" = "$others" ] ||
		fail "not $others other names"
	has out "^ofi-nosuch .* - libfabric offers none for provider=nosuch ("
	has out "^ofi-device .* - this machine has no RDMA device \"nosuch\" "
	terminal 80 "$prog" --list
	awk -v v="$2" 'BEGIN { for (i = 0; i < 1100; i++)
		print "ia" i " u" v " nonthreadsafe default /none.so none." v " \"\" \"\"" }' >"$tmp/many"
	DAT_OVERRIDE=$tmp/many run 1 "$prog" --list
	[ "$(wc -l <"$tmp/out")" -eq 1101 ] || fail "not 1,100 IAs and a heading"
	run 0 "$prog" -D ofi-tcp
	has out "fabric    tcp"
	has out "^  node      "
	grep -q SETTING "$tmp/out" && fail "settings among the attributes"
	has out "max_message_size .*fi_info.ep_attr.max_msg_size"
	has out "max_private_data_size "
	run 0 "$prog" --json
	json
	has out '"max_eps"'
	run 0 "$prog" --capabilities ofi-tcp
	has out '^    RDMA executed by  *fabric$'
	run 0 "$prog" --capabilities ofi-shm
	has out '^    endpoints: msg, or connectionless rdm  *rdm$'
	has out '^    largest frame in bytes  *8320$'
	has out '^    RDMA executed by  *target$'
	has out '^    sends ordered after RDMA writes  *TRUE$'
	has out '^    max_message_size  *[0-9]*  *fi_info.ep_attr.max_msg_size$'
	has out '^    ep_attr.max_recv_dtos  *65536  *64  *U R P T  *-  *slots of its own$'
	run 0 "$prog" --capabilities --json -D ofi-tcp
	json
	has out '"ep_attr.max_recv_dtos"'
	run 2 "$prog" --capabilities ofi-tcp unexpected
	one_line datinfo
	run 1 "$prog" --capabilities missing
	one_line datinfo
	run 1 "$prog" -D ofi-nosuch
	has out "cannot be opened: DAT_PROVIDER_NOT_FOUND: .*provider=nosuch (datinfo --doctor finds the cause)"
	one_line_of_error datinfo
	FI_PROVIDER=tpc run 1 "$prog" --settings
	has err "^datinfo: .*FI_PROVIDER=tpc: libfabric .* has no provider tpc"
	for option in --doctor "--counters 1" "--explain 0x4003" --conf; do
		run 2 "$prog" --json $option
		one_line datinfo
		has err "^datinfo: ${option%% *} prints no JSON$"
	done
	run 1 "$prog" -D missing
	one_line datinfo
	run 0 "$prog" --conf
	has out '^ofi u2.0 nonthreadsafe default [^ ]*libdaplofi.so.2 dapl.2.0 "" ""$'
	has out '^ofi-tcp u1.2 .* "provider=tcp" ""$'
	has out '^ofi-shm u2.0 .* "provider=shm" ""$'
	has out '^ofi-shm-rdm u2.0 .* "provider=shm endpoint=rdm" ""$'
	has out '^ofi-sockets-rdm u2.0 .* "provider=sockets endpoint=rdm" ""$'
	DAT_OVERRIDE=/dev/null run 0 "$prog" --explain 0x4003
	has out '^0x04003  *event of .*'"$2"'$'
	has out 'DAT_CONNECTION_EVENT_NON_PEER_REJECTED$'
	run 0 "$prog" --explain DAT_INVALID_HANDLE_EP
	has out '^0x8005000c  return code of '
	for what in 0x4009 DAT_NO_SUCH_EVENT ''; do
		run 2 "$prog" --explain "$what"
		one_line datinfo
	done
	run 2 "$prog" --explain
	run 2 "$prog" --explain 0x4003 superfluous
	one_line datinfo
	DAT_OVERRIDE=/dev/null run 1 "$prog"
	one_line datinfo
	DAT_OVERRIDE=/dev/null run 1 "$prog" --settings
	one_line datinfo
	DAT_OFI_TICK_US=0x40 DAPL_DBG_TYPE=3 FI_PROVIDER=tcp run 0 "$prog" --settings
	has out '^DAT_OFI_TICK_US  *64  *us  *environment  *'
	has out '^DAT_OFI_PROBE_US  *20  *us  *default  *'
	has out '^DAT_OFI_LOG  *1  *level  *DAPL_DBG_TYPE  *'
	has out '^FI_TCP_PREFETCH_RBUF_SIZE  *0  *bytes  *provider  *'
	has out '^FI_PROVIDER  *tcp  *names  *environment  *'
	has out "^DAT_OVERRIDE  *$DAT_OVERRIDE  *path  *environment  *"
	DAT_OFI_TICKS=64 run 0 "$prog" --settings --json
	json
	has out '"name": *"DAT_OFI_SPIN_US"'
	has err 'unknown setting DAT_OFI_TICKS$'
}

perf()
{
	prog=$UTIL_DIR/$1
	run 0 "$prog" --help
	has out "^Usage: datperf"
	run 0 "$prog" --version
	has out "DAT $2"
	run 2 "$prog"
	one_line datperf
	run 2 "$prog" --local --sizes 2G
	one_line datperf
	run 2 "$prog" --local --tests send,fly
	one_line datperf
	run 2 "$prog" --local somehost
	one_line datperf
	run 0 "$prog" --local -D ofi-tcp -S 1,8,4K,1M -T 5
	has out "^DAT $2, IA ofi-tcp on tcp"
	has out "^ *1M |"
	run 0 "$prog" --local -D ofi-tcp -S 8,64K -T 5 --wait --json
	json
	run 0 "$prog" --local -D ofi-tcp -S 3,4097 -T 5 --raw -r 3 --json
	json
	has out '"lat_ratio"'
	run 0 "$prog" --local -D ofi-shm -S 8,64K -n 8 --raw --json
	json
	has out '"lat_ratio"'
	run 1 "$prog" --local -D missing
	one_line datperf
	FI_PROVIDER=tpc run 1 "$prog" --local -D ofi
	has err "^datperf: ofi: cannot open the IA: .*FI_PROVIDER=tpc: .* has no provider tpc"
	run 1 "$prog" -D ofi-tcp -p 1 127.0.0.1
	one_line datperf
}

# peers PROGRAM API - tests many connections at once
peers()
{
	prog=$UTIL_DIR/$1
	run 2 "$prog" --local --peers 0
	one_line datperf
	run 2 "$prog" --local --peers 1 --raw
	one_line datperf
	for ia in ofi-tcp ofi-shm; do
		terminal 80 "$prog" --local -D $ia --peers 1 -n 100 -T 5
		run 0 "$prog" --local -D $ia --peers 1,8 -n 100 -T 5
		has out "^DAT $2, IA $ia on "
		[ "$(grep -cE '^ +(1|8)( +[0-9.]*[1-9][0-9.]*){7}$' "$tmp/out")" -eq 2 ] || fail "not two lines"
	done
	run 0 "$prog" --local -D ofi-tcp --peers 8 -n 100 -T 5 -r 2 --wait --json
	json
	has out '"connections": 8,'
	has out '"mode": "wait"'
	run 1 "$prog" --local -D missing --peers 1
	one_line datperf
	run 1 "$prog" -D ofi-tcp -p 1 --peers 1 127.0.0.1
	one_line datperf
}

# options PROGRAM - options that change the measurement or the output
options()
{
	prog=$UTIL_DIR/$1
	set -- --local -D ofi-tcp -S 8,64K -n 100
	run 0 "$prog" "$@" --bidir
	has out "one buffer, bandwidth both ways$"
	has out "^ *64K |"
	run 0 "$prog" "$@" -q 3 --threads 2 --bidir --rotate -W 10
	has out "up to 64 buffers in turn, 3 EPs, 2 threads, bandwidth both ways$"
	has out "^ *64K |"
	run 0 "$prog" "$@" -q 2 --threads 2 --wait -v
	has out "^ *64K read  dat "
	run 0 "$prog" "$@" -D ofi-shm -q 3 --threads 2 --bidir
	has out "^ *64K |"
	for form in "" -v --raw "-t send,write,read,mpi"; do
		terminal 80 "$prog" "$*" "$form"
	done
	run 0 "$prog" "$@" -S 0,8
	has out "^ *0 |  *[0-9.]*\*\{0,1\}  *0.0\*\{0,1\}  *[1-9][0-9]* |  *-  *-  *- |  *-  *-  *-$"
	run 0 "$prog" "$@" -S 0 --bidir --wait --raw --json
	has out '"size": 0'
	run 0 "$prog" "$@" --segments 3 -t send,write,read,mpi
	has out "one buffer, 3 segments$"
	run 0 "$prog" "$@" --srq --threads 2 --bidir --rotate -t send,write,mpi
	has out "up to 64 buffers in turn, 2 threads, SRQ, bandwidth both ways$"
	run 1 "$prog" "$@" --segments 32
	has err "^datperf: ofi-tcp: a message has at most [0-9]* segments"
	run 0 "$prog" "$@" --rate 1000 --json
	has out '"rate_limit": 1000,'
	sed -n 's/.*"msg_per_s": \(.*\),/\1/p' "$tmp/out" |
		awk '{ n++ } !($1 > 0 && $1 <= 1000) { bad = 1 } END { exit bad || !n }' ||
		fail "more than a thousand messages a second"
	run 0 "$prog" "$@" --raw --histogram --csv
	# a hundred samples are too few for the percentiles 99 and 99.9
	row='^(ofi-tcp)?,tcp,(dat|raw),(send|write|read),(8|65536)(,[0-9.]+){3},,(,[0-9.]+){17}$'
	[ "$(grep -cE "$row" "$tmp/out")" -eq 12 ] ||
		fail "not twelve lines of values"
	run 0 "$prog" "$@" -t read --histogram
	[ "$(awk '$2 == "us" && $3 ~ /^[0-9]+$/ { n += $3 } END { print n }' "$tmp/out")" -eq 200 ] ||
		fail "the histograms do not have 200 samples"
	run 0 "$prog" "$@" -t send --json --percentile 90
	for member in version libfabric date host kernel msg_per_s lat_p90_us bw_cpu_server_us; do
		has out "\"$member\": [^n0]"
	done
	has out '"lat_p999_us": null,'
	has out '"lat_percentile": 90.0000,'
	[ "$(sed -n 's/.*"lat_p90_us": \(.*\),/\1/p' "$tmp/out")" = \
		"$(sed -n 's/.*"lat_percentile_us": \(.*[0-9]\).*/\1/p' "$tmp/out")" ] ||
		fail "lat_percentile_us differs from lat_p90_us"
	run 0 "$prog" "$@" -t send --json --percentile 99.9
	has out '"lat_percentile_us": null'
}

# servers PORT... - starts a server at each port, and waits until all listen; sets pids
servers()
{
	pids=
	for port; do
		"$prog" --server --keep -D ofi-tcp -p "$port" 2>"$tmp/server$port" &
		pids="$pids $!"
		until grep -q 'waiting for a client' "$tmp/server$port"; do
			kill -0 $! || fail "no server at $port"
			kill -0 $! || return
		done
	done
}

# several_hosts PROGRAM - a client and several servers, one of which ends
several_hosts()
{
	prog=$UTIL_DIR/$1
	first=$((25000 + $$ % 5000))
	set -- "127.0.0.1:$first" "[127.0.0.1]:$((first + 1))" -p $((first + 2)) 127.0.0.1
	servers $first $((first + 1)) $((first + 2))
	run 0 "$prog" -D ofi-tcp -S 8 -n 100 "$@"
	for i in 0 1 2; do
		has out "^127.0.0.1, port $((first + i)): DAT "
	done
	has out "^all hosts, bandwidths added up"
	[ "$(grep -c '^ *8 |' "$tmp/out")" -eq 4 ] || fail "not four rows"
	run 0 "$prog" -D ofi-tcp -S 8 -n 100 --json "$@"
	json
	[ "$(grep -c '"program": "datperf"' "$tmp/out")" -eq 3 ] || fail "not three results"
	run 1 "$prog" -D ofi-tcp -S 8 -n 100 "$@" "127.0.0.1:$((first + 3))"
	grep -q "^datperf: 127.0.0.1, port $((first + 3)): ofi-tcp: no listener" "$tmp/err" ||
		fail "the host without a server is not named"
	kill $pids
	wait $pids 2>/dev/null
}

# Datagrams, which only DAT 2.0 has.
datagrams()
{
	prog=$UTIL_DIR/datperf
	for ia in ofi-tcp ofi-shm; do
		terminal 80 "$prog" --local -D $ia -S 8 --ud -n 100 --raw
		run 0 "$prog" --local -D $ia --ud -n 100 --raw
		has out "datagrams of at most [0-9]* bytes$"
		has out "^ *1K ud "
		run 0 "$prog" --local -D $ia -t send,ud -S 1,64 -n 100 -q 3 --threads 2 --bidir --rotate
		has out "^ *64 |"
	done
	run 0 "$prog" --local -D ofi-tcp --ud -S 8,1K,1M -n 100 --wait --raw --json
	json
	has out '"test": "ud"'
	has out '"bw_lost": [0-9]'
	grep -q '"size": 1048576' "$tmp/out" && fail "a datagram of a megabyte"
	run 1 "$prog" --local -D ofi-tcp --ud -S 1M
	has err "^datperf: datagrams have at most [0-9]* bytes"
	run 1 "$prog"1 --local -D ofi-tcp --ud
	has err "^datperf: datagrams need DAT 2.0"
}

# Immediate data and atomics, which only DAT 2.0 has.
extension()
{
	prog=$UTIL_DIR/datperf
	for ia in ofi-tcp ofi-shm; do
		run 0 "$prog" --local -D $ia -t imm -S 1,64K -n 100 -q 3 --threads 2 --rotate --bidir
		has out "^ *64K |"
		run 0 "$prog" --local -D $ia -t fadd,cswap -n 100 -q 3 --threads 2 --bidir -v
		has out "^ *8 cswap dat "
	done
	run 0 "$prog" --local -D ofi-tcp -t imm -S 8 -n 100 --wait --srq --segments 2
	run 0 "$prog" --local -D ofi-tcp -t fadd,cswap -n 100 --wait --json
	json
	has out '"test": "fadd"'
	run 1 "$prog"1 --local -D ofi-tcp -t imm
	has err "^datperf: the test imm needs DAT 2.0"
}

# A measurement that takes longer than the peer may be silent; an RDMA read does not involve it.
long_measurement()
{
	mkfifo "$tmp/server"
	"$UTIL_DIR/datperf" --server -p $((port + 3)) -D ofi-tcp --timeout 3 2>"$tmp/server" &
	server=$!
	exec 3<"$tmp/server"
	read -r line <&3	# the server listens
	run 0 "$UTIL_DIR/datperf" -p $((port + 3)) -D ofi-tcp -S 8 -t read -T 4000 127.0.0.1
	has out "^ *8 |"
	wait $server || fail "exit status $? of the server"
	exec 3<&-
	rm "$tmp/server"
}

# A server that keeps serving survives a client that dies.
keep()
{
	mkfifo "$tmp/server"
	"$UTIL_DIR/datperf" --server --keep -p $((port + 2)) -D ofi-tcp 2>"$tmp/server" &
	server=$!
	exec 3<"$tmp/server"
	read -r line <&3	# the server listens
	for more in "" "--raw" "-q 2 --threads 2" "--wait"; do
		run 0 "$UTIL_DIR/datperf1" -p $((port + 2)) -D ofi-tcp -S 8 -n 10 $more 127.0.0.1
		has out "^ *8 "
	done
	mkfifo "$tmp/client"
	"$UTIL_DIR/datperf" -p $((port + 2)) -D ofi-tcp -S 8 -T 60000 --raw 127.0.0.1 >"$tmp/client" &
	victim=$!
	exec 4<"$tmp/client"
	read -r line <&4	# the table's head: both are connected
	kill -9 $victim
	# the server reports the end, perhaps after the provider's log
	while read -r line <&3 && [ "${line#dat-ofi}" != "$line" ]; do
		:
	done
	case $line in
	"datperf: "*) ;;
	*) fail "no reason but \"$line\" after the client's death" ;;
	esac
	# two at once: the server takes one after the other
	"$UTIL_DIR/datperf" -p $((port + 2)) -D ofi-tcp -S 8 -n 10 127.0.0.1 >"$tmp/first" 2>&1 &
	first=$!
	run 0 "$UTIL_DIR/datperf" -p $((port + 2)) -D ofi-tcp -S 8 -n 10 127.0.0.1
	wait $first || fail "exit status $? of the first of two clients"
	kill -9 $server
	wait
	exec 3<&- 4<&-
	rm "$tmp/server" "$tmp/client"
}

plot()
{
	prog=$UTIL_DIR/datperf
	run 2 "$prog" --local --plot "$tmp/a.svg" --from "$tmp/a.json"
	one_line datperf
	command -v gnuplot >/dev/null || return 0
	run 0 "$prog" --local -D ofi-tcp -S 8,64K -n 20 --raw --json --plot "$tmp/a.svg"
	json
	cp "$tmp/out" "$tmp/a.json"
	grep -q '<svg' "$tmp/a.svg" || fail "no picture"
	for text in 'bare libfabric write' 'latency (µs)' 'ofi-tcp on tcp'; do
		grep -q "$text" "$tmp/a.svg" || fail "no \"$text\" in the picture"
	done
	run 0 "$prog" --local -D ofi-tcp -S 8,64K -n 20 --plot "$tmp/a.png"
	[ "$(head -c 4 "$tmp/a.png" | tr -d '\211')" = PNG ] || fail "no PNG"
	run 1 "$prog" --plot "$tmp/b.svg" --from "$tmp/a.json" "$tmp/none.json"
	one_line datperf
	if grep -q "without json-c: install libjson-c-dev" "$tmp/err"; then
		return 0
	fi
	has err "none.json"
	echo '{ "results": 7 }' >"$tmp/bad.json"
	echo '{ "results": [ 7 ] }' >"$tmp/worse.json"
	echo '{ "results": [' >"$tmp/half.json"
	echo '{ "results": [ { "size": 8, "test": "send", "dat": { "lat_us": 1e999 } } ] }' >"$tmp/empty.json"
	for file in bad worse half empty; do
		run 1 "$prog" --plot "$tmp/b.svg" --from "$tmp/$file.json"
		one_line datperf
		has err "$file.json: "
	done
	[ -e "$tmp/b.svg" ] && fail "a picture in spite of the error"
	sed 's/"host": "[^"]*"/"host": "node1"/' "$tmp/a.json" >"$tmp/other.json"
	sed -i 's/"host": "[^"]*"/"host": "node10"/' "$tmp/a.json"
	run 0 "$prog" --plot "$tmp/b.svg" --from "$tmp/a.json" "$tmp/other.json"
	grep -q '>2 runs, libfabric [0-9.]*; node10, node1, [0-9-]*<' "$tmp/b.svg" ||
		fail "no title of two runs"
	grep -q 'ofi-tcp on tcp: send' "$tmp/b.svg" || fail "no first run in the picture"
	grep -q 'other.json: bare libfabric read' "$tmp/b.svg" || fail "no second run in the picture"
}

# The server's receives come from an SRQ, too, though only the client has the option.
shared_receives()
{
	mkfifo "$tmp/server" "$tmp/client"
	"$UTIL_DIR/datperf" --server -p $((port + 2)) -D ofi-tcp 2>"$tmp/server" &
	server=$!
	exec 3<"$tmp/server"
	read -r line <&3	# the server listens
	"$UTIL_DIR/datperf" -p $((port + 2)) -D ofi-tcp --srq -T 60000 127.0.0.1 \
		>"$tmp/client" 2>/dev/null &
	client=$!
	exec 4<"$tmp/client"
	read -r line <&4	# the table's head: both are connected
	for pid in $server $client; do
		run 0 "$UTIL_DIR/datinfo" --counters $pid
		has out '^ia [^ ]* srq_create 1$'
		grep -q '^ep [^ ]* post_recv [1-9]' "$tmp/out" && fail "receives of an EP"
	done
	kill -s INT $client
	wait
	exec 3<&- 4<&-
	rm "$tmp/server" "$tmp/client"
}

# interrupt SIGNAL STATUS OPTIONS... - sends the signal after the first row; both ends end
interrupt()
{
	signal=$1 status=$2
	shift 2
	echo "run: $* (SIG$signal)"
	mkfifo "$tmp/server" "$tmp/client"
	"$UTIL_DIR/datperf" --server -p $((port + 2)) -D ofi-tcp "$@" 2>"$tmp/server" &
	server=$!
	exec 3<"$tmp/server"
	read -r line <&3	# the server listens
	"$UTIL_DIR/datperf" -p $((port + 2)) -D ofi-tcp -T 100 --csv "$@" 127.0.0.1 \
		>"$tmp/client" 2>"$tmp/err" &
	client=$!
	exec 4<"$tmp/client"
	read -r line <&4	# the head
	read -r line <&4
	kill -s $signal $client
	cat <&4 >"$tmp/out"
	wait $client
	got=$?
	[ $got -eq $status ] || fail "exit status $got, not $status, of the client"
	[ "$(cat "$tmp/err")" = "datperf: interrupted" ] || fail "not the line on stderr"
	[ "$(wc -l <"$tmp/out")" -lt 15 ] || fail "all rows in spite of SIG$signal"
	wait $server || fail "exit status $? of the server"
	cat <&3 >"$tmp/err"
	[ -s "$tmp/err" ] && fail "the server complains"
	exec 3<&- 4<&-
	rm "$tmp/server" "$tmp/client"
}

# A measurement without an end, and the latency of each of its messages
endless()
{
	mkfifo "$tmp/client"
	"$UTIL_DIR/datperf" --local -D ofi-tcp -S 8 -t send -T 0 --csv --samples "$tmp/samples" \
		>"$tmp/client" 2>"$tmp/err" &
	client=$!
	exec 4<"$tmp/client"
	for row in head 1 2; do
		read -r line <&4 || fail "no row $row"
	done
	kill -s INT $client
	cat <&4 >"$tmp/out"
	wait $client
	got=$?
	[ $got -eq 130 ] || fail "exit status $got after Ctrl-C"
	exec 4<&-
	[ "$(head -n 1 "$tmp/samples")" = side,test,size,thread,us ] || fail "another head"
	[ "$(sed 1d "$tmp/samples" | grep -cv '^dat,send,8,0,[0-9]*\.[0-9]*$')" -eq 0 ] ||
		fail "a line that is no sample"
	[ "$(wc -l <"$tmp/samples")" -gt 20 ] || fail "few samples"
	rm "$tmp/client"
	run 1 "$UTIL_DIR/datperf" --local -D ofi-tcp -S 8 --samples /dev/full
	has err '/dev/full: not all samples were written'
	"$UTIL_DIR/datperf" --local -D ofi-tcp -S 8 -n 10 >/dev/full 2>"$tmp/err" &&
		fail "standard output is full"
	grep -q "not all results were written" "$tmp/err" || fail "no reason"
}

# The JSON of a measurement with both ends, after Ctrl-C at a terminal, which signals both.
interrupt_json()
{
	command -v python3 >/dev/null || return 0
	python3 - "$UTIL_DIR/datperf" >"$tmp/out" 2>"$tmp/err" <<-'END' || fail "no JSON after Ctrl-C"
	import json, os, pty, signal, subprocess, sys
	master, slave = pty.openpty()
	command = [sys.argv[1], "--local", "-D", "ofi-tcp", "-t", "send", "-T", "500", "--json"]
	run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, start_new_session=True)
	os.close(slave)
	shown = b""
	while b"[2/" not in shown:	# the second size
	    shown += os.read(master, 1000)
	os.killpg(run.pid, signal.SIGINT)
	out = json.load(run.stdout)
	assert run.wait() == 130, run.returncode
	assert out["interrupted"]
	sizes = [r["size"] for r in out["results"]]	# the signal may be late on a busy machine
	assert sizes and sizes == [1 << i for i in range(len(sizes))] and sizes[-1] < 1 << 20, out
	END
}

# server_dies OPTIONS... - the JSON of a measurement whose server dies: what was measured, and why no
# more
server_dies()
{
	command -v python3 >/dev/null || return 0
	python3 - "$UTIL_DIR/datperf" -p $((port + 2)) -D ofi-tcp "$@" \
		>"$tmp/out" 2>"$tmp/err" <<-'END' || fail "no JSON: $*"
	import json, os, pty, subprocess, sys
	command = sys.argv[1:]
	server = subprocess.Popen([*command, "--server"], stderr=subprocess.PIPE)
	server.stderr.readline()	# it listens
	master, slave = pty.openpty()
	run = subprocess.Popen([*command, "--json", "127.0.0.1"], stdout=subprocess.PIPE,
	                       stderr=slave, start_new_session=True)
	os.close(slave)
	shown = b""
	while b"[3/" not in shown:	# the first size is done, or two numbers of connections
	    shown += os.read(master, 1000)
	server.kill()
	out = json.load(run.stdout)
	assert run.wait() == 1, run.returncode
	assert out["interrupted"] and out["reason"], out
	assert out.get("results") or out.get("peers"), out
	END
}

# The server that the client starts with ssh, here a program that starts it on this machine. The
# server has a descriptor of a FIFO, which so ends when the server has ended.
ssh_server()
{
	mkfifo "$tmp/alive"
	cat >"$tmp/ssh" <<-'END'
		#!/bin/sh
		[ "$1" = me@127.0.0.1 ] || exit 255
		exec sh -c "$2" 9>"$ALIVE"
	END
	chmod +x "$tmp/ssh"
	export DATPERF_SSH="$tmp/ssh" ALIVE="$tmp/alive"
	prog=$UTIL_DIR/datperf
	set -- --ssh me@127.0.0.1 -p $((port + 2)) -D ofi-tcp
	for more in "-S 8 -n 10" "--peers 2 -n 10" "--raw-only -S 8 -n 10"; do
		cat "$tmp/alive" &
		PATH=$UTIL_DIR:$PATH run 0 "$prog" "$@" $more
		[ -s "$tmp/err" ] && fail "errors in spite of success"
		wait $!
	done
	cat "$tmp/alive" &
	PATH=$UTIL_DIR:$PATH run 1 "$prog" "$@" -D "a'b c"
	has err "^datperf: a'b c: cannot open the IA: "
	has err "^datperf: the server on me@127.0.0.1 did not start$"
	wait $!
	run 1 "$prog" --ssh other
	one_line_of_error datperf
	DATPERF_SSH=/nosuch run 1 "$prog" "$@"
	has err "^datperf: cannot run /nosuch: "
	for signal in INT KILL; do
		mkfifo "$tmp/client"
		cat "$tmp/alive" &
		alive=$!
		PATH=$UTIL_DIR:$PATH "$prog" "$@" -T 60000 >"$tmp/client" 2>"$tmp/err" &
		client=$!
		exec 4<"$tmp/client"
		read -r line <&4	# the table's head: both are connected
		kill -s $signal $client
		wait $client
		echo "SIG$signal: exit status $?"
		wait $alive
		exec 4<&-
		rm "$tmp/client"
		[ $signal = KILL ] || [ "$(cat "$tmp/err")" = "datperf: interrupted" ] ||
			fail "not the line on stderr"
	done
	unset DATPERF_SSH
}

# The server's process opens a library that the dynamic linker waits for: a FIFO without a writer.
slow_server()
{
	mkfifo "$tmp/fifo.so"
	echo "slow u2.0 threadsafe default $tmp/fifo.so dapl.2.0 \"\" \"\"" >"$tmp/slow.conf"
	DAT_OVERRIDE=$tmp/slow.conf run 1 "$UTIL_DIR/datperf" --local -D slow --timeout 1
	one_line datperf
	has err 'the server process did not open the device in time; see --timeout'
	rm "$tmp/fifo.so"
}

# Both ends are separate processes, of different API versions.
peers_apart()
{
	mkfifo "$tmp/server"
	"$UTIL_DIR/datperf1" --server -p $((port + 1)) -D ofi-tcp --peers 1 2>"$tmp/server" &
	server=$!
	exec 3<"$tmp/server"
	read -r line <&3	# the server listens
	run 0 "$UTIL_DIR/datperf" -p $((port + 1)) -D ofi-tcp --peers 3,2 -n 100 -T 5 127.0.0.1
	[ "$(grep -cE '^ +[32]( +[0-9.]*[1-9][0-9.]*){7}$' "$tmp/out")" -eq 2 ] || fail "not two lines"
	wait $server || fail "exit status $? of the server"
	cat <&3 >"$tmp/err"
	[ -s "$tmp/err" ] && fail "the server complains"
	exec 3<&-
	rm "$tmp/server"
}

# Only one end has --peers: each end that gives up says so at once, without its --timeout.
peers_at_one_end()
{
	set -- "$UTIL_DIR/datperf" -p $((port + 1)) -D ofi-tcp --timeout 50
	for at in server client; do
		mkfifo "$tmp/server"
		"$@" --server $([ $at = client ] || echo --peers 1) 2>"$tmp/server" &
		server=$!
		exec 3<"$tmp/server"
		read -r line <&3	# the server listens
		run 1 timeout 20 "$@" -n 8 -S 8 $([ $at = server ] || echo --peers 1) 127.0.0.1
		has err '^datperf: .*--peers'
		[ $at = server ] || kill $server
		wait $server
		cat <&3 >"$tmp/err"
		[ $at = client ] || has err '^datperf: the client has no --peers'
		exec 3<&-
		rm "$tmp/server"
	done
}

raw()
{
	prog=$UTIL_DIR/datperf
	run 0 "$prog" --local --raw-only -S 1,8,4K,1M -T 5 -v
	has out "^ *1M read  raw"
	run 0 "$prog" --local -D ofi-tcp -S 8 -n 8
	place=$(sed -n 's/.*IA ofi-tcp on \(.*\), polling.*/\1/p' "$tmp/out")
	run 0 "$prog" --local --raw-only -D ofi-tcp -S 8 -n 8
	has out "^bare libfabric, $place, polling"
	run 1 "$prog" --local --raw-only -D nosuch
	has err '^datperf: nosuch: cannot open the IA'
	run 1 "$prog" --local --raw-only --provider nosuch
	one_line datperf
	run 1 "$prog" --local --raw-only --provider nosuch --endpoint rdm
	one_line datperf
	"$UTIL_DIR/datinfo" -D ofi-tcp >"$tmp/fabrics"
	for fabric in shm "tcp;ofi_rxm"; do
		grep -q "^  rdm .*\b$fabric\b" "$tmp/fabrics" || continue
		run 0 "$prog" --local --raw-only --provider "$fabric" --endpoint rdm -S 8,64K -n 8 -v
		has out "^ *64K read  raw"
	done
	# the file that a killed process of the same number would have left
	run 0 sh -c 'left=/dev/shm/$$:0:0; echo $left >"$0"; truncate -s 16M $left && exec "$@"' \
		"$tmp/left" "$prog" --local --raw-only --provider shm --endpoint rdm -S 8 -n 8
	rm -f "$(cat "$tmp/left")"	# libfabric 2.x has other names
	run 0 "$prog" --local --raw-only --provider shm --endpoint rdm -S 8 -n 8 --wait
	has out "(bare libfabric polls)"
	run 0 "$prog" --local --raw-only -S 8 -n 8 --wait --json
	has out '"raw_cq": "fd"'
	run 0 "$prog" --local --raw-only -S 8 -n 8 --raw-cq none --json
	has out '"raw_cq": "none"'
}

# Another program of either API version reads the counters of a connected process.
counters()
{
	for reader in datinfo datinfo1; do
		run 0 "$UTIL_DIR/$reader" --counters "$1"
		has out '^ia [^ ]* name ofi-tcp$'
		has out '^ia [^ ]* cm_passive_est 1$'
		has out '^ep [^ ]* post_recv [1-9]'
		has out '^evd [^ ]* dequeue [1-9]'
	done
}

# Each end must notice within a second that its peer was killed.
death()
{
	prog=$UTIL_DIR/datperf
	mkfifo "$tmp/server" "$tmp/client"
	for victim in server client; do
		"$prog" --server -p $port "$@" 2>"$tmp/server" &
		server=$!
		exec 3<"$tmp/server"
		read -r line <&3	# the server listens
		"$prog" -p $port -T 60000 -S 8 "$@" 127.0.0.1 \
			>"$tmp/client" 2>"$tmp/err" &
		client=$!
		exec 4<"$tmp/client"
		read -r line <&4	# the table's head: both are connected
		[ $1 != -D ] || counters $server
		eval "kill -9 \$$victim"
		begin=$(date +%s%N)
		if [ $victim = server ]; then other=$client; else other=$server; fi
		wait $other
		got=$?
		ms=$((($(date +%s%N) - begin) / 1000000))
		wait
		cat <&3 >"$tmp/out"
		exec 3<&- 4<&-
		echo "$victim killed: the other end took $ms ms"
		[ $got -eq 1 ] || fail "exit status $got after the $victim's death"
		# a thread of the sockets provider may be delayed, but for less than --timeout
		case $* in *sockets*) limit=9000 ;; *) limit=1000 ;; esac
		[ $ms -lt $limit ] || fail "took $ms ms to notice"
		[ "$(cat "$tmp/out" "$tmp/err" | grep -c "^datperf: ")" -eq 1 ] ||
			fail "not one line"
	done
	rm "$tmp/server" "$tmp/client"
}

raw
death --raw-only
death --raw-only --provider sockets --endpoint rdm
info datinfo 2.0
info datinfo1 1.2
perf datperf 2.0
perf datperf1 1.2
peers datperf 2.0
peers datperf1 1.2
slow_server
peers_apart
peers_at_one_end
options datperf
options datperf1
several_hosts datperf
several_hosts datperf1
datagrams
extension
long_measurement
keep
plot
shared_receives
interrupt INT 130
interrupt TERM 143 --peers 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16
interrupt_json
endless
server_dies -t send -S 8,16,32,64 -T 500
server_dies --peers 1,2,3,4,5 -T 500
ssh_server
death -D ofi-tcp
exit $bad
