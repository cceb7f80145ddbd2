#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A crowd at the AF_UNIX name of an IA with shared memory and tcp.

DAT_TEST_IA=ofi exec ${TEST_RUNNER:-} "${top_builddir:-.}/test/robust/crowd2"
