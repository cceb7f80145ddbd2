#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The conformance suite over libfabric's sockets, without connections of the fabric.

exec "${top_srcdir:-.}/test/conform/fabric.sh" sockets-rdm
