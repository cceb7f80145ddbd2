#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The robustness tests over libfabric's rxm over tcp.

exec "${top_srcdir:-.}/test/robust/fabric.sh" rxm
