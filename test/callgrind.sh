# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the profiles of callgrind say. For scripts that count instructions, which read this with ".".

# calls FUNCTION FILE... - how often it was called, and instructions in it
calls()
{
	wanted=$1
	shift
	awk -v name="$wanted" '
		/^c?fn=/ {
			id = $0; sub(/^c?fn=/, "", id); text = id
			sub(/\).*/, ")", id); sub(/^[^)]*\) ?/, "", text)
			if (text != "") known[id] = text
			if (/^cfn=/) callee = known[id]
		}
		/^calls=/ {
			split($1, n, "="); getline
			if (callee ~ "^" name "(@|$)") { count += n[2]; cost += $2 }
		}
		END { printf "%d %d\n", count, cost }' "$@"
}
