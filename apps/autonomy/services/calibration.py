"""Record how people take what the bot proposes, and propose what that speaks for. Recorded where they decide; looked at
every quarter of an hour; changed by nothing but an approval (spec 5.1.6, 5.9).

Always holds: an action has one outcome, the gravest that was said of it; a proposal carries its evidence and the exact
change; a yes is spent by the work room for exactly that, which refuses what has moved since. Silence is a no. All of it
runs in web processes and trusted workers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Risk
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.payloads import autonomy_payload
from apps.approvals.services import open_card
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import calibration_policy
from apps.autonomy.calibration_policy import RANK, CalibrationConfig, DecidedAction, Evidence
from apps.autonomy.enums import FreedomState, OutcomeKind
from apps.autonomy.models import FreedomProposal, InitiativeSettings, Outcome, Suggestion
from apps.autonomy.services import bus_messages
from apps.tenants.models import Deployment
from apps.work.confidence import Thresholds
from apps.work.enums import Direction
from apps.work.models import Batch, BatchItem, ThresholdChange, WorkItem
from apps.work.services import thresholds
from apps.work.services.undo import ACTION as UNDO_ACTION
from kernel.clock import now
from kernel.unicode_safety import truncate

PROPOSAL = "freedom_proposal"
TIGHTEN_NOW = "tighten_now"
_CARD_SECONDS = 7 * 86_400
# A draft that lost a third of its words was too long.
_CUT = 2 / 3
_SUGGESTIONS = "suggestion:"


def initiative_settings() -> InitiativeSettings:
    """The company's own, or the usual ones, unsaved."""
    found: InitiativeSettings | None = InitiativeSettings.objects.first()
    return found or InitiativeSettings()


def record_decision(card: Card, decision: Decision) -> None:
    """What a person said of a batch, a draft, or something that was done. In the decision's transaction."""
    kind = _kind_of(card, decision)
    if kind is None:
        return
    if card.kind == CardKind.POST_EXECUTION:
        for subject_id, family in _undone(card):
            _record(card, subject_id, family, kind)
    else:
        _record(card, card.subject_id, _family_of(card), kind)


def record_edit(old: Card, new: Card) -> None:
    """Somebody took some items out of a batch, or changed the words of a draft."""
    if old.kind in (CardKind.BATCH_REVIEW, CardKind.DRAFT_REVIEW):
        cut = len(str(new.body.get("draft", ""))) < _CUT * len(str(old.body.get("draft", "")))
        _record(old, old.subject_id, _family_of(old), OutcomeKind.EDIT_SELECTION, shortened=cut)


def record_dismissal(suggestion: Suggestion) -> None:
    """Nobody wanted it now: a signal for preferences (spec 6.6), and no correction of any action."""
    Outcome.objects.create(
        deployment_id=suggestion.deployment_id,
        family=f"{_SUGGESTIONS}{suggestion.action}",
        subject_id=suggestion.pk,
        kind=OutcomeKind.DISMISSED,
        risk=Risk.LOW,
    )
    bus_messages.schedule_suggestions()


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
    """By which tool; "" for what is no family's."""
    if card.subject_kind == "batch":
        action = Batch.objects.filter(pk=card.subject_id).values_list("action", flat=True).first()
        return "" if action == UNDO_ACTION else action or ""
    item: WorkItem | None = WorkItem.objects.filter(pk=card.subject_id).first()
    return item.spec.calls[0].tool if item is not None and item.spec.calls else ""


def _undone(card: Card) -> list[tuple[UUID, str]]:
    """What the undo takes back: the batch that was decided, or the one item."""
    undo = Batch.objects.filter(pk=card.subject_id).first()
    if undo is None or undo.undo_of is None:
        return []
    known = Outcome.objects.filter(subject_id=undo.undo_of).values_list("subject_id", "family")
    if known:
        return list(known)
    lines = BatchItem.objects.filter(batch=undo).select_related("work_item__follow_up_of")
    first = next((line.work_item.follow_up_of for line in lines if line.work_item.follow_up_of), None)
    return [(undo.undo_of, first.spec.calls[0].tool)] if first is not None and first.spec.calls else []


def _record(card: Card, subject_id: UUID, family: str, kind: OutcomeKind, *, shortened: bool = False) -> None:
    """The gravest that was said of an action stands; saying it twice counts once."""
    if not family or card.deployment_id is None:
        return
    known = {"kind": kind, "family": family[:80], "deployment_id": card.deployment_id, "risk": card.risk}
    row, created = Outcome.objects.get_or_create(subject_id=subject_id, defaults={**known, "shortened": shortened})
    if created:
        bus_messages.schedule_suggestions()
        return
    lesser = RANK[: RANK.index(kind)] if kind in RANK else ()
    Outcome.objects.filter(pk=row.pk, kind__in=lesser).update(kind=kind)
    if shortened:
        Outcome.objects.filter(pk=row.pk).update(shortened=True)


def propose_changes(deployment_id: UUID) -> list[FreedomProposal]:
    """Propose what the evidence speaks for, a family at a time. In a trusted worker."""
    settings, moment = initiative_settings(), now()
    if not settings.calibration or calibration_policy.config_problems(settings.config):
        return []
    deployment = Deployment.objects.select_for_update(of=("self",), no_key=True).get(pk=deployment_id)
    _expire(deployment, moment)
    mine = FreedomProposal.objects.filter(deployment=deployment)
    room = settings.most_proposals_a_week - mine.filter(created_at__gt=moment - timedelta(days=7)).count()
    found: list[FreedomProposal] = []
    for family in _families(deployment, settings.config, moment):
        if len(found) >= room:
            break
        if not mine.filter(family=family, state=FreedomState.OPEN).exists():
            proposal = _propose(deployment, family, settings.config, moment)
            found += [proposal] if proposal else []
    return found


def _families(deployment: Deployment, config: CalibrationConfig, moment: datetime) -> list[str]:
    """Those that anything was decided about inside the window."""
    recent = Outcome.objects.filter(
        deployment=deployment, decided_at__gte=moment - timedelta(days=config.window_days)
    ).exclude(kind=OutcomeKind.DISMISSED)
    recent = recent.order_by("family")
    return list(recent.values_list("family", flat=True).distinct())


def _expire(deployment: Deployment, moment: datetime) -> None:
    late = FreedomProposal.objects.filter(deployment=deployment, state=FreedomState.OPEN, expires_at__lte=moment)
    late.update(state=FreedomState.EXPIRED, settled_at=moment)


def _propose(
    deployment: Deployment, family: str, config: CalibrationConfig, moment: datetime
) -> FreedomProposal | None:
    last = ThresholdChange.objects.filter(deployment=deployment, family=family).order_by("-number").first()
    evidence = calibration_policy.collect_evidence(
        _seen(deployment, family), config, now=moment, since=_since(deployment, family, last)
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
    _ask(proposal, deployment, evidence, config, before, after)
    return proposal


def _seen(deployment: Deployment, family: str) -> list[DecidedAction]:
    rows = Outcome.objects.filter(deployment=deployment, family=family).order_by("-decided_at")[:500]
    return [DecidedAction(OutcomeKind(row.kind), row.risk, row.decided_at) for row in rows]


def _since(deployment: Deployment, family: str, last: ThresholdChange | None) -> datetime | None:
    """What was decided before the last change, or the last answer to a proposal, has been heard."""
    asked = FreedomProposal.objects.filter(deployment=deployment, family=family).exclude(settled_at=None)
    newest = asked.order_by("-settled_at").values_list("settled_at", flat=True).first()
    times = [time for time in (last.changed_at if last else None, newest) if time is not None]
    return max(times, default=None)


def _ask(
    proposal: FreedomProposal,
    deployment: Deployment,
    evidence: Evidence,
    config: CalibrationConfig,
    before: Thresholds,
    after: Thresholds,
) -> None:
    widens = proposal.direction == Direction.WIDEN
    window = f"the newest {evidence.samples} decisions within {config.window_days} days"
    card = open_card(
        CardKind.AUTONOMY_THRESHOLD,
        about=About(PROPOSAL, proposal.pk, deployment.pk, requested_by="calibrator"),
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
                f"{'Fewer' if widens else 'More'} cards about {proposal.family} at {deployment.title}", 300
            ),
            rationale=f"{evidence.corrections} of {window} were corrected. Each action still needs a yes.",
            consequence={
                "approve": f"Batches of {after.size}, from {after.high_min:.0%} sure",
                TIGHTEN_NOW: "Tighten approvals instead",
                "decline": f"Keep batches of {before.size}, from {before.high_min:.0%} sure",
            },
        ),
        seconds=_CARD_SECONDS,
    )
    FreedomProposal.objects.filter(pk=proposal.pk).update(card_id=card.pk)
    data = {"direction": proposal.direction, "samples": evidence.samples, "corrections": evidence.corrections}
    record(AuditEvent.THRESHOLDS_PROPOSED, subject=f"deployment:{deployment.pk}", data=data)


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """A person answered a proposal; the card is locked, so it is answered once."""
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


def tighten_approvals(deployment_id: UUID, family: str, *, user: Any) -> ThresholdChange | None:
    """The one tap that is always there: more comes before people again, at once. Whatever is proposed about the family
    meanwhile does not fit any more and is refused when it is answered."""
    return thresholds.tighten(deployment_id, family, user=user)
