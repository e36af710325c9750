"""Propose changed approval thresholds from how people decide (spec 5.1.6, 5.9).

Outcomes are evaluated every quarter of an hour; only an approval changes a threshold. A proposal holds its evidence and
the exact change; the work room spends the approval for exactly that change and refuses it if thresholds have moved
since. An unanswered proposal changes nothing. What may change is listed in `calibration_targets`. All of it runs in web
processes and trusted workers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.tokens.payloads import autonomy_payload
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.suggestions import calibration_policy
from apps.suggestions.calibration_policy import CalibrationConfig, Evidence
from apps.suggestions.enums import FreedomState
from apps.suggestions.models import FreedomProposal
from apps.suggestions.queries import initiative_settings
from apps.suggestions.services.calibration_targets import TARGETS, ProposedChange, Target, target_of
from apps.tenants.models import Deployment, User
from apps.work.enums import Direction
from kernel.clock import now
from kernel.stored_texts import stored_text
from kernel.unicode_safety import truncate

PROPOSAL = "freedom_proposal"
TIGHTEN_NOW = "tighten_now"
_CARD_SECONDS = 7 * 86_400
_INTENTS = {
    Direction.WIDEN: stored_text("Fewer approvals for {action} at {chatbot}"),
    Direction.TIGHTEN: stored_text("More approvals for {action} at {chatbot}"),
}


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
    since = moment - timedelta(days=settings.config.window_days)
    made: list[FreedomProposal] = []
    pairs = [(target, family) for target in TARGETS for family in target.families(deployment, since)]
    for target, family in pairs:
        if len(made) >= room:
            break
        if not proposals.filter(family=family, state=FreedomState.OPEN).exists():
            proposal = _propose(deployment, target, family, settings.config, moment)
            made += [proposal] if proposal else []
    return made


def _propose(
    deployment: Deployment, target: Target, family: str, config: CalibrationConfig, moment: datetime
) -> FreedomProposal | None:
    last = target.last_change(deployment, family)
    evidence = calibration_policy.collect_evidence(
        target.decisions(deployment, family, moment - timedelta(days=config.window_days)),
        config,
        now=moment,
        since=_since(deployment, family, last[1] if last else None),
    )
    direction = calibration_policy.proposed_direction(evidence, config, last=last[0] if last else None)
    change = target.change(deployment, family, direction) if direction else None
    if direction is None or change is None:
        return None
    proposal: FreedomProposal = FreedomProposal.objects.create(
        deployment=deployment,
        family=family,
        direction=direction,
        changes=change.changes,
        sample_size=evidence.samples,
        corrections=evidence.corrections,
        created_at=moment,
        expires_at=moment + timedelta(seconds=_CARD_SECONDS),
    )
    _open_card(proposal, deployment, change, evidence, config)
    return proposal


def _since(deployment: Deployment, family: str, changed_at: datetime | None) -> datetime | None:
    """From when decisions count: the last change, or the last answer to a proposal, whichever is later."""
    answered = FreedomProposal.objects.filter(deployment=deployment, family=family).exclude(settled_at=None)
    newest = answered.order_by("-settled_at").values_list("settled_at", flat=True).first()
    return max((time for time in (changed_at, newest) if time is not None), default=None)


def _open_card(
    proposal: FreedomProposal,
    deployment: Deployment,
    change: ProposedChange,
    evidence: Evidence,
    config: CalibrationConfig,
) -> None:
    window = stored_text("the newest {count:d} decisions within {days:d} days").format(
        count=evidence.samples, days=config.window_days
    )
    intent = _INTENTS[Direction(proposal.direction)].format(action=change.action, chatbot=deployment.title)
    card = open_card(
        CardKind.AUTONOMY_THRESHOLD,
        subject=CardSubject(PROPOSAL, proposal.pk, deployment.pk, requested_by="calibrator"),
        binding=Binding(
            ApprovalScope.AUTONOMY_THRESHOLD,
            autonomy_payload(
                scope_id=str(deployment.pk),
                goal_id=change.goal_id,
                changes=proposal.changes,
                sample_size=evidence.samples,
                correction_rate=round(float(evidence.rate), 4),
                evidence_window=window,
            ),
            reversible=True,
        ),
        text=CardText(
            intent=truncate(intent, 300),
            rationale=change.note.format(count=evidence.corrections, decisions=window),
            consequence={
                "approve": change.approve,
                TIGHTEN_NOW: stored_text("Tighten approvals instead"),
                "decline": change.decline,
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
    target = target_of(proposal.family)
    if token is not None:
        applied = target.apply(card.payload, token, decision.user)
        state = FreedomState.APPLIED if applied else FreedomState.REFUSED
    elif decision.said.get("choice") == TIGHTEN_NOW:
        target.tighten(proposal.deployment_id, proposal.family, decision.user)
        state = FreedomState.TIGHTENED
    else:
        state = FreedomState.DECLINED
    FreedomProposal.objects.filter(pk=proposal.pk).update(state=state, settled_at=now())


def tighten_approvals(deployment_id: UUID, family: str, *, user: User) -> bool:
    """Require approval more often, at once; False at the strictest setting. An open proposal about the family no longer
    fits and will be refused."""
    return target_of(family).tighten(deployment_id, family, user)
