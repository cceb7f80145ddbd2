# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Waiting for what another process does. Sourced.

# listening PORT - whether a socket of this machine does, or one of RDMA's connection manager
listening()
{
	grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [^ ]+ 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null ||
		rdma resource show cm_id 2>/dev/null | grep -q " state LISTEN .* src-addr [^ ]*:$1 "
}

# taken PORT - whether a socket has it as its own: a listening one, or a client's that the system gave it to
taken()
{
	listening "$1" ||
		grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [^ ]+ 0[1-57-9AB] " \
			/proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# until_so SECONDS COMMAND... - looks often until the command succeeds
until_so()
{
	local end=$(($(date +%s) + $1))	# commands call this, too
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.02
	done
}
