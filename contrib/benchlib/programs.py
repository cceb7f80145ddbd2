# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the programs that measure: datperf, ucx_perftest, qperf, the instruction counter, the guest."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from . import machine

RUN_SECONDS = 120
VERBS_SECONDS = 7200


class Failed(Exception):
    """A program failed; the text is the reason."""


def run(command, env, seconds=RUN_SECONDS):
    """Returns the output of a program that must succeed. Kills its session on a time-out or interrupt."""
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException as e:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(e, subprocess.TimeoutExpired):
                raise Failed(f"did not exit within {seconds} s") from e
            raise
    if process.returncode:
        lines = (err.strip() or out.strip() or "no output").splitlines()
        raise Failed(f"exit status {process.returncode}: {lines[-1]}")
    return out


# --- libfabric -----------------------------------------------------------------------------

class Libfabric:
    """An installed libfabric: its directory, or "" for the one that the loader finds."""

    def __init__(self, directory=""):
        self.directory = directory
        code = ("import ctypes; v = ctypes.CDLL('libfabric.so.1').fi_version();"
                "print(f'{v >> 16}.{v & 0xffff}')")
        self.version = run([sys.executable, "-c", code], self.environment([])).strip()

    def environment(self, more):
        paths = [str(p) for p in more] + ([self.directory] if self.directory else [])
        env = {**os.environ, "IPATH_NO_BACKTRACE": "1", "LD_LIBRARY_PATH": ":".join(paths)}
        if not paths:
            del env["LD_LIBRARY_PATH"]
        return env


def library_directory(prefix):
    """Returns the directory of libfabric below the PREFIX that the user gave."""
    for sub in ("", "lib", "lib64"):
        directory = pathlib.Path(prefix, sub)
        if (directory / "libfabric.so.1").exists():
            return str(directory.resolve())
    raise Failed(f"{prefix}: libfabric.so.1 not found")


def libfabrics(prefixes):
    """Returns the libfabrics at prefixes, where "system" is the loader's.

    The default is the loader's, and all in LD_LIBRARY_PATH.
    """
    if prefixes:
        directories = ["" if p == "system" else library_directory(p) for p in prefixes]
    else:
        path = [d for d in os.environ.get("LD_LIBRARY_PATH", "").split(":") if d]
        directories = [""] + [str(pathlib.Path(d).resolve()) for d in path
                              if pathlib.Path(d, "libfabric.so.1").exists()]
    found = []
    for directory in dict.fromkeys(directories):
        lib = Libfabric(directory)
        if lib.version not in (other.version for other in found):
            found.append(lib)
    return found


# --- a build -------------------------------------------------------------------------------

class Build:
    """A build tree of this package. One datperf measures all of them, so that only the libraries differ."""

    def __init__(self, directory, tools=None):
        self.directory = pathlib.Path(directory).resolve()
        self.libraries = self.directory / ".libs"
        tools = (tools or self.directory) / "util"
        self.datperf = tools / ".libs/datperf"
        if not self.datperf.exists():
            self.datperf = tools / "datperf"
        if not (self.directory / "test/dat.conf").exists() or not self.datperf.exists():
            raise Failed(f"{directory} is not a complete build tree")
        self.makefile = (self.directory / "Makefile").read_text(encoding="utf-8")

    def variable(self, name):
        match = re.search(rf"^{name} =(.*)$", self.makefile, re.MULTILINE)
        return match.group(1).strip() if match else ""

    def optimised(self):
        return "NDEBUG" in self.variable("DEBUG_CPPFLAGS") and "-O" in self.variable("CFLAGS")

    def describe(self):
        top = self.variable("abs_top_srcdir") or str(self.directory)
        git = subprocess.run(["git", "-C", top, "describe", "--always", "--dirty"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return {"directory": str(self.directory), "commit": git.stdout.strip(),
                "optimised": self.optimised()}

    def environment(self, lib):
        return {**lib.environment([self.libraries]), "DAT_OVERRIDE": str(self.directory / "test/dat.conf"),
                "top_builddir": str(self.directory), "top_srcdir": self.variable("abs_top_srcdir")}

    def perf(self, lib, *arguments):
        """Returns the JSON output of datperf."""
        out = run([self.datperf, "--local", "--json", *arguments], self.environment(lib))
        try:
            return json.loads(out)
        except ValueError as e:
            raise Failed("datperf printed no JSON") from e

    def instructions(self, lib):
        """Returns {API version: instructions of a send and its completion}."""
        programs = ["test/robust/quiet1", "test/robust/quiet2"]
        run(["make", "-s", "-C", self.directory, *programs], dict(os.environ))
        env = self.environment(lib)
        script = pathlib.Path(env["top_srcdir"], "test/robust/instructions.sh")
        try:
            out = run(["sh", script], env)
        except Failed as e:
            raise Failed(f"{script.name}: {e}") from e
        counts = re.findall(r"^# ([0-9.]+) instructions", out, re.MULTILINE)
        return dict(zip(("1.2", "2.0"), map(float, counts)))

    def figures(self):
        """Returns the output of test/interop/figures.sh in a guest with a clock that counts instructions."""
        log = self.directory / "test/verbs/interop-figures.log"
        log.unlink(missing_ok=True)
        run(["make", "-s", "-C", self.directory, "check-verbs", "VERBS=interop/figures"],
            {**os.environ, "DAT_VM_CLOCK": "instructions"}, VERBS_SECONDS)
        if not log.exists():
            raise Failed("no guest can run here")
        return log.read_text(encoding="utf-8").splitlines()


# --- UCX -----------------------------------------------------------------------------------

class Ucx:
    """ucx_perftest, which runs all tests of a transport over one connection."""

    def __init__(self):
        self.program = shutil.which("ucx_perftest")

    def version(self):
        info = shutil.which("ucx_info")
        if not info:
            return ""
        out = subprocess.run([info, "-v"], text=True, stdout=subprocess.PIPE, check=False).stdout
        match = re.search(r"version:? *([\d.]+)", out)
        return match.group(1) if match else ""

    def perf(self, transports, tests):
        """Runs tests, {label: arguments}; returns {label: {column: figure}}."""
        env = {**os.environ, "UCX_TLS": transports, "UCX_LOG_LEVEL": "error"}
        first, last = machine.cpus()
        with tempfile.NamedTemporaryFile("w", suffix=".batch") as batch:
            batch.writelines(f"{label} {arguments}\n" for label, arguments in tests.items())
            batch.flush()
            port = free_port()
            common = [self.program, "-p", str(port), "-b", batch.name, "-f", "-v"]
            with subprocess.Popen([*common, "-c", str(last)], env=env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as server:
                try:
                    wait_for_listener(port, server)
                    out = run([*common, "-c", str(first), "127.0.0.1"], env)
                    server.wait(10)
                except subprocess.TimeoutExpired as e:
                    raise Failed("the server of ucx_perftest does not exit") from e
                finally:
                    server.kill()
        return dict(ucx_lines(out))


def ucx_lines(out):
    head, *lines = (line.split(",") for line in out.splitlines() if "," in line)
    for line in lines:
        yield line[0], {name: float(value) for name, value in zip(head[1:], line[1:])}


# --- TCP -----------------------------------------------------------------------------------

class Tcp:
    """qperf, which sends over a TCP connection and nothing above it."""

    def __init__(self):
        self.program = shutil.which("qperf")

    def latency(self, size, time_ms):
        """Returns half a round trip in us. qperf measures for whole seconds."""
        port = free_port()
        first, last = machine.cpus()
        common = [self.program, "-lp", str(port)]
        with subprocess.Popen(common, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL) as server:
            try:
                wait_for_listener(port, server)
                out = run([*common, "-lca", str(first), "-rca", str(last), "-t", str(max(1, time_ms // 1000)),
                           "-m", str(size), "-uu", "127.0.0.1", "tcp_lat"], os.environ)
            finally:
                server.kill()
        return qperf_us(out)


def qperf_us(out):
    """Returns the latency in the output of qperf, which has no unit smaller than ns with -uu."""
    found = re.search(r"latency += +([\d,.]+) (ns|us|ms|sec)", out)
    if not found:
        raise Failed("qperf printed no latency")
    return float(found.group(1).replace(",", "")) * {"ns": 1e-3, "us": 1, "ms": 1e3, "sec": 1e6}[found.group(2)]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_listener(port, server):
    """Waits for a listener on the port. Does not connect, as the server would take that for the client."""
    for _ in range(200):
        for name in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(name, encoding="utf-8") as f:
                if re.search(rf":{port:04X} [0-9A-F]+:0000 0A ", f.read()):
                    return
        if server.poll() is not None:
            break
        time.sleep(0.02)
    raise Failed("the server does not listen")
