#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The manual pages: mandoc reports no warning, every implemented call has a page, every page is
# installed, references between the pages are valid, and the examples compile with both API
# versions and are run by test/examples.
#
# Environment: top_srcdir, top_builddir and CC as Automake sets them. Without mandoc the test is
# skipped after the other checks have passed.

top_srcdir=${top_srcdir:-.}
top_builddir=${top_builddir:-.}
man=$top_srcdir/man
status=0
skipped=0

# Calls of the next release that have no page yet.
pending=

fail()
{
	echo "$*"
	status=1
}

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# pages - all pages, without the links to others
pages()
{
	grep -L '^\.so ' "$man"/man?/*.?
}

#
# Markup
#

# lint FILE... - mandoc's warnings
lint()
{
	mandoc -Tlint -W warning "$@"
}

if command -v mandoc >/dev/null; then
	lint $(pages) || fail "mandoc reports warnings, see above"
	printf '.Dd November 21, 2026\n.Dt X 3\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Nosuch\n' >"$dir/bad.3"
	lint "$dir/bad.3" >/dev/null && fail "mandoc accepts an unknown macro"
else
	echo "SKIP: mandoc is missing, so the markup of the pages is not checked"
	skipped=1
fi

#
# Completeness
#

# exported FILE... - the calls in linker maps, one per line
exported()
{
	sed -n 's/^[[:blank:]]*\(dats\{0,1\}_[a-z0-9_]*\);.*/\1/p' "$@" | sort -u
}

# not_implemented - the calls that NEWS lists as not implemented
not_implemented()
{
	sed -n '/^Not there yet/,$p' "$top_srcdir/NEWS" | grep -o 'dat_[a-z0-9_]*'
}

# lacking CALL... - the calls without a page
lacking()
{
	for call; do
		[ -e "$man/man3/$call.3" ] || echo "$call"
	done
}

# without LIST NAME... - the names that LIST does not contain
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
needed=$(without "$(not_implemented) $pending" $calls)
for call in $(lacking $needed); do
	fail "$call has no page"
done
for call in $pending; do
	[ -z "$(lacking "$call")" ] && fail "$call has a page now: remove it from pending"
done
[ "$(lacking dat_ia_open dat_no_such_call)" = dat_no_such_call ] ||
	fail "the search for missing pages finds the wrong ones"

for page in "$man"/man?/*.?; do
	grep -q "[[:blank:]]man/${page#"$man"/}" "$top_srcdir"/man/local.mk "$top_srcdir"/util/local.mk ||
		fail "$page is not installed"
done

for link in $(grep -l '^\.so ' "$man"/man?/*.?); do
	target=$(sed -n 's/^\.so //p' "$link")
	grep -q "^\.Nm $(basename "${link%.*}")\>" "$man/$target" ||
		fail "$link is a link to a page without that name"
done

# references FILE... - the pages of this project that they refer to, as NAME.SECTION
references()
{
	sed -n 's/^\.Xr \(dat[a-z0-9_.]*\) \([0-9]\).*/\1.\2/p' "$@" | sort -u
}

for page in $(references "$man"/man?/*.?); do
	[ -e "$man/man${page##*.}/$page" ] ||
		fail "no page $page, to which $(grep -l "^.Xr ${page%.*} ${page##*.}" "$man"/man?/*.? | tr '\n' ' ')refer"
done

#
# Numbers
#

# compiles FILE - whether it compiles without a warning
compiles()
{
	${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I"$top_srcdir/include" "$1"
}

# enumerators VERSION ENUM... - their names in the header files
enumerators()
{
	[ "$1" = 1 ] && headers=dat || headers=dat2
	shift
	for enum; do
		sed -n "/^typedef enum $enum {/,/^}/s/^\t\(DAT_[A-Z0-9_]*\).*/\1/p" \
			"$top_srcdir/include/$headers"/*.h
	done
}

# rows VERSION PAGE... - NUMBER NAME of each row in the tables of numbers; a row with two numbers
# has DAT 2.0's first
rows()
{
	version=$1
	shift
	awk -v version="$version" '/^\.It / {
		number = ""
		for (i = 2; i <= NF; i++)
			if ($i ~ /^(0x[0-9a-f]+|-)$/ && (number == "" || version == 1))
				number = $i
			else if ($i == "Dv" && number ~ /^0x/)
				print number, $(i + 1)
	}' "$@"
}

# checks VERSION - a C file that compiles if the pages on standard input have the headers' numbers
checks()
{
	[ "$1" = 1 ] && echo '#include <dat/udat.h>' ||
		printf '#include <dat2/udat.h>\n#include <dat2/dat_ib_extensions.h>\n'
	while read -r number name; do
		echo "_Static_assert((unsigned int)$name == ${number}u, \"$name\");"
	done
}

# The pages have one number for DAT_NOT_IMPLEMENTED, which is DAT 2.0's.
enums='dat_event_number dat_return_type dat_return_subtype dat_dto_completion_status'
for version in 1 2; do
	enumerators $version $enums dat_ib_event_number |
		grep -vx -e DAT_NO_SUBTYPE -e DAT_IB_ERR | sort -u >"$dir/names"
	[ "$(wc -l <"$dir/names")" -gt 140 ] || fail "the enumerators were not found"
	rows $version "$man/man7/dat_event.7" "$man/man7/dat_return.7" | sort -u >"$dir/rows"
	for name in $(awk '{ print $2 }' "$dir/rows" | sort -u | comm -13 - "$dir/names"); do
		fail "$name is neither in dat_event(7) nor in dat_return(7)"
	done
	if [ $version = 1 ]; then
		grep -wf "$dir/names" "$dir/rows" | grep -v 'DAT_NOT_IMPLEMENTED$'
	else
		cat "$dir/rows"
	fi | checks $version >"$dir/numbers.c"
	[ "$(wc -l <"$dir/numbers.c")" -gt 140 ] || fail "the pages have too few numbers"
	compiles "$dir/numbers.c" || fail "the pages have wrong numbers for version $version"
	echo '0x4007 DAT_CONNECTION_EVENT_BROKEN' | checks $version >"$dir/numbers.c"
	compiles "$dir/numbers.c" 2>"$dir/bad" && fail "a wrong number is not noticed"
done

#
# Examples
#

# example FILE - the program in its EXAMPLES
example()
{
	sh "$top_srcdir/test/examples/extract" "$1"
}

# is_for VERSION PAGE - whether VERSION has the calls of the example in two.c; uDAPL 1.2 lacks
# some calls and all extensions
is_for()
{
	[ "$1" = 2 ] && return
	! grep -qE '^(Not in uDAPL 1.2|DAT 2.0 only)' "$2" && ! grep -q dat_ib_extensions "$dir/two.c"
}

# included NAME - whether a test includes the page's example, and so must call the functions it
# defines
included()
{
	grep -q "^#include \"pages/$1.h\"" "$top_srcdir"/test/examples/*.c
}

# clauses VERSION - the pages with examples that are run
clauses()
{
	"$top_builddir/test/examples/examples$1" --list |
		awk '{ sub(/\/.*/, "", $2); print $2 }' | sort -u
}

# refers PAGE CALL - whether its EXAMPLES refers to a page with a program that makes the call, or a
# provider's program that defines it
refers()
{
	other=$(sed -n '/^\.Sh EXAMPLES/,/^\.Sh [^E]/p' "$1" |
		sed -n 's/^\.Xr \([a-z0-9_]*\) \([0-9]\).*/man\2\/\1.\2/p' | head -n 1)
	[ -n "$other" ] && example "$man/$other" | grep -q "\<$2("
}

# compiles_cxx FILE - whether it compiles as C++20, if there is a compiler for that
echo 'extern int nothing;' >"$dir/empty.cc"
cxx="${CXX:-c++} -x c++ -std=c++20 -fsyntax-only -I$top_srcdir/include"
if $cxx "$dir/empty.cc" 2>/dev/null; then
	compiles_cxx() { $cxx "$1"; }
	echo 'int *i = (void *)0;' >"$dir/bad.cc"
	compiles_cxx "$dir/bad.cc" 2>/dev/null && fail "C that is no C++ compiles"
else
	compiles_cxx() { :; }
fi

: >"$dir/have1"
: >"$dir/have2"
for page in $(pages | grep '/man3/'); do
	if [ -z "$(example "$page")" ]; then
		name=${page##*/}
		refers "$page" "${name%.3}" || fail "$page has no example and refers to none"
		continue
	fi
	name=${page##*/}
	name=${name%.3}
	example "$page" >"$dir/two.c"
	sed 's|<dat2/|<dat/|' "$dir/two.c" >"$dir/one.c"
	included "$name" || fail "no test includes the example in $page"
	for version in 1 2; do
		is_for $version "$page" || continue
		echo "$name" >>"$dir/have$version"
		[ $version = 1 ] && file=one.c || file=two.c
		compiles "$dir/$file" && compiles_cxx "$dir/$file" ||
			fail "the example in $page does not compile for version $version"
	done
done
example "$man/man7/dat.7" >"$dir/two.c"
sed 's|<dat2/|<dat/|' "$dir/two.c" >"$dir/one.c"
for file in one.c two.c; do
	compiles "$dir/$file" && compiles_cxx "$dir/$file" ||
		fail "the program in dat(7) does not compile"
done
included dat || fail "no test includes the program in dat(7)"
[ "$(wc -l <"$dir/two.c")" -lt 150 ] || fail "the program in dat(7) has 150 lines or more"
for version in 1 2; do
	for name in $(clauses $version | comm -3 "$dir/have$version" -); do
		fail "$name has an example and no clause in test/examples, or the reverse"
	done
done
echo dat_no_such_call | comm -3 - "$dir/have2" | grep -q '^dat_no_such_call$' ||
	fail "a page without a clause is not noticed"
included dat_no_such_call && fail "a page that is not included is not noticed"
n=$(wc -l <"$dir/have2")
[ "$n" -ge 50 ] || fail "only $n examples were found"
example "$man/man3/dat_evd_wait.3" | sed 's/, 1, &event/, \&event/' >"$dir/bad.c"
compiles "$dir/bad.c" 2>/dev/null && fail "an example with an argument missing compiles"

printf '.Sh EXAMPLES\n.Xr dat_psp_create 3\nhas one.\n.Sh SEE ALSO\n' >"$dir/page.3"
refers "$dir/page.3" dat_psp_free || fail "a reference to an example is not found"
refers "$dir/page.3" dat_psp_query && fail "a reference to an example of another call is accepted"

echo "$(echo "$needed" | wc -l) calls have pages, $n of them with examples that are tested"
[ $status -ne 0 ] || [ $skipped -eq 0 ] || exit 77
exit $status
