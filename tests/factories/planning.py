"""Work that never passes its check, a planner that answers as a test wants, and the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.audit.models import AuditEntry
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.tenants.models import Deployment
from apps.work import signals
from apps.work.models import Course, WorkItem
from kernel.tenancy import tenant_scope
from tests.factories.work import NOTE, Desk, make_desk, plan
from tests.fakes.openai_server import Reply, final

MODEL = "openai-chat:gpt-4o-mini"
NEVER = "print('never')"
Answer = Callable[[dict[str, Any]], Reply]


def advice(text: str = "Do it again, slowly.") -> Reply:
    return final({"message": text, "plan_action": None})


def other(*calls: Any, text: str = "Another way.") -> Reply:
    action = {"action": "revise", "plan_markdown": plan(*calls)}
    return final({"message": text, "plan_action": action})


def failing(tenant: Any, folder: Path, *, planner: str = MODEL, check: str = NEVER, script: str = NOTE) -> Desk:
    """A desk whose work never passes its check, with a fake planner."""
    desk = make_desk(tenant, folder, script=script, check=check)
    with tenant_scope(tenant):
        Deployment.objects.filter(pk=desk.deployment.pk).update(
            model_names={"proxy": "builtin:grounded", "planner": planner, "executor": "builtin:grounded"},
            environment_keys=True,
        )
        desk.deployment.refresh_from_db()
    return desk


def trusted(desk: Desk) -> None:
    """Let the trusted worker carry out what is queued for it."""
    desk.work(Queue.TRUSTED)


def course(desk: Desk, item: WorkItem) -> Course:
    with tenant_scope(desk.tenant):
        found: Course = Course.objects.get(work_item=item)
        return found


def messages(desk: Desk, kind: str) -> list[QueueMessage]:
    with tenant_scope(desk.tenant):
        return list(QueueMessage.objects.filter(kind=kind).order_by("position"))


def outcomes(desk: Desk, event: str) -> list[str]:
    with tenant_scope(desk.tenant):
        return [json.loads(entry.data)["outcome"] for entry in AuditEntry.objects.filter(event=event).order_by("seq")]


def body_of(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"])


def paused(desk: Desk, approver: Any) -> WorkItem:
    """An item that waits for the planner's advice: three attempts have failed."""
    item = desk.approved(approver)
    desk.work(Queue.EXECUTOR)
    return desk.item(item.pk)


def exhausted(desk: Desk, approver: Any) -> WorkItem:
    item = desk.approved(approver)
    desk.work()
    return desk.item(item.pk)


def replies(*, replan: Reply) -> Callable[[dict[str, Any]], Reply]:
    """Advice when advice is asked for, `replan` when another plan is."""

    def answer(request: dict[str, Any]) -> Reply:
        return replan if "failed for good" in body_of(request) else advice()

    return answer


def told_by(desk: Desk, happens: Callable[[], Any]) -> list[str]:
    told: list[str] = []

    def hear(item: WorkItem, status: str, progress: signals.Progress) -> None:
        told.append(str(progress.text))

    signals.work_changed.connect(hear)
    try:
        happens()
    finally:
        signals.work_changed.disconnect(hear)
    return told
