#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checks that each call has a clause for its success and for each error that the header lists
# under "Fails with", or else a line in test/conform/unprovoked with the reason for the omission.
#
# usage: test/conform/returns.sh [1|2]...     the API versions

top=${top_srcdir:-$(dirname "$0")/../..}
excuses=$top/test/conform/unprovoked
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
missing=0

# listed DIRECTORY - "call/RETURN" for each return that its headers list
listed()
{
	awk '
		/Fails with:/ { on = 1; sub(/.*Fails with:/, ""); fails = "" }
		on { line = $0; sub(/^ \*/, "", line); fails = fails line; on = line !~ /\./ }
		/^extern DAT_RETURN dat_/ {
			call = $3
			sub(/\(.*/, "", call)
			print call "/SUCCESS"
			gsub(/[.,]/, " ", fails)
			n = split(fails, f, " ")
			for (i = 1; i <= n; i++)
				print call "/" f[i]
			fails = ""
		}' "$1"/*.h | sort -u
}

# tried VERSION - "call/RETURN" for each clause
tried()
{
	"${top_builddir:-.}/test/conform/conform$1" --list |
		awk '{ split($2, part, "/"); print part[1] "/" part[2] }' |
		sed 's|^dat_ia_open/|dat_ia_openv/|' | sort -u	# dat_ia_open is a macro
}

# excused VERSION - the returns with a reason, for this version or for any
excused()
{
	awk -v version="$1" '/^dat_/ && ($2 == version || $2 == "any") { print $1 }' "$excuses" | sort -u
}

report_list()
{
	[ -s "$tmp/list" ] || return 0
	echo "DAT $1: $2"
	sed 's/^/  /' "$tmp/list"
	missing=1
}

[ $# -gt 0 ] || set -- 1 2
for version; do
	dir=$top/include/dat
	[ "$version" = 1 ] || dir=${dir}2
	listed "$dir" >"$tmp/listed"
	tried "$version" >"$tmp/tried"
	excused "$version" >"$tmp/excused"
	[ "$(wc -l <"$tmp/listed")" -gt 200 ] && [ -s "$tmp/tried" ] || {
		echo "DAT $version: the headers or clauses cannot be read"
		exit 1
	}
	comm -23 "$tmp/listed" "$tmp/tried" | comm -23 - "$tmp/excused" >"$tmp/list"
	report_list "$version" "no clause and no reason for"
	comm -12 "$tmp/excused" "$tmp/tried" >"$tmp/list"
	report_list "$version" "a reason and a clause for"
	comm -23 "$tmp/excused" "$tmp/listed" >"$tmp/list"
	report_list "$version" "a reason for returns that the headers do not list:"
	echo "DAT $version: $(wc -l <"$tmp/listed") returns listed," \
		"$(comm -12 "$tmp/listed" "$tmp/tried" | wc -l) with clauses," \
		"$(wc -l <"$tmp/excused") without a clause for a reason"
done
exit $missing
