#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The shape of psm3, and the offers that must be refused.

exec "${top_srcdir:-.}/test/chaos/shapes.sh" psm3 refused
