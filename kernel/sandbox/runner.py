"""How one run is started, watched from outside and brought home. `run` always returns, within its limits plus a grace.

The keeper's overseer enforces the limits; this side bounds the output, holds the backstop clock, and trusts nothing it
reads.
"""

import contextlib
import marshal
import os
import secrets
import select
import signal
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernel.sandbox import backends, docker
from kernel.sandbox.backends import Backend, Docker, Plan, make_plan, search_path
from kernel.sandbox.launcher import Keeper, launch, replace
from kernel.sandbox.seccomp import build_filter
from kernel.sandbox.spec import SandboxResult, SandboxSpec, SandboxUnavailable

GRACE_SECONDS = 3.0
CHUNK = 65536
_STREAMS = ("stdout", "stderr", "report")
# Far above any real account: each run as root gets a user of its own, so that process counts are not shared.
_FIRST_UID, _UIDS = 0x60000000, 0x0FFFFFFF
_TRIAL = """
import os
assert not [line for line in open("/proc/net/dev").readlines()[2:] if line.split(":")[0].strip() != "lo"], "network"
assert not os.access("/usr", os.W_OK), "files"
assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read(), "capabilities"
open("/sandbox/out/ok", "w").write("ok")
"""
_TRIAL_HERE = 'import os\nassert not os.path.exists("/etc/passwd"), "files"\n'


def run(spec: SandboxSpec) -> SandboxResult:
    """Raises SandboxUnavailable where nothing can be isolated; every other failure is a reason in the result."""
    return run_on(backends.backend(), spec)


def trial(backend: Backend) -> str:
    """ "" when the backend isolates on this machine, else what went wrong."""
    try:
        if isinstance(backend, Docker):
            docker.require_engine()
        source = _TRIAL if isinstance(backend, Docker) else _TRIAL_HERE + _TRIAL
        result = run_on(backend, SandboxSpec(["python3", "-I", "-S", "-c", source], timeout_seconds=10))
    except SandboxUnavailable as refusal:
        return refusal.message
    works = result.ok and result.artifacts == {"ok": b"ok"}
    return "" if works else (result.stderr.strip().splitlines() or [result.reason or "failed"])[-1][:200]


def run_on(backend: Backend, spec: SandboxSpec) -> SandboxResult:
    if spec.network and not backends.may_use_network():
        raise SandboxUnavailable("no sandbox may use the network here")
    started = time.monotonic()
    with _mounts(spec) as mounts:
        plan = make_plan(mounts=mounts, disk_bytes=spec.disk_mb << 20, network=spec.network, hidden=spec.hidden)
        run_ = _followed(backend, plan, spec)
        if not run_.has_begun:  # whoever should have made it was gone: nothing ran, so another one makes it now
            run_.replace_keeper()
            run_ = _followed(backend, plan, spec)
    return run_.result(time.monotonic() - started)


def _followed(backend: Backend, plan: Plan, spec: SandboxSpec) -> "_Run":
    run_ = _Run(backend, plan, spec)
    try:
        run_.follow()
    finally:
        run_.end()
    return run_


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
    filter_ = build_filter(network=spec.network)
    if not filter_:
        raise SandboxUnavailable("no system call filter for this architecture")
    home = {"PATH": search_path(backend), "HOME": "/sandbox/work", "TMPDIR": "/sandbox/tmp", "LANG": "C.UTF-8"}
    return marshal.dumps(
        {
            **backend.building(plan),
            "path": os.environ.get("PATH", backends.PATH),
            "user_namespace": backend.user_namespace,
            "network": spec.network,
            "argv": list(spec.argv),
            "env": {**home, **spec.env},
            "work": [(name, bytes(content)) for name, content in spec.work.items()],
            "uid": None if backend.user_namespace else _FIRST_UID + secrets.randbelow(_UIDS),
            "filter": filter_,
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
        self.buffers = {name: bytearray() for name in _STREAMS}
        self.report_limit = plan.disk_bytes + spec.artifact_files * 8192 + CHUNK
        self.deadline = time.monotonic() + spec.timeout_seconds + GRACE_SECONDS
        control_read, self.control = os.pipe()
        ends = [os.pipe() for _ in _STREAMS]
        self.streams = {name: read for name, (read, _) in zip(_STREAMS, ends, strict=True)}
        writes = [write for _, write in ends]
        try:
            self._keeper = _launch(backend, plan, spec, [*writes, control_read])
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in (*writes, control_read):
                os.close(descriptor)

    @property
    def has_begun(self) -> bool:
        """An overseer says who it is before it does anything."""
        return bool(self.buffers["report"])

    def replace_keeper(self) -> None:
        """Its line may still be open for a moment after what it was asked is lost."""
        if self._keeper is not None:
            replace(self._keeper)

    def follow(self) -> None:
        """Read until everything inside is gone and its overseer too, which closes all three pipes."""
        poller = select.poll()
        names = {descriptor: name for name, descriptor in self.streams.items()}
        for descriptor in names:
            poller.register(descriptor, select.POLLIN)
        while names:
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.kill("timeout")
                return
            for descriptor, _ in poller.poll(left * 1000):
                data = os.read(descriptor, CHUNK)
                if data:
                    self.take(names[descriptor], data)
                else:
                    poller.unregister(descriptor)
                    del names[descriptor]

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
        """Orderly: the overseer kills everyone and reports."""
        self.reason = self.reason or reason
        if self.control >= 0:
            os.close(self.control)
            self.control = -1

    def kill(self, reason: str) -> None:
        """The overseer does not answer; what it holds dies with it. It has said who it is before anything ran."""
        self.stop(reason)
        overseer = _first_chunk(bytes(self.buffers["report"]))
        if overseer.isdigit():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(overseer), signal.SIGKILL)

    def end(self) -> None:
        self.stop(self.reason)
        self._close()

    def _close(self) -> None:
        for descriptor in self.streams.values():
            os.close(descriptor)

    def result(self, seconds: float) -> SandboxResult:
        reason, code, artifacts = _parse(bytes(self.buffers["report"]))
        reason = self.reason or reason
        stdout, stderr = (self.buffers[name].decode("utf-8", "replace") for name in ("stdout", "stderr"))
        if reason == "sandbox_failed" and "detail" in artifacts:
            stderr += artifacts["detail"].decode("utf-8", "replace")
        return SandboxResult(code, stdout, stderr, {} if reason else artifacts, reason, round(seconds, 4))


def _launch(backend: Backend, plan: Plan, spec: SandboxSpec, descriptors: list[int]) -> Keeper | None:
    """Returns the keeper that was asked; a container has none."""
    config = _config(backend, plan, spec)
    if isinstance(backend, Docker):
        docker.launch(backend, plan, spec, config, descriptors)
        return None
    with _config_file(config) as handle:
        return launch([handle, *descriptors])


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
    if offset != len(report) or len(chunks) < 3 or not len(chunks) % 2:
        return "sandbox_failed", None, {}
    _, reason, code, *files = chunks
    names = [name.decode("utf-8", "replace") for name in files[::2]]
    return reason.decode(), int(code) if code else None, dict(zip(names, files[1::2], strict=True))


def _first_chunk(report: bytes) -> bytes:
    size = struct.unpack_from("!Q", report)[0] if len(report) >= 8 else 0
    return report[8 : 8 + size]
