"""Start one run, follow it from outside and return its result, always within its limits plus a grace period.

The keeper's overseer enforces the limits; this side bounds the output, holds the backstop clock, and trusts nothing it
reads.
"""

import contextlib
import functools
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from sandbox import docker
from sandbox.backends import Backend, Docker, Kind, Plan, choose_backend, chosen, make_plan
from sandbox.execution import Run
from sandbox.spec import SandboxResult, SandboxSpec, SandboxUnavailable

_TRIAL = """
import os
assert not [line for line in open("/proc/net/dev").readlines()[2:] if line.split(":")[0].strip() != "lo"], "network"
assert not os.access("/usr", os.W_OK), "files"
assert "CapEff:\\t0000000000000000" in open("/proc/self/status").read(), "capabilities"
open("/sandbox/out/ok", "w").write("ok")
"""
_TRIAL_HERE = 'import os\nassert not os.path.exists("/etc/passwd"), "files"\n'


def run(spec: SandboxSpec) -> SandboxResult:
    """Run a command. Raises SandboxUnavailable if nothing can be isolated; other failures are reasons in the result."""
    return run_on(backend(), spec)


def backend() -> Backend:
    """The first backend that passes a trial run. Raises SandboxUnavailable if none does (tried again next time)."""
    return _first_working(*chosen())


@functools.cache
def _first_working(_kind: Kind, _image: str) -> Backend:
    return choose_backend(probe_backend)


def probe_backend(backend: Backend) -> str:
    """ "" if the backend isolates on this machine, else the problem."""
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
    require_supported(backend, spec)
    started = time.monotonic()
    with prepare_plan(spec) as plan:
        run_ = _follow(backend, plan, spec)
        if not run_.has_begun:  # the keeper died before the run began: nothing ran, so try once more
            run_.replace_keeper()
            run_ = _follow(backend, plan, spec)
    return run_.result(time.monotonic() - started)


def require_supported(backend: Backend, spec: SandboxSpec) -> None:
    if isinstance(backend, Docker) and (spec.egress or spec.stdin or spec.secret is not None):
        raise SandboxUnavailable(
            "a container has no way for places, secrets and input: choose SILAS_SANDBOX=subprocess"
        )


@contextlib.contextmanager
def prepare_plan(spec: SandboxSpec) -> Iterator[Plan]:
    """The file system of the run; files written out for it exist as long as the context."""
    with _mounts(spec) as mounts:
        yield make_plan(mounts=mounts, disk_bytes=spec.disk_mb << 20, trust=bool(spec.egress), hidden=spec.hidden)


def _follow(backend: Backend, plan: Plan, spec: SandboxSpec) -> Run:
    run_ = Run(backend, plan, spec)
    try:
        run_.follow()
    finally:
        run_.end()
    return run_


@contextlib.contextmanager
def _mounts(spec: SandboxSpec) -> Iterator[dict[str, str]]:
    """Host directories for the read-only mounts; file contents are written out for the time of the run."""
    with contextlib.ExitStack() as stack:
        mounts = {}
        for name, mount in spec.read_only.items():
            if isinstance(mount, Mapping):
                mounts[name] = stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-"))
                _write_files(Path(mounts[name]), mount)
            else:
                mounts[name] = _require_readable(mount)
        yield mounts


def _write_files(root: Path, files: Mapping[str, bytes]) -> None:
    # A run as root has a user of its own, who could not read what a temporary directory keeps for us alone.
    root.chmod(0o755)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)


def _require_readable(directory: Path) -> str:
    path = os.path.realpath(directory)
    if not os.path.isdir(path):
        raise SandboxUnavailable("a read-only mount is not a directory")
    if os.geteuid() == 0 and os.stat(path).st_mode & 0o005 != 0o005:
        raise SandboxUnavailable("a read-only mount is not readable by the sandbox's own user")
    return path
