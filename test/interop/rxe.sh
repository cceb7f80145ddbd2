#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Common part of the measurements against OFED's provider, sourced by them: the address, the build
# tree, a directory for output, and a check for the device. The caller's DAT_OVERRIDE has the IAs
# ofa-v2-rxe0 and ofi-verbs, as in contrib/vm/tests.

set -u
. "$(dirname "$0")/await.sh"

host=${INTEROP_HOST:-10.77.0.1}
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
tmp=$(mktemp -d) || exit 99
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$tmp"' EXIT
[[ -e /sys/class/infiniband/rxe0 ]] || { echo "SKIP: there is no device rxe0"; exit 77; }
export IPATH_NO_BACKTRACE=1

# median - of the numbers in the input
median()
{
	sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
