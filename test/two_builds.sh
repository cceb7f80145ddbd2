#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# datperf of the other build, for this machine, and datperf of the build that is tested exchange data,
# and verify it. Over each fabric both are the server once.
#
# Environment: NATIVE_BUILD    a build for this machine
#              TEST_RUNNER     runs a program of the build in top_builddir, which is for another
#                              processor
#              TWO_BUILDS_IAS  the IAs (ofi-tcp ofi-tcp-rdm ofi)
#              TWO_BUILDS_PORT the qualifier; stages that run at the same time need different ones

[ -x "${NATIVE_BUILD:-/nowhere}/util/datperf" ] || { echo "skip: no two builds"; exit 77; }
dir=$(mktemp -d) || exit 99
trap 'kill $server 2>/dev/null; rm -rf "$dir"' EXIT
server=
failed=0

# in_build DIRECTORY RUNNER ARGUMENT... - runs the datperf in the build directory DIRECTORY. On a busy
# machine an emulated peer takes more than ten seconds to answer.
in_build()
{
	build=$1 runner=$2
	shift 2
	DAT_OVERRIDE=$build/test/dat.conf
	export DAT_OVERRIDE
	exec timeout 120 "$build/libtool" --silent --mode=execute $runner "$build/util/datperf" --timeout 60 "$@"
}

# exchange IA SERVER-BUILD RUNNER CLIENT-BUILD RUNNER - starts the client when the server has printed
# that it listens
exchange()
{
	(in_build "$2" "$3" --server -D "$1" --port $port) >"$dir/server" 2>&1 &
	server=$!
	exec 3<"$dir/server"
	while read -r line <&3 && [ "${line%%waiting for a client*}" = "$line" ]; do
		:
	done
	(in_build "$4" "$5" -D "$1" --port $port -S 8,4k,64k -n 20 127.0.0.1) >"$dir/client" 2>&1 &&
		wait $server && return
	echo "$line"
	cat "$dir/client"
	kill $server 2>/dev/null
	wait $server	# the next server needs the port
	failed=1
}

mkfifo "$dir/server" || exit 99
port=${TWO_BUILDS_PORT:-18700}
for ia in ${TWO_BUILDS_IAS:-ofi-tcp ofi-tcp-rdm ofi}; do
	echo "# $ia"
	exchange $ia "$top_builddir" "$TEST_RUNNER" "$NATIVE_BUILD" ''
	exchange $ia "$NATIVE_BUILD" '' "$top_builddir" "$TEST_RUNNER"
done
exit $failed
