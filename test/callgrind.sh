# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Reads profiles of callgrind. Sourced by scripts that count instructions.

# calls FUNCTION FILE... - the number of its calls, and the instructions in it
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
