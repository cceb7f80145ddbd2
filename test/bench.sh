#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The parts of contrib/bench on given input.
set -u
export top_srcdir="${top_srcdir:-.}"

command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }
python3 "$top_srcdir/test/bench_tables_test.py"
