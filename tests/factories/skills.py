"""Skill folders and records for tests: a small desk whose one read and one acting tool do what the test says."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from django.db import connections

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.bus.enums import Queue
from apps.skills import installation, services
from apps.skills.append_only import lifecycle_sql
from apps.skills.integrity import bundled_digests
from apps.skills.loader import load_folder, read_folder
from apps.skills.models import SkillVersion
from kernel.tenancy import tenant_scope

SAY_OK = 'print(\'{"say": "ok"}\')'


def read_tool(**fields: Any) -> dict[str, Any]:
    return {
        "name": "look",
        "script": "scripts/look.py",
        "description": "Look something up",
        "records": ["orders"],
        **fields,
    }


def acting_tool(**fields: Any) -> dict[str, Any]:
    return {
        "name": "act",
        "script": "scripts/act.py",
        "description": "Change something",
        "acting": True,
        "intent": "Change {order}",
        "consequence": {"approve": "Change it", "decline": "Nothing changes"},
        "records": ["orders"],
        "writes": ["orders"],
        "args": {"type": "object", "properties": {"order": {"type": "string"}}},
        "verify": [{"name": "done", "run": "python3 /sandbox/skill/checks/done.py", "expect": {"equals": "done"}}],
        **fields,
    }


class _Plain(yaml.SafeDumper):
    """Writes what stands twice twice: front matter has no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def written(meta: dict[str, Any]) -> str:
    return yaml.dump(meta, Dumper=_Plain)


def make_folder(
    root: Path, *, tools: list[dict[str, Any]] | None = None, files: dict[str, str] | None = None, **front: Any
) -> Path:
    """A folder that is in order unless the test breaks it."""
    folder = root / "test-desk"
    chosen = [read_tool(), acting_tool()] if tools is None else tools
    meta = {
        "name": "test-desk",
        "description": "Use when a test wants to look something up or change it.",
        "metadata": {"tools": chosen},
        **front,
    }
    contents = {
        "SKILL.md": f"---\n{written(meta)}---\n\n# Test desk\n\nDo it.\n",
        "scripts/look.py": SAY_OK,
        "scripts/act.py": SAY_OK,
        "checks/done.py": "print('done')",
        **(files or {}),
    }
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    return folder


def make_named(root: Path, front: dict[str, Any], body: str) -> Path:
    """A folder of this name that holds nothing but its instructions."""
    folder = root / str(front["name"])
    folder.mkdir()
    (folder / "SKILL.md").write_text(f"---\n{written(front)}---\n\n{body}\n")
    return folder


# What tests bundle, by name: the database is told the whole list each time.
_bundled: dict[str, list[str]] = {}


def bundle(path: Path) -> None:
    """Let the database take this folder in as if it shipped with the installation."""
    folder = load_folder(path)
    bundle_contents({folder.manifest.name: folder.digest})


def bundle_contents(digests: Mapping[str, str]) -> None:
    for name, digest in digests.items():
        _bundled.setdefault(name, bundled_digests().get(name, []).copy()).append(digest)
    with connections["owner"].cursor() as cursor:
        cursor.execute(lifecycle_sql({**bundled_digests(), **_bundled}))


def install(tenant: Any, folder: Path) -> SkillVersion:
    """As if the folder shipped with the installation."""
    bundle(folder)
    with tenant_scope(tenant):
        return services.install_version(folder)


def save_record(tenant: Any, book: str, key: str, *, subject: str = "C-1", **data: Any) -> None:
    with tenant_scope(tenant):
        services.save_record(book, key, subject=subject, data=data)


def propose(tenant: Any, folder: Path, *, source: str = "folder", **how: Any) -> SkillVersion:
    with tenant_scope(tenant):
        return installation.propose(read_folder(folder), source=source, **how)


def try_proposed(tenant: Any) -> None:
    """Have the workers try whatever waits for it, and ask or settle."""
    from tests.factories.work import Hands  # which needs this module

    Hands(tenant).work(Queue.WORK, Queue.TRUSTED)


def answer(tenant: Any, version: SkillVersion, user: Any, verdict: ApprovalVerdict = ApprovalVerdict.APPROVED) -> None:
    """Have the workers try the version and ask, answer its card, and have them go on."""
    try_proposed(tenant)
    with tenant_scope(tenant):
        version.refresh_from_db()
        assert version.card_id is not None
        decide_card(version.card_id, user=user, verdict=verdict)
    try_proposed(tenant)
    with tenant_scope(tenant):
        version.refresh_from_db()


def plain_folder(root: Path, script: str, *, args: dict[str, Any], name: str = "word-count", **front: Any) -> Path:
    """A skill of the plain Agent Skills form: instructions, one script, what the script takes."""
    folder = root / name
    meta = {
        "name": name,
        "description": "Use when somebody wants to know how many words a text has.",
        "script_args": {"scripts/count.py": args},
        **front,
    }
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{written(meta)}---\n\n# Count\n\nRun `scripts/count.py`.\n")
    (folder / "scripts/count.py").write_text(textwrap.dedent(script))
    return folder
