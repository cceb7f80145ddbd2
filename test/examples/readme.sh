#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The program in README.md, which make extracts and compiles, prints the lines in README.md.
set -u
unset FI_PROVIDER

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

awk '/^    \$ cc ia\.c/ { getline; sub(/^    /, ""); print }' "${top_srcdir:-.}/README.md" >"$tmp/expected"
[ -s "$tmp/expected" ] || {
	echo "FAIL: README.md does not show what its program prints"
	exit 1
}
sh "${top_srcdir:-.}/test/run" "${top_builddir:-.}/test/examples/readme" >"$tmp/printed" || {
	echo "FAIL: the program failed: $(cat "$tmp/printed")"
	exit 1
}
diff "$tmp/expected" "$tmp/printed"
