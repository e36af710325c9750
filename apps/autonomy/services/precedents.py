"""What becomes of a pattern that sessions have seen? A person dismisses it, or puts it forward as a sentence that a
deployment's bot is told in every conversation; a second decision accepts that.

Always holds: the sentence is the server's, made of the pattern's kind and wording; it is appended once, however often
it is accepted (`accepted_at`, contract autonomy A8); it is context: no gate and no approval reads it.
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
from apps.autonomy.enums import ContextState, PrecedentState
from apps.autonomy.locks import lock_context, lock_precedent
from apps.autonomy.models import ContextProposal, Precedent
from apps.autonomy.rules import CONTEXT_TRANSITIONS, PRECEDENT_TRANSITIONS, append_line, context_text
from apps.autonomy.services.proposals import KEEPER_ROLES, warnings_of
from apps.tenants.models import Deployment
from apps.tenants.queries import require_role
from apps.tenants.services import change_deployment
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.unicode_safety import escape_hidden, truncate

CONTEXT = "context_proposal"
ACCEPT = "accept"
_CARD_SECONDS = 14 * 86_400


def dismiss_precedent(precedent_id: UUID, *, user: Any) -> Precedent:
    """Nobody needs to see it again; when it comes up anew it counts from one. Again is fine: the first time stays."""
    require_role(user, KEEPER_ROLES)
    precedent = lock_precedent(precedent_id)
    if precedent.state != PrecedentState.DISMISSED:
        _move(precedent, PrecedentState.DISMISSED, dismissed_at=now())
        _note(user, f"precedent:{precedent.pk}", "dismiss")
    return precedent


def promote_precedent(precedent_id: UUID, *, user: Any, deployment_id: UUID | None = None) -> ContextProposal:
    """Put it forward for a deployment (its task's own, unless another is named); again is fine. In a web process.

    Raises `SilasError`: forbidden_role 403, precedent_settled 409 for one that was dismissed; `NotFound`.
    """
    require_role(user, KEEPER_ROLES)
    precedent = lock_precedent(precedent_id)
    if precedent.state == PrecedentState.DISMISSED or precedent.quarantined_at is not None:
        raise SilasError("precedent_settled", "This was dismissed or set aside.", status=409)
    deployment = Deployment.objects.filter(pk=deployment_id or precedent.task.deployment_id).first()
    if deployment is None:
        raise NotFound("deployment")
    rule: ContextProposal
    rule, created = ContextProposal.objects.get_or_create(
        precedent=precedent,
        deployment=deployment,
        defaults={"text": context_text(precedent.pattern_kind, precedent.summary)},
    )
    if precedent.state == PrecedentState.OPEN:
        _move(precedent, PrecedentState.PROMOTED)
    if created:
        _ask(rule, precedent, deployment)
        _note(user, f"precedent:{precedent.pk}", "promote")
    return rule


def accept_context(context_id: UUID, *, user: Any) -> ContextProposal:
    """The deployment's bot is told it from its next turn on. Appended the first time only; again is fine.

    Raises `SilasError`: forbidden_role 403, precedent_settled 409 for what was set aside; `NotFound`.
    """
    _begin(context_id, user)
    return _accept(lock_context(context_id), user)


def reject_context(context_id: UUID, *, user: Any) -> ContextProposal:
    """Not wanted. What was appended before stays: whoever wrote on since is not undone by a button."""
    _begin(context_id, user)
    return _reject(lock_context(context_id), user)


def apply_decision(card: Card, decision: Decision) -> None:
    """A person answered its card; a rule that was purged meanwhile is nobody's any more."""
    if not ContextProposal.objects.filter(pk=card.subject_id, precedent__quarantined_at=None).exists():
        return
    rule = lock_context(card.subject_id)
    if decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == ACCEPT:
        _accept(rule, decision.user)
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _reject(rule, decision.user)


def _begin(context_id: UUID, user: Any) -> None:
    require_role(user, KEEPER_ROLES)
    withdraw_about(CONTEXT, context_id, reason=Withdrawal.STAFF, actor=f"user:{user.pk}")


def _accept(rule: ContextProposal, user: Any) -> ContextProposal:
    if rule.precedent.quarantined_at is not None:
        raise SilasError("precedent_settled", "This was set aside. Release it first.", status=409)
    if rule.state == ContextState.ACCEPTED:
        return rule
    if rule.accepted_at is None:
        rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
        deployment = rows.get(pk=rule.deployment_id)
        change_deployment(deployment, actor=f"user:{user.pk}", persona=append_line(deployment.persona, rule.text))
    _settle(rule, ContextState.ACCEPTED, user, accepted_at=Coalesce(F("accepted_at"), now()))
    return rule


def _reject(rule: ContextProposal, user: Any) -> ContextProposal:
    if rule.state != ContextState.REJECTED:
        _settle(rule, ContextState.REJECTED, user, rejected_at=now())
    return rule


def _settle(rule: ContextProposal, to: ContextState, user: Any, **changes: Any) -> None:
    if to not in CONTEXT_TRANSITIONS[ContextState(rule.state)]:
        raise SilasError("precedent_settled", "This was decided already.", status=409)
    ContextProposal.objects.filter(pk=rule.pk).update(state=to, decided_by=user, **changes)
    rule.refresh_from_db()
    _note(user, f"context:{rule.pk}", to.value)


def _move(precedent: Precedent, to: PrecedentState, **changes: Any) -> None:
    if to not in PRECEDENT_TRANSITIONS[PrecedentState(precedent.state)]:
        raise SilasError("precedent_settled", "This was decided already.", status=409)
    Precedent.objects.filter(pk=precedent.pk).update(state=to, **changes)
    precedent.refresh_from_db()


def _note(user: Any, subject: str, verb: str) -> None:
    record(AuditEvent.PROPOSAL_DECIDED, actor=f"user:{user.pk}", subject=subject, data={"verb": verb})


def _ask(rule: ContextProposal, precedent: Precedent, deployment: Deployment) -> None:
    card = open_card(
        CardKind.DECISION,
        about=About(CONTEXT, rule.pk, deployment.pk, requested_by=f"session:{precedent.session_id}"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {"question": "Tell the bot this in every conversation?", "options": [{"label": "Add it", "value": ACCEPT}]},
            reversible=True,
        ),
        text=CardText(
            intent=truncate(escape_hidden(f"Tell {deployment.title}: {rule.text}"), 300),
            rationale=f"Seen {precedent.count} times. It is told to the bot and changes no rule and no approval.",
            consequence={ACCEPT: "Add it to what the bot is told", "decline": "Do not add it"},
            facts=[*warnings_of(precedent.session_id), Fact("In these words", rule.text)],
        ),
        seconds=_CARD_SECONDS,
    )
    ContextProposal.objects.filter(pk=rule.pk).update(card_id=card.pk)
