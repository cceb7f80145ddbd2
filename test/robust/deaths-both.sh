#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Many deaths over shared memory, on an IA that has tcp, too.

exec "${top_srcdir:-.}/test/robust/deaths.sh"
