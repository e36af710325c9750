"""Decide about patterns that sessions observed: dismiss one, or propose it as a sentence for a deployment's persona.

A second decision, on a card, accepts the sentence, which the bot is then told in every conversation (contract autonomy
A8). The server words it from the pattern's kind and summary. It is context only: no gate and no approval reads it.
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.cards.schemas import EXACT_TEXT, Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import ContextState, PrecedentState
from apps.autonomy.locks import lock_context, lock_precedent
from apps.autonomy.models import ContextProposal, Precedent
from apps.autonomy.rules import CONTEXT_TRANSITIONS, PRECEDENT_TRANSITIONS, append_line, context_text
from apps.autonomy.services.proposals import KEEPER_ROLES, warnings_of
from apps.tenants.models import Deployment, User
from apps.tenants.queries import require_role
from apps.tenants.services import change_deployment
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.stored_texts import stored_text
from kernel.unicode_safety import escape_hidden, truncate

CONTEXT = "context_proposal"
ACCEPT = "accept"
_CARD_SECONDS = 14 * 86_400


def dismiss_precedent(precedent_id: UUID, *, user: User) -> Precedent:
    """Dismiss it; if it is observed again, it counts from one. Safe to repeat: the first time is kept."""
    require_role(user, KEEPER_ROLES)
    precedent = lock_precedent(precedent_id)
    if precedent.state != PrecedentState.DISMISSED:
        _move(precedent, PrecedentState.DISMISSED, dismissed_at=now())
        _audit(user, f"precedent:{precedent.pk}", "dismiss")
    return precedent


def promote_precedent(precedent_id: UUID, *, user: User) -> ContextProposal:
    """Propose it as a rule for its task's deployment. Safe to repeat. In a trusted process.

    Raises `SilasError`: forbidden_role 403, precedent_settled 409 for one that was dismissed; `NotFound`.
    """
    require_role(user, KEEPER_ROLES)
    precedent = lock_precedent(precedent_id)
    if precedent.state == PrecedentState.DISMISSED or precedent.quarantined_at is not None:
        raise SilasError(ErrorCode.PRECEDENT_SETTLED, gettext("This was dismissed or quarantined."))
    deployment = Deployment.objects.filter(pk=precedent.task.deployment_id).first()
    if deployment is None:
        raise NotFound()
    rule: ContextProposal
    rule, created = ContextProposal.objects.get_or_create(
        precedent=precedent,
        deployment=deployment,
        defaults={"text": context_text(precedent.pattern_kind, precedent.summary)},
    )
    if precedent.state == PrecedentState.OPEN:
        _move(precedent, PrecedentState.PROMOTED)
    if created:
        _open_card(rule, precedent, deployment)
        _audit(user, f"precedent:{precedent.pk}", "promote")
    return rule


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Apply a decision on its card: an accepted rule is told to the deployment's bot from its next turn on.

    Does nothing for a rule that was purged or quarantined meanwhile.
    """
    if not ContextProposal.objects.filter(pk=card.subject_id, precedent__quarantined_at=None).exists():
        return
    rule = lock_context(card.subject_id)
    if decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == ACCEPT:
        rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
        deployment = rows.get(pk=rule.deployment_id)
        persona = append_line(deployment.persona, rule.text)
        change_deployment(deployment, actor=f"user:{decision.user.pk}", persona=persona)
        _settle(rule, ContextState.ACCEPTED, decision.user, accepted_at=now())
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _settle(rule, ContextState.REJECTED, decision.user, rejected_at=now())


def _settle(rule: ContextProposal, to: ContextState, user: User, **changes: object) -> None:
    if to not in CONTEXT_TRANSITIONS[ContextState(rule.state)]:
        raise SilasError(ErrorCode.PRECEDENT_SETTLED, gettext("This was already decided."))
    ContextProposal.objects.filter(pk=rule.pk).update(state=to, decided_by=user, **changes)
    rule.refresh_from_db()
    _audit(user, f"context:{rule.pk}", to.value)


def _move(precedent: Precedent, to: PrecedentState, **changes: object) -> None:
    if to not in PRECEDENT_TRANSITIONS[PrecedentState(precedent.state)]:
        raise SilasError(ErrorCode.PRECEDENT_SETTLED, gettext("This was already decided."))
    Precedent.objects.filter(pk=precedent.pk).update(state=to, **changes)
    precedent.refresh_from_db()


def _audit(user: User, subject: str, verb: str) -> None:
    record(AuditEvent.PROPOSAL_DECIDED, actor=f"user:{user.pk}", subject=subject, data={"verb": verb})


def _open_card(rule: ContextProposal, precedent: Precedent, deployment: Deployment) -> None:
    card = open_card(
        CardKind.DECISION,
        subject=CardSubject(CONTEXT, rule.pk, deployment.pk, requested_by=f"session:{precedent.session_id}"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": stored_text("Tell the bot this in every conversation?"),
                "options": [{"label": stored_text("Add it"), "value": ACCEPT}],
            },
            reversible=True,
        ),
        text=CardText(
            intent=truncate(
                escape_hidden(stored_text("Tell {chatbot}: {text}").format(chatbot=deployment.title, text=rule.text)),
                300,
            ),
            rationale=stored_text(
                "Seen {count:d} times. The bot is told this; it changes no rule and no approval."
            ).format(count=precedent.count),
            consequence={ACCEPT: stored_text("Add it to what the bot is told"), "decline": stored_text("Don't add it")},
            facts=[*warnings_of(precedent.session_id), Fact(EXACT_TEXT, rule.text)],
        ),
        seconds=_CARD_SECONDS,
    )
    ContextProposal.objects.filter(pk=rule.pk).update(card_id=card.pk)
