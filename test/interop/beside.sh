#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's programs on OFED's provider with Debian's registry, which is what people have, and on ours
# with our registry: on the same device, as one table. Fails if ours fails anything. For a machine with
# the device rxe0, such as the guest of contrib/vm.
#
# usage: test/interop/beside.sh [PROGRAM...]	(those of the tests beside this, such as dtest)

set -u

dir=$(cd "$(dirname "$0")" && pwd) || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
[[ $# -gt 0 ]] || set -- dtest dtestcm dtestsrq dtestx dapltest daplfft

# results WHICH FABRIC REGISTRY PROGRAM - lines "WHICH|TEST|passed", failed or skipped
results()
{
	INTEROP_FABRICS=$2 INTEROP_BRIEF='' INTEROP_LIBS=$3 sh "$dir/$4.sh" >"$tmp/log" 2>&1
	cat "$tmp/log" >>"$tmp/$1.log"
	sed -nE "s/, some cases//; /without an adapter/d
		s/^ok [0-9]+ - (.*) # SKIP.*/$1|\1|skipped/p; t
		s/^ok [0-9]+ - (.*), [^,]*, [^,]* libdat2.*/$1|\1|passed/p
		s/^not ok [0-9]+ - (.*), [^,]*, [^,]* libdat2.*/$1|\1|failed/p" "$tmp/log"
}

# rows FILE - OFED's and ours in one line
rows()
{
	awk -F'|' '
		!($2 in seen) { seen[$2] = 1; order[++n] = $2 }
		{ said[$1, $2] = $3 }
		END {
			for (i = 1; i <= n; i++)
				printf "%-60s %-8s %s\n", order[i], said["ofed", order[i]],
					said["ours", order[i]]
		}' "$1"
}

# passed WHICH
passed()
{
	grep -c "^$1|.*|passed" "$tmp/results"
}

printf '%-60s %-8s %s\n' '' OFED ours
for program; do
	results ofed ofed debian "$program" >"$tmp/program"
	results ours verbs ours "$program" >>"$tmp/program"
	rows "$tmp/program"
	cat "$tmp/program" >>"$tmp/results"
done
tests=$(cut -d'|' -f2 "$tmp/results" | sort -u | wc -l)
printf '%-60s %-8d %d\n' "passed, of $tests" "$(passed ofed)" "$(passed ours)"
((tests && $(passed ours) == tests)) && exit
echo
grep -A 30 '^not ok' "$tmp/ours.log"
exit 1
