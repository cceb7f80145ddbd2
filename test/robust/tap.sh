# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# For scripts that run several programs as cases: "try" for each, then "finish". Each process of a
# program initializes libfabric.
unset DAT_TEST_WARM

tap_out=$(mktemp) || exit 99
trap 'rm -f "$tap_out"' EXIT
tap_n=0 tap_bad=0 tap_skipped=0

# try NAME COMMAND... - runs COMMAND as the case NAME; prints its output as comments
try()
{
	tap_name=$1
	shift
	tap_n=$((tap_n + 1))
	"$@" >"$tap_out" 2>&1
	case $? in
	0)
		echo "ok $tap_n - $tap_name"
		;;
	77)
		tap_skipped=$((tap_skipped + 1))
		echo "ok $tap_n - $tap_name # SKIP"
		;;
	*)
		echo "not ok $tap_n - $tap_name"
		tap_bad=1
		;;
	esac
	sed 's/^/# /' "$tap_out"
}

# Exits with 0, 1 if a case failed, or 77 if all were skipped.
finish()
{
	echo "1..$tap_n"
	[ $tap_bad -eq 0 ] || exit 1
	[ $tap_skipped -lt $tap_n ] || exit 77
	exit 0
}
