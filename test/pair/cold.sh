#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connecting by shared memory in processes that each initialize libfabric, without DAT_TEST_WARM, with
# which shm.sh and both.sh run these cases. What libfabric keeps per process, such as the memory that it
# has mapped, is then as in a program.
set -u
unset DAT_TEST_WARM
bad=0 passed=0

for ia in ofi-shm ofi; do
	for api in 1 2; do
		echo "# connect$api, $ia"
		DAT_TEST_IA=$ia "${top_builddir:-.}/test/pair/connect$api"
		case $? in
		0) passed=1 ;;
		77) ;;
		*) bad=1 ;;
		esac
	done
done
[ $bad -eq 0 ] || exit 1
[ $passed -eq 1 ] || exit 77
