"""What proves an entry of the log? Its decision and signed approval, the outside checks, the receipt: each by its page.

For the page of one entry, in the tenant's scope; a few queries, none for what it is not about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from django.utils import timezone

from apps.approvals.models import ApprovalToken, Card
from apps.approvals.queries import approval_for
from apps.audit.models import AuditEntry
from apps.autonomy.models import AutonomousSession
from apps.console.names import address_of, parted
from apps.guard.models import GuardedRun
from apps.sessions.models import ChatSession
from apps.work.models import VerificationRun, WorkItem


@dataclass(frozen=True)
class Proof:
    """`title`: what kind of proof; `text`: what it says; `address`: where it can be seen."""

    title: str
    text: str
    address: str


def proofs_of(entry: AuditEntry, *, owner: bool) -> list[Proof]:
    """Nothing for entries about what has no page."""
    kind, given = parted(entry.subject)
    if given is None:
        return []
    if kind == "gate" and owner:
        return [Proof("Gate", "Its versions, and who put them in force", address_of(entry.subject, owner=True))]
    found = _FINDERS.get(kind)
    return list(found(given)) if found else []


def _of_card(card_id: UUID) -> Iterator[Proof]:
    card = Card.objects.select_related("decision__user").filter(pk=card_id).first()
    if card is not None:
        yield from _decision(card)


def _of_batch(batch_id: UUID) -> Iterator[Proof]:
    card = Card.objects.filter(subject_kind="batch", subject_id=batch_id).order_by("-created_at").first()
    if card is not None:
        yield from _decision(card)


def _of_token(token_id: UUID) -> Iterator[Proof]:
    token = ApprovalToken.objects.select_related("decision__card").filter(pk=token_id).first()
    if token is not None:
        yield from _decision(token.decision.card)


def _decision(card: Card) -> Iterator[Proof]:
    address = reverse("console-card", args=[card.pk])
    yield Proof("Decision", f"{card.intent} ({str(card.get_status_display()).lower()})", address)
    yes = approval_for(card)
    if yes is not None:
        token = yes.token
        signed = f"{timezone.localtime(token.issued_at):%d %b %Y, %H:%M}"
        text = f"{token.nonce[:12]}, signed by {token.decision.user.display_name} with key {token.key_id} on {signed}"
        used = f"used {yes.used} of {token.max_executions} time{'' if token.max_executions == 1 else 's'}"
        yield Proof("Approval token", f"{text}; {used}; binds {token.plan_hash[:12]}", address)


def _of_work(item_id: UUID) -> Iterator[Proof]:
    item = WorkItem.objects.filter(pk=item_id).first()
    if item is None:
        return
    asked = Card.objects.filter(subject_kind="work_item", subject_id=item.pk).order_by("-created_at").first()
    if asked is not None:
        yield from _decision(asked)
    address = reverse("console-work-item", args=[item.pk])
    checked = VerificationRun.objects.filter(attempt__work_item=item).order_by("-ran_at").first()
    if checked is None:
        yield Proof("Work", f"{item.title} ({str(item.get_status_display()).lower()})", address)
        return
    passed = sum(bool(each.get("passed")) for each in checked.results)
    of = f"{len(checked.results)} check{'' if len(checked.results) == 1 else 's'}"
    yield Proof("Verification", f"{passed} of {of} outside the agent passed", address)


def _of_unattended(session_id: UUID) -> Iterator[Proof]:
    session = AutonomousSession.objects.select_related("task").filter(pk=session_id).first()
    if session is not None:
        title = "Receipt" if session.receipt else "Run"
        text = f"{session.task.name} ({str(session.get_status_display()).lower()})"
        yield Proof(title, text, reverse("console-run", args=[session.pk]))


def _of_conversation(session_id: UUID) -> Iterator[Proof]:
    session = ChatSession.objects.filter(pk=session_id).first()
    if session is not None:
        yield Proof("Conversation", session.visitor_name, reverse("console-conversation", args=[session.pk]))


def _of_run(run_id: UUID) -> Iterator[Proof]:
    """A guarded run is proved by whatever it was opened for."""
    owner = GuardedRun.objects.filter(pk=run_id).values_list("owner_ref", flat=True).first()
    for find in (_of_conversation, _of_work, _of_unattended) if owner else ():
        yield from find(owner)


_FINDERS: dict[str, Callable[[UUID], Iterator[Proof]]] = {
    "card": _of_card,
    "batch": _of_batch,
    "token": _of_token,
    "work": _of_work,
    "autonomous": _of_unattended,
    "session": _of_conversation,
    "run": _of_run,
}
