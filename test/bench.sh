#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# contrib/bench: its parts with given input (bench_*_test.py), and a complete short run over tcp
# and shared memory.
set -u
export top_srcdir="${top_srcdir:-.}"
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }
for part in tables runs; do
	python3 "$top_srcdir/test/bench_${part}_test.py" || exit 1
done

fail()
{
	echo "FAIL: $*"
	cat "$tmp/out" "$tmp/err"
	exit 1
}

# bench STATUS... -- ARGUMENT... - runs contrib/bench, which must exit with one of these
bench()
{
	wanted=
	while [ "$1" != -- ]; do
		wanted="$wanted $1"
		shift
	done
	shift
	"$top_srcdir/contrib/bench" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	case "$wanted " in
	*" $status "*) ;;
	*) fail "exit status $status, not$wanted: contrib/bench $*" ;;
	esac
}

bench 2 --
bench 2 -- "$build" --repeat 0
bench 1 -- "$tmp"
bench 1 -- "$build" --fabrics nosuch
bench 1 -- "$build" --libfabric "$tmp"

# Each row must be present and have figures. The machine may be noisy, if that is reported.
bench 0 3 -- "$build" --fabrics tcp,shm --libfabric system --repeat 1 --time 1 --before "$build" \
	--json "$tmp/json" --markdown "$tmp/markdown" --svg "$tmp/svg"
cmp -s "$tmp/out" "$tmp/markdown" || fail "--markdown is not what is printed"
python3 - "$tmp" $status <<'END' || fail "a row is missing"
import json, sys, xml.etree.ElementTree as xml

tmp, status = sys.argv[1], int(sys.argv[2])
document = json.load(open(tmp + "/json"))
assert document["verdict"]["noisy"] == (status == 3), document["verdict"]
last = open(tmp + "/markdown").read().splitlines()[-1]
assert ("machine too noisy" in last) == (status == 3), last
assert xml.parse(tmp + "/svg").findall("{*}polyline")

rows = {(r["fabric"], r["metric"], r["test"], r["size"]): r for r in document["rows"]}
latency, wait = (8, 4000, 4096, 65536, 1 << 20), (8, 4096)
wanted = [(metric, "send", size) for metric in ("latency", "wait") for size in latency]
rdma = ("write", "read", "mpi")
wanted += [("latency", test, size) for test in rdma for size in latency if size != 4000]
wanted += [("wait", test, size) for test in ("write", "read") for size in wait]
wanted += [("bandwidth", "send", 512), ("rate", "send", 8)]
wanted += [("bandwidth", test, size) for test in ("send", *rdma) for size in latency if size > 4000]
wanted = [(fabric, *key) for fabric in ("ofi-tcp", "ofi-shm") for key in wanted]
wanted += [("ofi-shm", "bandwidth2", "send", size) for size in latency if size > 4000]
many = [("connect", "all"), ("memory", "client"), ("memory", "server"), ("empty", "all"), ("among", "first"),
        ("among", "last"), ("close", "all")]
many = [(fabric, *key, n) for fabric in ("ofi-tcp", "ofi-shm") for key in many for n in (1, 10, 100, 1000)]
for key in many:
    assert rows[key]["dat"]["median"] > 0 and rows[key]["dat/before"] > 0, key
for key in wanted:
    sides = ["dat", "before"] + (["bare"] if key[:2] != ("ofi-shm", "wait") else [])
    for side in sides:
        assert rows[key][side]["median"] > 0, (key, side)
    assert all(rows[key]["dat/" + side] > 0 for side in sides[1:]), key
assert not set(rows) - set(wanted) - set(many), set(rows) - set(wanted)
assert ("bare" in rows["ofi-shm", "wait", "send", 8]) is False
END

# Each file is a session.
bench 0 3 -- --replay "$tmp/json" "$tmp/json" --json "$tmp/twice"
python3 - "$tmp" <<'END' || fail "not the runs of both files"
import json, sys

once, twice = (json.load(open(sys.argv[1] + name)) for name in ("/json", "/twice"))
assert len(twice["runs"]) == 2 * len(once["runs"])
assert {run["session"] for run in twice["runs"]} == {"0.0", "1.0"}
keys = ("libfabric", "fabric", "metric", "test", "size")
assert [[r[k] for k in keys] for r in once["rows"]] == [[r[k] for k in keys] for r in twice["rows"]]
END

# A machine with other load all the time.
python3 - "$tmp" <<'END'
import json, sys

document = json.load(open(sys.argv[1] + "/json"))
for run in document["runs"]:
    run["noise"]["foreign"] = 1.5
json.dump(document, open(sys.argv[1] + "/busy", "w"))
END
bench 3 -- --replay "$tmp/busy"
tail -n 1 "$tmp/out" | grep -q 'machine too noisy: other work disturbed 100%' || fail "noise is not noticed"

# SIGTERM in the first round: one sentence, no traceback.
mkfifo "$tmp/fifo" || exit 99
"$top_srcdir/contrib/bench" "$build" --fabrics tcp --libfabric system >"$tmp/out" 2>"$tmp/fifo" &
pid=$!
{
	while read -r line && case $line in *"round 1 of"*) false ;; esac; do :; done
	kill $pid
	cat
} <"$tmp/fifo" >"$tmp/err"
wait $pid
status=$?
[ $status -eq 1 ] || fail "exit status $status, not 1, after SIGTERM"
! grep -q Traceback "$tmp/err" || fail "a traceback after SIGTERM"
cat "$tmp/err" "$tmp/out" | grep -q interrupted || fail "SIGTERM is not reported"
