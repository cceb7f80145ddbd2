#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's dtestx: immediate data with RDMA writes, atomics, counters, and an IA opened to be asked.
set -u
. "${srcdir:-.}/test/interop/lib.sh"
need dtestx
