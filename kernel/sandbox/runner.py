"""How one run is started, watched from outside and brought home. `run` always returns, within its limits plus a grace.

Process 1 (`inside`) enforces the limits; this side bounds the output, holds the backstop clock, and trusts nothing it
reads.
"""

import contextlib
import marshal
import os
import secrets
import selectors
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernel.sandbox import backends
from kernel.sandbox.backends import PYTHON, Backend, Plan, make_plan, search_path
from kernel.sandbox.seccomp import build_filter
from kernel.sandbox.spec import SandboxResult, SandboxSpec, SandboxUnavailable

INSIDE = (Path(__file__).parent / "inside.py").read_text(encoding="utf-8")
GRACE_SECONDS = 3.0
CHUNK = 65536
# Far above any real account: each run as root gets a user of its own, so that process counts are not shared.
_FIRST_UID, _UIDS = 0x60000000, 0x0FFFFFFF
_TRIAL = """
import os
assert not [line for line in open("/proc/net/dev").readlines()[2:] if line.split(":")[0].strip() != "lo"], "network"
assert not os.path.exists("/etc/passwd") and not os.access("/usr", os.W_OK), "files"
assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read(), "capabilities"
open("/sandbox/out/ok", "w").write("ok")
"""


def run(spec: SandboxSpec) -> SandboxResult:
    """Raises SandboxUnavailable where nothing can be isolated; every other failure is a reason in the result."""
    return run_on(backends.backend(), spec)


def trial(backend: Backend) -> str:
    """ "" when the backend isolates on this machine, else what went wrong."""
    result = run_on(backend, SandboxSpec([PYTHON, "-I", "-S", "-c", _TRIAL], timeout_seconds=10))
    works = result.ok and result.artifacts == {"ok": b"ok"}
    return "" if works else (result.stderr.strip().splitlines() or [result.reason or "failed"])[-1][:200]


def run_on(backend: Backend, spec: SandboxSpec) -> SandboxResult:
    started = time.monotonic()
    with _mounts(spec) as mounts:
        plan = make_plan(mounts=mounts, disk_bytes=spec.disk_mb << 20, network=spec.network)
        run_ = _Run(backend, plan, spec)
        try:
            run_.follow()
        finally:
            run_.end()
    return run_.result(time.monotonic() - started)


@contextlib.contextmanager
def _mounts(spec: SandboxSpec) -> Iterator[dict[str, str]]:
    """Host directories for the read-only mounts; contents are written out for the time of the run."""
    with contextlib.ExitStack() as stack:
        mounts = {}
        for name, mount in spec.read_only.items():
            if isinstance(mount, Mapping):
                mounts[name] = stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-"))
                _write_files(Path(mounts[name]), mount)
            else:
                mounts[name] = _readable(mount)
        yield mounts


def _write_files(root: Path, files: Mapping[str, bytes]) -> None:
    root.chmod(0o755)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)


def _readable(directory: Path) -> str:
    path = os.path.realpath(directory)
    if not os.path.isdir(path):
        raise SandboxUnavailable("a read-only mount is not a directory")
    if os.geteuid() == 0 and os.stat(path).st_mode & 0o005 != 0o005:
        raise SandboxUnavailable("a read-only mount is not readable by the sandbox's own user")
    return path


def _config(backend: Backend, plan: Plan, spec: SandboxSpec) -> bytes:
    filter_ = build_filter()
    if not filter_:
        raise SandboxUnavailable("no system call filter for this architecture")
    home = {"PATH": search_path(), "HOME": "/sandbox/work", "TMPDIR": "/sandbox/tmp", "LANG": "C.UTF-8"}
    return marshal.dumps(
        {
            "argv": list(spec.argv),
            "env": {**home, **spec.env},
            "work": [(name, bytes(content)) for name, content in spec.work.items()],
            "uid": None if backend.user_namespace else _FIRST_UID + secrets.randbelow(_UIDS),
            "root": backend.root(plan),
            "filter": filter_,
            "host_pid_namespace": os.readlink("/proc/self/ns/pid"),
            "timeout_seconds": float(spec.timeout_seconds),
            "memory_bytes": spec.memory_mb << 20,
            "disk_bytes": plan.disk_bytes,
            "cpu_seconds": spec.cpu_seconds,
            "processes": spec.processes,
            "artifact_files": spec.artifact_files,
        }
    )


class _Run:
    """One started run. Two pipes besides the output: the report comes back on one, closing the other stops the run."""

    def __init__(self, backend: Backend, plan: Plan, spec: SandboxSpec) -> None:
        self.spec = spec
        self.reason = ""
        self.buffers = {"stdout": bytearray(), "stderr": bytearray(), "report": bytearray()}
        self.report_limit = plan.disk_bytes + spec.artifact_files * 8192 + CHUNK
        self.deadline = time.monotonic() + spec.timeout_seconds + GRACE_SECONDS
        report_read, report_write = os.pipe()
        control_read, self.control = os.pipe()
        inner = [PYTHON, "-I", "-S", "-c", INSIDE, str(report_write), str(control_read)]
        try:
            with _config_file(_config(backend, plan, spec)) as config:
                self.process = subprocess.Popen(
                    backend.command(plan, inner),
                    stdin=config,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(report_write, control_read),
                    env={"PATH": os.environ.get("PATH", backends.PATH)},
                    cwd="/",
                    start_new_session=True,
                )
        except BaseException:
            os.close(report_read)
            os.close(self.control)
            raise
        finally:
            os.close(report_write)
            os.close(control_read)
        self.report = open(report_read, "rb", buffering=0)  # noqa: SIM115 - closed in end()

    def follow(self) -> None:
        """Read until everything inside is gone, which closes all three pipes."""
        assert self.process.stdout and self.process.stderr
        with selectors.DefaultSelector() as selector:
            streams = {"stdout": self.process.stdout, "stderr": self.process.stderr, "report": self.report}
            for name, stream in streams.items():
                selector.register(stream, selectors.EVENT_READ, name)
            while selector.get_map():
                left = self.deadline - time.monotonic()
                if left <= 0:
                    self.kill("timeout")
                    return
                for key, _ in selector.select(left):
                    data = os.read(key.fd, CHUNK)
                    if data:
                        self.take(key.data, data)
                    else:
                        selector.unregister(key.fileobj)

    def take(self, name: str, data: bytes) -> None:
        if name == "report":
            if len(self.buffers["report"]) + len(data) > self.report_limit:
                self.kill("sandbox_failed")
            else:
                self.buffers["report"] += data
            return
        used = len(self.buffers["stdout"]) + len(self.buffers["stderr"])
        room = self.spec.output_bytes - used
        self.buffers[name] += data[: max(room, 0)]
        if len(data) > room:
            self.stop("output_limit")

    def stop(self, reason: str) -> None:
        """Orderly: process 1 kills everyone and reports."""
        self.reason = self.reason or reason
        if self.control >= 0:
            os.close(self.control)
            self.control = -1

    def kill(self, reason: str) -> None:
        self.stop(reason)
        self.process.kill()

    def end(self) -> None:
        """Nothing of the run is alive when this returns: the tool waits for process 1, and process 1 for the rest."""
        self.stop(self.reason)
        try:
            self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(GRACE_SECONDS)
        for stream in (self.process.stdout, self.process.stderr, self.report):
            if stream:
                stream.close()

    def result(self, seconds: float) -> SandboxResult:
        reason, code, artifacts = _parse(bytes(self.buffers["report"]))
        reason = self.reason or reason
        stdout, stderr = (self.buffers[name].decode("utf-8", "replace") for name in ("stdout", "stderr"))
        if reason == "sandbox_failed" and "detail" in artifacts:
            stderr += artifacts["detail"].decode("utf-8", "replace")
        return SandboxResult(code, stdout, stderr, {} if reason else artifacts, reason, round(seconds, 4))


@contextlib.contextmanager
def _config_file(content: bytes) -> Iterator[int]:
    """An unnamed in-memory file: no path anyone else could open, no pipe that could fill."""
    descriptor = os.memfd_create("sandbox-config")
    try:
        with open(descriptor, "wb", closefd=False) as handle:
            handle.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _parse(report: bytes) -> tuple[str, int | None, dict[str, bytes]]:
    """(reason, exit code, artifacts) of a report; anything malformed is `sandbox_failed`."""
    chunks, offset = [], 0
    while offset + 8 <= len(report):
        (size,) = struct.unpack_from("!Q", report, offset)
        chunks.append(report[offset + 8 : offset + 8 + size])
        offset += 8 + size
    if offset != len(report) or len(chunks) < 2 or len(chunks) % 2:
        return "sandbox_failed", None, {}
    names = [name.decode("utf-8", "replace") for name in chunks[2::2]]
    return chunks[0].decode(), int(chunks[1]) if chunks[1] else None, dict(zip(names, chunks[3::2], strict=True))
