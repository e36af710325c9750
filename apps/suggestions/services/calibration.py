"""Record how people decide about what the bot proposes, and propose changed approval thresholds (spec 5.1.6, 5.9).

Outcomes are recorded with the decision and evaluated every quarter of an hour; only an approval changes a threshold. An
action has one outcome, the most negative decision about it. A proposal holds its evidence and the exact change; the
work room spends the approval for exactly that change and refuses it if thresholds have moved since. An unanswered
proposal changes nothing. All of it runs in web processes and trusted workers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Risk
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.tokens.payloads import autonomy_payload
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.suggestions import calibration_policy
from apps.suggestions.calibration_policy import RANK, CalibrationConfig, DecidedAction, Evidence
from apps.suggestions.enums import FreedomState, OutcomeKind
from apps.suggestions.models import FreedomProposal, InitiativeSettings, Outcome, Suggestion
from apps.suggestions.services.suggestion_schedule import schedule_suggestions
from apps.tenants.models import Deployment, User
from apps.work.confidence import Thresholds
from apps.work.enums import Direction
from apps.work.models import Batch, BatchItem, ThresholdChange, WorkItem
from apps.work.services import thresholds
from apps.work.services.undo import ACTION as UNDO_ACTION
from kernel.clock import now
from kernel.stored_texts import stored_text
from kernel.unicode_safety import truncate

PROPOSAL = "freedom_proposal"
TIGHTEN_NOW = "tighten_now"
_CARD_SECONDS = 7 * 86_400
# A draft that lost a third of its text was too long.
_SHORTENED = 2 / 3
_SUGGESTION_FAMILY = "suggestion:"


def initiative_settings() -> InitiativeSettings:
    """The company's settings, or unsaved defaults."""
    row: InitiativeSettings | None = InitiativeSettings.objects.first()
    return row or InitiativeSettings()


def record_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Record a decision about a batch, a draft or an undo. In the decision's transaction."""
    kind = _kind_of(card, decision)
    if kind is None:
        return
    if card.kind == CardKind.POST_EXECUTION:
        for subject_id, family in _undone(card):
            _record(card, subject_id, family, kind)
    else:
        _record(card, card.subject_id, _family_of(card), kind)


def record_edit(old: Card, new: Card) -> None:
    """Record that a person removed items from a batch, or edited a draft."""
    if old.kind in (CardKind.BATCH_REVIEW, CardKind.DRAFT_REVIEW):
        shortened = len(str(new.body.get("draft", ""))) < _SHORTENED * len(str(old.body.get("draft", "")))
        _record(old, old.subject_id, _family_of(old), OutcomeKind.EDIT_SELECTION, shortened=shortened)


def record_dismissal(suggestion: Suggestion) -> None:
    """Record a dismissed suggestion: a signal for preferences (spec 6.6), not a correction of an action."""
    Outcome.objects.create(
        deployment_id=suggestion.deployment_id,
        family=f"{_SUGGESTION_FAMILY}{suggestion.action}",
        subject_id=suggestion.pk,
        kind=OutcomeKind.DISMISSED,
        risk=Risk.LOW,
    )
    schedule_suggestions()


def _kind_of(card: Card, decision: Decision) -> OutcomeKind | None:
    approved = decision.verdict == ApprovalVerdict.APPROVED
    if card.kind == CardKind.POST_EXECUTION:
        return OutcomeKind.UNDO if approved else None
    if card.kind not in (CardKind.BATCH_REVIEW, CardKind.DRAFT_REVIEW):
        return None
    if decision.verdict == ApprovalVerdict.DECLINED:
        return OutcomeKind.DECLINED
    return OutcomeKind.APPROVED if approved else OutcomeKind.EDIT_SELECTION


def _family_of(card: Card) -> str:
    """The tool that the card's action calls; "" for one that belongs to no family."""
    if card.subject_kind == "batch":
        action = Batch.objects.filter(pk=card.subject_id).values_list("action", flat=True).first()
        return "" if action == UNDO_ACTION else action or ""
    item: WorkItem | None = WorkItem.objects.filter(pk=card.subject_id).first()
    return item.spec.calls[0].tool if item is not None and item.spec.calls else ""


def _undone(card: Card) -> list[tuple[UUID, str]]:
    """What an undo reverts, as (subject, family): the batch that was decided, or the one item."""
    undo = Batch.objects.filter(pk=card.subject_id).first()
    if undo is None or undo.undo_of is None:
        return []
    recorded = Outcome.objects.filter(subject_id=undo.undo_of).values_list("subject_id", "family")
    if recorded:
        return list(recorded)
    items = BatchItem.objects.filter(batch=undo).select_related("work_item__follow_up_of")
    original = next((item.work_item.follow_up_of for item in items if item.work_item.follow_up_of), None)
    return [(undo.undo_of, original.spec.calls[0].tool)] if original is not None and original.spec.calls else []


def _record(card: Card, subject_id: UUID, family: str, kind: OutcomeKind, *, shortened: bool = False) -> None:
    """Keep the most negative decision about an action; repeating one changes nothing."""
    if not family or card.deployment_id is None:
        return
    fields = {"kind": kind, "family": family[:80], "deployment_id": card.deployment_id, "risk": card.risk}
    row, created = Outcome.objects.get_or_create(subject_id=subject_id, defaults={**fields, "shortened": shortened})
    if created:
        schedule_suggestions()
        return
    outranked = RANK[: RANK.index(kind)] if kind in RANK else ()
    Outcome.objects.filter(pk=row.pk, kind__in=outranked).update(kind=kind)
    if shortened:
        Outcome.objects.filter(pk=row.pk).update(shortened=True)


def propose_changes(deployment_id: UUID) -> list[FreedomProposal]:
    """Propose the threshold changes for which there is enough evidence, one family at a time. In a trusted worker."""
    settings, moment = initiative_settings(), now()
    if not settings.calibration or calibration_policy.config_problems(settings.config):
        return []
    # The lock keeps rivals from passing the weekly limit together.
    deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment_id)
    late = FreedomProposal.objects.filter(deployment=deployment, state=FreedomState.OPEN, expires_at__lte=moment)
    late.update(state=FreedomState.EXPIRED, settled_at=moment)
    proposals = FreedomProposal.objects.filter(deployment=deployment)
    room = settings.most_proposals_a_week - proposals.filter(created_at__gt=moment - timedelta(days=7)).count()
    made: list[FreedomProposal] = []
    for family in _families(deployment, settings.config, moment):
        if len(made) >= room:
            break
        if not proposals.filter(family=family, state=FreedomState.OPEN).exists():
            proposal = _propose(deployment, family, settings.config, moment)
            made += [proposal] if proposal else []
    return made


def _families(deployment: Deployment, config: CalibrationConfig, moment: datetime) -> list[str]:
    """The families with decisions inside the window."""
    recent = Outcome.objects.filter(
        deployment=deployment, decided_at__gte=moment - timedelta(days=config.window_days)
    ).exclude(kind=OutcomeKind.DISMISSED)
    recent = recent.order_by("family")
    return list(recent.values_list("family", flat=True).distinct())


def _propose(
    deployment: Deployment, family: str, config: CalibrationConfig, moment: datetime
) -> FreedomProposal | None:
    last = ThresholdChange.objects.filter(deployment=deployment, family=family).order_by("-number").first()
    rows = Outcome.objects.filter(deployment=deployment, family=family).order_by("-decided_at")[:500]
    evidence = calibration_policy.collect_evidence(
        [DecidedAction(OutcomeKind(row.kind), row.risk, row.decided_at) for row in rows],
        config,
        now=moment,
        since=_since(deployment, family, last),
    )
    direction = calibration_policy.proposed_direction(
        evidence, config, last=Direction(last.direction) if last else None
    )
    if direction is None:
        return None
    before = thresholds.current(deployment.pk, family)
    after = thresholds.step(deployment.pk, family, direction)
    changes = thresholds.changes(before, after)
    if not changes:
        return None
    proposal: FreedomProposal = FreedomProposal.objects.create(
        deployment=deployment,
        family=family,
        direction=direction,
        changes=changes,
        sample_size=evidence.samples,
        corrections=evidence.corrections,
        created_at=moment,
        expires_at=moment + timedelta(seconds=_CARD_SECONDS),
    )
    _open_card(proposal, deployment, evidence, config, before, after)
    return proposal


def _since(deployment: Deployment, family: str, last: ThresholdChange | None) -> datetime | None:
    """From when decisions count: the last change, or the last answer to a proposal, whichever is later."""
    answered = FreedomProposal.objects.filter(deployment=deployment, family=family).exclude(settled_at=None)
    newest = answered.order_by("-settled_at").values_list("settled_at", flat=True).first()
    times = [time for time in (last.changed_at if last else None, newest) if time is not None]
    return max(times, default=None)


def _open_card(
    proposal: FreedomProposal,
    deployment: Deployment,
    evidence: Evidence,
    config: CalibrationConfig,
    before: Thresholds,
    after: Thresholds,
) -> None:
    widens = proposal.direction == Direction.WIDEN
    window = stored_text("the newest {count:d} decisions within {days:d} days").format(
        count=evidence.samples, days=config.window_days
    )
    card = open_card(
        CardKind.AUTONOMY_THRESHOLD,
        subject=CardSubject(PROPOSAL, proposal.pk, deployment.pk, requested_by="calibrator"),
        binding=Binding(
            ApprovalScope.AUTONOMY_THRESHOLD,
            autonomy_payload(
                **thresholds.payload_scope(deployment.pk, proposal.family),
                changes=proposal.changes,
                sample_size=evidence.samples,
                correction_rate=round(float(evidence.rate), 4),
                evidence_window=window,
            ),
            reversible=True,
        ),
        text=CardText(
            intent=truncate(
                (
                    stored_text("Fewer approvals for {action} at {chatbot}")
                    if widens
                    else stored_text("More approvals for {action} at {chatbot}")
                ).format(action=proposal.family, chatbot=deployment.title),
                300,
            ),
            rationale=stored_text("{count:d} of {decisions} were corrected. Each action still needs approval.").format(
                count=evidence.corrections, decisions=window
            ),
            consequence={
                "approve": stored_text("Batches of {count:d}, from {percent:d}% sure").format(
                    count=after.size, percent=round(after.high_min * 100)
                ),
                TIGHTEN_NOW: stored_text("Tighten approvals instead"),
                "decline": stored_text("Keep batches of {count:d}, from {percent:d}% sure").format(
                    count=before.size, percent=round(before.high_min * 100)
                ),
            },
        ),
        seconds=_CARD_SECONDS,
    )
    FreedomProposal.objects.filter(pk=proposal.pk).update(card_id=card.pk)
    data = {"direction": proposal.direction, "samples": evidence.samples, "corrections": evidence.corrections}
    record(AuditEvent.THRESHOLDS_PROPOSED, subject=f"deployment:{deployment.pk}", data=data)


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Apply the decision about a proposal. The card is locked, so this happens once."""
    proposal = FreedomProposal.objects.filter(pk=card.subject_id, state=FreedomState.OPEN).first()
    if proposal is None:
        return
    if token is not None:
        change = thresholds.apply(card.payload, token, user=decision.user)
        state = FreedomState.APPLIED if change else FreedomState.REFUSED
    elif decision.said.get("choice") == TIGHTEN_NOW:
        thresholds.tighten(proposal.deployment_id, proposal.family, user=decision.user)
        state = FreedomState.TIGHTENED
    else:
        state = FreedomState.DECLINED
    FreedomProposal.objects.filter(pk=proposal.pk).update(state=state, settled_at=now())


def tighten_approvals(deployment_id: UUID, family: str, *, user: User) -> ThresholdChange | None:
    """Require approval more often, at once. An open proposal about the family no longer fits and will be refused."""
    return thresholds.tighten(deployment_id, family, user=user)
