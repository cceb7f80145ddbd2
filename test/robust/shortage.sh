#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# When descriptors or threads are exhausted, calls return INSUFFICIENT_RESOURCES with the subtype of
# the resource. ofi-shm needs no /dev/shm.
. "$(dirname "$0")/tap.sh"

program=$top_builddir/test/robust/shortage

on()
{
	DAT_TEST_IA=$1 $TEST_RUNNER "$program" "$2"
}

# with_shm IA COMMAND RESULT - COMMAND replaces /dev/shm for this case; opening IA must return RESULT
with_shm()
{
	unshare -m true 2>/dev/null || { echo 'mounting is not permitted'; return 77; }
	DAT_TEST_IA=$1 unshare -m sh -c "$2 && exec $TEST_RUNNER $program open" >"$tap_out.open"
	cat "$tap_out.open"
	grep -qx "dat_ia_open: $3" "$tap_out.open"
}

trap 'rm -rf "$tap_out" "$tap_out.open" "$tap_out.dev"' EXIT
mkdir "$tap_out.dev" || exit 99
for ia in ofi-tcp ofi-shm ofi-rxm; do
	try "$ia: descriptors" on $ia descriptors
done
try 'threads' on ofi-tcp threads
for shm in 'mount -t tmpfs -o size=8k none /dev/shm' 'mount -t tmpfs -o ro none /dev/shm' \
	"mount --bind $tap_out.dev /dev" 'mount -t tmpfs none /proc'; do
	try "ofi-shm: $shm" with_shm ofi-shm "$shm" 'DAT_SUCCESS '
done
FI_PROVIDER=tcp try 'a missing provider is not a shortage' with_shm ofi-shm : \
	'DAT_PROVIDER_NOT_FOUND '
finish
