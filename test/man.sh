#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The manual pages: mandoc finds no fault with them, every call that this release carries out has
# one, none is left out of the installation, their references to each other lead somewhere, and
# their examples compile with both API versions.
#
# Environment: top_srcdir and CC as Automake gives them. Skipped, after the rest has passed, where
# mandoc is missing.

top_srcdir=${top_srcdir:-.}
man=$top_srcdir/man
status=0
skipped=0

# Calls of a release under way whose pages are still to be written.
to_come=

fail()
{
	echo "$*"
	status=1
}

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

#
# The language
#

# lint FILE... - what mandoc finds
lint()
{
	mandoc -Tlint -W warning "$@"
}

if command -v mandoc >/dev/null; then
	lint "$man"/man?/*.? || fail "mandoc finds faults, see above"
	printf '.Dd November 21, 2026\n.Dt X 3\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Nosuch\n' >"$dir/bad.3"
	lint "$dir/bad.3" >/dev/null && fail "mandoc finds no fault with a macro that does not exist"
else
	echo "SKIP: mandoc is missing, so the pages' language is not checked"
	skipped=1
fi

#
# Completeness
#

# exported FILE... - the calls in linker maps, one a line
exported()
{
	sed -n 's/^[[:blank:]]*\(dats\{0,1\}_[a-z0-9_]*\);.*/\1/p' "$@" | sort -u
}

# not_implemented - the calls that NEWS excepts from the release
not_implemented()
{
	sed -n '/^Not there yet/,$p' "$top_srcdir/NEWS" | grep -o 'dat_[a-z0-9_]*'
}

# lacking CALL... - those without a page
lacking()
{
	for call; do
		[ -e "$man/man3/$call.3" ] || echo "$call"
	done
}

# without LIST NAME... - the names that are not in the list
without()
{
	list=" $(echo "$1" | tr '\n' ' ') "
	shift
	for name; do
		case $list in
		*" $name "*) ;;
		*) echo "$name" ;;
		esac
	done
}

calls=$(exported "$top_srcdir/src/libdat.map" "$top_srcdir/src/libdat2.map")
[ "$(echo "$calls" | wc -l)" -gt 70 ] || fail "the linker maps have only: $calls"
needed=$(without "$(not_implemented) $to_come" $calls)
for call in $(lacking $needed); do
	fail "there is no page for $call"
done
for call in $to_come; do
	[ -z "$(lacking "$call")" ] && fail "$call has a page now: take it off to_come"
done
[ "$(lacking dat_ia_open dat_no_such_call)" = dat_no_such_call ] ||
	fail "the search for missing pages finds the wrong ones"

for page in "$man"/man?/*.?; do
	grep -q "[[:blank:]]man/${page#"$man"/}" "$top_srcdir"/man/local.mk "$top_srcdir"/util/local.mk ||
		fail "$page is not installed"
done

# references FILE... - the pages of ours that they refer to, as NAME.SECTION
references()
{
	sed -n 's/^\.Xr \(dat[a-z0-9_.]*\) \([0-9]\).*/\1.\2/p' "$@" | sort -u
}

for page in $(references "$man"/man?/*.?); do
	[ -e "$man/man${page##*.}/$page" ] ||
		fail "no page $page, to which $(grep -l "^.Xr ${page%.*} ${page##*.}" "$man"/man?/*.? | tr '\n' ' ')refer"
done

#
# Examples
#

# example FILE - the program in its EXAMPLES, if the first display there is one
example()
{
	awk '/^\.Sh/ { in_examples = $2 == "EXAMPLES" }
	     /^\.Ed/ { in_display = 0 }
	     in_display { print }
	     in_examples && /^\.Bd -literal/ { in_display = 1 }' "$1" |
		sed 's/^\\&//; s/\\e/\\/g'
}

# compiles FILE - without a warning
compiles()
{
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I"$top_srcdir/include" "$1"
}

n=0
for page in "$man"/man3/*.3; do
	example "$page" >"$dir/two.c"
	grep -q '^#include <dat2/udat.h>' "$dir/two.c" || continue
	n=$((n + 1))
	sed 's|<dat2/|<dat/|' "$dir/two.c" >"$dir/one.c"
	# uDAPL 1.2 has no extensions, and lacks some calls
	grep -qE '^(Not in uDAPL 1.2|DAT 2.0 only)' "$page" || grep -q dat_ib_extensions "$dir/two.c" ||
		compiles "$dir/one.c" || fail "the example in $page does not compile for uDAPL 1.2"
	compiles "$dir/two.c" || fail "the example in $page does not compile for DAT 2.0"
done
[ $n -ge 8 ] || fail "only $n examples were found"
example "$man/man3/dat_evd_wait.3" | sed 's/, 1, &event/, \&event/' >"$dir/bad.c"
compiles "$dir/bad.c" 2>/dev/null && fail "an example with an argument missing compiles"

echo "$(echo "$needed" | wc -l) calls have pages, $n examples compile"
[ $status -ne 0 ] || [ $skipped -eq 0 ] || exit 77
exit $status
