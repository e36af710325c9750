"""Which tool isolates a process on this machine: bubblewrap, else `unshare`, else nothing runs (spec 9.1: fail closed).

A backend only turns a plan into a command line (and says what process 1 still has to build); that it really works here
is found by a trial run, once a process. `runner` calls it.
"""

import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kernel.sandbox.spec import SandboxUnavailable

PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
PATH = "/usr/local/bin:/usr/bin:/bin"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
_ETC_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/services")


@dataclass(frozen=True)
class Plan:
    """The file system of one run: read-only (source, target) pairs, links, and the size of the writable part."""

    binds: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    mounts: tuple[tuple[str, str], ...]
    disk_bytes: int
    network: bool


class Backend(Protocol):
    """`user_namespace`: without root the command keeps our user, in a namespace where that user means nothing."""

    @property
    def name(self) -> str: ...

    @property
    def user_namespace(self) -> bool: ...

    def command(self, plan: Plan, inner: list[str]) -> list[str]: ...

    def root(self, plan: Plan) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class Bubblewrap:
    """bwrap builds the whole file system; process 1 finds it ready."""

    user_namespace: bool
    name: str = "bubblewrap"

    def command(self, plan: Plan, inner: list[str]) -> list[str]:
        flags = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        flags += [] if plan.network else ["--unshare-net"]
        flags += ["--unshare-user"] if self.user_namespace else []
        flags += ["--as-pid-1", "--die-with-parent", "--new-session", "--clearenv"]
        for source, target in plan.binds:
            flags += [*_open_parents(target), "--ro-bind", source, target]
        for target, link in plan.links:
            flags += ["--symlink", link, target]
        for device in DEVICES:
            flags += ["--dev-bind", device, device]
        flags += ["--proc", "/proc", "--size", str(plan.disk_bytes), "--tmpfs", "/sandbox"]
        for source, target in plan.mounts:
            flags += ["--ro-bind", source, target]
        return ["bwrap", *flags, "--remount-ro", "/", "--", *inner]

    def root(self, plan: Plan) -> dict[str, Any] | None:
        return None


@dataclass(frozen=True)
class Unshare:
    """util-linux `unshare` gives the namespaces; process 1 builds the file system and leaves the host's."""

    user_namespace: bool
    name: str = "unshare"

    def command(self, plan: Plan, inner: list[str]) -> list[str]:
        flags = ["--mount", "--propagation", "private", "--pid", "--ipc", "--uts", "--fork", "--kill-child"]
        flags += [] if plan.network else ["--net"]
        flags += ["--user", "--map-root-user"] if self.user_namespace else []
        return ["unshare", *flags, "--", *inner]

    def root(self, plan: Plan) -> dict[str, Any] | None:
        parts = {"binds": plan.binds, "links": plan.links, "mounts": plan.mounts, "devices": DEVICES}
        return {**parts, "disk_bytes": plan.disk_bytes}


def candidates() -> Iterator[Backend]:
    """In order of preference. As root a run gets a user id of its own, which is the stronger separation."""
    for tool, kind in (("bwrap", Bubblewrap), ("unshare", Unshare)):
        if shutil.which(tool):
            if os.geteuid() == 0:
                yield kind(user_namespace=False)
            yield kind(user_namespace=True)


@functools.cache
def backend() -> Backend:
    """The first backend that survives a trial run; SandboxUnavailable when none does (asked again next time)."""
    from kernel.sandbox.runner import trial  # the trial is a run, and a run needs a backend

    return choose(trial)


def choose(trial: Callable[[Backend], str]) -> Backend:
    """`trial` returns "" for a backend that isolates, else what went wrong."""
    reasons = []
    for candidate in candidates():
        problem = trial(candidate)
        if not problem:
            return candidate
        reasons.append(f"{candidate.name}: {problem}")
    raise SandboxUnavailable("no way to isolate a process here: " + ("; ".join(reasons) or "neither bwrap nor unshare"))


@functools.cache
def system_binds() -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Read-only host parts every run sees, and the links among them: the system's programs and our Python, no more."""
    prefix = os.path.realpath(sys.base_prefix)
    binds = [("/usr", "/usr")]
    links = []
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            links.append((name, os.readlink(name)))
        elif path.is_dir():
            binds.append((name, name))
    if not prefix.startswith("/usr/") and prefix != "/usr":
        binds.append((prefix, prefix))
    links += [("/tmp", "sandbox/tmp"), ("/dev/fd", "/proc/self/fd")]  # noqa: S108 - the sandbox's own
    return tuple(binds + _existing(_ETC)), tuple(links)


def make_plan(*, mounts: dict[str, str], disk_bytes: int, network: bool) -> Plan:
    binds, links = system_binds()
    extra = _existing(_ETC_NETWORK) if network else []
    targets = tuple((source, f"/sandbox/{name}") for name, source in mounts.items())
    return Plan((*binds, *extra), links, targets, disk_bytes, network)


def search_path() -> str:
    """PATH inside. Our own Python comes first when it does not live in one of the usual places."""
    directory = os.path.dirname(PYTHON)
    return PATH if directory in PATH.split(":") else f"{directory}:{PATH}"


def _open_parents(target: str) -> list[str]:
    """bwrap makes missing parents private to root; the command, which is somebody else, must pass through them."""
    parents = [str(parent) for parent in reversed(Path(target).parents) if str(parent) != "/"]
    return [flag for parent in parents for flag in ("--perms", "0755", "--dir", parent)]


def _existing(paths: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(os.path.realpath(path), path) for path in paths if os.path.exists(path)]
