"""What is connected, taken in and spent, for the pictures: a skill of another platform that waits for approval,
connections in each state, an outside tool server, a month's money."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from apps.connections import pending_secrets
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection, SetupRun
from apps.connections.services import recovery
from apps.guard.enums import Intent, Origin, Period, RunStatus, SpendKind
from apps.guard.models import Budget, GuardedRun, SpendEntry, ToolCall
from apps.skills import rules
from apps.skills.imports import import_skill
from apps.skills.imports.sources import from_folder
from apps.skills.models import SkillVersion
from apps.tenants.models import Deployment
from apps.toolservers import services as toolservers
from apps.toolservers.models import OutsideTool
from apps.toolservers.schemas import Descriptor
from kernel.clock import now
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.connections import make_connection, make_setup

FOREIGN = Path(__file__).parents[1] / "data" / "claude-style" / "word-count"
CALLS, DIARY, BROKEN = "Call-back calendar", "Assessors' diary", "Calendar of the Leeds office"
WAYS = (("openai:gpt-5-mini", "proxy"), ("openai:gpt-5-mini", "executor"), ("anthropic:claude-sonnet-4-5", "planner"))
PASSWORD = {
    "name": "password",
    "label": "Password of the calendar",
    "input_hint": "or an app password",
    "guidance": {"instructions": "Use an app password if the account asks for a second factor."},
}


def furnish(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        import_skill(from_folder(FOREIGN), by=owner)
    _connected(tenant, CALLS, status=ConnectionStatus.ACTIVE, permissions_granted=["calendar.read"])
    _asks(tenant)
    said = {"failure_type": "token_revoked", "message": "The password was changed."}
    broken = _connected(tenant, BROKEN, status=ConnectionStatus.FAILED, failure=said)
    with tenant_scope(tenant):
        recovery.open_failure_card(broken)
    _outside(tenant)
    with tenant_scope(tenant):
        _spent(Deployment.objects.earliest("created_at"))


async def asked(tenant: Any) -> None:
    """Once a worker has tried the skill and its card waits."""
    for _ in range(300):
        if await in_scope(
            tenant.pk, lambda: SkillVersion.objects.filter(name="word-count", card_id__isnull=False).exists()
        ):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("nobody asks for the skill")


def _connected(tenant: Any, name: str, **fields: Any) -> Connection:
    with tenant_scope(tenant):
        skill = SkillVersion.objects.filter(name="caldav").latest("number")
    about = {"skill": rules.reference(skill.name, skill.digest), "skill_name": skill.name, "name": name}
    settings = {"url": "https://calendar.meridian.example/dav", "username": "callbacks"}
    rights = {"permissions_granted": [], "permissions_available": ["calendar.read", "calendar.write"]}
    return make_connection(tenant, **{**about, "settings": settings, **rights, **fields})


def _asks(tenant: Any) -> None:
    setup = make_setup(_connected(tenant, DIARY, status=ConnectionStatus.CONNECTING))
    with tenant_scope(tenant):
        request = {**PASSWORD, "ref_id": str(pending_secrets.request_secret(setup, "password").pk)}
        step = {"type": "secure_input", "request": request}
        SetupRun.objects.filter(pk=setup.pk).update(step=step, step_id="password")


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
        toolservers.store_listing(row.pk, found)
        assert OutsideTool.objects.filter(server=row).count() == 2


def _spent(chatbot: Deployment) -> None:
    """Each day of a month another sum, at two models, for three purposes; today 2.25 dollars."""
    today, call = now().date(), ToolCall.objects.earliest("created_at")
    about = {"call": call, "deployment": chatbot, "kind": SpendKind.SETTLE, "intent": Intent.CONVERSE}
    for back in range(30):
        model, purpose = WAYS[back % len(WAYS)]
        amount = Decimal((back * 37 + 45) % 97) / 20
        SpendEntry.objects.create(
            **about, model=model, purpose=purpose, day=today - timedelta(days=back), amount=amount
        )
    window = {"window_start": today, "spent": Decimal("2.25"), "alerted": 0}
    Budget.objects.update_or_create({**window, "limit_usd": 20}, deployment=None, period=Period.DAY)
    Budget.objects.update_or_create({**window, "limit_usd": 3}, deployment=chatbot, period=Period.DAY)
    goes_on = GuardedRun.objects.filter(origin=Origin.CHAT, status=RunStatus.RUNNING)
    for run, cost in zip(goes_on.order_by("started_at"), ("0.42", "1.21", "0.0042"), strict=False):
        GuardedRun.objects.filter(pk=run.pk).update(cost_total=Decimal(cost))


def _tool(name: str, title: str, description: str, schema: dict[str, Any]) -> Descriptor:
    return Descriptor(
        name=name, title=title, description=description, schema=schema, annotations={}, digest=name[0] * 64, problem=""
    )
