#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What calls return when descriptors, threads or /dev/shm are exhausted: INSUFFICIENT_RESOURCES
# with the subtype of the resource.
. "$(dirname "$0")/tap.sh"

program=$top_builddir/test/robust/shortage

on()
{
	DAT_TEST_IA=$1 $TEST_RUNNER "$program" "$2"
}

# with_shm COMMAND RESULT - COMMAND replaces /dev/shm for this case; opening an IA must return
# RESULT
with_shm()
{
	unshare -m true 2>/dev/null || { echo 'mounting is not permitted'; return 77; }
	DAT_TEST_IA=ofi-shm unshare -m sh -c "$1 && exec $TEST_RUNNER $program open" >"$tap_out.open"
	cat "$tap_out.open"
	grep -qx "dat_ia_open: $2" "$tap_out.open"
}

trap 'rm -rf "$tap_out" "$tap_out.open" "$tap_out.dev"' EXIT
mkdir "$tap_out.dev" || exit 99
for ia in ofi-tcp ofi-shm ofi-rxm; do
	try "$ia: descriptors" on $ia descriptors
done
try 'threads' on ofi-tcp threads
try '/dev/shm is full' with_shm 'mount -t tmpfs -o size=8k none /dev/shm' \
	'DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_MEMORY'
try '/dev/shm is read-only' with_shm 'mount -t tmpfs -o ro none /dev/shm' \
	'DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_DEVICE'
try '/dev/shm is missing' with_shm "mount --bind $tap_out.dev /dev" \
	'DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_DEVICE'
try '/proc is missing' with_shm 'mount -t tmpfs none /proc' \
	'DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_DEVICE'
try 'all resources are available' with_shm : 'DAT_SUCCESS '
FI_PROVIDER=tcp try 'a missing provider is not a shortage' with_shm : \
	'DAT_PROVIDER_NOT_FOUND '
finish
