"""Choose what isolates processes on this machine: bubblewrap, else our own namespaces, else nothing runs (spec 9.1).

A backend only turns a plan into the keeper's configuration; a trial run, once a process, proves that it works here.
`runner` makes the trial.
"""

import functools
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sandbox.keeper.config import Building, Root
from sandbox.spec import SandboxUnavailable

PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
PATH = "/usr/local/bin:/usr/bin:/bin"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# The machine's root could write there even without a capability, and these belong to the whole machine.
COVERED = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
# Whom to trust, and nothing private that may lie beside it.
_ETC_TRUST = ("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted/pem")


@dataclass(frozen=True)
class Plan:
    """The file system of one run: read-only (source, target) pairs, links, and the size of the writable part."""

    binds: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    mounts: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]
    disk_bytes: int


class Backend(Protocol):
    """`user_namespace`: without root the command keeps our user, in a namespace where that user means nothing."""

    @property
    def name(self) -> str: ...

    @property
    def user_namespace(self) -> bool: ...

    def building(self, plan: Plan) -> Building:
        """What the keeper needs to build the run's namespaces: `bwrap` its arguments, or `root` the file system."""
        ...


@dataclass(frozen=True)
class Bubblewrap:
    """bwrap makes the namespaces and builds the whole file system; its own reaper is process 1."""

    user_namespace: bool
    name: str = "bubblewrap"

    def building(self, plan: Plan) -> Building:
        return {"bwrap": self.arguments(plan), "root": None}

    def arguments(self, plan: Plan) -> list[str]:
        """All of bwrap's, but for the command."""
        flags = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"]
        flags += ["--unshare-user"] if self.user_namespace else ["--cap-drop", "ALL"]
        # A session of its own, so that it cannot push keystrokes into the terminal that started us (TIOCSTI).
        flags += ["--die-with-parent", "--new-session", "--clearenv"]
        for source, target in plan.binds:
            flags += [*_open_parents(target), "--ro-bind", source, target]
        for target, link in plan.links:
            flags += [*_open_parents(target), "--symlink", link, target]
        for device in DEVICES:
            flags += ["--dev-bind", device, device]
        flags += ["--proc", "/proc"]
        for path in COVERED:
            flags += ["--ro-bind-try", path, path]
        flags += ["--size", str(plan.disk_bytes), "--tmpfs", "/sandbox"]
        for source, target in plan.mounts:
            flags += ["--ro-bind", source, target]
        for target in plan.hidden:
            flags += ["--perms", "0555", "--size", "4096", "--tmpfs", target, "--remount-ro", target]
        # Last: until here the parents of the mounts are still made.
        return [*flags, "--remount-ro", "/"]


@dataclass(frozen=True)
class Unshare:
    """The keeper makes the namespaces itself, with unshare(2), and builds the file system."""

    user_namespace: bool
    name: str = "unshare"

    def building(self, plan: Plan) -> Building:
        root: Root = {
            "binds": plan.binds,
            "links": plan.links,
            "mounts": plan.mounts,
            "devices": DEVICES,
            "hidden": plan.hidden,
            "covered": COVERED,
            "disk_bytes": plan.disk_bytes,
        }
        return {"bwrap": None, "root": root}


@dataclass(frozen=True)
class Docker:
    """An engine on this machine makes namespaces and root from an image; `docker` starts it."""

    image: str
    user_namespace: bool = True
    name: str = "docker"

    def building(self, plan: Plan) -> Building:
        return {"bwrap": None, "root": None}


class Kind(StrEnum):
    SUBPROCESS = "subprocess"
    DOCKER = "docker"


@dataclass(frozen=True)
class Choice:
    """The operator's settings (spec 9.1). `egress_private` lists internal "host:port" places that may be reached."""

    kind: Kind = Kind.SUBPROCESS
    image: str = "python:3.12-slim"
    egress_private: tuple[str, ...] = ()


_choice = Choice()


def configure(choice: Choice) -> None:
    """Set the operator's choice. Called once, when the process starts, before anything runs."""
    global _choice
    _choice = choice


def chosen() -> tuple[Kind, str]:
    """The kind of backend that the operator chose, and the image of its containers."""
    return _choice.kind, _choice.image


def egress_private() -> tuple[str, ...]:
    return _choice.egress_private


def candidates() -> Iterator[Backend]:
    """Backends in order of preference. As root a run gets a user id of its own, the stronger separation."""
    if _choice.kind is Kind.DOCKER:
        yield Docker(_choice.image)
        return
    kinds = (Bubblewrap, Unshare) if shutil.which("bwrap") else (Unshare,)
    for kind in kinds:
        if os.geteuid() == 0:
            yield kind(user_namespace=False)
        yield kind(user_namespace=True)


def choose_backend(trial: Callable[[Backend], str]) -> Backend:
    """`trial` returns "" for a backend that isolates, else what went wrong."""
    reasons = []
    for candidate in candidates():
        problem = trial(candidate)
        if not problem:
            return candidate
        reasons.append(f"{candidate.name}: {problem}")
    raise SandboxUnavailable("no way to isolate a process here: " + "; ".join(reasons))


@functools.cache
def system_binds() -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Read-only host paths every run sees, and their links: the system's programs and our Python, no more."""
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


def make_plan(
    *,
    mounts: dict[str, str],
    disk_bytes: int,
    trust: bool = False,
    hidden: Collection[str] = (),
) -> Plan:
    """`mounts`: host directory by name. `trust` adds the machine's certificate authorities."""
    binds, links = system_binds()
    extra = _existing(_ETC_TRUST) if trust else []
    targets = tuple((source, f"/sandbox/{name}") for name, source in mounts.items())
    there = [path for path in hidden if os.path.isdir(os.path.join(mounts[path.split("/")[0]], *path.split("/")[1:]))]
    return Plan((*binds, *extra), links, targets, tuple(f"/sandbox/{path}" for path in there), disk_bytes)


def search_path(backend: Backend) -> str:
    """PATH inside. Our own Python comes first when it does not live in one of the usual places."""
    directory = os.path.dirname(PYTHON)
    if isinstance(backend, Docker):
        return PATH
    return PATH if directory in PATH.split(":") else f"{directory}:{PATH}"


def _open_parents(target: str) -> list[str]:
    """bwrap makes missing parents private to root; the command has another user and must pass through them."""
    parents = [str(parent) for parent in reversed(Path(target).parents) if str(parent) != "/"]
    return [flag for parent in parents for flag in ("--perms", "0755", "--dir", parent)]


def _existing(paths: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(os.path.realpath(path), path) for path in paths if os.path.exists(path)]
