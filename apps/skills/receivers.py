"""What does this room hear from below? Answers to its cards, and cards that came to nothing. Receivers run in the
announcing transaction."""

from __future__ import annotations

from apps.approvals.enums import CardStatus
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.signals import card_changed, card_decided
from apps.bus import retention
from apps.skills import forgetting, trials
from apps.skills.enums import SkillStatus
from apps.skills.models import SkillVersion

retention.register(forgetting.forget_batch)


@card_decided.connect
def _decided(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    if card.subject_kind == trials.SUBJECT:
        trials.decided(card, token)


@card_changed.connect
def _gone(card: Card) -> None:
    if card.subject_kind != trials.SUBJECT or card.status not in (CardStatus.EXPIRED, CardStatus.WITHDRAWN):
        return
    waiting = SkillVersion.objects.filter(pk=card.subject_id, card_id=card.pk, status=SkillStatus.PROPOSED).first()
    if waiting is not None:
        trials.withdraw(waiting, card.status)
