#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The shape of EFA.

exec "${top_srcdir:-.}/test/chaos/shapes.sh" efa
