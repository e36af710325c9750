"""False sentences on cards: proposals of several shapes from several origins, each card read as a person reads it.

The oracle is this file's own: it makes the tools, the records and the calls, and writes down by hand what a card about
them has to say. Records are read by SQL, not by the product. A sentence that is missing, or says something else, is
false; so is one that belongs to another shape.
"""

from __future__ import annotations

import html
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from attack.report import Figure

ORIGINS = ("visitor", "goal", "staff")
_NOTE = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}


@dataclass(frozen=True)
class Shape:
    """What is proposed, and what its card must and must not say; `{before}` and the like are filled in from SQL."""

    name: str
    tool: dict[str, Any]
    needs: dict[str, Any]
    notes: tuple[int, ...]
    says: tuple[str, ...]
    never: tuple[str, ...]


_OWN = "By the script of test-desk in a sandbox without network"
_CHECK = "Proved by 1 check outside the agent"
SHAPES = (
    Shape("plan", {}, {}, (40,), (_OWN, "Can be undone Yes", _CHECK, "{before} after: 40"), ("may reach", "1 of 2")),
    Shape(
        "network",
        {},
        {"network": ["api.example.com"]},
        (41,),
        ("in a sandbox that may reach api.example.com:443", "{before} after: 41"),
        ("without network",),
    ),
    Shape(
        "irreversible",
        {"reversible": False},
        {},
        (42,),
        (_OWN, "Can be undone No", "High risk", "{before} after: 42"),
        ("Can be undone Yes", "Medium risk"),
    ),
    Shape(
        "several",
        {},
        {},
        (43, 44),
        ("1 of 2", "2 of 2", "2 actions", "{before} after: 43", "{before} after: 44"),
        ("1 action ",),
    ),
    Shape(
        "disguised",
        {"facts": [{"label": "Runs", "text": "in a vault"}, {"label": "Account", "text": "yours"}, _NOTE]},
        {},
        (45,),
        (_OWN, "Runs (says the tool) in a vault", "Account (says the tool) yours"),
        ("Runs in a vault", "Account yours"),
    ),
)


def run(short: bool) -> list[Figure]:
    """The tools are this file's own and ship with no release, which is another attack's subject."""
    from django.test import override_settings

    with override_settings(BUNDLED_SKILLS_CHECKED=False):
        return _sentences(short)


def _sentences(short: bool) -> list[Figure]:
    rounds = 1 if short else 8
    tried, wrong = Counter[str](), Counter[str]()
    for shape in SHAPES:
        for origin in ORIGINS:
            for _ in range(rounds):
                for false in _judge(shape, origin):
                    tried[f"{shape.name} from {origin}"] += 1
                    wrong[f"{shape.name} from {origin}"] += false
    worst = ", ".join(f"{name}: {count}" for name, count in wrong.items() if count) or "0"
    return [Figure("false sentences on cards", sum(tried.values()), worst, "0 of each kind and origin", worst == "0")]


def _judge(shape: Shape, origin: str) -> Iterator[bool]:
    """For each sentence whether it is false."""
    from tests.factories.skills import acting_tool, install, make_folder, read_tool
    from tests.factories.tenants import make_tenant
    from tests.factories.work import ARGS, NOTE, NOTED, adopt, note

    tenant = make_tenant()
    with tempfile.TemporaryDirectory() as folder:
        tools = [read_tool(), acting_tool(**{"args": ARGS, "facts": [_NOTE], **shape.tool})]
        files = {"scripts/act.py": NOTE, "checks/done.py": NOTED}
        install(tenant, make_folder(Path(folder), tools=tools, files=files, requirements=shape.needs))
    before = str(uuid4().int % 1000 + 100)
    _put_order(tenant, before)
    desk = adopt(tenant)
    asked_by = {"visitor": "visitor", "goal": f"goal:{desk.goal_id}", "staff": f"user:{uuid4()}"}[origin]
    calls = [note(value) for value in shape.notes]
    proposal = desk.propose(*calls, requested_by=asked_by, always_asks=True, gates=())
    text = _read(desk.card(desk.item(proposal.work_item_id))) if proposal.work_item_id else ""
    for sentence in shape.says:
        yield sentence.format(before=_stored(tenant)) not in text
    for sentence in shape.never:
        yield sentence in text


def _put_order(tenant: Any, before: str) -> None:
    from tests.factories.skills import save_record

    save_record(tenant, "orders", "H-1", subject="C-1", total=1, note=int(before))


def _stored(tenant: Any) -> str:
    """The note of the order, from the table itself."""
    with psycopg.connect(os.environ["SILAS_TEST_SUPERUSER_DSN"]) as raw:
        rows = raw.execute("SELECT data->>'note' FROM skills_record WHERE tenant_id = %s", [tenant.pk]).fetchall()
    return str(rows[0][0])


def _read(card: Any) -> str:
    """The card's own markup as a person reads it."""
    from django.template.loader import render_to_string

    from apps.approvals import kinds
    from apps.console import faces
    from kernel.tenancy import tenant_scope

    shown = {"card": card, "kind": kinds.kind_of(card.kind), "body": f"console/cards/{card.kind}.html"}
    with tenant_scope(card.tenant_id):
        markup = render_to_string("console/_card.html", {**shown, "is_open": True, "buttons": faces.buttons_of(card)})
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())
