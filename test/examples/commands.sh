#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The commands and dat.conf lines in the EXAMPLES of the manual pages of sections 1, 5 and 7, and
# README.md's commands for the build tree: each is run and must do as its page says.
#
# They run in a directory of their own, with the programs and libraries of the build. Placeholders
# for the reader's names, node1, eth0 and 192.0.2.1, are replaced by this machine's. Measurements
# get options that make them short.
set -u
unset FI_PROVIDER
src=$(cd "${top_srcdir:-.}" && pwd) && top=$(cd "${top_builddir:-.}" && pwd) || exit 99
: "${DAT_OVERRIDE:=$top/test/dat.conf}"
export DAT_OVERRIDE
port=$((20000 + $$ % 10000))
briefly='--tests send --sizes 8,1M --iters 2'
bad=0
tried=0

tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# As if installed: the programs are in PATH, the providers in the library path. "program" stands
# for a program of the reader's.
mkdir "$tmp/bin" || exit 99
for name in datinfo datinfo1 datperf; do
	printf '#!/bin/sh\nexec sh "%s/test/run" "%s/util/%s" "$@"\n' "$src" "$top" $name >"$tmp/bin/$name"
done
printf '#!/bin/sh\nexec datinfo -D ofi-tcp\n' >"$tmp/bin/program"
printf '#!/bin/sh\nexec sh -c "$2"\n' >"$tmp/bin/ssh"	# to this machine
chmod +x "$tmp"/bin/*
PATH=$tmp/bin:$PATH
LD_LIBRARY_PATH=$top/prov/ofi/v1/.libs:$top/prov/ofi/v2/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH LD_LIBRARY_PATH
cp "$DAT_OVERRIDE" "$tmp/dat.conf" || exit 99

fail()
{
	echo "FAIL: $*"
	sed 's/^/    | /' "$tmp/out" "$tmp/err"
	bad=1
}

# examples PAGE - the command and configuration lines in its EXAMPLES, without the C program
examples()
{
	awk '/^\.Sh/ { in_examples = $2 == "EXAMPLES" }
	     /^\.Ed/ || /^\/\*/ { in_display = 0 }
	     in_display { print }
	     in_examples && /^\.Bd -literal/ { in_display = 1 }
	     in_examples && /^\.Dl / { print substr($0, 5) }' "$1"
}

# run COMMAND - in the temporary directory
run()
{
	(cd "$tmp" && sh -c "$1") >"$tmp/out" 2>"$tmp/err" </dev/null ||
		fail "exited with an error: $1"
}

# has FILE PATTERN COMMAND
has()
{
	grep -q -e "$2" "$tmp/$1" || fail "no \"$2\" in the $1 of: $3"
}

# serve COMMAND - starts a server in the background; returns when it listens
serve()
{
	mkfifo "$tmp/server"
	sh -c "$1 -p $port" 2>"$tmp/server" &
	server=$!
	exec 3<"$tmp/server"
	read -r _ <&3
}

# run_server_client COMMAND - runs the server's client
run_server_client()
{
	run "$1 -p $port $briefly"
	has out '^ *1M |' "$1"
	cat <&3 >"$tmp/err"
	wait "$server" || fail "the server exited with an error"
}

# command_line LINE - runs it and checks the effect
command_line()
{
	case $1 in
	"datinfo --list" | *"/dat.conf datinfo --list")
		run "$1"
		has out '^ofi-tcp .* tcp ' "$1" ;;
	"datinfo -D "*" | grep max_message_size")
		run "$1"
		has out '^ *max_message_size  *[1-9]' "$1" ;;
	"DAT_OFI_SPIN_US=200 datinfo --settings")
		run "$1"
		has out '^DAT_OFI_SPIN_US  *200  *us  *environment' "$1" ;;
	"datinfo --capabilities ofi-tcp | grep ep_attr")
		run "$1"
		has out '^ *ep_attr.max_recv_dtos  *[1-9].* U' "$1" ;;
	"datinfo --conf > dat.conf.new")
		run "$1"
		sed 's|[^ ]*/libdaplofi|libdaplofi|' "$tmp/dat.conf.new" >"$tmp/new.conf"
		run 'DAT_OVERRIDE=$PWD/new.conf datinfo --list'
		has out '^ofi-tcp .* tcp ' "$1"
		[ -s "$tmp/err" ] && fail "warnings about the file of: $1" ;;
	"datinfo --conf")
		run "$1"
		has out '^ofi-tcp u1.2 .* "provider=tcp" ""$' "$1" ;;
	"datinfo --doctor -D ofi-tcp")
		run "$1"
		has out '^  ofi-tcp  *yes  *tcp, domain .*; 1000 messages: .* us each$' "$1"
		has out '^  ofi-tcp works$' "$1" ;;
	"datinfo --explain 0x4003")
		run "$1"
		has out '^  name  *DAT_CONNECTION_EVENT_NON_PEER_REJECTED$' "$1" ;;
	"datinfo --explain DAT_DTO_ERR_FLUSHED")
		run "$1"
		has out '^1  *status of a completion event of DAT 2.0$' "$1" ;;
	"datinfo --explain DAT_INVALID_STATE_EP_NOTREADY")
		run "$1"
		has out '^  subtype  *0x[0-9a-f]*  DAT_INVALID_STATE_EP_NOTREADY: The EP lacks' "$1" ;;
	"DAT_OFI_LOG=2 program")
		run "$1"
		has err 'tcp' "$1" ;;
	"datperf --server")
		serve "$1" ;;
	"datperf node1")
		run_server_client "datperf 127.0.0.1" ;;
	"datperf --ssh node1")
		run "datperf --ssh 127.0.0.1 -p $((port + 1)) $briefly"
		has out '^ *1M |' "$1" ;;
	"datperf --plot"*)
		command -v gnuplot >/dev/null || return
		if ! (cd "$tmp" && sh -c "$1") >"$tmp/out" 2>"$tmp/err" </dev/null; then
			has err 'without json-c' "$1"
			return
		fi
		grep -q '<svg' "$tmp/tcp-shm.svg" || fail "no picture: $1" ;;
	*"datperf --local"*" > "*.json)
		run "${1% > *} $briefly > ${1##* > }" ;;
	*"datperf --local"*--histogram)
		run "$1 --iters 20"
		has out '^ *8 ' "$1"
		has out ' us  *[0-9]* .* %' "$1" ;;
	*"datperf --local"*--peers*)
		run "$1 $briefly"
		has out '^ *100 ' "$1" ;;
	*"datperf --local"*ud*)
		run "$1 --sizes 8 --iters 2"
		has out '^ *ud ' "$1" ;;
	*"datperf --local"*)
		run "$1 $briefly"
		has out '^ *1M ' "$1" ;;
	*)
		fail "this test has no expectation for: $1" ;;
	esac
}

# conf_line NAME VERSION... - checks that a program of this version can open the IA
conf_line()
{
	printf '%s\n' "$*" | sed 's/domain=eth0/domain=lo/; s/192\.0\.2\.1/127.0.0.1/' >"$tmp/line.conf"
	case $2 in
	u1.2) program=datinfo1 ;;
	*) program=datinfo ;;
	esac
	run "DAT_OVERRIDE=\$PWD/line.conf $program -D $1"
	has out '^ *fabric  *tcp' "$*"
	has out '127\.0\.0\.1' "$*"
}

# other_line NAME... - a line for another provider and device, neither of which need exist
other_line()
{
	printf '%s\n' "$*" >"$tmp/line.conf"
	(cd "$tmp" && DAT_OVERRIDE=$tmp/line.conf datinfo --list) >"$tmp/out" 2>"$tmp/err" </dev/null
	has out "^$1 " "$*"
}

# try FILE - each line of it
try()
{
	while IFS= read -r line; do
		tried=$((tried + 1))
		case $line in
		*'$ '*) command_line "${line#*$ }" ;;
		'# '*) command_line "${line#??}" ;;
		ofa-*' u'?.?' '*) other_line $line ;;
		*' u'?.?' '*) conf_line $line ;;
		*) fail "neither a command nor a line of dat.conf: $line" ;;
		esac
	done <"$1"
}

: >"$tmp/out"
: >"$tmp/err"
for page in "$src"/man/man[157]/*.?; do
	examples "$page" >"$tmp/lines"
	try "$tmp/lines"
done

# README.md's commands are run in the top build directory.
sed -n 's/^    DAT_OVERRIDE=/$ DAT_OVERRIDE=/p' "$src/README.md" >"$tmp/lines"
mkdir "$tmp/test"
cp "$tmp/dat.conf" "$tmp/test"
ln -s bin "$tmp/util"
try "$tmp/lines"

# rejects LINE - checks that LINE is found wrong
rejects()
{
	printf '%s\n' "$1" >"$tmp/lines"
	(bad=0 && try "$tmp/lines" >/dev/null && exit $bad) && fail "this test accepts a wrong line: $1"
}

rejects '$ datinfo --frobnicate'
rejects '$ datinfo -D no-such-ia | grep max_message_size'
rejects 'net u2.0 threadsafe default libno-such.so dapl.2.0 "" ""'
rejects 'net u2.0 threadsafe'

[ $tried -ge 15 ] || fail "only $tried lines were found"
echo "$tried lines tested"
exit $bad
