#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every public header compiles alone, included twice and before all others, as C and as C++,
# without a warning.
#
# Environment: top_srcdir, CC and CXX as Automake sets them. Without a C++ compiler only C is
# checked.

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
CC=${CC:-cc}
CXX=${CXX:-c++}
warn="-Wall -Wextra -Werror -pedantic"
inc=$top_srcdir/include
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# compiles FILE COMPILER... - the file compiles, messages in $tmp/log
compiles()
{
	file=$1
	shift
	"$@" $warn -I "$inc" -I "$tmp" -fsyntax-only "$file" >"$tmp/log" 2>&1
}

# supported COMPILER... - the compiler exists and knows the standard
supported()
{
	"$@" -fsyntax-only "$tmp/empty.$ext" >/dev/null 2>&1
}

# each STANDARD COMPILER... - compiles all headers with one compiler and standard
each()
{
	supported "$@" || { echo "not supported: $*"; return; }
	runs=$((runs + 1))
	for header in $headers; do
		dir=${header%%/*}
		{
			echo "#include <$header>"
			echo "#include <$header>"
			echo "#include <$dir/udat.h>"
			echo "#include <$dir/dat_registry.h>"
			echo "extern DAT_RETURN use(DAT_EVENT *event, DAT_PROVIDER *provider);"
		} >"$tmp/all.$ext"
		# A header may define macros only, but a translation unit needs a declaration.
		{
			echo "#include <$header>"
			echo "extern int nothing;"
		} >"$tmp/alone.$ext"
		for file in alone all; do
			compiles "$tmp/$file.$ext" "$@" && continue
			echo "$header ($file): $*"
			cat "$tmp/log"
			status=1
		done
	done
	# A broken header must not pass.
	echo "#include <broken.h>" >"$tmp/bad.$ext"
	if compiles "$tmp/bad.$ext" "$@"; then
		echo "a broken header passes: $*"
		status=1
	fi
}

headers=$(cd "$inc" && ls dat/*.h dat2/*.h) || exit 99
count=$(echo "$headers" | wc -l)
[ "$count" -ge 21 ] || { echo "only $count public headers under $inc"; exit 1; }

echo '#include <dat/udat.h>
extern DAT_NO_SUCH_TYPE nothing;' >"$tmp/broken.h"
echo 'extern int nothing;' | tee "$tmp/empty.c" >"$tmp/empty.cc"

status=0
runs=0
ext=c
# $CC and $CXX may consist of several words.
# DAT_UVERYLONG is a long long
each $CC -std=c89 -Wno-long-long
for std in c99 gnu99 c11 gnu11 c17; do each $CC -std=$std; done
[ $runs -gt 0 ] || { echo "no C compiler"; exit 99; }
ext=cc
if supported $CXX; then
	for std in c++11 c++14 c++17 c++20; do each $CXX -std=$std; done
else
	echo "no C++ compiler, C only"
fi
echo "$count headers, $runs compilers and standards"
exit $status
