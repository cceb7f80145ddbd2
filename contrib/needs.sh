# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Debian packages that the scripts in contrib/ need, and functions that find and install missing
# ones. Sourced by bash scripts that define die().

# Debian's package, and a test whether its contents are available, from that package or elsewhere.
packages_run=(
	'gcc|command -v gcc'
	'libc6-dev|compiles stdio.h'
	'make|command -v make'
	'autoconf|command -v autoreconf'
	'automake|command -v automake'
	'libtool|command -v libtoolize'
	'pkg-config|command -v pkg-config'
	'libfabric-dev|pkg-config --atleast-version=1.17 libfabric'
)
# Criterion is for the unit tests of the registry and the programs. "check all" needs more.
packages_brief=(
	'libcriterion-dev|pkg-config --exists criterion'
)
packages_check=(
	'clang|command -v clang'
	'libclang-rt-dev|ls "$(clang -print-runtime-dir)"/libclang_rt.fuzzer*'
	'g++|command -v g++'
	'iproute2|command -v ip'
	'libhwloc-dev|pkg-config --exists hwloc'
	'libcriterion-dev|pkg-config --exists criterion'
	'mandoc|command -v mandoc'
	'python3|command -v python3'
	'strace|command -v strace'
	'util-linux|command -v setarch'
	'valgrind|command -v valgrind'
	'xz-utils|command -v xz'
)
# For contrib/packages.
packages_packages=(
	'debhelper|command -v dh'
	'dpkg-dev|command -v dpkg-buildpackage'
	'libhwloc-dev|pkg-config --exists hwloc'
	'libjson-c-dev|pkg-config --exists json-c'
	'lintian|command -v lintian'
	'mandoc|command -v mandoc'
	'rpm|command -v rpmbuild'
	'xz-utils|command -v xz'
)
# Without these some tests are skipped. Debian 13 has no dapl2-utils any more.
packages_more=(
	'debootstrap|command -v debootstrap'
	'gnuplot-nox|command -v gnuplot'
	'libjson-c-dev|pkg-config --exists json-c'
	'dapl2-utils|command -v dtest'
	'libdapl-dev|test -e /usr/lib/*/libdat2.so'
)

compiles()
{
	echo "#include <$1>" | gcc -fsyntax-only -x c -
}

# missing ROW... - prints the packages that fail their test
missing()
{
	local row

	for row; do
		eval "${row#*|}" >/dev/null 2>&1 || echo "${row%%|*}"
	done
}

# available PACKAGE... - prints the ones that this Debian has
available()
{
	local name

	for name; do
		apt-cache policy "$name" 2>/dev/null | grep -q 'Candidate: [^(]' && echo "$name"
	done
}

apt_install()
{
	local log

	log=$(mktemp) || return
	if ! DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends install "$@" \
			>"$log" 2>&1 </dev/null; then
		tail -n 40 "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

# list_needed PACKAGE... - ends the script with an error that lists the packages
list_needed()
{
	die "these packages are missing (names as in Debian), install them as root and try again:
	apt-get install --no-install-recommends" "$@"
}

# Whether need_packages installs packages here.
can_install()
{
	((EUID == 0)) && command -v apt-get >/dev/null
}

# need_packages ROW... [-- ROW...] - installs missing packages; the ROWs after -- are optional
need_packages()
{
	local need more=() have_more=

	while (($#)) && [[ $1 != -- ]]; do
		need+=" $(missing "$1")"
		shift
	done
	need=$(echo $need)
	more=($(missing "${@:2}"))
	if [[ -z $need && ${#more[@]} -eq 0 ]]; then
		return
	elif can_install; then
		apt-get -qq update >/dev/null 2>&1 </dev/null
		have_more=$(available "${more[@]}")
		if [[ -n $need$have_more ]]; then
			echo "installing" $need $have_more
			apt_install $need $have_more || die "apt-get could not install:" $need $have_more
		fi
		more=($(missing "${@:2}"))
	elif [[ -n $need ]]; then
		list_needed $need "${more[@]}"
	fi
	((${#more[@]})) && echo "without ${more[*]}, some tests are skipped"
	return 0
}
