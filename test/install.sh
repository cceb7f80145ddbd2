#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The installation in a private prefix. Tests the output of "make install"; the installed examples,
# compiled with pkg-config's flags; a dat.conf next to another package's; dat.conf.d; datinfo --conf
# --append. "make uninstall" must leave only the administrator's files.
#
# usage: test/install.sh [BUILD]
#
# The libraries have the paths of the prefix in them, so without BUILD another build is configured. A
# BUILD is configured with a prefix that does not exist or is empty, and with --libdir=PREFIX/lib.
#
# Environment: INSTALL_BUILD  the default of BUILD
set -u
unset FI_PROVIDER DAT_OVERRIDE PKG_CONFIG_PATH LD_LIBRARY_PATH DESTDIR MAKEFLAGS MFLAGS
src=$(cd "${top_srcdir:-.}" && pwd) && top=$(cd "${top_builddir:-.}" && pwd) || exit 99
bad=0

if [ -n "${TEST_RUNNER:-}" ]; then
	echo "SKIP: the libraries are installed as they are, without $TEST_RUNNER"
	exit 77
fi
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
given=${1:-${INSTALL_BUILD:-}}
build=${given:-$tmp/build}
prefix=$tmp/dat
[ -z "$given" ] || prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
conf=$prefix/etc/dat.conf
examples=$prefix/share/doc/dat/examples
[ -z "$(ls -A "$prefix" 2>/dev/null)" ] || { echo "$prefix is not empty"; exit 99; }
: >"$tmp/out"

fail()
{
	echo "FAIL: $*"
	sed 's/^/    | /' "$tmp/out"
	bad=1
}

# run STATUS COMMAND...
run()
{
	want=$1
	shift
	"$@" >"$tmp/out" 2>&1 </dev/null
	got=$?
	[ $got -eq "$want" ] || fail "exit status $got, not $want: $*"
}

# has PATTERN - in the output of the last command
has()
{
	grep -q -e "$1" "$tmp/out" || fail "no \"$1\""
}

# hasnt PATTERN
hasnt()
{
	grep -q -e "$1" "$tmp/out" && fail "\"$1\""
}

# make_in_build TARGET... - without unit tests, which nothing here needs
make_in_build()
{
	run 0 make -C "$build" -s "$@"
}

if [ -z "$given" ]; then
	mkdir "$build" || exit 99
	(cd "$build" && "$src/configure" -q --prefix="$prefix" --libdir="$prefix/lib" \
		--disable-tests ${CC:+CC="$CC"} CFLAGS=-O0) >"$tmp/out" 2>&1 ||
		{ fail "configure"; exit 1; }
	make_in_build -j2
fi
make_in_build install
has "^The libraries are in $prefix/lib"
has "libdat2.so.2"
has "DAT_OVERRIDE"
find "$prefix" ! -type d | sort >"$tmp/installed"
grep -q 'libdaplofi.*\.la$' "$tmp/installed" && fail "a provider's .la is installed"

# A program that is built by pkg-config and finds the libraries by its rpath.
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
for dat in dat dat2; do
	[ "$(pkg-config --variable=rpath $dat)" = "-Wl,-rpath,$prefix/lib" ] || fail "rpath of $dat"
done
run 0 ${CC:-cc} -o "$tmp/hello" "$examples/hello.c" $(pkg-config --cflags --libs dat2) \
	$(pkg-config --variable=rpath dat2)
run 0 ldd "$tmp/hello"
has "libdat2.so.2 => $prefix/lib/libdat2.so.2"

# The other examples: each is compiled alone, and README names it.
tried=0
for file in "$examples"/*; do
	name=${file##*/}
	[ ! -x "$file" ] || fail "$name is executable"
	case $name in
	README) continue ;;
	*.c)
		run 0 ${CC:-cc} -Wall -Wextra -Werror -o "$tmp/example" "$file" \
			$(pkg-config --cflags --libs dat2) $(pkg-config --variable=rpath dat2)
		run 2 "$tmp/example"
		[ $name = hello.c ] || has "^usage: ${name%.c} " ;;
	esac
	grep -q "$name" "$examples/README" || fail "README does not name $name"
	tried=$((tried + 1))
done
[ $tried -eq 6 ] || fail "$tried examples are installed"

# hello, as a server and a client.
port=$((20000 + $$ % 10000))
mkfifo "$tmp/ready"
"$tmp/hello" ofi-tcp $port >"$tmp/server" 2>"$tmp/ready" &
server=$!
exec 3<"$tmp/ready"
while read -r line <&3 && [ "$line" != "waiting for a client" ]; do
	echo "$line"
done
run 0 "$tmp/hello" ofi-tcp $port 127.0.0.1
has "^received: hello, client"
wait $server || fail "exit status $? of the server"
grep -q "^received: hello, server" "$tmp/server" || fail "the server received nothing"
exec 3<&-

# Included files: an IA, an error, and the dat.conf of another package.
datinfo=$prefix/bin/datinfo
run 0 "$datinfo" --list
has "^ofi-tcp .* tcp "
cat >"$prefix/etc/dat.conf.d/mine.conf" <<END
mine u2.0 threadsafe default libdaplofi.so.2 dapl.2.0 "lo 0" ""
broken
END
run 0 "$datinfo" -D mine
has "^  fabric    tcp, "
has "^  address   127\.0\.0\.1"
has "$prefix/etc/dat.conf.d/mine.conf:2: fewer than eight fields"
cat >"$tmp/ofed.conf" <<END
ofa-v2-mlx4_0-1m u2.0 nonthreadsafe default libdaplomcm.so.2 dapl.2.0 "mlx4_0 1" ""
ofa-v2-mlx9_0-1u u2.0 nonthreadsafe default libdaplofi.so.2 dapl.2.0 "mlx9_0 1" ""
ofa-v2-ib0 u2.0 nonthreadsafe default libdaplofi.so.2 dapl.2.0 "lo 0" ""
OpenIB-bad u2.0 nonthreadsafe default libdaplofi.so.2 dapl.2.0 "mlx9_0 one" ""
END
ln -s "$tmp/ofed.conf" "$prefix/etc/dat.conf.d/ofed.conf"
run 0 "$datinfo" --list --all
has "^ofa-v2-ib0 .* tcp .* 127\.0\.0\.1"
has "^ofi-tcp .* tcp "
has "^ofa-v2-mlx9_0-1u .* no RDMA device \"mlx9_0\""
run 1 "$datinfo" -D ofa-v2-mlx4_0-1m
has "cannot load libdaplomcm.so.2: .*; OFED's provider is not installed, this package's is libdaplofi.so.2"
run 1 "$datinfo" -D ofa-v2-mlx9_0-1u
has "this machine has no RDMA device \"mlx9_0\""
run 1 "$datinfo" -D OpenIB-bad
has "OpenIB-bad: ia_params: \"mlx9_0\" is neither key=value nor a name with a port"
has "$prefix/etc/dat.conf.d/ofed.conf:4: the provider refused the parameters of OpenIB-bad"
rm "$prefix/etc/dat.conf.d/ofed.conf"

# Appending, to the installed file and to another one.
run 0 "$datinfo" --conf --append
has "^$conf: [0-9]* entries appended"
run 0 "$datinfo" --conf --append
has "^$conf: 0 entries appended"
cp "$tmp/ofed.conf" "$tmp/all.conf"
DAT_OVERRIDE=$tmp/all.conf
export DAT_OVERRIDE
run 0 "$datinfo" --conf --append
has "^$tmp/all.conf: [1-9][0-9]* entries appended"
run 0 "$datinfo" --list
has "^ofa-v2-ib0 "
has "^ofi-tcp .* tcp "
head -n 4 "$tmp/all.conf" | cmp -s - "$tmp/ofed.conf" || fail "the lines of the file have changed"
grep -v libdaplofi "$tmp/ofed.conf" >"$tmp/all.conf"
run 0 "$datinfo" --conf --append
has "^$tmp/all.conf: [1-9][0-9]* entries appended"
hasnt "cannot load"
run 2 "$datinfo" --append
has "needs --conf"
DAT_OVERRIDE=/dev/null
run 1 "$datinfo" --conf --append
unset DAT_OVERRIDE

# With the dat.conf of another package.
rm "$conf"
sed '/libdaplofi/d' "$tmp/ofed.conf" >"$tmp/other.conf"
cp "$tmp/other.conf" "$conf"
make_in_build install
has "installing $conf.d/ofi.conf"
cmp -s "$tmp/other.conf" "$conf" || fail "the dat.conf of another package has changed"
run 0 "$datinfo" --list --all
has "^ofa-v2-mlx4_0-1m "
has "^ofi-tcp .* tcp "
make_in_build install
has "$conf.d/ofi.conf stays;"

# left FILE... - these are the files and links that are left in the prefix
left()
{
	for file; do
		echo "$prefix/$file"
	done | sort >"$tmp/wanted"
	find "$prefix" ! -type d | sort >"$tmp/out"
	cmp -s "$tmp/wanted" "$tmp/out" || fail "not only these are left: $*"
}

make_in_build uninstall
left etc/dat.conf etc/dat.conf.d/mine.conf
rm "$conf" "$prefix/etc/dat.conf.d/mine.conf"
make_in_build install
find "$prefix" ! -type d | sort | cmp -s - "$tmp/installed" || fail "other files than at first"
make_in_build uninstall
left
[ -d "$prefix/include/dat" ] || [ -d "$prefix/include/dat2" ] || [ -d "$conf.d" ] &&
	fail "a directory is left"
exit $bad
