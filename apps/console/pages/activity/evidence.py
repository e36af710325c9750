"""The evidence behind an audit entry: its decision and signed approval, independent checks and receipts, with links.

Used on the page of one entry, in the tenant's scope, with a few queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from apps.approvals.models import ApprovalToken, Card
from apps.approvals.queries import approval_for
from apps.audit.models import AuditEntry
from apps.autonomy.models import AutonomousSession
from apps.console.labels import inline_label
from apps.console.names import address_of, parse_reference
from apps.console.pages.review.presenter import decline_reason
from apps.console.templatetags.console import status_in_words
from apps.guard.models import GuardedRun
from apps.sessions.models import ChatSession
from apps.work.models import VerificationRun, WorkItem


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: what it is, what it says, and the page that shows it."""

    title: str
    text: str
    address: str


def evidence_for(entry: AuditEntry, *, owner: bool) -> list[Evidence]:
    """Return the evidence; empty for subjects without a page."""
    kind, subject_id = parse_reference(entry.subject)
    if subject_id is None:
        return []
    if kind == "gate" and owner:
        return [Evidence(_("Gate"), _("Versions and who activated them"), address_of(entry.subject, owner=True))]
    finder = _FINDERS.get(kind)
    return list(finder(subject_id)) if finder else []


def _of_card(card_id: UUID) -> Iterator[Evidence]:
    card = Card.objects.select_related("decision__user").filter(pk=card_id).first()
    if card is not None:
        yield from _decision(card)


def _of_batch(batch_id: UUID) -> Iterator[Evidence]:
    card = Card.objects.filter(subject_kind="batch", subject_id=batch_id).order_by("-created_at").first()
    if card is not None:
        yield from _decision(card)


def _of_token(token_id: UUID) -> Iterator[Evidence]:
    token = ApprovalToken.objects.select_related("decision__card").filter(pk=token_id).first()
    if token is not None:
        yield from _decision(token.decision.card)


def _decision(card: Card) -> Iterator[Evidence]:
    address = reverse("console-card", args=[card.pk])
    yield Evidence(_("Decision"), f"{card.intent} ({inline_label(card.get_status_display())})", address)
    if why := decline_reason(card):
        yield Evidence(_("Reason"), why, address)
    approval = approval_for(card)
    if approval is not None:
        token = approval.token
        text = ngettext(
            "{nonce}, signed by {name} with key {key} on {time}; used {used} of {most} time; binds {plan}",
            "{nonce}, signed by {name} with key {key} on {time}; used {used} of {most} times; binds {plan}",
            token.max_executions,
        ).format(
            nonce=token.nonce[:12],
            name=token.decision.user.display_name,
            key=token.key_id,
            time=date_format(timezone.localtime(token.issued_at), "d M Y, H:i"),
            used=approval.used,
            most=token.max_executions,
            plan=token.plan_hash[:12],
        )
        yield Evidence(_("Approval token"), text, address)


def _of_work(item_id: UUID) -> Iterator[Evidence]:
    item = WorkItem.objects.select_related("parent").filter(pk=item_id).first()
    if item is None:
        return
    card = Card.objects.filter(subject_kind="work_item", subject_id=item.pk).order_by("-created_at").first()
    if card is not None:
        yield from _decision(card)
    address = reverse("console-work-item", args=[item.pk])
    checked = VerificationRun.objects.filter(attempt__work_item=item).order_by("-ran_at").first()
    if checked is None:
        yield Evidence(_("Work"), f"{item.title} ({status_in_words(item)})", address)
        return
    passed = sum(bool(result.get("passed")) for result in checked.results)
    text = ngettext(
        "{passed} of {total} independent check passed",
        "{passed} of {total} independent checks passed",
        len(checked.results),
    ).format(passed=passed, total=len(checked.results))
    yield Evidence(_("Verification"), text, address)


def _of_unattended(session_id: UUID) -> Iterator[Evidence]:
    session = AutonomousSession.objects.select_related("task").filter(pk=session_id).first()
    if session is not None:
        title = _("Receipt") if session.receipt else pgettext("of an automation", "Run")
        text = f"{session.task.name} ({inline_label(session.get_status_display())})"
        yield Evidence(title, text, reverse("console-run", args=[session.pk]))


def _of_conversation(session_id: UUID) -> Iterator[Evidence]:
    session = ChatSession.objects.filter(pk=session_id).first()
    if session is not None:
        yield Evidence(_("Conversation"), session.visitor_name, reverse("console-conversation", args=[session.pk]))


def _of_run(run_id: UUID) -> Iterator[Evidence]:
    """Return the evidence of the conversation, work item or automation run that the guarded run belongs to."""
    owner = GuardedRun.objects.filter(pk=run_id).values_list("owner_ref", flat=True).first()
    if owner is None:
        return
    for find in (_of_conversation, _of_work, _of_unattended):
        yield from find(owner)


_FINDERS: dict[str, Callable[[UUID], Iterator[Evidence]]] = {
    "card": _of_card,
    "batch": _of_batch,
    "token": _of_token,
    "work": _of_work,
    "autonomous": _of_unattended,
    "session": _of_conversation,
    "run": _of_run,
}
