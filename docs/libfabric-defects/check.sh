#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The reproductions of libfabric's defects compile without a warning, and each is named in
# docs/libfabric-defects.md and docs/local.mk. They are run by "make defects" alone.
#
# Environment: top_srcdir, CC as Automake gives it; pkg-config knows libfabric's flags.

top_srcdir=${top_srcdir:-.}
dir=$top_srcdir/docs/libfabric-defects
status=0
cflags=$(${PKG_CONFIG:-pkg-config} --cflags libfabric 2>/dev/null)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

fail()
{
	echo "$*"
	status=1
}

# compile FILE... - all in one run of the compiler
compile()
{
	${CC:-cc} -D_GNU_SOURCE $cflags -Wall -Wextra -Werror -fsyntax-only "$@"
}

# named DIRECTORY PAPER... - each program in DIRECTORY is named in each PAPER; prints those that are not
named()
{
	from=$1
	shift
	for file in "$from"/*.c; do
		name=$(basename "$file" .c)
		test "$name" = version && continue
		for paper in "$@"; do
			grep -q "libfabric-defects/$name\\.c" "$paper" || echo "$name: not in $paper"
		done
	done
}

#
# The checks notice a breach
#

echo 'int main(void) { int unused; return 0; }' >"$tmp/breach.c"
compile "$tmp/breach.c" 2>/dev/null && fail "a warning is not noticed"
echo 'libfabric-defects/another.c' >"$tmp/paper"
test -n "$(named "$tmp" "$tmp/paper")" || fail "a program that is named nowhere is not noticed"

#
# The rules
#

compile "$dir"/*.c || fail "see above"
missing=$(named "$dir" "$top_srcdir/docs/libfabric-defects.md" "$top_srcdir/docs/local.mk")
test -z "$missing" || fail "$missing"
for name in $(sed -n 's|.*libfabric-defects/\([a-z_]*\)\.c.*|\1|p' "$top_srcdir/docs/libfabric-defects.md"); do
	test -f "$dir/$name.c" || fail "$name: in the document, and there is no such program"
done
exit $status
