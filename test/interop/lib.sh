# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Common functions of the interoperability tests, sourced by them. Unmodified programs of Debian's
# dapl2-utils run as a server and a client, on this registry and on Debian's. The tests read their
# output, because the programs exit with 0 in any case. Output is TAP.
#
# Environment:
#   INTEROP_FABRICS  fabrics to run on; "any" is the provider's choice (default "tcp", and
#                    "tcp sockets shm rxm any" if INTEROP_FULL); "ofed" is OFED's provider
#                    on the device rxe0, instead of this one
#   INTEROP_BRIEF    further fabrics, with a few modes each, on this registry (default "shm rxm",
#                    and none if INTEROP_FULL or INTEROP_FABRICS)
#   INTEROP_FULL     non-empty: every mode on every fabric and registry, with the programs' own sizes
#   INTEROP_LIBS     registries: "ours", "debian" or both (default)
#   INTEROP_HOST     address of this machine that clients connect to (default 127.0.0.1)
#   INTEROP_SECONDS  limit on each program (180, or 540 if INTEROP_FULL, times DAT_TEST_SCALE)
#   DAT_TEST_SCALE   multiplies time limits (default 1)
#   top_builddir     the build tree with the libraries (default .)
#
# The programs' ports are fixed, and connections of other programs occupy or reach them by chance. With
# the privilege for it, a test on the loopback address has a network of its own.
if [ "${INTEROP_HOST:-127.0.0.1}${INTEROP_ALONE:-}" = 127.0.0.1 ] && unshare -n ip link set lo up 2>/dev/null
then
	exec env INTEROP_ALONE=yes unshare -n sh -c 'ip link set lo up && exec sh "$0" "$@"' "$0" "$@"
fi

export IPATH_NO_BACKTRACE=1
unset FI_PROVIDER LD_LIBRARY_PATH

. "${srcdir:-.}/test/interop/await.sh"

full=${INTEROP_FULL:+yes}
fabrics=${INTEROP_FABRICS-tcp${full:+ sockets shm rxm any}}
brief=${INTEROP_BRIEF-shm rxm}
[ -z "$full${INTEROP_FABRICS:-}" ] || brief=${INTEROP_BRIEF:-}
registries=${INTEROP_LIBS:-ours debian}
host=${INTEROP_HOST:-127.0.0.1}
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
our_registry=$build/.libs/libdat2.so.2
scale=${DAT_TEST_SCALE:-1}
seconds=${INTEROP_SECONDS:-$((${full:+3 *} 180 * scale))}

tmp=$(mktemp -d) || exit 99
DAT_OVERRIDE=$tmp/dat.conf
export DAT_OVERRIDE
cp "$build/test/dat.conf" "$DAT_OVERRIDE" || exit 99
echo 'ofa-v2-rxe0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "rxd0 0" ""' >>"$DAT_OVERRIDE"
server_pid=
cleanup()
{
	stop_server
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 99' HUP INT TERM

n_run=0 n_bad=0 n_skip=0 n_self=0

# say VERDICT NAME - prints one line of TAP
report()
{
	n_run=$((n_run + 1))
	printf '%s %d - %s\n' "$1" "$n_run" "$2"
}

passed()
{
	report ok "$1"
}

# failed NAME WHY - also prints the end of both programs' output
failed()
{
	n_bad=$((n_bad + 1))
	report 'not ok' "$1"
	echo "# $2"
	for f in server client; do
		[ -s "$tmp/$f" ] && tail -n 25 "$tmp/$f" | tr -d '\0' | sed "s/^/# $f: /"
	done
}

skipped()
{
	n_skip=$((n_skip + 1))
	report ok "$1 # SKIP $2"
}

finish()
{
	echo "1..$n_run"
	[ "$n_bad" -eq 0 ] || exit 1
	[ "$n_run" -gt $((n_skip + n_self)) ] || exit 77
	exit 0
}

# Programs

# need PROGRAM PORT... - the program under test and the fixed ports of its server. A caller may
# have set also_port to a port that the server takes later.
also_port=
need()
{
	program=$1
	shift
	ports=$*
	if ! command -v "$program" >/dev/null; then
		skipped "$program" "$program is not installed (package dapl2-utils)"
		finish
	fi
	[ -e "$our_registry" ] || { echo "$our_registry is not built"; exit 99; }
	debian_registry=$(ldd "$(command -v "$program")" | sed -n 's/.*libdat2\.so\.2 => \(\/[^ ]*\).*/\1/p')
	lock
	judge_self_test
}

# Locks the fixed ports, so that each has one user on a machine and tests with other ports run in
# parallel. The lock of the first port is taken before the second's. Programs under test do
# not inherit the descriptors.
lock()
{
	locks=/tmp/dat-interop-$(id -u)
	first=${ports%% *} last=${also_port:-${ports##* }}
	mkdir -p "$locks" && exec 8>"$locks/$first" 9>"$locks/$last" || exit 99
	lock_one 8
	[ "$first" = "$last" ] || lock_one 9
}

lock_one()
{
	flock -w $((600 * scale)) "$1" || {
		failed "$program" "another test has held the lock for $((10 * scale)) minutes"
		finish
	}
}

# The directories that programs search first for their registry; Debian's is found by default.
library_path()
{
	[ "$1" = debian ] || echo "$build/.libs"
}

# The file that a process with this registry must have mapped.
registry_file()
{
	case $1 in
	ours) readlink -f "$our_registry" ;;
	debian) readlink -f "$debian_registry" ;;
	esac
}

have_registry()
{
	[ "$1" = ours ] || [ -n "$debian_registry" ]
}

# have_fabric FABRIC - whether libfabric has the fabric here
have_fabric()
{
	case $1 in
	any) return 0 ;;
	ofed) [ -e /sys/class/infiniband/rxe0 ] && ls /usr/lib/*/libdaplofa.so.2 >/dev/null 2>&1; return ;;
	rxm) set -- 'tcp;ofi_rxm' ;;
	*-rdm) set -- "${1%-rdm}" ;;
	esac
	fi_info -p "$1" >/dev/null 2>&1 || ! command -v fi_info >/dev/null
}

# ia FABRIC - the name of the fabric's IA
ia()
{
	case $1 in
	any) echo ofi ;;
	ofed) echo ofa-v2-rxe0 ;;
	*) echo "ofi-$1" ;;
	esac
}

ports_free()
{
	for p in $ports $also_port; do
		! taken "$p" || return 1
	done
}

server_ready()
{
	for p in $ports; do
		listening "$p" || return 1
	done
}

server_ready_or_gone()
{
	server_ready || ! kill -0 "$server_job" 2>/dev/null
}

# The file of the provider under test.
provider_file()
{
	[ "$fabric" = ofed ] && echo /libdaplofa.so.2 || echo "$build/prov/ofi/v2/.libs/libdaplofi.so.2"
}

# Whether the server has mapped the libraries under test.
server_has_libraries()
{
	grep -qF "$(registry_file "$1")" "/proc/$server_pid/maps" &&
		grep -qF "$(provider_file)" "/proc/$server_pid/maps"
}

# Whether the server ended because its port was in use. A client's socket in TIME_WAIT can hold
# the port, and /proc/net/tcp does not distinguish it from a socket that permits a listener.
port_in_use()
{
	server_gone && grep -q CONN_QUAL_IN_USE "$tmp/server"
}

# launch COMMAND... - starts the server; fails if it ended because its port was in use
launch()
{
	rm -f "$tmp/pid"
	# the server has many clients, each of which may take that long on a busy machine
	LD_LIBRARY_PATH=$(library_path "$which") timeout -k 5 $((seconds * 20)) \
		sh -c 'echo $$ >"$0"; exec "$@"' "$tmp/pid" "$@" >"$tmp/server" 2>&1 8>&- 9>&- &
	server_job=$!
	wait_until $((60 * scale)) server_ready_or_gone
	! port_in_use
}

# start_server REGISTRY COMMAND... - returns when the server listens; else fails and sets why
start_server()
{
	which=$1
	shift
	rm -f "$tmp/server" "$tmp/client"
	if ! wait_until $((60 * scale)) ports_free; then
		why="one of the ports $ports $also_port is in use"
		return 1
	fi
	if ! wait_until $((90 * scale)) launch "$@" || ! server_ready; then
		why="the server does not listen at every port of $ports"
		stop_server
		return 1
	fi
	server_pid=$(cat "$tmp/pid")
	if ! server_has_libraries "$which"; then
		why="the server has not loaded $(registry_file "$which") and $(provider_file)"
		stop_server
		return 1
	fi
}

stop_server()
{
	[ -n "$server_job" ] || return 0
	kill "$server_job" 2>/dev/null
	wait "$server_job" 2>/dev/null
	server_job= server_pid=
}
server_job=

server_gone()
{
	! kill -0 "$server_job" 2>/dev/null
}

# Waits for the server to end, for as long as a client may take, and stores its status.
end_server()
{
	wait_until "$seconds" server_gone || kill "$server_job"
	wait "$server_job"
	server_status=$?
	server_job= server_pid=
}

run_client()
{
	which=$1
	shift
	LD_LIBRARY_PATH=$(library_path "$which") timeout -k 5 "$seconds" "$@" >"$tmp/client" 2>&1 8>&- 9>&-
	client_status=$?
}

# Verdicts

# Words that the programs print when something is wrong.
bad_words='error|err[ :]|fail|wrong|mismatch|bad (dis)?connect|unexpected|abort|cannot|could ?n.t|could not|warning|swallowing|invalid|version mismatch|timed out|not expected|segmentation|returned DAT_'

# Output with such words that is no error: dtest -c waits on one CNO for two EVDs, dequeues from
# one of them, and reports a wakeup for the other; dtestx -p prints counters of errors, and -q
# attributes, some of which describe this provider's settings.
harmless='^ *Open_Query: Provider Specific Attribute|^NOTE: Adding OP|^ WARNING: CNO notification: without EVD\?|(async_error|cm_err[a-z_]*) 0$'

# bad_lines FILE - the lines with errors; fails if there are none
bad_lines()
{
	tr -d '\0' <"$1" | grep -vE "$harmless" | grep -iE "$bad_words"
}

# judge NAME FILE STATUS PATTERN... - fails and sets why unless the program ended with 0, printed
# each PATTERN and no error
judge()
{
	role=$1 file=$2 status=$3
	shift 3
	if [ "$status" -ne 0 ]; then
		why="the $role exited with status $status"
		return 1
	fi
	if bad_lines "$file" >"$tmp/bad"; then
		why="the $role printed: $(head -n 1 "$tmp/bad")"
		return 1
	fi
	for pattern in "$@"; do
		if ! tr -d '\0' <"$file" | grep -qE -e "$pattern"; then
			why="the $role did not print \"$pattern\""
			return 1
		fi
	done
}

# Checks that judge detects the failure of a client without an adapter, whatever its exit status.
judge_self_test()
{
	name="$program without an adapter is detected as a failure"
	n_self=1
	case $program in
	dapltest) set -- dapltest -T T -s "$host" -D ofi-nosuch client SR 4096 server SR 4096 ;;
	*) set -- "$program" -P ofi-nosuch -s ;;
	esac
	run_client ours "$@"
	if judge client "$tmp/client" 0; then
		failed "$name" "its failure was not detected"
	else
		passed "$name"
	fi
	rm -f "$tmp/client"
}

# once REGISTRY IA NAME SERVER CLIENT - runs one server and one client; judge_server and
# judge_client of the caller judge them. A server that finds a port in use, at its start or when a
# client has come, is run again: a socket in TIME_WAIT holds its port for a minute.
once()
{
	name="$program, $3, $2, $1 libdat2"
	wait_until $((90 * scale)) attempt "$1" "$4" "$5"
	if [ -z "$why" ]; then
		passed "$name"
	else
		failed "$name" "$why"
	fi
}

# attempt REGISTRY SERVER CLIENT - sets why, to nothing if both pass; fails if the server found a
# port in use
attempt()
{
	why=
	start_server "$1" $2 || return 0
	run_client "$1" $3
	# the server still waits after a client has failed
	[ "$client_status" -eq 0 ] && ! bad_lines "$tmp/client" >/dev/null ||
		kill "$server_job" 2>/dev/null
	end_server
	judge_client && judge_server || ! grep -q CONN_QUAL_IN_USE "$tmp/server"
}

# on FABRIC REGISTRY FUNCTION - calls FUNCTION with the registry and the IA
on()
{
	fabric=$1
	if have_fabric "$1"; then
		"$3" "$2" "$(ia "$1")"
	else
		skipped "$program, $1, $2 libdat2" "libfabric has no $1 here"
	fi
}

# everywhere ALL FEW - calls ALL for each fabric, and FEW for the brief ones. Debian's registry
# calls the same functions of the provider, so with it FEW is called unless INTEROP_FULL.
everywhere()
{
	for r in $registries; do
		if ! have_registry "$r"; then
			skipped "$program, $r libdat2" "Debian's registry is not installed"
			continue
		fi
		modes=$1
		[ "$r" = ours ] || [ -n "$full" ] || modes=$2
		for f in $fabrics; do
			on "$f" "$r" "$modes"
		done
	done
	for f in $brief; do
		on "$f" ours "$2"
	done
}
