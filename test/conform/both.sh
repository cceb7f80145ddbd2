#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The conformance suite over shared memory, on an IA that has tcp, too.

exec "${top_srcdir:-.}/test/conform/fabric.sh"
