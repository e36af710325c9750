"""The specification and the result of a sandbox run: plain values, validated on creation.

A spec that could smuggle something (a shell string, a path out of the work directory, a loader variable) cannot be
made.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from sandbox.egress import parse_place
from sandbox.leaks import secret_values

Mount = Path | Mapping[str, bytes]

RESERVED_MOUNTS = frozenset({"work", "out", "tmp"})
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_MOUNT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# These steer the loader or the interpreter instead of informing the script.
_FORBIDDEN_ENV = re.compile(r"(LD_|PYTHON|GCONV_|GLIBC_).*|PATH|HOME|TMPDIR|IFS|ENV|BASH_ENV|SILAS_SECRET_(OUT_)?FD")
# What a pipe holds at once.
SECRET_BYTES = 65_536
# How many unread lines a lasting run may have.
UNREAD_LINES = 16
_LIMITS = ("timeout_seconds", "memory_mb", "cpu_seconds", "output_bytes", "disk_mb", "processes", "artifact_files")
_OUTWARD_LIMITS = ("egress_bytes", "egress_connections", "line_bytes")


class SandboxUnavailable(SilasError):
    """This machine cannot isolate a process; the caller must refuse the run, never run it unprotected."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SANDBOX_UNAVAILABLE, message)


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One run. Inside, `work` is the writable current directory `/sandbox/work`, results go to `/sandbox/out`.

    `read_only` mounts appear as `/sandbox/<name>`: a host directory (world-readable if we run as root) or file
    contents; `hidden` directories of them (`skill/checks`) are empty there. Memory is the sum over all processes,
    `output_bytes` the sum of stdout and stderr, `disk_mb` everything written, `artifact_files` how many files may be
    left under `out/`. `stdin` is its standard input; a session sends lines instead.

    `egress`: the "host:port" places that may be reached, only through the harness's proxy. `secret`: a JSON object that
    the command reads once, from the descriptor whose number is in `SILAS_SECRET_FD`; what it writes to the one in
    `SILAS_SECRET_OUT_FD` comes back as `secret_out`. No text of these values may come back in any other way.

    `lasting`: a session of days. Lines that were read are not kept, so `output_bytes` and `UNREAD_LINES` bound the
    unread ones. It may not have a secret, because all output is searched for secrets.
    """

    argv: list[str]
    work: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    read_only: Mapping[str, Mount] = field(default_factory=dict)
    hidden: Collection[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    egress: tuple[str, ...] = ()
    secret: bytes | None = field(default=None, repr=False)
    timeout_seconds: float = 30.0
    memory_mb: int = 512
    cpu_seconds: int = 60
    output_bytes: int = 100_000
    disk_mb: int = 64
    processes: int = 64
    artifact_files: int = 100
    egress_bytes: int = 16 << 20
    egress_connections: int = 64
    line_bytes: int = 65_536
    lasting: bool = False

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise SilasError(ErrorCode.SANDBOX_SPEC_INVALID, problem)


@dataclass(frozen=True, slots=True)
class EgressUsage:
    """Traffic to and from one allowed place in a run."""

    place: str
    connections: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How a run ended. `reason` is "" when the command ended by itself; then `exit_code` tells (negative: a signal).

    Other reasons: `timeout` `output_limit` `memory_limit` `cpu_limit` `disk_limit` `process_limit` `artifact_limit`
    `egress_limit` `line_limit` `secret_leaked` `secret_malformed` `stopped` `sandbox_failed`. After any of
    them the artifacts are empty, and after `secret_leaked` the output is withheld too.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    artifacts: dict[str, bytes] = field(default_factory=dict)
    reason: str = ""
    duration_seconds: float = 0.0
    secret_out: bytes | None = field(default=None, repr=False)
    egress: tuple[EgressUsage, ...] = ()
    egress_refused: int = 0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.reason


def is_safe_relative(name: str) -> bool:
    """True for a path that stays below its directory and has one spelling."""
    path = PurePosixPath(name)
    return bool(name) and "\0" not in name and not path.is_absolute() and ".." not in path.parts and str(path) == name


def _problem(spec: SandboxSpec) -> str:
    parts = (_argv_problem(spec.argv), _file_problem(spec), _env_problem(spec.env), _outward_problem(spec))
    return next((part for part in parts if part), "") or _limit_problem(spec)


def _argv_problem(argv: list[str]) -> str:
    if isinstance(argv, str) or not argv or not argv[0]:
        return "argv must be a non-empty list"
    if any("\0" in part for part in argv):
        return "argv holds a NUL byte"
    # In a shell string a value that a model wrote could become a command of its own.
    if PurePosixPath(argv[0]).name in SHELLS and any(part.startswith("-") and "c" in part for part in argv[1:2]):
        return "shell strings are not run; pass the command as a list"
    return ""


def _file_problem(spec: SandboxSpec) -> str:
    for name in spec.work:
        if not is_safe_relative(name):
            return f"work file {name!r} leaves the work directory"
    for name, mount in spec.read_only.items():
        if not _MOUNT_NAME.fullmatch(name) or name in RESERVED_MOUNTS:
            return f"mount name {name!r} is not allowed"
        if isinstance(mount, Mapping) and not all(is_safe_relative(inner) for inner in mount):
            return f"mount {name!r} holds a path that leaves it"
    for path in spec.hidden:
        if not is_safe_relative(path) or path.partition("/")[0] not in spec.read_only or "/" not in path:
            return f"hidden directory {path!r} is in no mount"
    return ""


def _env_problem(env: Mapping[str, str]) -> str:
    for name, value in env.items():
        if not _ENV_NAME.fullmatch(name) or _FORBIDDEN_ENV.fullmatch(name):
            return f"environment variable {name!r} is not allowed"
        if "\0" in value:
            return f"environment variable {name!r} holds a NUL byte"
    return ""


def _outward_problem(spec: SandboxSpec) -> str:
    for entry in spec.egress:
        if parse_place(entry) is None:
            return f"egress {entry!r} is not host:port"
    if spec.secret is None:
        return ""
    if spec.lasting:
        return "a lasting run takes no secret"
    if len(spec.secret) > SECRET_BYTES:
        return f"a secret has at most {SECRET_BYTES} bytes"
    return "" if secret_values(spec.secret) is not None else "a secret is a JSON object"


def _limit_problem(spec: SandboxSpec) -> str:
    wrong = [name for name in (*_LIMITS, *_OUTWARD_LIMITS) if not getattr(spec, name) > 0]
    return f"limit {wrong[0]} must be positive" if wrong else ""
