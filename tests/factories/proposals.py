"""Results of sessions for tests: rows as `autonomy` writes them, without running a session."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from apps.approvals.cards.schemas import AnswerDetails
from apps.approvals.cards.services import answer_card
from apps.approvals.models import Card
from apps.approvals.queries import face_hash
from apps.autonomy.enums import ProposalKind, TriggerKind
from apps.autonomy.models import AutonomousSession, Finding, MemoryProposal, Precedent, Task
from apps.bus.enums import Queue
from apps.knowledge.models import Document
from apps.memory.models import MemoryItem
from kernel.canonical import sha256_hex
from kernel.tenancy import tenant_scope
from tests.factories.work import Hands


def make_task(deployment: Any, **fields: Any) -> Task:
    with tenant_scope(deployment.tenant_id):
        name = f"Nightly look {uuid4().hex[:8]}"
        row: Task = Task.objects.create(**{"deployment": deployment, "name": name, "prompt": "Look.", **fields})
        return row


def make_run(task: Task, **fields: Any) -> AutonomousSession:
    """A queued session that has not run."""
    with tenant_scope(task.tenant_id):
        usual = {"trigger_kind": TriggerKind.MANUAL, "occasion": uuid4().hex, "lane": task.session_lane}
        row: AutonomousSession = AutonomousSession.objects.create(**{"task": task, **usual, **fields})
        return row


def _origin(run: AutonomousSession, **fields: Any) -> dict[str, Any]:
    return {"task_id": run.task_id, "session": run, "root": run, **fields}


def make_proposal(run: AutonomousSession, content: str = "Parcels go out on Mondays.", **fields: Any) -> MemoryProposal:
    with tenant_scope(run.tenant_id):
        number = MemoryProposal.objects.filter(root=run).count() + 1
        usual = {"kind": ProposalKind.MEMORY, "title": "Parcels", "memory_type": "fact", "number": number}
        found = _origin(run, content=content, digest=sha256_hex(f"{content}{number}"), **{**usual, **fields})
        row: MemoryProposal = MemoryProposal.objects.create(**found)
        return row


def make_precedent(run: AutonomousSession, summary: str = "Refunds come with a photo", **fields: Any) -> Precedent:
    with tenant_scope(run.tenant_id):
        usual = {"pattern_kind": "habit", "summary": summary, "digest": sha256_hex(summary), "count": 3}
        row: Precedent = Precedent.objects.create(**_origin(run, **{**usual, **fields}))
        return row


def make_finding(run: AutonomousSession, title: str = "Two prices", **fields: Any) -> Finding:
    with tenant_scope(run.tenant_id):
        row: Finding = Finding.objects.create(
            **_origin(run, title=title, phase="drafting", digest=uuid4().hex, **fields)
        )
        return row


def reload(row: Any) -> Any:
    with tenant_scope(row.tenant_id):
        return type(row).objects.get(pk=row.pk)


def run_trusted_messages(tenant: Any) -> None:
    """Handle all messages of the trusted queue."""
    Hands(tenant).work(Queue.TRUSTED)


def card_about(tenant: Any, subject_id: UUID) -> Card:
    with tenant_scope(tenant):
        card: Card = Card.objects.filter(subject_id=subject_id).latest("created_at")
        return card


def press(tenant: Any, subject_id: UUID, user: Any, choice: str, **words: Any) -> None:
    card = card_about(tenant, subject_id)
    with tenant_scope(tenant):
        answer_card(card.pk, user=user, choice=choice, face=face_hash(card), details=AnswerDetails(**words))


def recalled_memories(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return list(MemoryItem.objects.order_by("created_at").values_list("content", flat=True))


def documents(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return [each.versions.latest("number").text for each in Document.objects.order_by("created_at")]
