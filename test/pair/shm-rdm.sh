#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The two-process tests over libfabric's shared memory.

exec "${top_srcdir:-.}/test/pair/fabric.sh" shm-rdm
