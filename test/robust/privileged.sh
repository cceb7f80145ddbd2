#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Privileged programs: a copy with set-user-ID, and one with file capabilities, run by another
# user with an environment that names a shared object to load or a file to write. Each attack must
# succeed on a copy without privileges, to show that the case tests something.
. "$(dirname "$0")/tap.sh"

user=65534
unset DAT_OVERRIDE
dir=
trap 'rm -rf "$tap_out" "$dir"' EXIT

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 77
}

as_user()
{
	setpriv --reuid=$user --regid=$user --clear-groups "$@"
}

# place DIRECTORY - creates $dir in it, for set-user-ID programs; fails if they cannot run there
place()
{
	dir=$(mktemp -d "$1/dat-privileged-XXXXXX") && chmod 755 "$dir" || exit 99
	cp "$(command -v id)" "$dir/id" && chmod 4755 "$dir/id" &&
		[ "$(as_user "$dir/id" -u 2>/dev/null)" = 0 ] && return
	rm -rf "$dir"
	dir=
	return 1
}

[ "$(id -u)" = 0 ] || skip_all 'only root can make a program set-user-ID for another user'
command -v setpriv >/dev/null || skip_all 'setpriv is missing'
place "${TMPDIR:-/tmp}" || place "$top_builddir" || place /var/tmp ||
	skip_all 'no directory from which another user can run a set-user-ID program: nosuid'

built=$top_builddir/test/robust
so=$built/.libs/attacker.so
cp "$built/privileged" "$dir/plain" && cp "$built/privileged" "$dir/setuid" &&
	cp "$built/privileged" "$dir/capable" && chmod 4755 "$dir/setuid" || exit 99
# A capability to read the build tree, which may be closed to others; the tests do not depend on
# which it is.
setcap cap_dac_read_search=ep "$dir/capable" 2>/dev/null || rm "$dir/capable"

mkdir "$dir/libfabric" "$dir/hwloc" && cp "$so" "$dir/libfabric/libattacker-fi.so" &&
	cp "$so" "$dir/hwloc/hwloc_attacker.so" && mkdir -m 777 "$dir/files" || exit 99
for api in u2.0 u1.2; do
	echo "ofi-tcp $api nonthreadsafe default $so dapl.2.0 \"\" \"\""
done >"$dir/dat.conf"

# attack PROGRAM SETTING... - runs PROGRAM, "plain" as root and others as the user; whether the
# attack succeeded
attack()
{
	file=$dir/$1 run=as_user
	[ "$1" != plain ] || run=
	shift
	rm -f "$dir/files/"*
	$run env IPATH_NO_BACKTRACE=1 "$@" "$file" ofi-tcp >"$dir/out" 2>&1 </dev/null
	sed 's/^/# /' "$dir/out"
	grep -q '^the attacker' "$dir/out" || [ -n "$(ls "$dir/files")" ]
}

# holds PROGRAM SETTING... - whether PROGRAM is privileged, opens its IA, and resists the attack
holds()
{
	! attack "$@" && ! grep '^not removed' "$dir/out" || return 1
	grep -q '^open 0x0, AT_SECURE 1,' "$dir/out"
}

# withstands STATUS SETTING... - as one case: $program resists an attack that succeeds on the plain
# copy; STATUS is the result of an attack without effect there, 77 if libraries of other projects decide
withstands()
{
	no_effect=$1
	shift
	if ! attack plain "$@"; then
		echo 'this attack has no effect here'
		return "$no_effect"
	fi
	holds "$program" "$@"
}

skipped()
{
	return 77
}

for program in setuid capable; do
	if [ ! -e "$dir/$program" ]; then
		try "$program: file capabilities are not available" skipped
		continue
	fi
	try "$program: FI_PROVIDER_PATH" withstands 1 FI_PROVIDER_PATH="$dir/libfabric"
	try "$program: HWLOC_PLUGINS_PATH" withstands 77 HWLOC_XMLFILE="$dir/none.xml" \
		HWLOC_PLUGINS_PATH="$dir/hwloc" HWLOC_COMPONENTS=attacker,xml
	try "$program: files that libraries write" withstands 77 HFI_DEBUG_FILENAME="$dir/files/hfi" \
		IPATH_DEBUG_FILENAME="$dir/files/ipath"
	try "$program: DAT_OVERRIDE" withstands 1 DAT_OVERRIDE="$dir/dat.conf"
done
finish
