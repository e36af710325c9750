"""What is connected and taken in, for the pictures: a skill of another platform that waits for a yes, connections in
each state, an outside tool server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from apps.approvals.models import Card
from apps.approvals.services import answer_card
from apps.connections import pending
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Connection, SetupRun
from apps.connections.schemas import Wanted
from apps.connections.services import recovering, requesting
from apps.skills import rules
from apps.skills.importing import import_skill
from apps.skills.importing.sources import from_folder
from apps.skills.models import SkillVersion
from apps.toolservers import services as toolservers
from apps.toolservers.models import OutsideTool
from apps.toolservers.schemas import Descriptor
from kernel.clock import now
from kernel.tenancy import in_scope, tenant_scope

FOREIGN = Path(__file__).parents[1] / "data" / "claude-style" / "word-count"
CALLS, DIARY, BROKEN = "Call-back calendar", "Assessors' diary", "Calendar of the Leeds office"
PASSWORD = {
    "type": "secure_input",
    "request": {
        "name": "password",
        "label": "Password of the calendar",
        "input_hint": "or an app password",
        "guidance": {"instructions": "Use an app password if the account asks for a second factor."},
    },
}


def furnish(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        import_skill(from_folder(FOREIGN), by=owner)
    _works(tenant, owner)
    _asks(tenant, owner)
    _fails(tenant, owner)
    _outside(tenant)


async def asked(tenant: Any) -> None:
    """Once the web process has tried the skill and its card waits."""
    for _ in range(300):
        if await in_scope(
            tenant.pk, lambda: SkillVersion.objects.filter(name="word-count", card_id__isnull=False).exists()
        ):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("nobody asks for the skill")


def _wanted(tenant: Any, owner: Any, name: str) -> Connection:
    with tenant_scope(tenant):
        skill = SkillVersion.objects.filter(name="caldav").latest("number")
        settings = {"url": "https://calendar.meridian.example/dav", "username": "callbacks"}
        wanted = Wanted(skill=rules.reference(skill.name, skill.digest), name=name, settings=settings)
        return requesting.request(wanted, user=owner, actor=f"user:{owner.pk}")[0]


def _yes(tenant: Any, owner: Any, name: str) -> Connection:
    row = _wanted(tenant, owner, name)
    with tenant_scope(tenant):
        answer_card(Card.objects.get(subject_id=row.pk).pk, user=owner, choice="approve")
    return row


def _works(tenant: Any, owner: Any) -> None:
    row = _yes(tenant, owner, CALLS)
    with tenant_scope(tenant):
        SetupRun.objects.filter(connection=row).update(state=SetupState.DONE, ended_at=now())
        Connection.objects.filter(pk=row.pk).update(
            status=ConnectionStatus.ACTIVE, permissions_granted=["calendar.read"], identity="callbacks"
        )


def _asks(tenant: Any, owner: Any) -> None:
    row = _yes(tenant, owner, DIARY)
    with tenant_scope(tenant):
        setup = SetupRun.objects.get(connection=row, ended_at=None)
        request = {**PASSWORD["request"], "ref_id": str(pending.want(setup, "password").pk)}  # type: ignore[dict-item]
        step = {**PASSWORD, "request": request}
        SetupRun.objects.filter(pk=setup.pk).update(state=SetupState.ASKING, step=step, step_id="password")


def _fails(tenant: Any, owner: Any) -> None:
    row = _yes(tenant, owner, BROKEN)
    said = {"failure_type": "token_revoked", "message": "The password was changed."}
    with tenant_scope(tenant):
        SetupRun.objects.filter(connection=row).update(state=SetupState.FAILED, ended_at=now(), failure=said)
        Connection.objects.filter(pk=row.pk).update(status=ConnectionStatus.FAILED, failure=said)
        row.refresh_from_db()
        recovering.tell(row)


def _outside(tenant: Any) -> None:
    order = {"type": "object", "properties": {"vehicle": {"type": "string"}}, "required": ["vehicle"]}
    found = [
        _tool(
            "vehicle_history",
            "Vehicle history",
            "Finds owners, accidents and mileage of a vehicle by its number.",
            order,
        ),
        _tool("flag_vehicle", "Flag a vehicle", "Marks a vehicle as stolen in the register of all insurers.", order),
    ]
    with tenant_scope(tenant):
        row = toolservers.add_server("vehicles", url="https://vehicles.example.org/mcp", secret="", actor="system")
        toolservers.take_list(row.pk, found)
        assert OutsideTool.objects.filter(server=row).count() == 2


def _tool(name: str, title: str, description: str, schema: dict[str, Any]) -> Descriptor:
    return Descriptor(
        name=name, title=title, description=description, schema=schema, annotations={}, digest=name[0] * 64, problem=""
    )
