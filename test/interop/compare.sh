#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's programs on OFED's provider with Debian's registry, which is the usual installation,
# and on this provider with this registry: on one device, as one table, with the seconds per test.
# Below the table are the reasons of OFED's failures, and this provider's output of its failures.
# Fails unless this provider passes all tests. Needs the device rxe0, as in the guest of
# contrib/vm.
#
# usage: test/interop/compare.sh [PROGRAM...]	(tests in this directory, such as dtest)
#
# Environment: as for lib.sh, but INTEROP_SECONDS is 30 times DAT_TEST_SCALE by default, because
# some programs wait forever on OFED's provider.

set -u

dir=$(cd "$(dirname "$0")" && pwd) || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
export INTEROP_SECONDS=${INTEROP_SECONDS:-$((30 * ${DAT_TEST_SCALE:-1}))}
[[ $# -gt 0 ]] || set -- dtest dtestcm dtestsrq dtestx dapltest daplfft

# results WHICH FABRIC REGISTRY PROGRAM - lines "WHICH|TEST|passed|SECONDS", failed or skipped
results()
{
	local line name verdict since=$SECONDS

	INTEROP_FABRICS=$2 INTEROP_BRIEF='' INTEROP_LIBS=$3 sh "$dir/$4.sh" 2>&1 |
		tee -a "$tmp/$1.log" |
		while IFS= read -r line; do
			case $line in
			ok*' # SKIP '*) verdict=skipped ;;
			ok*) verdict=passed ;;
			'not ok'*) verdict=failed ;;
			*) continue ;;
			esac
			name=${line#* - }
			name=${name% # SKIP *}
			name=${name%, *, * libdat2}
			[[ $name == *'without an adapter'* ]] ||
				echo "$1|${name%, some cases}|$verdict|$((SECONDS - since))"
			since=$SECONDS
		done
}

# row TEST OFED OURS
row()
{
	printf '%-60s %-16s %s\n' "$1" "$2" "$3"
}

# rows - reads results and joins OFED's and this provider's into one row
rows()
{
	local which name verdict seconds text
	local -A ofed=()

	while IFS='|' read -r which name verdict seconds; do
		printf -v text '%s %4d s' "$verdict" "$seconds"
		if [[ $which == ofed ]]; then
			ofed[$name]=$text
		else
			row "$name" "${ofed[$name]:-}" "$text"
			unset "ofed[$name]"
		fi
	done
	for name in "${!ofed[@]}"; do
		row "$name" "${ofed[$name]}" ''
	done
}

# passed WHICH
passed()
{
	grep -c "^$1|.*|passed|" "$tmp/results"
}

row '' OFED ours
for program; do
	{
		results ofed ofed debian "$program"
		results ours verbs ours "$program"
	} | tee -a "$tmp/results" | rows
done
tests=$(cut -d'|' -f2 "$tmp/results" | sort -u | wc -l)
row "passed, of $tests" "$(passed ofed)" "$(passed ours)"
! grep -q '^not ok' "$tmp/ofed.log" || {
	echo
	grep -A 1 --no-group-separator '^not ok' "$tmp/ofed.log"
}
((tests && $(passed ours) == tests)) && exit
echo
sed -n '/^not ok/,/^ok/{ /^ok/!p; }' "$tmp/ours.log"
exit 1
