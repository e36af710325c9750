"""Decide about what sessions propose to remember: keep it, as written or edited, dismiss it, or delete it.

A session only proposes, and nothing is recalled before a person keeps it (contract autonomy A8, Memory). `kept_at` and
`dismissed_at` are the first time. A card that expires decides nothing: its proposal stays open. Cards are opened in
trusted workers.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.cards.schemas import EXACT_TEXT, Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import ProposalKind, ProposalState
from apps.autonomy.locks import lock_proposal
from apps.autonomy.models import MemoryProposal
from apps.autonomy.rules import PROPOSAL_TRANSITIONS
from apps.autonomy.schemas import storable_text
from apps.autonomy.services import proposal_storage
from apps.guard import queries as guarded
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, in_english
from kernel.stored_texts import stored_text
from kernel.unicode_safety import escape_hidden, truncate

PROPOSAL = "memory_proposal"
KEEPER_ROLES = roles_with(Capability.DECIDE)
KEEP = "keep"
_LONGEST = 8000
_CARD_SECONDS = 14 * 86_400
_QUESTION: dict[str, str] = {
    ProposalKind.MEMORY: stored_text("Save this to the company's memory?"),
    ProposalKind.KNOWLEDGE: stored_text("Add this to the documents that the bot answers from?"),
    ProposalKind.PREFERENCE: stored_text("Make this a preference of the bot?"),
}
_UNANSWERED = stored_text("What is the answer? Write it below, and the bot will use it from then on.")
_EFFECT: dict[str, str] = {
    ProposalKind.MEMORY: stored_text("The bot can use it in every conversation."),
    ProposalKind.KNOWLEDGE: stored_text("The bot can use it for everyone who may read these documents."),
    ProposalKind.PREFERENCE: stored_text("The bot follows it where no rule says otherwise."),
}


def open_proposal_card(proposal_id: UUID) -> Card | None:
    """Open the card of an undecided proposal, once. The card shows the whole text. In a trusted worker."""
    proposal = lock_proposal(proposal_id)
    if proposal.state != ProposalState.PROPOSED or proposal.card_id or proposal.quarantined_at:
        return None
    card = _open_card(proposal)
    MemoryProposal.objects.filter(pk=proposal.pk).update(card_id=card.pk)
    return card


def keep(proposal_id: UUID, *, user: User, content: str | None = None) -> MemoryProposal:
    """Keep it, as written or edited (`content`). Safe to repeat: the first time is kept.

    Raises `SilasError`: forbidden_role 403, proposal_unanswered, proposal_empty, proposal_too_long,
    proposal_quarantined 409, collection_missing 409; `NotFound` for one that was deleted.
    """
    _withdraw_card(proposal_id, user)
    return _keep(lock_proposal(proposal_id), user, content)


def dismiss(proposal_id: UUID, *, user: User) -> MemoryProposal:
    """Dismiss it; what was kept is forgotten. Safe to repeat: the first time is kept."""
    _withdraw_card(proposal_id, user)
    return _dismiss(lock_proposal(proposal_id), user)


def delete(proposal_id: UUID, *, user: User) -> None:
    """Delete it and forget what was kept; every later call raises `NotFound`."""
    _withdraw_card(proposal_id, user)
    proposal = lock_proposal(proposal_id)
    proposal_storage.remove_from_memory(proposal)
    MemoryProposal.objects.filter(pk=proposal.pk).update(deleted_at=now())
    _audit(proposal, user, "delete")


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Apply a decision on its card. Does nothing for a proposal that was deleted or quarantined meanwhile."""
    proposal = MemoryProposal.objects.filter(pk=card.subject_id, deleted_at=None, quarantined_at=None).first()
    if proposal is None:
        return
    proposal = lock_proposal(proposal.pk)
    if decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == KEEP:
        _keep(proposal, decision.user, decision.said.get("freetext"))
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _dismiss(proposal, decision.user)


def _withdraw_card(proposal_id: UUID, user: User) -> None:
    """Before the row is locked: a decision on the card locks card and row in that order too."""
    require_role(user, KEEPER_ROLES)
    withdraw_cards_about(PROPOSAL, proposal_id, reason=Withdrawal.STAFF, actor=user.actor)


def _keep(proposal: MemoryProposal, user: User, content: str | None) -> MemoryProposal:
    _require_transition(proposal, ProposalState.KEPT)
    if proposal.quarantined_at is not None:
        raise SilasError(ErrorCode.PROPOSAL_QUARANTINED)
    proposal_storage.require_collection(proposal)
    if _is_blank(proposal):
        text = _answer(proposal, content)
    else:
        text = proposal.content if content is None else _validated(content)
    edited = text != proposal.content
    if edited:
        # What was stored before has the old text.
        proposal_storage.remove_from_memory(proposal)
    _write(proposal, user, state=ProposalState.KEPT, content=text, kept_at=Coalesce(F("kept_at"), now()))
    if not proposal.result_ref:
        proposal_storage.enqueue_storage(proposal)
    _audit(proposal, user, "keep", edited=edited)
    return proposal


def _dismiss(proposal: MemoryProposal, user: User) -> MemoryProposal:
    if proposal.state == ProposalState.DISMISSED:
        return proposal
    _require_transition(proposal, ProposalState.DISMISSED)
    proposal_storage.remove_from_memory(proposal)
    _write(proposal, user, state=ProposalState.DISMISSED, dismissed_at=Coalesce(F("dismissed_at"), now()))
    _audit(proposal, user, "dismiss")
    return proposal


def _require_transition(proposal: MemoryProposal, to: ProposalState) -> None:
    if to not in PROPOSAL_TRANSITIONS[ProposalState(proposal.state)]:
        raise SilasError(ErrorCode.PROPOSAL_SETTLED)


def _is_blank(proposal: MemoryProposal) -> bool:
    """Whether it is a question that no document answers: it has no content to keep yet."""
    return proposal.evidence.get("known") is False and proposal.state == ProposalState.PROPOSED


def _answer(proposal: MemoryProposal, content: str | None) -> str:
    """The question as a heading with the person's answer below."""
    if not storable_text(content or "", _LONGEST + 1):
        raise SilasError(ErrorCode.PROPOSAL_UNANSWERED)
    heading = next((line for line in proposal.content.splitlines() if line.startswith("# ")), "")
    answer = _validated(content or "")
    return _validated(answer if answer.startswith("#") else f"{heading}\n\n{answer}")


def _validated(content: str) -> str:
    text = storable_text(content, _LONGEST + 1)
    if not text:
        raise SilasError(ErrorCode.PROPOSAL_EMPTY)
    if len(text) > _LONGEST:
        raise SilasError(
            ErrorCode.PROPOSAL_TOO_LONG, gettext("Write at most {longest} characters.").format(longest=_LONGEST)
        )
    return text


def _write(proposal: MemoryProposal, user: User, **changes: object) -> None:
    MemoryProposal.objects.filter(pk=proposal.pk).update(**changes, decided_by=user)
    proposal.refresh_from_db()


def _audit(proposal: MemoryProposal, user: User, verb: str, **data: bool) -> None:
    record(
        AuditEvent.PROPOSAL_DECIDED,
        actor=user.actor,
        subject=f"proposal:{proposal.pk}",
        data={"verb": verb, "kind": proposal.kind, **data},
    )


def warnings_of(session_id: UUID) -> list[Fact]:
    """The warning for a card when the session had read instructions to the assistant before it wrote."""
    warning = stored_text("What the session read before this contained instructions to the assistant.")
    return [Fact(stored_text("Warning"), warning)] if guarded.has_content_marks(session_id) else []


def _label_of(proposal: MemoryProposal) -> str:
    label = stored_text("Publish the answer") if _is_blank(proposal) else stored_text(stored_text("Save it"))
    if not proposal.target:
        return label
    return stored_text("{label} ({target})").format(label=label, target=proposal.target)


def _open_card(proposal: MemoryProposal) -> Card:
    task = proposal.task
    note = (
        stored_text("It has no answer yet.")
        if _is_blank(proposal)
        else stored_text("You can edit the text before you keep it.")
    )
    return open_card(
        CardKind.DECISION,
        subject=CardSubject(PROPOSAL, proposal.pk, task.deployment_id, requested_by=f"session:{proposal.session_id}"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": _UNANSWERED if _is_blank(proposal) else _QUESTION[proposal.kind],
                "options": [
                    {
                        "label": stored_text("Publish answer") if _is_blank(proposal) else stored_text("Save it"),
                        "value": KEEP,
                    }
                ],
                "allow_freetext": True,
            },
            reversible=True,
        ),
        text=CardText(
            intent=truncate(escape_hidden(f"{in_english(ProposalKind(proposal.kind).label)}: {proposal.title}"), 300),
            rationale="{} {} {}".format(
                stored_text("The task “{task}” proposes it.").format(task=task.name), _EFFECT[proposal.kind], note
            ),
            consequence={
                KEEP: _label_of(proposal),
                "decline": stored_text("Dismiss it"),
            },
            facts=[*warnings_of(proposal.session_id), Fact(EXACT_TEXT, proposal.content)],
            details={"evidence": proposal.evidence},
        ),
        seconds=_CARD_SECONDS,
    )
