#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The conformance suite over a fabric other than tcp: fabric.sh NAME; or without a name over the
# provider's own choice. A named fabric is tested with version 2 of the API, which includes
# version 1's clauses for data and connections: the versions differ above the fabrics, and version
# 1 is tested over tcp and over the provider's choice. CONFORM_FULL=1 runs both. Exits with 77 if
# libfabric lacks the fabric.

export DAT_TEST_WARM=1
failed=0 passed=0
versions='1 2'
[ -z "${1:-}" ] || [ -n "${CONFORM_FULL:-}" ] || versions=2
for api in $versions; do
	"${top_builddir:-.}/test/conform/conform$api" --ia "ofi${1:+-$1}"
	case $? in
	0) passed=1 ;;
	77) ;;
	*) failed=1 ;;
	esac
done
[ $failed -eq 0 ] || exit 1
[ $passed -eq 1 ] || exit 77
