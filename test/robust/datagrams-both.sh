#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Datagrams within a host, on an IA that has udp, too.

DAT_TEST_IA=ofi exec ${TEST_RUNNER:-} "${top_builddir:-.}/test/robust/datagrams2"
