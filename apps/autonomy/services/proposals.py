"""What becomes of something a session would like to be remembered? A person keeps it, in its words or in theirs, or
dismisses or deletes it; until then nobody recalls it.

Always holds: a session only ever proposes (contract autonomy A8, Memory); `kept_at` and `dismissed_at` are the first
time; no clock keeps anything: a card that runs out leaves its proposal waiting. Cards need a web process.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Withdrawal
from apps.approvals.models import Card, Decision
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card, withdraw_about
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
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.errors import SilasError
from kernel.unicode_safety import escape_hidden, truncate

PROPOSAL = "memory_proposal"
KEEPER_ROLES = roles_with(Capability.DECIDE)
KEEP = "keep"
_LONGEST = 8000
_CARD_SECONDS = 14 * 86_400
_QUESTION: dict[str, str] = {
    ProposalKind.MEMORY: "Remember this for the whole company?",
    ProposalKind.KNOWLEDGE: "Add this to the documents that the bot answers from?",
    ProposalKind.PREFERENCE: "Make this the way things are done here?",
}
_UNANSWERED = "What is the answer? Write it below, and the bot can give it from then on."
_WHERE: dict[str, str] = {
    ProposalKind.MEMORY: "Every conversation may be told it.",
    ProposalKind.KNOWLEDGE: "Everybody who may read these documents can be told it.",
    ProposalKind.PREFERENCE: "The bot keeps to it where no rule says otherwise.",
}


def open_proposal_card(proposal_id: UUID) -> Card | None:
    """Put a waiting proposal before a person, once; its whole text stands on the card. In a web process."""
    proposal = lock_proposal(proposal_id)
    if proposal.state != ProposalState.PROPOSED or proposal.card_id or proposal.quarantined_at:
        return None
    card = _open(proposal)
    MemoryProposal.objects.filter(pk=proposal.pk).update(card_id=card.pk)
    return card


def keep(proposal_id: UUID, *, user: Any, content: str | None = None) -> MemoryProposal:
    """Keep it, as it stands or in other words (`content`). Again is fine: the first time stays.

    Raises `SilasError`: forbidden_role 403, proposal_unanswered, proposal_empty, proposal_too_long,
    proposal_quarantined 409, collection_missing 409; `NotFound` for one that was deleted.
    """
    _begin(proposal_id, user)
    return _keep(lock_proposal(proposal_id), user, content)


def dismiss(proposal_id: UUID, *, user: Any) -> MemoryProposal:
    """Nobody wants it; what was kept is forgotten. Again is fine: the first time stays."""
    _begin(proposal_id, user)
    return _dismiss(lock_proposal(proposal_id), user)


def delete(proposal_id: UUID, *, user: Any) -> None:
    """Out of sight and out of memory; every later verb answers `NotFound`."""
    _begin(proposal_id, user)
    proposal = lock_proposal(proposal_id)
    proposal_storage.remove_from_memory(proposal)
    MemoryProposal.objects.filter(pk=proposal.pk).update(deleted_at=now())
    _note(proposal, user, "delete")


def apply_decision(card: Card, decision: Decision) -> None:
    """A person answered its card. What was deleted, or set aside, meanwhile stays so."""
    proposal = MemoryProposal.objects.filter(pk=card.subject_id, deleted_at=None, quarantined_at=None).first()
    if proposal is None:
        return
    proposal = lock_proposal(proposal.pk)
    if decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == KEEP:
        _keep(proposal, decision.user, decision.said.get("freetext"))
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _dismiss(proposal, decision.user)


def _begin(proposal_id: UUID, user: Any) -> None:
    """Cards before rows: whoever answers the card locks in that order too."""
    require_role(user, KEEPER_ROLES)
    withdraw_about(PROPOSAL, proposal_id, reason=Withdrawal.STAFF, actor=f"user:{user.pk}")


def _keep(proposal: MemoryProposal, user: Any, content: str | None) -> MemoryProposal:
    _require_way(proposal, ProposalState.KEPT)
    if proposal.quarantined_at is not None:
        raise SilasError("proposal_quarantined", "This was set aside. Release it before it is kept.", status=409)
    proposal_storage.require_collection(proposal)
    words = _answered(proposal, content) if _is_blank(proposal) else _said(proposal, content)
    edited = words != proposal.content
    if edited:
        proposal_storage.remove_from_memory(proposal)
    _write(proposal, user, state=ProposalState.KEPT, content=words, kept_at=Coalesce(F("kept_at"), now()))
    if not proposal.result_ref:
        proposal_storage.enqueue_storage(proposal)
    _note(proposal, user, "keep", edited=edited)
    return proposal


def _dismiss(proposal: MemoryProposal, user: Any) -> MemoryProposal:
    if proposal.state == ProposalState.DISMISSED:
        return proposal
    _require_way(proposal, ProposalState.DISMISSED)
    proposal_storage.remove_from_memory(proposal)
    _write(proposal, user, state=ProposalState.DISMISSED, dismissed_at=Coalesce(F("dismissed_at"), now()))
    _note(proposal, user, "dismiss")
    return proposal


def _require_way(proposal: MemoryProposal, to: ProposalState) -> None:
    if to not in PROPOSAL_TRANSITIONS[ProposalState(proposal.state)]:
        raise SilasError("proposal_settled", "This was decided already.", status=409)


def _is_blank(proposal: MemoryProposal) -> bool:
    """A question whose answer no document knows: there is nothing in it to keep yet."""
    return proposal.evidence.get("known") is False and proposal.state == ProposalState.PROPOSED


def _said(proposal: MemoryProposal, content: str | None) -> str:
    return proposal.content if content is None else _words(content)


def _answered(proposal: MemoryProposal, content: str | None) -> str:
    """The question as a heading, and a person's answer below it."""
    if not storable_text(content or "", _LONGEST + 1):
        raise SilasError(
            "proposal_unanswered", "Nobody has answered this yet: write the answer to keep it.", status=422
        )
    heading = next((line for line in proposal.content.splitlines() if line.startswith("# ")), "")
    answer = _words(content or "")
    return _words(answer if answer.startswith("#") else f"{heading}\n\n{answer}")


def _words(content: str) -> str:
    words = storable_text(content, _LONGEST + 1)
    if not words:
        raise SilasError("proposal_empty", "Write what should be kept.", status=422)
    if len(words) > _LONGEST:
        raise SilasError("proposal_too_long", f"At most {_LONGEST} characters.", status=422)
    return words


def _write(proposal: MemoryProposal, user: Any, **changes: Any) -> None:
    MemoryProposal.objects.filter(pk=proposal.pk).update(**changes, decided_by=user)
    proposal.refresh_from_db()


def _note(proposal: MemoryProposal, user: Any, verb: str, **data: bool) -> None:
    record(
        AuditEvent.PROPOSAL_DECIDED,
        actor=f"user:{user.pk}",
        subject=f"proposal:{proposal.pk}",
        data={"verb": verb, "kind": proposal.kind, **data},
    )


def warnings_of(session_id: UUID) -> list[Fact]:
    """The line for a card of what a session wrote after it had read instructions to the assistant."""
    told = "What the session read before this contained instructions to the assistant."
    return [Fact("Warning", told)] if guarded.read_instructions(session_id) else []


def _open(proposal: MemoryProposal) -> Card:
    task = proposal.task
    target = f" ({proposal.target})" if proposal.target else ""
    return open_card(
        CardKind.DECISION,
        about=About(PROPOSAL, proposal.pk, task.deployment_id, requested_by=f"session:{proposal.session_id}"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": _UNANSWERED if _is_blank(proposal) else _QUESTION[proposal.kind],
                "options": [{"label": "Keep my answer" if _is_blank(proposal) else "Keep it", "value": KEEP}],
                "allow_freetext": True,
            },
            reversible=True,
        ),
        text=CardText(
            intent=_intent(proposal),
            rationale=f"The task “{task.name}” proposes it. {_WHERE[proposal.kind]} {_own_words(proposal)}",
            consequence={
                KEEP: f"Keep {'my answer' if _is_blank(proposal) else 'it'}{target}",
                "decline": "Do not keep it",
            },
            facts=[*warnings_of(proposal.session_id), Fact("In these words", proposal.content)],
            details={"evidence": proposal.evidence},
        ),
        seconds=_CARD_SECONDS,
    )


def _own_words(proposal: MemoryProposal) -> str:
    return "It has no answer yet." if _is_blank(proposal) else "Your own words replace these."


def _intent(proposal: MemoryProposal) -> str:
    """One readable line, whatever a session wrote."""
    return truncate(escape_hidden(f"{proposal.get_kind_display()}: {proposal.title}"), 300)
