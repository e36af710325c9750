"""Run the scripts of connection skills. The handler of `run_connection`, which reads knowledge sources too.

Only the guard calls the handler, with no transaction open: secrets are unsealed here and in `permissions`, and nowhere
else. A script gets its account's secrets over an inherited descriptor and hands new ones back over another; its output
is searched for them (sandbox), and so is its answer.
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
from apps.skills import script_library
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from kernel.canonical import canonical_bytes
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from sandbox import SandboxSpec, run

TOOL = "connection:{script}"
ONE_SHOT_SECONDS = 30.0
_PORTS = {"https": 443, "http": 80}
# Shorter values occur in any text by chance.
_SHORTEST_SECRET = 6


@dataclass(frozen=True)
class Job:
    """All that one run of a script needs, read at once. `egress`: the `host:port` places it may reach."""

    connection: Connection
    folder: Path
    egress: tuple[str, ...]
    secret: dict[str, str] = field(repr=False)
    scripts: frozenset[str]

    def spec(self, script: Script, *, seconds: float, request: dict[str, object] | None = None) -> SandboxSpec:
        """Return the sandbox's launch. `request`: the line of input of a script that answers once (spec 5.10.1)."""
        return SandboxSpec(
            ["python3", "-I", "-S", f"/sandbox/skill/scripts/{script.value}.py"],
            stdin=b"" if request is None else canonical_bytes(request) + b"\n",
            read_only=script_library.mounts(self.folder),
            env={"SILAS_SETTINGS": json.dumps(self.connection.settings)},
            egress=self.egress,
            secret=json.dumps(self.secret).encode(),
            timeout_seconds=seconds,
        )


Work = Callable[[CallContext], HandlerResult]


def run_connection(ctx: CallContext) -> HandlerResult:
    """Do the work that our own services put into `ctx.context["work"]`; nothing else can put it there."""
    work = ctx.context.get("work")
    if not callable(work):
        raise call_failed("tool_missing", "There is no such tool here.")
    result = work(ctx)
    assert isinstance(result, HandlerResult)
    return result


def load_job(tenant_id: UUID, connection_id: UUID, *, setup: SetupRun | None = None) -> Job:
    """Read what a script's run needs. Raises `CallFailed` for a connection whose skill is gone, or whose credentials
    cannot be unsealed."""
    try:
        with tenant_scope(tenant_id):
            row: Connection | None = Connection.objects.filter(pk=connection_id).first()
            if row is None:
                raise NotFound()
            (version,) = skills.versions([row.skill])
            manifest = SkillManifest.model_validate(version.manifest)
            return Job(
                connection=row,
                folder=skills.folder_of(version),
                egress=egress_places(manifest.requirements.network, row.settings),
                secret=credentials.unseal_all(row.pk, setup=setup),
                scripts=scripts_of(version),
            )
    except SilasError as error:
        raise call_failed(error.code, error.message) from error


def scripts_of(version: SkillVersion) -> frozenset[str]:
    """Return the names of the version's scripts, without folder and suffix."""
    paths = version.files.filter(path__startswith="scripts/").values_list("path", flat=True)
    return frozenset(path.removeprefix("scripts/").removesuffix(".py") for path in paths)


def run_script(job: Job, script: Script, request: dict[str, Any]) -> tuple[dict[str, object], dict[str, str]]:
    """Run a script that answers once; returns its answer and the credentials that it handed back. Raises `CallFailed`
    with a code."""
    if script.value not in job.scripts:
        raise call_failed("script_missing", f"The skill has no {script.value}.py.")
    try:
        outcome = run(job.spec(script, seconds=ONE_SHOT_SECONDS, request=request))
    except SilasError as error:
        raise call_failed(error.code, error.message) from error
    if outcome.reason:
        raise call_failed(f"script_{outcome.reason}", "The script exceeded its limits and was stopped.")
    answer = protocol.last_object(outcome.stdout)
    if answer is None or (outcome.exit_code != 0 and "failure" not in answer):
        raise call_failed("script_failed", f"{script.value}.py did not answer.")
    return answer, new_credentials(outcome.secret_out, canonical_bytes(answer).decode())


def new_credentials(secret_out: bytes | None, output: str) -> dict[str, str]:
    """Return the credentials that a script handed back, unless its visible output holds one of them."""
    try:
        values = credentials.parse_handed_back(secret_out)
    except SilasError as error:
        raise call_failed(error.code, error.message) from error
    if any(len(value) >= _SHORTEST_SECRET and value in output for value in values.values()):
        raise call_failed("script_secret_leaked", "The script printed a credential.")
    return values


def egress_places(network: list[str], settings: dict[str, object]) -> tuple[str, ...]:
    """Return the places that the skill may reach, as `host:port`. A slot such as `{endpoint}` is filled from the
    connection's settings; a host without a port means https."""
    places = (_egress_place(entry, settings) for entry in network)
    return tuple(dict.fromkeys(place for place in places if place))


def _egress_place(entry: str, settings: dict[str, object]) -> str:
    address = str(settings.get(entry[1:-1], "")) if entry.startswith("{") else entry
    if "://" in address:
        try:
            parts = urlsplit(address)
            host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443)
        except ValueError:
            return ""
        return f"{host}:{port}" if host else ""
    return address if ":" in address or not address else f"{address}:443"


def call_failed(code: str, reason: str) -> CallFailed:
    """Return the failure of a call that changed nothing outside."""
    return CallFailed(code, reason, effect_free=True)
