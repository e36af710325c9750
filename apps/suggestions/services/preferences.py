"""Turn patterns in people's decisions and in ratings into preferences of the bot (spec 6.6).

A pattern becomes one of our own sentences; once a person keeps it, it is confirmed memory that every turn of the
deployment reads, until it expires. An unanswered card keeps nothing; a dismissed sentence is not inferred again; a kept
one can be turned off and is forgotten at once; an expired one is asked about again if people still decide that way. No
preference reaches a gate, an approval or a threshold. In web processes and trusted workers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.cards.schemas import EXACT_TEXT, Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Withdrawal
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import ProposalState
from apps.autonomy.services.bus_messages import enqueue_review
from apps.autonomy.services.proposals import KEEPER_ROLES
from apps.bus.deliveries import Delivery
from apps.memory import memories
from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from apps.memory.recall import deployment_tag
from apps.memory.schemas import Note, Scope
from apps.suggestions import preference_policy
from apps.suggestions.enums import OutcomeKind
from apps.suggestions.models import Outcome, Preference
from apps.suggestions.preference_policy import CONVERSATIONS, DecidedAction, GivenRating, Pattern
from apps.suggestions.queries import initiative_settings
from apps.tenants.models import Deployment, User
from apps.tenants.queries import require_role
from apps.visitors.models import Rating
from kernel.clock import now
from kernel.errors import NotFound
from kernel.stored_texts import stored_text
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id, in_scope, in_thread
from kernel.unicode_safety import truncate
from llm.enums import MemoryType

PREFERENCE, KEEP = "preference", "keep"
# Event of `REVIEW_OWED`; the value is stored in messages.
PREFER = "prefer"
_CARD_SECONDS = 14 * 86_400
_MOST_OUTCOMES = 500
# By whether it was learnt from ratings.
_EVIDENCE = {
    False: stored_text("{hits:d} of the last {count:d} decisions went this way. It changes no rule."),
    True: stored_text("{hits:d} of the last {count:d} customers who were verified rated low. It changes no rule."),
}
# Older decisions and ratings say nothing about what people prefer now.
_OLDEST = timedelta(days=180)


def propose_preferences(deployment_id: UUID) -> list[Preference]:
    """Ask a person about the patterns in the newest decisions and ratings.

    Each sentence is asked about once, and once more after it was kept and has expired.
    """
    settings, moment = initiative_settings(), now()
    if not settings.preferences:
        return []
    deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment_id)
    existing = Preference.objects.filter(deployment=deployment)
    room = settings.most_inferences_a_day - existing.filter(created_at__gt=moment - timedelta(days=1)).count()
    expired = existing.filter(state=ProposalState.KEPT, expires_at__lte=moment)
    known = set(existing.values_list("key", flat=True)) - set(expired.values_list("key", flat=True))
    found = preference_policy.infer_patterns(_decided_actions(deployment, moment), _ratings(deployment, moment))
    patterns = [pattern for pattern in found if pattern.key not in known]
    return [_propose(deployment, pattern) for pattern in patterns[: max(room, 0)]]


def _decided_actions(deployment: Deployment, moment: datetime) -> list[DecidedAction]:
    rows = Outcome.objects.filter(deployment=deployment, decided_at__gt=moment - _OLDEST).order_by("-decided_at")
    return [
        DecidedAction(row.family, OutcomeKind(row.kind), row.shortened, str(row.decided_by_id or ""))
        for row in rows[:_MOST_OUTCOMES]
    ]


def _ratings(deployment: Deployment, moment: datetime) -> list[GivenRating]:
    """Ratings of verified customers: an unknown visitor could rate without limit."""
    rows = Rating.objects.filter(
        deployment=deployment, created_at__gt=moment - _OLDEST, session__is_test=False
    ).exclude(session__last_customer="")
    newest = rows.order_by("-created_at").values_list("session__last_customer", "score")
    return [GivenRating(customer, score) for customer, score in newest[:_MOST_OUTCOMES]]


def keep(preference_id: UUID, *, user: User) -> Preference:
    """Keep it. Raises `SilasError` forbidden_role 403, `NotFound`."""
    _withdraw_card(preference_id, user)
    return _settle(_locked(preference_id), ProposalState.KEPT, user)


def dismiss(preference_id: UUID, *, user: User) -> Preference:
    """Dismiss it or turn it off: it is forgotten at once, and not inferred again. Raises as `keep`."""
    _withdraw_card(preference_id, user)
    return _settle(_locked(preference_id), ProposalState.DISMISSED, user)


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    row = _locked(card.subject_id)
    if decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == KEEP:
        _settle(row, ProposalState.KEPT, decision.user)
    elif decision.verdict == ApprovalVerdict.DECLINED:
        _settle(row, ProposalState.DISMISSED, decision.user)


def _locked(preference_id: UUID) -> Preference:
    row: Preference | None = Preference.objects.select_for_update(no_key=True).filter(pk=preference_id).first()
    if row is None:
        raise NotFound()
    return row


def _withdraw_card(preference_id: UUID, user: User) -> None:
    """Before the row is locked: a decision on the card locks card and row in that order too."""
    require_role(user, KEEPER_ROLES)
    withdraw_cards_about(PREFERENCE, preference_id, reason=Withdrawal.STAFF, actor=user.actor)


def _settle(row: Preference, to: ProposalState, user: User) -> Preference:
    if row.state == to:
        return row
    moment = now()
    end = moment + timedelta(days=initiative_settings().preference_days) if to is ProposalState.KEPT else None
    Preference.objects.filter(pk=row.pk).update(state=to, decided_by=user, decided_at=moment, expires_at=end)
    if to is ProposalState.KEPT:
        enqueue_review(PREFER, row.pk, message_id=f"{PREFER}:{row.pk}:{now().timestamp()}")
    else:
        memories.delete_by_reference(Scope(ScopeKind.TENANT, str(current_tenant_id())), _reference(row.pk))
    data = {"verb": to.value, "kind": PREFERENCE}
    record(AuditEvent.PROPOSAL_DECIDED, actor=user.actor, subject=f"preference:{row.pk}", data=data)
    row.refresh_from_db()
    return row


async def store_kept(delivery: Delivery, preference_id: UUID) -> None:
    """Store a kept preference in memory.

    The embedding is computed outside of every transaction; whether it is still kept is checked where it is written.
    """
    row = await in_scope(delivery.tenant_id, _row, preference_id)
    if row is None:
        return
    (note,) = await in_thread(memories.prepare, [_note(row, delivery.tenant_id)])
    await delivery.commit(_store, preference_id, note)


def _row(preference_id: UUID) -> Preference | None:
    row: Preference | None = Preference.objects.filter(pk=preference_id).first()
    return row


def _store(preference_id: UUID, note: Note) -> None:
    row = _locked(preference_id)
    if row.state == ProposalState.KEPT and row.expires_at == note.valid_until:
        # A preference that had expired may have left a memory that was not deleted yet.
        memories.delete_by_reference(note.scope, note.reference)
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
        tags=(row.key, deployment_tag(row.deployment_id)),
        valid_until=row.expires_at,
    )


def _propose(deployment: Deployment, pattern: Pattern) -> Preference:
    row: Preference = Preference.objects.update_or_create(
        deployment=deployment,
        key=pattern.key,
        defaults={
            "family": pattern.family,
            "content": pattern.content,
            "sample_size": pattern.samples,
            "hits": pattern.hits,
            "people": pattern.people,
            "state": ProposalState.PROPOSED,
            "decided_by": None,
            "decided_at": None,
            "expires_at": None,
            "created_at": now(),
        },
    )[0]
    card = open_card(
        CardKind.DECISION,
        subject=CardSubject(PREFERENCE, row.pk, deployment.pk, requested_by="preferences"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": stored_text("Make this a preference of the bot?"),
                "options": [{"label": stored_text("Add preference"), "value": KEEP}],
            },
            reversible=True,
        ),
        text=CardText(
            intent=truncate(pattern.content, 300),
            rationale=_EVIDENCE[pattern.family == CONVERSATIONS].format(hits=pattern.hits, count=pattern.samples),
            consequence={KEEP: stored_text("The bot follows it from now on"), "decline": stored_text("Don't add it")},
            facts=[
                Fact(EXACT_TEXT, pattern.content),
                Fact(
                    stored_text("Learned from"),
                    text=stored_text("different people: {count:d}").format(count=pattern.people),
                ),
                Fact(
                    stored_text("Ends by itself"),
                    text=stored_text("after {days:d} days").format(days=initiative_settings().preference_days),
                ),
            ],
        ),
        seconds=_CARD_SECONDS,
    )
    Preference.objects.filter(pk=row.pk).update(card_id=card.pk)
    return row
