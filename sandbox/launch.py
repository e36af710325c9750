"""Launch a run: write the keeper's configuration and pass it to a keeper, or to a container engine."""

import contextlib
import marshal
import os
import secrets
from collections.abc import Iterator, Sequence

from sandbox import backends, docker
from sandbox.backends import Backend, Docker, Plan, search_path
from sandbox.keeper.command import SECRET, SECRET_OUT
from sandbox.keeper.doors import PORT
from sandbox.keeper_client import Keeper, request_run
from sandbox.seccomp import build_filter
from sandbox.spec import SandboxSpec, SandboxUnavailable

# Far above any real account: each run as root gets a user of its own, so that process counts are not shared.
_FIRST_UID, _UIDS = 0x60000000, 0x0FFFFFFF
_PROXY = f"http://127.0.0.1:{PORT}"
_PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


def launch_run(
    backend: Backend, plan: Plan, spec: SandboxSpec, descriptors: list[int], extras: dict[str, int]
) -> Keeper | None:
    """Returns the keeper that was asked; a container has none. `extras` are further descriptors by purpose."""
    config = _config(backend, plan, spec, list(extras))
    if isinstance(backend, Docker):
        docker.launch(backend, plan, spec, config, descriptors)
        return None
    with _config_file(config) as handle:
        return request_run([handle, *descriptors, *extras.values()])


def _config(backend: Backend, plan: Plan, spec: SandboxSpec, extras: Sequence[str]) -> bytes:
    # Without its numbers of system calls a filter would protect nothing, so nothing runs (fail closed).
    filter_ = build_filter()
    if not filter_:
        raise SandboxUnavailable("no system call filter for this architecture")
    return marshal.dumps(
        {
            **backend.building(plan),
            "path": os.environ.get("PATH", backends.PATH),
            "user_namespace": backend.user_namespace,
            "argv": list(spec.argv),
            "env": _environment(backend, spec),
            "extras": list(extras),
            "work": [(name, bytes(content)) for name, content in spec.work.items()],
            # At random: two runs at once hardly ever share a user, and with it the count of its processes.
            "uid": None if backend.user_namespace else _FIRST_UID + secrets.randbelow(_UIDS),
            "filter": filter_,
            "timeout_seconds": float(spec.timeout_seconds),
            "memory_bytes": spec.memory_mb << 20,
            "disk_bytes": plan.disk_bytes,
            "cpu_seconds": spec.cpu_seconds,
            "processes": spec.processes,
            "artifact_files": spec.artifact_files,
            "lasting": spec.lasting,
        }
    )


def _environment(backend: Backend, spec: SandboxSpec) -> dict[str, str]:
    home = {"PATH": search_path(backend), "HOME": "/sandbox/work", "TMPDIR": "/sandbox/tmp", "LANG": "C.UTF-8"}
    proxy = dict.fromkeys(_PROXY_NAMES, _PROXY) if spec.egress else {}
    held = spec.secret is not None
    secret = {"SILAS_SECRET_FD": str(SECRET), "SILAS_SECRET_OUT_FD": str(SECRET_OUT)} if held else {}
    return {**home, **spec.env, **proxy, **secret}


@contextlib.contextmanager
def _config_file(content: bytes) -> Iterator[int]:
    """An unnamed in-memory file: no path to open, no pipe that could fill."""
    descriptor = os.memfd_create("sandbox-config")
    try:
        with open(descriptor, "wb", closefd=False) as handle:
            handle.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
