"""How does a script of a connection skill run? The handler of `run_connection`: with its account's secrets, and nothing
else of the house.

Only the guard calls it, with no transaction open: a secret leaves its seal here and in `ports`, and nowhere else. The
script reads its secrets from an inherited descriptor and hands new ones back over another; its output is looked through
for them (kernel.sandbox), and so is what it says of itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from apps.connections import credentials, protocol
from apps.connections.enums import Script
from apps.connections.models import Connection, SetupRun
from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from apps.skills import queries as skills
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from kernel.canonical import canonical_bytes
from kernel.errors import NotFound, SilasError
from kernel.sandbox import SandboxSpec, run
from kernel.tenancy import tenant_scope

TOOL = "connection:{script}"
ONE_SHOT_SECONDS = 30.0
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class Job:
    """All that one run of a script needs, read at once."""

    connection: Connection
    folder: Path
    egress: tuple[str, ...]
    secret: dict[str, str] = field(repr=False)
    scripts: frozenset[str]

    def spec(self, script: Script, *, seconds: float, asked: dict[str, Any] | None = None) -> SandboxSpec:
        """`asked` is what a script that answers once is asked, on one line of its input (spec 5.10.1)."""
        return SandboxSpec(
            ["python3", "-I", "-S", f"/sandbox/skill/scripts/{script.value}.py"],
            stdin=b"" if asked is None else canonical_bytes(asked) + b"\n",
            read_only={"skill": self.folder},
            env={"SILAS_SETTINGS": json.dumps(self.connection.settings)},
            egress=self.egress,
            secret=json.dumps(self.secret).encode(),
            timeout_seconds=seconds,
        )


Work = Callable[[CallContext], HandlerResult]


def run_connection(ctx: CallContext) -> HandlerResult:
    """`ctx.context["work"]` is what this room's own services want done in the call; nothing else can put it there."""
    work = ctx.context.get("work")
    if not callable(work):
        raise call_failed("tool_missing", "There is no such tool here.")
    result = work(ctx)
    assert isinstance(result, HandlerResult)
    return result


def load_job(tenant_id: UUID, connection_id: UUID, *, setup: SetupRun | None = None) -> Job:
    """Raises `CallFailed` for a connection whose skill is gone, or whose credentials do not open."""
    try:
        with tenant_scope(tenant_id):
            return _job(_connection(connection_id), setup)
    except SilasError as refusal:
        raise call_failed(refusal.code, refusal.message) from refusal


def _job(row: Connection, setup: SetupRun | None) -> Job:
    (version,) = skills.versions([row.skill])
    manifest = SkillManifest.model_validate(version.manifest)
    return Job(
        connection=row,
        folder=skills.folder_of(version),
        egress=egress_places(manifest.requirements.network, row.settings),
        secret=credentials.unseal_all(row.pk, setup=setup),
        scripts=scripts_of(version),
    )


def scripts_of(version: SkillVersion) -> frozenset[str]:
    paths = version.files.filter(path__startswith="scripts/").values_list("path", flat=True)
    return frozenset(path.removeprefix("scripts/").removesuffix(".py") for path in paths)


def run_script(job: Job, script: Script, asked: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """One question, one answer, and the credentials it handed back. Raises `CallFailed`: what went wrong, in a code."""
    if script.value not in job.scripts:
        raise call_failed("script_missing", f"The skill has no {script.value}.py.")
    outcome = _run_in_sandbox(job.spec(script, seconds=ONE_SHOT_SECONDS, asked=asked))
    answer = protocol.last_object(outcome.stdout)
    if answer is None or (outcome.exit_code != 0 and "failure" not in answer):
        raise call_failed("script_failed", f"{script.value}.py did not answer.")
    return answer, new_credentials(outcome.secret_out, canonical_bytes(answer).decode())


def _run_in_sandbox(spec: SandboxSpec) -> Any:
    try:
        outcome = run(spec)
    except SilasError as refusal:
        raise call_failed(refusal.code, refusal.message) from refusal
    if outcome.reason:
        raise call_failed(f"script_{outcome.reason}", "The script was stopped: it went beyond its limits.")
    return outcome


def new_credentials(secret_out: bytes | None, said: str) -> dict[str, str]:
    """The new credentials, if what the script said aloud holds none of them."""
    try:
        values = credentials.parse_handed_back(secret_out)
    except SilasError as refusal:
        raise call_failed(refusal.code, refusal.message) from refusal
    if any(len(value) >= 6 and value in said for value in values.values()):
        raise call_failed("script_secret_leaked", "The script said a credential aloud.")
    return values


def egress_places(network: list[str], settings: dict[str, Any]) -> tuple[str, ...]:
    """What the skill may reach, as `host:port`: a slot is filled from the connection's settings, a host alone means
    https."""
    found = (_egress_place(entry, settings) for entry in network)
    return tuple(dict.fromkeys(place for place in found if place))


def _egress_place(entry: str, settings: dict[str, Any]) -> str:
    given = str(settings.get(entry[1:-1], "")) if entry.startswith("{") else entry
    if "://" in given:
        try:
            parts = urlsplit(given)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)
        except ValueError:
            return ""
        return f"{host}:{port}" if host else ""
    return given if ":" in given or not given else f"{given}:443"


def _connection(connection_id: UUID) -> Connection:
    row: Connection | None = Connection.objects.filter(pk=connection_id).first()
    if row is None:
        raise NotFound("connection")
    return row


def call_failed(code: str, reason: str) -> CallFailed:
    return CallFailed(code, reason, effect_free=True)
