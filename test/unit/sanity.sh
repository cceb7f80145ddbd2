#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Whether the runner of the provider's unit tests reports failures: sanity's good tests must pass,
# and each of its bad tests must fail, alone and together. A leak must fail the run if a tool looks
# for leaks.

program=${top_builddir:-.}/test/unit/sanity
source=${top_srcdir:-.}/test/unit/sanity_test.c
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

die()
{
	echo "$*"
	cat "$out"
	exit 1
}

# run PATTERN [TOOL...] - runs the tests that match, with the options in $options
options=
run()
{
	pattern=$1
	shift
	"$@" "$program" --filter "$pattern" $options >"$out" 2>&1
}

tests=$(sed -n 's|^Test(\([a-z_]*\), \([a-z_]*\).*|\1/\2|p' "$source")
good=$(echo "$tests" | grep -c '^good/')
bad=$(echo "$tests" | grep -c '^bad')
[ "$good" -gt 0 ] && [ "$bad" -gt 0 ] || die "no tests in $source"

for test in $tests; do
	case $test in
	good/*)
		run "$test" || die "$test failed"
		grep -qx '1 tests, 0 failed' "$out" || die "$test was not counted"
		;;
	bad*)
		run "$test" && die "$test passed"
		grep -q "^FAIL $test: " "$out" || die "$test was not named"
		grep -qx '1 tests, 1 failed' "$out" || die "$test was not counted"
		;;
	esac
done

run 'good/*' || die "all good ones together failed"
grep -qx "$good tests, 0 failed" "$out" || die "of all good ones, some were not counted"
run '*[do]/*' && die "a bad one among good ones did not fail the run"
run 'bad*' && die "all bad ones together passed"
grep -qx "$bad tests, $bad failed" "$out" || die "of all bad ones, some were not counted"
options=--fail-fast
run 'bad*' && die "all bad ones together passed with --fail-fast"
grep -qx '1 tests, 1 failed' "$out" || die "a test ran after one that failed, despite --fail-fast"
run 'good/*' || die "all good ones together failed with --fail-fast"
grep -qx "$good tests, 0 failed" "$out" || die "--fail-fast stopped without a failure"
options=
run 'no/such' && die "a run of no test passed"

# leaks_found [TOOL...]
leaks_found()
{
	run 'leak/of_memory' "$@" && die "a leak was not found ($*)"
	run 'leak/none' "$@" || die "a leak was found where there is none ($*)"
}

if grep -q __asan_init "$program"; then
	leaks_found
elif grep -q __tsan_init "$program"; then
	echo "no tool looks for leaks here"
elif ! command -v valgrind >/dev/null; then
	echo "no tool looks for leaks here"
elif ! valgrind --quiet "$program" --filter 'good/*' >"$out" 2>&1; then
	# valgrind 3.19 cannot read the debug information of clang 14
	echo "valgrind cannot run what this compiler makes"
else
	leaks_found valgrind --quiet --error-exitcode=99 --leak-check=full \
		--errors-for-leak-kinds=definite
fi
