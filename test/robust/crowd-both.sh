#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A crowd at the name that leads to shared memory beside tcp.

DAT_TEST_IA=ofi exec ${TEST_RUNNER:-} "${top_builddir:-.}/test/robust/crowd2"
