"""How does a habit of the people here become a preference of the bot? A pattern in their decisions is put into a
sentence of ours; a person keeps it; then it is recalled, as confirmed, like any memory of the company (spec 6.6).

Always holds: nobody's silence keeps one; a sentence that was dismissed is not inferred again; a kept one can be
dismissed and is forgotten at once; none of it reaches a gate, an approval or a threshold. Web processes only.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Withdrawal
from apps.approvals.models import Card, Decision
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card, withdraw_about
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import preference_policy
from apps.autonomy.enums import OutcomeKind, ProposalState
from apps.autonomy.locks import lock_preference
from apps.autonomy.models import Outcome, Preference
from apps.autonomy.preference_policy import DecidedAction, Pattern
from apps.autonomy.services import bus_messages
from apps.autonomy.services.calibration import initiative_settings
from apps.autonomy.services.proposals import KEEPER_ROLES
from apps.bus.deliveries import Delivery
from apps.memory import memories
from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from apps.memory.schemas import Note, Scope
from apps.tenants.models import Deployment
from apps.tenants.queries import require_role
from kernel.clock import now
from kernel.llm.enums import MemoryType
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id, in_scope, in_thread
from kernel.unicode_safety import truncate

PREFERENCE, KEEP = "preference", "keep"
_CARD_SECONDS = 14 * 86_400
_LOOKS_AT = 500


def propose_preferences(deployment_id: UUID) -> list[Preference]:
    """Put what the newest decisions show before a person, each sentence once for ever."""
    settings, moment = initiative_settings(), now()
    if not settings.preferences:
        return []
    deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment_id)
    mine = Preference.objects.filter(deployment=deployment)
    room = settings.most_inferences_a_day - mine.filter(created_at__gt=moment - timedelta(days=1)).count()
    known = set(mine.values_list("key", flat=True))
    rows = Outcome.objects.filter(deployment=deployment).order_by("-decided_at")[:_LOOKS_AT]
    taken = [DecidedAction(row.family, OutcomeKind(row.kind), row.shortened) for row in rows]
    fresh = [each for each in preference_policy.infer_patterns(taken) if each.key not in known]
    return [_propose(deployment, each) for each in fresh[: max(room, 0)]]


def keep(preference_id: UUID, *, user: Any) -> Preference:
    """Keep to it from now on. Raises `SilasError` forbidden_role 403, `NotFound`."""
    _begin(preference_id, user)
    return _settle(lock_preference(preference_id), ProposalState.KEPT, user)


def dismiss(preference_id: UUID, *, user: Any) -> Preference:
    """Nobody wants it; it is forgotten at once, and not inferred again."""
    _begin(preference_id, user)
    return _settle(lock_preference(preference_id), ProposalState.DISMISSED, user)


def apply_decision(card: Card, decision: Decision) -> None:
    row = lock_preference(card.subject_id)
    if decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == KEEP:
        _settle(row, ProposalState.KEPT, decision.user)
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _settle(row, ProposalState.DISMISSED, decision.user)


def _begin(preference_id: UUID, user: Any) -> None:
    """Cards before rows: whoever answers the card locks in that order too."""
    require_role(user, KEEPER_ROLES)
    withdraw_about(PREFERENCE, preference_id, reason=Withdrawal.STAFF, actor=f"user:{user.pk}")


def _settle(row: Preference, to: ProposalState, user: Any) -> Preference:
    if row.state == to:
        return row
    Preference.objects.filter(pk=row.pk).update(state=to, decided_by=user, decided_at=now())
    if to is ProposalState.KEPT:
        bus_messages.enqueue_review(
            bus_messages.PREFER, row.pk, message_id=f"{bus_messages.PREFER}:{row.pk}:{now().timestamp()}"
        )
    else:
        memories.delete_by_reference(Scope(ScopeKind.TENANT, str(current_tenant_id())), _reference(row.pk))
    data = {"verb": to.value, "kind": PREFERENCE}
    record(AuditEvent.PROPOSAL_DECIDED, actor=f"user:{user.pk}", subject=f"preference:{row.pk}", data=data)
    row.refresh_from_db()
    return row


async def store_kept(delivery: Delivery, preference_id: UUID) -> None:
    """Embedding happens outside of every transaction; whether it is still kept is asked where it is written."""
    row = await in_scope(delivery.tenant_id, _row, preference_id)
    if row is None:
        return
    (note,) = await in_thread(memories.prepare, [_note(row, delivery.tenant_id)])
    await delivery.commit(_remember, preference_id, note)


def _row(preference_id: UUID) -> Preference | None:
    found: Preference | None = Preference.objects.filter(pk=preference_id).first()
    return found


def _remember(preference_id: UUID, note: Note) -> None:
    if lock_preference(preference_id).state == ProposalState.KEPT:
        memories.keep([note])


def _reference(preference_id: UUID) -> str:
    return f"preference:{preference_id}"


def _note(row: Preference, tenant_id: UUID) -> Note:
    return Note(
        Scope(ScopeKind.TENANT, str(tenant_id)),
        row.content,
        SourceKind.KEPT_PROPOSAL,
        _reference(row.pk),
        taint=Taint.AUTH,
        tier=Tier.ACTIVE,
        trust=Trust.VERIFIED,
        memory_type=MemoryType.PREFERENCE,
        tags=(row.key,),
    )


def _propose(deployment: Deployment, pattern: Pattern) -> Preference:
    row: Preference = Preference.objects.create(
        deployment=deployment,
        key=pattern.key,
        content=pattern.content,
        sample_size=pattern.samples,
        hits=pattern.hits,
    )
    card = open_card(
        CardKind.DECISION,
        about=About(PREFERENCE, row.pk, deployment.pk, requested_by="preferences"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": "Make this the way things are done here?",
                "options": [{"label": "Keep to it", "value": KEEP}],
            },
            reversible=True,
        ),
        text=CardText(
            intent=truncate(pattern.content, 300),
            rationale=f"{pattern.hits} of the last {pattern.samples} decisions went that way. It changes no rule.",
            consequence={KEEP: "Keep to it from now on", "decline": "Do not keep to it"},
            facts=[Fact("In these words", pattern.content)],
        ),
        seconds=_CARD_SECONDS,
    )
    Preference.objects.filter(pk=row.pk).update(card_id=card.pk)
    return row
