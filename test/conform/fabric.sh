#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The conformance suite over another fabric than tcp, for both API versions: fabric.sh NAME; or,
# without a name, over what the provider takes by itself.
# Exits with 77 where libfabric has no such fabric.

export DAT_TEST_WARM=1
failed=0 passed=0
for api in 1 2; do
	"${top_builddir:-.}/test/conform/conform$api" --ia "ofi${1:+-$1}"
	case $? in
	0) passed=1 ;;
	77) ;;
	*) failed=1 ;;
	esac
done
[ $failed -eq 0 ] || exit 1
[ $passed -eq 1 ] || exit 77
