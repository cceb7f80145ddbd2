#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The built libraries export the intended symbols only: a registry's have one version, and a
# provider has its two entry points. Each library has its soname.
#
# Environment: top_builddir as Automake sets it.

top_builddir=${top_builddir:-.}
status=0

fail()
{
	echo "$*"
	status=1
}

# exports LIBRARY - the symbols that it defines, with their versions, one per line
exports()
{
	nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }'
}

# soname LIBRARY
soname()
{
	readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'
}

# find_lib NAME [DIRECTORY] - the built library
find_lib()
{
	for dir in ${2:+"$top_builddir/$2/.libs"} "$top_builddir/.libs" "$top_builddir/src/.libs"; do
		[ -e "$dir/$1" ] && { echo "$dir/$1"; return; }
	done
	return 1
}

# only_node LIBRARY NODE - whether there are symbols, all of this version
only_node()
{
	[ -n "$(exports "$1")" ] && ! exports "$1" | grep -qv "@@$2\$"
}

# only_entry_points LIBRARY
only_entry_points()
{
	[ "$(exports "$1" | sort | tr '\n' ' ')" = "dat_provider_fini dat_provider_init " ]
}

# check NAME DIRECTORY CONDITION... - the library exists, has its soname and meets the condition
check()
{
	name=$1
	lib=$(find_lib "$1" "$2") || { fail "$1 is not built"; return; }
	shift 2
	[ "$(soname "$lib")" = "$name" ] || fail "$lib: soname $(soname "$lib")"
	condition=$1
	shift
	$condition "$lib" "$@" && return
	fail "$lib: not $condition $*:"
	exports "$lib" | head -20
}

check libdat.so.1 src only_node DAT_1.2
check libdat2.so.2 src only_node DAT_2.0
check libdaplofi.so.1 prov/ofi/v1 only_entry_points
check libdaplofi.so.2 prov/ofi/v2 only_entry_points

# The conditions must be able to fail: each is wrong for another library.
lib=$(find_lib libdat2.so.2 src)
only_node "$lib" DAT_1.2 && fail "$lib passes for a library of version DAT_1.2"
only_entry_points "$lib" && fail "$lib passes for a provider"
only_node "$(find_lib libdaplofi.so.2 prov/ofi/v2)" DAT_2.0 && fail "a provider passes for a registry"

exit $status
