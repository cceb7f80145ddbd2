#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# bash completion of the programs: each has one, and it offers options, IA names and values.
set -u
top=${top_builddir:-$PWD}
src=${top_srcdir:-.}
: "${UTIL_DIR:=$top/util}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
bad=0

DAT_OVERRIDE=$tmp/dat.conf
export DAT_OVERRIDE
cat >"$DAT_OVERRIDE" <<END
fast u2.0 nonthreadsafe default libdaplofi.so.2 dapl.2.0 "" ""
fast u2.0 threadsafe default libdaplofi.so.2 dapl.2.0 "" ""
fair u2.0 nonthreadsafe default libdaplofi.so.2 dapl.2.0 "" ""
off u2.0 nonthreadsafe nondefault libdaplofi.so.2 dapl.2.0 "" ""
old u1.2 nonthreadsafe default libdaplofi.so.1 dapl.1.2 "" ""
END

fail()
{
	echo "FAIL: $*"
	bad=1
}

# complete_words WORD... - completes the last WORD of a command line as bash does
complete_words()
{
	local function program

	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')
	program=$UTIL_DIR/$1
	"$function" "$program" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
}

# offers EXPECTED WORD... - completes a command line and checks the offers
offers()
{
	local expected=$1

	shift
	complete_words "$@"
	[[ ${COMPREPLY[*]} == "$expected" ]] || fail "\"$*\": \"${COMPREPLY[*]}\", not \"$expected\""
}

. "$top/contrib/completion/datinfo" || exit 99
for name in datinfo datinfo1 datperf datperf1; do
	complete -p "$name" >/dev/null || fail "no completion of $name"
done

for version in "" 1; do
	offers '--capabilities' datinfo$version --capa
	offers '--json' datinfo$version -l --js
	offers '--raw --raw-cq --raw-only' datperf$version --raw
	offers '' datperf$version --nosuch
done
offers '-h' datinfo -h
offers 'fair fast' datinfo -D ''
offers 'fair fast' datinfo -D f
offers 'fast' datinfo --device = fas
offers 'fair fast' datinfo --device =
offers 'old' datinfo1 --device ''
offers 'fast' datinfo --capabilities fas
offers '' datinfo fas
offers 'fair' datperf --local -D fai
offers 'send' datperf -t s
offers 'send,write' datperf --tests send,w
offers 'fd' datperf --raw --raw-cq f
offers '--local' datperf --raw --loc
offers '' datperf --iters 1
offers '' datinfo --counters nobody

# A process that seems to have loaded the provider, because its program has that name.
cp "$(command -v cat)" "$tmp/libdaplofi.so.9" && coproc loaded { exec "$tmp/libdaplofi.so.9"; } || exit 99
echo started >&"${loaded[1]}"
read -r _ <&"${loaded[0]}"
complete_words datinfo --counters "$loaded_PID"
[[ " ${COMPREPLY[*]} " == *" $loaded_PID "* ]] || fail "process $loaded_PID is not among ${COMPREPLY[*]}"
kill "$loaded_PID"

# Without DAT_OVERRIDE, the names are from dat.conf and dat.conf.d in configure's directory.
unset DAT_OVERRIDE
mkdir -p "$tmp/etc/dat.conf.d"
sed 's/^fast/extra/' "$tmp/dat.conf" >"$tmp/etc/dat.conf.d/more.conf"
sed 's/^fast/unread/' "$tmp/dat.conf" >"$tmp/etc/dat.conf.d/unread"
. <(sed "s|@sysconfdir@|$tmp/etc|" "$src/contrib/completion/dat.bash.in")
offers 'extra fair' datinfo -D ''
mv "$tmp/dat.conf" "$tmp/etc/"
offers 'extra fair fast' datinfo -D ''
exit $bad
