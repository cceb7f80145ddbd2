#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Frames and CM messages have the same bytes on every processor. Compiles their unit tests, which
# contain the bytes, for s390x, and runs them in an emulator.

cc=s390x-linux-gnu-gcc emulator=qemu-s390x
command -v $cc >/dev/null && command -v $emulator >/dev/null || { echo "skip: no $cc or no $emulator"; exit 77; }
top=${top_srcdir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0

for name in rdm/frame ud/frame cm/wire wire; do
	echo "# $name"
	$cc -static -D_GNU_SOURCE -DDOFI_NO_GUARDS -DDAT_API=2 -Wall -Werror -I"$top/include" -I"$top/prov/ofi" \
		-I"$top/test/unit" -I"$top/test/unit/plain" "$top/prov/ofi/xport/$name.c" \
		"$top/test/unit/xport/${name}_test.c" "$top/test/unit/plain/plain.c" -o "$dir/test" &&
		$emulator "$dir/test" || failed=1
done
exit $failed
