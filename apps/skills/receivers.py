"""Receivers of decisions about this room's cards and of cards that ended without one, which run in the sender's
transaction; and the registration of this room's jobs."""

from __future__ import annotations

from apps.approvals.enums import CardStatus
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_changed, card_decided
from apps.bus import retention
from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.skills import cleanup, trials
from apps.skills.enums import SkillStatus
from apps.skills.models import SkillVersion

register_job(Kind.SKILL_TRIAL, trials.run_trial)
register_job(Kind.SKILL_TRIED, trials.handle_report)
on_dead_letter(trials.give_up, Kind.SKILL_TRIAL)
retention.register(cleanup.delete_batch)


@card_decided.connect
def _on_card_decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == trials.SUBJECT:
        trials.apply_decision(card, token)


@card_changed.connect
def _on_card_closed(card: Card) -> None:
    if card.subject_kind != trials.SUBJECT or card.status not in (CardStatus.EXPIRED, CardStatus.WITHDRAWN):
        return
    waiting = SkillVersion.objects.filter(pk=card.subject_id, card_id=card.pk, status=SkillStatus.PROPOSED).first()
    if waiting is not None:
        trials.withdraw(waiting, card.status)
