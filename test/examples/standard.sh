#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The examples of the manual pages compile as strict C99, in which the headers declare only what
# the example has asked for.
set -u
inc=${top_srcdir:-.}/include
pages=${top_builddir:-.}/test/examples/pages
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

# compiles FILE
compiles()
{
	${CC:-cc} -x c -std=c99 -DDAT_API=2 -Werror=implicit-function-declaration -I"$inc" \
		-fsyntax-only "$1" >"$tmp/out" 2>&1
}

for page in "$pages"/*.h; do
	n=$((n + 1))
	compiles "$page" && continue
	echo "not strict C: ${page##*/}"
	sed 's/^/# /' "$tmp/out"
	bad=1
done
[ $n -gt 40 ] || { echo "only $n examples in $pages"; exit 1; }
printf '#include <netdb.h>\nint flag = NI_NUMERICHOST;\n' >"$tmp/gnu.h"
if compiles "$tmp/gnu.h"; then
	echo "an example of GNU C passes"
	bad=1
fi
echo "$n examples"
exit $bad
