#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connecting in processes that each initialize libfabric, without DAT_TEST_WARM, which is set for
# these cases elsewhere. libfabric's state per process, such as the memory that it has mapped, is
# then as in a program. Each fabric has one API version (PAIR_FULL=1: both).
set -u
unset DAT_TEST_WARM
bad=0 passed=0

for run in 1:ofi-shm 2:ofi 1:ofi-tcp ${PAIR_FULL:+2:ofi-shm 1:ofi 2:ofi-tcp}; do
	api=${run%%:*} ia=${run#*:}
	echo "# connect$api, $ia"
	DAT_TEST_IA=$ia "${top_builddir:-.}/test/pair/connect$api"
	case $? in
	0) passed=1 ;;
	77) ;;
	*) bad=1 ;;
	esac
done
[ $bad -eq 0 ] || exit 1
[ $passed -eq 1 ] || exit 77
