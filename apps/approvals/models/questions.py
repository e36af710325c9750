"""Model of questions to the customer for whose answer a card waits."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from kernel.clock import now
from kernel.tenancy import TenantModel


class CardQuestion(TenantModel):
    """A question that was put to the customer before a card is decided.

    Its words and those of the answer are entries `seq` and `answer_seq` of the conversation, and nowhere else. The card
    waits until the customer writes or `waits_until` is reached, whichever is first.
    """

    card = models.ForeignKey("approvals.Card", on_delete=models.PROTECT, related_name="questions")
    asker = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.UUIDField()
    seq = models.PositiveBigIntegerField()
    asked_at = models.DateTimeField()
    waits_until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    answer_seq = models.PositiveBigIntegerField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["asked_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["card"], condition=Q(ended_at=None), name="card_question_open_once"),
            models.CheckConstraint(condition=Q(waits_until__gt=F("asked_at")), name="card_question_waits"),
            models.CheckConstraint(
                condition=Q(answer_seq=None) | Q(ended_at__isnull=False, answer_seq__gt=F("seq")),
                name="card_question_answered_later",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "session_id"], condition=Q(ended_at=None), name="card_question_unanswered")
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def is_waiting(self) -> bool:
        """True while the card waits for the customer. Deciding the card and reaching `waits_until` end it without a
        write."""
        return self.ended_at is None and self.waits_until > now() and self.card.is_open
