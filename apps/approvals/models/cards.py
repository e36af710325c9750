"""Models of cards, people's answers to them, decisions, looks and timings. The database refuses to change answers,
decisions and looks."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from apps.approvals.cards.kinds import Kind, get_kind, kind_labels
from apps.approvals.cards.schemas import CardText, Fact
from apps.approvals.enums import (
    ApprovalScope,
    ApprovalStrength,
    ApprovalVerdict,
    CardStatus,
    DeclineReason,
    Pace,
    Risk,
    Withdrawal,
)
from kernel.clock import now
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel

_FINAL = frozenset({CardStatus.DECIDED, CardStatus.EXPIRED, CardStatus.WITHDRAWN})
# `sql.append_only` enforces that a settled card stays settled.
CARD_TRANSITIONS: dict[CardStatus, frozenset[CardStatus]] = {
    CardStatus.OPEN: frozenset({CardStatus.ASSIGNED}) | _FINAL,
    CardStatus.ASSIGNED: frozenset({CardStatus.ASSIGNED, CardStatus.OPEN}) | _FINAL,
    CardStatus.DECIDED: frozenset(),
    CardStatus.EXPIRED: frozenset(),
    CardStatus.WITHDRAWN: frozenset(),
}


OPEN_STATUSES = (CardStatus.OPEN, CardStatus.ASSIGNED)
_IS_OPEN = Q(status__in=OPEN_STATUSES)


class Card(TenantModel):
    """Something that a person is asked to decide (spec 0.5.3). An approval binds `payload`; the rest explains it.

    Its content never changes. Its lifecycle does: status, assignee, when and why it was settled.
    """

    kind = models.CharField(max_length=24, choices=kind_labels)
    risk = models.CharField(max_length=16, choices=Risk.choices)
    intent = models.CharField(max_length=300)
    rationale = models.TextField()
    consequence = models.JSONField(help_text=_("What each button does, by its answer"))
    affected = models.CharField(max_length=300, blank=True)
    facts = models.JSONField(default=list)
    body = models.JSONField(default=dict, help_text=_("What this kind of card shows beside its payload"))
    details = models.JSONField(default=dict)
    reads = models.JSONField(
        default=list, help_text=_("The records whose state it shows: book, key, revision (0: none)")
    )
    payload = models.JSONField()
    payload_hash = models.CharField(max_length=64)
    scope = models.CharField(max_length=24, choices=ApprovalScope.choices)
    max_executions = models.PositiveIntegerField(default=1)
    token_seconds = models.PositiveIntegerField(help_text=_("How long an approval stays valid after the decision"))
    subject_kind = models.CharField(max_length=24)
    subject_id = models.UUIDField()
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.UUIDField(null=True)
    requested_by = models.CharField(max_length=80, blank=True, help_text=_("`user:<id>` when a member asked for this"))
    supersedes = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="successor")
    status = models.CharField(max_length=16, choices=CardStatus.choices, default=CardStatus.OPEN)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    assigned_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    withdrawal = models.CharField(max_length=16, choices=Withdrawal.choices, blank=True)

    queued_at: datetime  # where `queries.queued_at` is annotated

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="card_ends_after_it_begins"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], condition=_IS_OPEN, name="card_open_once_per_subject"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=OPEN_STATUSES)
                | Q(status=CardStatus.OPEN, assignee=None, assigned_at=None)
                | Q(status=CardStatus.ASSIGNED, assignee__isnull=False, assigned_at__isnull=False),
                name="card_assigned_to_somebody",
            ),
            models.CheckConstraint(
                condition=(_IS_OPEN & Q(settled_at=None)) | (~_IS_OPEN & Q(settled_at__isnull=False)),
                name="card_settled_at_a_moment",
            ),
            models.CheckConstraint(
                condition=Q(status=CardStatus.WITHDRAWN) ^ Q(withdrawal=""), name="card_withdrawn_for_a_reason"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "status", "created_at"], name="card_queue"),
            models.Index(fields=["tenant", "-created_at", "-id"], name="card_newest"),
        ]

    def __str__(self) -> str:
        return self.intent

    @property
    def is_open(self) -> bool:
        """True while the card can be answered. A card whose time is up may not have been expired yet."""
        return self.status in OPEN_STATUSES and self.expires_at > now()

    @property
    def state(self) -> CardStatus:
        """The status; `expired` as soon as the time is up, whether the card was expired already or not."""
        over = self.status in OPEN_STATUSES and not self.is_open
        return CardStatus.EXPIRED if over else CardStatus(self.status)

    @property
    def of_kind(self) -> Kind:
        return get_kind(self.kind)

    @property
    def text(self) -> CardText:
        facts = [Fact(**fact) for fact in self.facts]
        return CardText(self.intent, self.rationale, self.consequence, self.affected, facts, self.details)


class Decision(TenantModel):
    """What the answers to a card came to. A card is decided once."""

    card = models.OneToOneField(Card, on_delete=models.PROTECT, related_name="decision")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=16, choices=ApprovalVerdict.choices)
    approval_strength = models.CharField(max_length=24, choices=ApprovalStrength.choices, default=ApprovalStrength.TAP)
    conditions = models.JSONField(default=dict)
    said = models.JSONField(default=dict, help_text=_("The answer chosen, and what was said or ticked with it"))
    decided_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "decided_at"], name="decision_by_time")]

    def __str__(self) -> str:
        return self.verdict

    @property
    def decline_reason(self) -> DeclineReason | None:
        """Why the card was declined, if that was chosen from the list."""
        reason = self.said.get("reason")
        return DeclineReason(reason) if reason in DeclineReason.values else None


class Answer(TenantModel):
    """One person's answer to a card. An approval is signed with that person's key.

    `step_up` is the passkey's assertion with everything needed to verify it again later.
    """

    card = models.ForeignKey(Card, on_delete=models.PROTECT, related_name="answers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=16, choices=ApprovalVerdict.choices)
    approval_strength = models.CharField(max_length=24, choices=ApprovalStrength.choices, default=ApprovalStrength.TAP)
    conditions = models.JSONField(default=dict)
    said = models.JSONField(default=dict, help_text=_("The answer chosen, and what was said or ticked with it"))
    answered_at = models.DateTimeField()
    step_up = models.JSONField(null=True)
    key_id = models.CharField(max_length=16, blank=True)
    signature = models.CharField(max_length=120, blank=True, help_text=_("Ed25519, base64"))

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["answered_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["card", "user", "verdict"], name="answer_once_a_person")
        ]

    def __str__(self) -> str:
        return self.verdict


SHORTEST, LONGEST = 10, 30 * 86_400


class CardTiming(TenantModel):
    """How long cards wait until they count as declined. A deployment's own row takes precedence over the tenant's."""

    deployment = models.ForeignKey(
        "tenants.Deployment",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        help_text=_("Blank: all"),
        related_name="+",
    )
    pace = models.CharField(max_length=8, choices=Pace.choices)
    seconds = models.PositiveIntegerField(validators=[MinValueValidator(SHORTEST), MaxValueValidator(LONGEST)])

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["pace"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "deployment", "pace"], name="card_timing_once", nulls_distinct=False
            ),
            models.CheckConstraint(condition=Q(seconds__range=(SHORTEST, LONGEST)), name="card_timing_range"),
        ]

    def __str__(self) -> str:
        return f"{self.get_pace_display()}: {self.seconds} s"


class Look(TenantModel):
    """When a person who may decide a card first saw it, and first saw it again after it came back into the queue at
    `queued_at`. With the decision the first of them gives the time that the decision took."""

    card = models.ForeignKey(Card, on_delete=models.PROTECT, related_name="looks")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    first_at = models.DateTimeField()
    queued_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["first_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["card", "user", "queued_at"], name="look_once_a_person_and_queueing", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.card_id} {self.first_at:%H:%M:%S}"
