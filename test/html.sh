#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The manual pages in HTML: each page and each of its names has a file, the index has each page,
# and links between the pages lead to a file and a place in it. Without mandoc nothing is
# converted, and a line says so.
set -u
top_srcdir=${top_srcdir:-.}
man=$top_srcdir/man
bad=0

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "FAIL: $*"
	bad=1
}

# links FILE - its links
links()
{
	grep -o 'href="[^"]*"' "$1" | sed 's/^href="//; s/"$//' | sort -u
}

# leads FILE LINK - whether a link in a file of $dir/html leads somewhere
leads()
{
	case $2 in
	https://manpages.debian.org/*)
		name=${2##*/}
		! [ -e "$man/man${name##*.}/$name" ]
		return ;;
	*#*) to=${2%%#*} ;;
	*) to=$2 ;;
	esac
	[ -e "$dir/html/${to:-$1}" ] || return
	case $2 in
	*#*) grep -qF "id=\"${2#*#}\"" "$dir/html/${to:-$1}" ;;
	esac
}

MANDOC=no-such-mandoc sh "$man/make-html" "$dir/none" "$man"/man?/*.? >"$dir/out" ||
	fail "it is an error that mandoc is missing"
grep -q '^mandoc is missing' "$dir/out" || fail "nothing says that mandoc is missing"
[ -e "$dir/none" ] && fail "pages without mandoc"

if ! command -v mandoc >/dev/null; then
	echo "SKIP: mandoc is missing, so there are no pages in HTML"
	[ $bad -eq 0 ] && exit 77
	exit 1
fi

sh "$man/make-html" "$dir/html" "$man"/man?/*.? || fail "exit status $?"
for page in "$man"/man?/*.?; do
	page=${page##*/}
	[ -s "$dir/html/$page.html" ] || fail "no $page.html"
	grep -qF "<a href=\"$page.html\">" "$dir/html/index.html" || fail "$page is not in the index"
	grep -q '^<title>' "$dir/html/$page.html" ||
		grep -q "<h1 class=\"Sh\" id=\"NAME\">" "$dir/html/$page.html" || fail "$page.html has no text"
done
for name in datinfo1.1 datperf1.1; do
	[ -s "$dir/html/$name.html" ] || fail "no $name.html"
done
tried=0
for file in "$dir"/html/*.html; do
	file=${file##*/}
	for link in $(links "$dir/html/$file"); do
		tried=$((tried + 1))
		leads "$file" "$link" || fail "$file: $link leads nowhere"
	done
done
[ $tried -gt 1500 ] || fail "only $tried links were found"
for link in no_such_page.3.html dat.7.html#no-such-place '#no-such-place' \
	https://manpages.debian.org/dat.7; do
	leads dat_ofi.7.html "$link" && fail "$link leads somewhere"
done
leads dat_ofi.7.html '#Fabrics' || fail "a place in the page is not found"

echo "$tried links tested"
exit $bad
