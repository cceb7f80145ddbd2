# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Waits for a state of another process. Sourced.

# listening PORT - whether a socket of this machine or of RDMA's connection manager listens at
# PORT, or a service point of shared memory alone has it as its qualifier
listening()
{
	grep -q "@dat-ofi/side/$1$" /proc/net/unix 2>/dev/null ||
		grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [^ ]+ 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null ||
		rdma resource show cm_id 2>/dev/null | grep -q " state LISTEN .* src-addr [^ ]*:$1 "
}

# taken PORT - whether a socket is bound to PORT: a listener, or a client's that the kernel
# assigned it to
taken()
{
	listening "$1" ||
		grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [^ ]+ 0[1-57-9AB] " \
			/proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# wait_until SECONDS COMMAND... - repeats COMMAND until it succeeds or SECONDS have passed
wait_until()
{
	local end=$(($(date +%s) + $1))	# local, because COMMAND may call this function
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $end ] || return 1
		sleep 0.02
	done
}
