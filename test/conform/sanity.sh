#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checks the runner of the conformance suite: sanity2's good clauses must pass, the bad ones fail,
# each with its own reason and without affecting another.

program=${top_builddir:-.}/test/conform/sanity2
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

wrong()
{
	echo "$*"
	exit 1
}

# report_has PATTERN - whether a line of the report matches
report_has()
{
	grep -qE "$1" "$out" || wrong "the report lacks: $1"
}

DAT_TEST_SCALE=1 "$program" --verbose >"$out"
code=$?
sed 's/^/# /' "$out"
[ $code -eq 1 ] || wrong "exit status $code, not 1"
bad=$("$program" --list --only 'bad/*' | wc -l)
good=$("$program" --list --only 'good/*' | wc -l)
skip=$("$program" --list --only '*skip*' | wc -l)
[ "$bad" -gt 0 ] && [ "$(grep -c '^FAILED bad/.*: ended\|^FAILED bad/.*: exited\|^FAILED bad/.*: not finished' "$out")" -ge "$bad" ] ||
	wrong "a bad clause did not fail"
! grep -qE '^(FAILED|skipped) good|^passed (bad|skip)|^FAILED skip' "$out" || wrong "a clause has the wrong outcome"
report_has "^DAT 2\.0 .* $((bad + good + skip)) tried, *$good passed, *$skip skipped, *$bad failed\$"
report_has '^FAILED bad/hang: not finished after'
report_has '^FAILED bad/crash: ended by signal 6'
report_has '^# bad/value: .*self\.c:[0-9]+: 1 is 1, not 2$'
report_has '^skipped skip/attribute: max_pzs is 0$'
report_has '^skipped skip/call.*: not implemented yet: dat_cno_trigger$'

"$program" --only 'good/*' >"$out" || wrong "the good clauses alone exit with $?"
report_has ' '"$good"' tried, *'"$good"' passed'
"$program" --only 'nothing' >"$out" 2>&1 && wrong "selecting no clause is not reported as an error"
"$program" --ia no-such-ia --only 'good/*' >"$out"
[ $? -eq 77 ] || wrong "a missing IA is not reported as a skip"
