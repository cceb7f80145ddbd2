#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The two-process tests over shared memory where no process may access the memory of the other, as
# in containers: the target performs RDMA, and long messages go in frames.

export DAT_OFI_CMA=0
exec "${top_srcdir:-.}/test/pair/fabric.sh" shm
