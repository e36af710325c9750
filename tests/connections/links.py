"""A connection skill for tests, as rows: its scripts do what the test says, in the real sandbox."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from apps.connections.models import Connection, SetupRun
from apps.connections.schemas import NewConnection
from apps.connections.services import requests
from apps.skills import rules
from apps.skills.models import SkillVersion
from apps.skills.services import install_version
from kernel.tenancy import tenant_scope
from tests.factories.skills import bundle

HEAD = """
import json, os, sys

def say(message):
    print(json.dumps(message), flush=True)

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def secrets():
    return json.loads(SECRETS.readline() or "{}")

def hand_over(**values):
    os.write(int(os.environ["SILAS_SECRET_OUT_FD"]), json.dumps(values).encode())

def ask(step_id, **step):
    say({"type": "setup_step", "step_id": step_id, "step": step})
    say({"type": "await_input", "step_id": step_id})
    return hear()

def complete(**payload):
    say({"type": "completion", "connection_payload": payload})

SECRETS = os.fdopen(int(os.environ["SILAS_SECRET_FD"]))
held = secrets()
"""
SETUP = """
start = hear()
wanted = start["initial_permissions"] + start["incremental_scopes"]
hand_over(**{"token": "-".join(["t", "x" * 20])})
complete(permissions_granted=wanted, identity="ana@example.test")
"""
ASKS_SECRET = """
start = hear()
guidance = {"instructions": "Make a key in the settings."}
ask("key", type="secure_input", request={"name": "api_key", "label": "Key", "guidance": guidance})
key = secrets()["api_key"]
complete(permissions_granted=start["initial_permissions"], identity=str(len(key)))
"""
SCRIPTS = {
    "setup": SETUP,
    "probe": 'say({"success": True, "count": 3})',
    "health_check": 'say({"healthy": True, "latency_ms": 5})',
    "refresh_token": 'hand_over(**{"token": "-".join(["renewed", "once"])}); say({"success": True})',
    "recover": 'say({"success": True})',
}


# What a skill says of itself whose one tool uses the account's secret.
WITH_LETTERS: dict[str, Any] = {
    "metadata": {
        "tools": [
            {
                "name": "letters",
                "script": "scripts/letters.py",
                "description": "Count the letters",
                "connection": "test-link",
                "permissions": ["Mail.Read"],
            }
        ]
    }
}
FRONT = {
    "name": "test-link",
    "description": "Use when a test wants an account connected that is none.",
    "type": "connection",
    "auth_strategy": "secure_input",
    "initial_permissions": ["Mail.Read"],
    "available_permissions": ["Mail.Read", "Mail.Send"],
}


def make_skill(tenant: Any, front: Mapping[str, Any] = {}, **scripts: str | None) -> SkillVersion:
    """`setup=None` leaves a script out; `front` overrides the front matter."""
    chosen = {name: code for name, code in {**SCRIPTS, **scripts}.items() if code is not None}
    files = {f"scripts/{name}.py": HEAD + textwrap.dedent(code) for name, code in chosen.items()}
    files["SKILL.md"] = f"---\n{yaml.safe_dump({**FRONT, **front})}---\n\n# Test link\n\nNothing to do.\n"
    with TemporaryDirectory() as root, tenant_scope(tenant):
        folder = Path(root) / "test-link"
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        bundle(folder)
        return install_version(folder)


def link(
    tenant: Any, front: Mapping[str, Any] = {}, settings: Mapping[str, Any] = {}, **scripts: str | None
) -> Connection:
    """Return a proposed connection of that skill, whose card is open."""
    version = make_skill(tenant, front, **scripts)
    with tenant_scope(tenant):
        wanted = NewConnection(
            skill=rules.reference(version.name, version.digest), name="Shop mail", settings=dict(settings)
        )
        return requests.request_connection(wanted, actor="system")[0]


def said_yes(tenant: Any, row: Connection, user: Any, choice: str = "approve") -> SetupRun | None:
    """Answer the newest card about the connection; return the set-up that starts, if any."""
    from apps.approvals.cards.services import answer_card
    from apps.approvals.models import Card
    from apps.approvals.queries import face_hash

    with tenant_scope(tenant):
        card = Card.objects.filter(subject_id=row.pk).order_by("-created_at").first()
        answer_card(card.pk, user=user, choice=choice, face=face_hash(card))
        found: SetupRun | None = SetupRun.objects.filter(connection_id=row.pk, ended_at=None).first()
    return found
