#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds and runs macros.c for both API versions, as C and as C++.
#
# Environment: top_srcdir, CC and CXX as Automake sets them.

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
CC=${CC:-cc}
CXX=${CXX:-c++}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
status=0

# run API COMPILER... - build and run the program
run()
{
	api=$1
	shift
	if ! "$@" -Wall -Wextra -Werror -DDAT_API="$api" -I "$top_srcdir/include" \
			-o "$tmp/macros" "$top_srcdir/test/abi/macros.c"; then
		echo "does not compile: DAT_API=$api $*"
		status=1
	elif ! "$tmp/macros"; then
		echo "failed: DAT_API=$api $*"
		status=1
	fi
}

for api in 1 2; do
	run $api $CC -std=c99
	run $api $CC -std=gnu11
	if echo 'int main() { }' | $CXX -x c++ -o "$tmp/probe" - 2>/dev/null; then
		run $api $CXX -std=c++11 -x c++
		run $api $CXX -std=c++17 -x c++
	fi
done
exit $status
