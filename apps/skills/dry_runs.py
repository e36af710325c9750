"""Run a version's scripts, each with the inputs its author declares for a dry run, in a sandbox that has nothing.

There is no network, no credential and no record but the declared ones, and its answers go nowhere: a person reads how
each run ended. A script without declared inputs is not run, and the report says so (spec 10.4 step 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from apps.skills import argv, script_library
from apps.skills.schemas import SkillManifest
from kernel.canonical import canonical_bytes
from kernel.errors import SilasError
from kernel.stored_texts import stored_text
from sandbox import SandboxResult, SandboxSpec, run

MAX_SCRIPTS, SECONDS = 20, 10
_NOW = "2026-01-05T09:00:00+00:00"


@dataclass(frozen=True)
class Trial:
    """How one script's dry run ended. `ok` None: no inputs were declared, so it was not run."""

    script: str
    ok: bool | None
    said: str

    @property
    def line(self) -> str:
        return f"{self.script}: {self.said}"[:300]


def dry_run(manifest: SkillManifest, folder: Path) -> list[Trial]:
    """Run every script that something calls. Blocking; never inside a transaction."""
    declared = _declared(manifest)
    return [_try(script, declared.get(script), manifest, folder) for script in scripts_of(manifest)]


def scripts_of(manifest: SkillManifest) -> list[str]:
    """Return the scripts that a dry run tries, in its order."""
    return list(dict.fromkeys([*(tool.script for tool in manifest.tools if tool.script), *manifest.script_args]))[
        :MAX_SCRIPTS
    ]


def as_report(trials: list[Trial]) -> list[dict[str, object]]:
    return [asdict(trial) for trial in trials]


def all_passed(trials: list[Trial]) -> bool:
    return all(trial.ok is not False for trial in trials)


def _declared(manifest: SkillManifest) -> dict[str, Mapping[str, object]]:
    """Return the inputs by script: `metadata.dry_run`, else the arguments' examples and defaults."""
    given = manifest.metadata.get("dry_run")
    listed = given.items() if isinstance(given, dict) else ()
    inputs: dict[str, Mapping[str, object]] = {
        path: declared for path, declared in listed if isinstance(declared, dict)
    }
    for script, spec in manifest.script_args.items():
        values = {name: arg.default if arg.example is None else arg.example for name, arg in spec.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if script not in inputs and all(name in known or arg.optional for name, arg in spec.items()):
            inputs[script] = {"args": known}
    return inputs


def _try(script: str, inputs: Mapping[str, object] | None, manifest: SkillManifest, folder: Path) -> Trial:
    if inputs is None:
        return Trial(script, None, stored_text("no dry-run input declared, so it was not run"))
    try:
        outcome = run(_spec(script, inputs, manifest, folder))
    except (SilasError, ValueError, TypeError) as error:
        return Trial(script, False, f"could not be run ({str(error)[:160]})")
    return Trial(script, outcome.ok, _describe(outcome))


def _spec(script: str, inputs: Mapping[str, Any], manifest: SkillManifest, folder: Path) -> SandboxSpec:
    args = dict(inputs.get("args") or {})
    tool = next((tool.name for tool in manifest.tools if tool.script == script), Path(script).stem)
    call = {
        "tool": tool,
        "args": args,
        "customer": str(inputs.get("customer") or ""),
        "effect_key": "dry-run",
        "now": _NOW,
        "dry_run": True,
    }
    records = inputs.get("records") or {}
    return SandboxSpec(
        argv.command_line(script, args, manifest.script_args.get(script)),
        work={"call.json": canonical_bytes(call)},
        read_only={
            **script_library.mounts(folder),
            "records": {f"{book}.json": canonical_bytes(list(rows)) for book, rows in records.items()},
        },
        timeout_seconds=SECONDS,
    )


def _describe(outcome: SandboxResult) -> str:
    if outcome.ok:
        return stored_text("ran to its end")
    if outcome.reason:
        return f"was stopped ({outcome.reason})"
    last = (outcome.stderr.strip().splitlines() or [""])[-1]
    return f"ended with an error (exit {outcome.exit_code}{f'; {last}' if last else ''})"[:240]
