"""A connection skill's scripts, driven as the platform drives them: one sandbox each, secrets by descriptor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from apps.skills import script_library
from sandbox import SandboxResult, SandboxSpec, open_session, run

SKILLS = Path(__file__).resolve().parents[2] / "skills"
Answer = Callable[[dict[str, Any]], dict[str, Any] | None]


@dataclass
class Driven:
    """One connection of this skill: its settings, the secrets kept for it, and all that its scripts said."""

    skill: str
    settings: Mapping[str, Any]
    places: tuple[str, ...]
    secrets: dict[str, str] = field(default_factory=dict)
    said: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, script: str, **asked: Any) -> dict[str, Any]:
        """What a script that answers once says."""
        result = self.run(f"scripts/{script}.py", {}, stdin=json.dumps(asked).encode() + b"\n")
        assert result.exit_code == 0, result.stderr
        assert result.reason == "", result.stderr
        return dict(json.loads(result.stdout))

    def tool(self, tool: str, **args: Any) -> tuple[dict[str, Any], SandboxResult]:
        """A tool's answer, and the run it came of."""
        call = {"tool": tool, "args": args, "effect_key": f"{tool} {args}", "now": "2026-12-01T09:00:00+00:00"}
        result = self.run(f"scripts/{tool}.py", {"call.json": json.dumps(call).encode()})
        assert result.exit_code == 0, result.stderr
        assert result.reason == "", result.stderr
        return dict(json.loads(result.stdout)), result

    def check(self, tool: str, args: Mapping[str, Any], artifacts: Mapping[str, bytes]) -> str:
        """What the tool's own check prints: in a sandbox without a secret or a network."""
        front = yaml.safe_load((SKILLS / self.skill / "SKILL.md").read_text().split("---")[1])
        (declared,) = (each for each in front["metadata"]["tools"] if each["name"] == tool)
        call = {"calls.json": json.dumps([{"tool": tool, "args": args}]).encode()}
        mounts = {"skill": SKILLS / self.skill, "call": call, "artifacts": artifacts}
        return run(SandboxSpec(declared["verify"][0]["run"].split(), read_only=mounts)).stdout.strip()

    def run(self, script: str, work: Mapping[str, bytes], *, stdin: bytes = b"") -> SandboxResult:
        result = run(replace(self._spec(script, work), stdin=stdin))
        self.secrets |= json.loads(result.secret_out or b"{}")
        return result

    def set_up(
        self, strategy: str, answer: Answer, *, secret: Mapping[str, str] | None = None, **start: Any
    ) -> dict[str, Any]:
        """The last event of the conversation. `answer` is what the person does with a step."""
        with open_session(self._spec("scripts/setup.py", {})) as line:
            start = {"initial_permissions": [], "incremental_scopes": [], "identity_hint": {}, **start}
            line.send_line(json.dumps({"type": "start", "auth_strategy": strategy, **start}))
            while (text := line.read_line(60)) is not None:
                event = json.loads(text)
                self.said.append(event)
                payload = answer(event["step"]) if event["type"] == "setup_step" else None
                if payload is None:
                    continue
                if secret:
                    line.send_secret(json.dumps(secret).encode())
                    self.secrets |= secret
                line.send_line(json.dumps({"type": "step_result", "step_id": event["step_id"], "payload": payload}))
        result = line.close()
        assert result.exit_code == 0, result.stderr
        assert result.reason == "", result.stderr
        self.secrets |= json.loads(result.secret_out or b"{}")
        return self.said[-1]

    def _spec(self, script: str, work: Mapping[str, bytes]) -> SandboxSpec:
        return SandboxSpec(
            ["python3", "-I", "-S", f"/sandbox/skill/{script}"],
            work=work,
            read_only=script_library.mounts(SKILLS / self.skill),
            env={"SILAS_SETTINGS": json.dumps(self.settings)},
            egress=self.places,
            secret=json.dumps(self.secrets).encode(),
            timeout_seconds=90,
        )
