"""A company with automations enabled: its owner who opted in, tasks, and workers that run sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from apps.autonomy import queries, receipts, services
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import AutonomousSession, Finding, MemoryProposal, OpenQuestion, Task, Trigger
from apps.autonomy.schemas import Spawned
from apps.autonomy.services.trigger_schedule import schedule_trigger
from apps.bus.deliveries import deliver, lease_next
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.tenants.models import Deployment
from kernel.canonical import sha256_hex
from kernel.tenancy import tenant_scope
from tests.factories.knowledge import ingest_texts
from tests.factories.tenants import make_deployment, make_member
from tests.factories.work import Hands

RETURNS = "# Returns\n\nYou can return a coat within 30 days of delivery. Refunds take 5 working days.\n"
OTHER = "# Shop rules\n\nYou can return a coat within 14 days of delivery. We open at nine.\n"


@dataclass(frozen=True)
class House(Hands):
    """Everything that a test of automations needs, with its common actions."""

    owner: Any
    deployment: Deployment

    def task(self, **fields: Any) -> Task:
        defaults = {
            "name": f"Task {len(self.tasks())}",
            "deployment_id": self.deployment.pk,
            "prompt": "What about returns?",
        }
        return self.do(services.save_task, fields.pop("task_id", None), user=self.owner, **{**defaults, **fields})

    def tasks(self) -> list[Task]:
        return self.do(queries.tasks)

    def trigger(self, task: Task, kind: TriggerKind, *, due: bool = False, **spec: Any) -> Trigger:
        row: Trigger = self.do(services.add_trigger, task.pk, user=self.owner, kind=kind, spec=spec)
        return self.make_due(row) if due else row

    def make_due(self, trigger: Trigger, *, since: timedelta = timedelta(seconds=1)) -> Trigger:
        row: Trigger = self.change(trigger, next_at=Now() - since)
        self.do(schedule_trigger, row)
        return row

    def dispatch(self, trigger: Trigger) -> None:
        """Run what one trigger is due for now, and nothing else."""
        scope_id = f"{Kind.TRIGGER_DUE}:{trigger.pk}"
        lease = self.do(lease_next, Queue.UPKEEP, scope_id=scope_id, consumer="test", seconds=120)
        if lease is not None:
            asyncio.run(deliver(self.tenant.pk, lease, seconds=120))

    def tick(self) -> None:
        """Run what is due, and check paused and running sessions now, as would happen a little later."""
        with tenant_scope(self.tenant):
            later = QueueMessage.objects.filter(kind__in=[Kind.SESSION_ADMISSION, Kind.SESSION_WATCH], state="queued")
            later.update(available_at=Now())
        self.work(Queue.UPKEEP)

    def run_now(self, task: Task, **more: Any) -> AutonomousSession:
        spawned = self.do(services.run_now, task.pk, user=self.owner, **more)
        assert isinstance(spawned, Spawned), spawned
        return self.session(spawned.session_id)

    def through(self, task: Task, **more: Any) -> AutonomousSession:
        """Start a session and run it to its end."""
        session = self.run_now(task, **more)
        self.finish()
        return self.session(session.pk)

    def finish(self) -> None:
        """Tick and work until nothing is left to do now."""
        for _ in range(12):
            self.tick()
            self.work(Queue.EXECUTOR, Queue.UPKEEP)
            with tenant_scope(self.tenant):
                waiting = AutonomousSession.objects.filter(ended_at=None, not_before__lte=Now(), awaits=None)
                if not waiting.exists():
                    return

    def session(self, session_id: UUID) -> AutonomousSession:
        row: AutonomousSession = self.do(queries.session, session_id)
        return row

    def sessions(self, **which: Any) -> list[AutonomousSession]:
        with tenant_scope(self.tenant):
            rows = AutonomousSession.objects.select_related("task", "run").filter(**which)
            return list(rows.order_by("queued_at", "pk"))

    def receipt(self, session: AutonomousSession) -> dict[str, Any]:
        with tenant_scope(self.tenant):
            return receipts.build_receipt(queries.session(session.pk))

    def findings(self) -> list[Finding]:
        with tenant_scope(self.tenant):
            return list(Finding.objects.exclude(phase="ethics_review"))

    def proposals(self) -> list[MemoryProposal]:
        with tenant_scope(self.tenant):
            return list(MemoryProposal.objects.all())

    def ask(self, text: str, *, times: int = 1) -> OpenQuestion:
        with tenant_scope(self.tenant):
            row: OpenQuestion = OpenQuestion.objects.create(
                deployment=self.deployment, text=text, digest=sha256_hex(text), count=times
            )
        return row

    def know(self, folder: Path, **texts: str) -> UUID:
        return ingest_texts(self.tenant, folder, **texts).collection_id

    def do(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with tenant_scope(self.tenant):
            return step(*args, **kwargs)

    def change(self, row: Any, **fields: Any) -> Any:
        """Change a row directly in the database."""
        with tenant_scope(self.tenant):
            type(row).objects.filter(pk=row.pk).update(**fields)
            return type(row).objects.get(pk=row.pk)


def make_house(tenant: Any, **settings: Any) -> House:
    owner = make_member(tenant, "owner")
    house = House(tenant, owner, make_deployment(tenant))
    house.do(services.opt_in, owner)
    house.do(services.put_settings, actor="user:test", enabled=True, retry_base_seconds=1, **settings)
    return house
