#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checks that the headers, and the libraries unless nm here cannot read them, have the ABI recorded
# in test/abi/*.json, and that the checker detects a wrong fact.
#
# Environment: top_srcdir, top_builddir, CC as Automake sets them; LIBDAT1 and LIBDAT2 name the
# libraries to check, by default those of the build.

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-.}
CC=${CC:-cc}
here=$top_srcdir/test/abi
python=/usr/bin/python3

[ -x $python ] || python=python3
command -v $python >/dev/null || { echo "skip: no python3"; exit 77; }

# The facts were recorded on x86-64. Other platforms with its sizes, such as arm64, have the same.
if ! echo '#if !defined(__LP64__)
#error another ABI
#endif' | $CC -fsyntax-only -x c - 2>/dev/null; then
	echo "skip: the facts are those of LP64"
	exit 77
fi

status=0

# find_lib NAME - the built library of this file name
find_lib()
{
	for dir in "$top_builddir/src/.libs" "$top_builddir/.libs"; do
		[ -e "$dir/$1" ] && { echo "$dir/$1"; return; }
	done
}

# check VERSION SONAME LIBRARY
check()
{
	set -- "$1" "$2" "${3:-$(find_lib "$2")}"
	if [ "$($CC -dumpmachine | cut -d- -f1)" != "$(uname -m)" ]; then
		echo "library: $2 is one of another machine, headers only"
		$python "$here/check_abi.py" "$here/dat-$1.abi.json" "$top_srcdir/include" \
			--cc "$CC" --mutate || status=1
	elif [ -n "$3" ]; then
		echo "library: $3"
		$python "$here/check_abi.py" "$here/dat-$1.abi.json" "$top_srcdir/include" \
			--cc "$CC" --mutate --lib "$3" --soname "$2" || status=1
	else
		echo "$2 is not built"
		status=1
	fi
}

check 1.2 libdat.so.1 "$LIBDAT1"
check 2.0 libdat2.so.2 "$LIBDAT2"

# Checks that the library check can fail: the C library does not export DAT calls.
libc=$($CC -print-file-name=libc.so.6)
if [ -e "$libc" ] && $python "$here/check_abi.py" "$here/dat-1.2.abi.json" \
		"$top_srcdir/include" --cc "$CC" --lib "$libc" >/dev/null; then
	echo "the checker accepts $libc as libdat"
	status=1
fi

exit $status
