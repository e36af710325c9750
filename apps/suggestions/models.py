"""Suggestions, how people decided about proposals, and proposed changes of approval thresholds (spec 5.1.6).

Nothing here runs an action: a suggestion leads to a proposal, and the work room stores and applies thresholds. The
tables and migrations are those of `autonomy`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.approvals.cards.kinds import kind_labels
from apps.approvals.enums import Risk
from apps.autonomy.enums import ProposalState
from apps.suggestions.calibration_policy import CalibrationConfig
from apps.suggestions.enums import FreedomState, OutcomeKind, SuggestionAction, SuggestionSource, SuggestionState
from apps.work.enums import Direction
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class InitiativeSettings(TenantModel):
    """Limits of suggestions, calibration and preferences (spec 11, `suggestions` and `autonomy`).

    Suggestions are made only where automations are enabled as well.
    """

    suggestions = models.BooleanField(default=True)
    cooldown_minutes = models.PositiveIntegerField(default=120)
    dedupe_minutes = models.PositiveIntegerField(default=180)
    most_open = models.PositiveSmallIntegerField(default=5, help_text=_("Open suggestions for each deployment"))
    most_an_hour = models.PositiveSmallIntegerField(
        default=6, help_text=_("New suggestions an hour for each deployment")
    )
    expire_hours = models.PositiveSmallIntegerField(default=48)
    calibration = models.BooleanField(default=True)
    min_samples = models.PositiveSmallIntegerField(default=30)
    window_actions = models.PositiveSmallIntegerField(default=50)
    window_days = models.PositiveSmallIntegerField(default=14)
    widen_max = models.FloatField(default=0.05)
    tighten_min = models.FloatField(default=0.20)
    hysteresis = models.FloatField(default=0.05)
    most_proposals_a_week = models.PositiveSmallIntegerField(
        default=3, help_text=_("Proposed threshold changes a week for each deployment")
    )
    preferences = models.BooleanField(default=True)
    most_inferences_a_day = models.PositiveSmallIntegerField(default=20)
    preference_days = models.PositiveSmallIntegerField(
        default=180, db_default=180, help_text=_("How long a preference counts after it was added")
    )

    class Meta(TenantModel.Meta):
        app_label = "autonomy"
        verbose_name_plural = _("initiative settings")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="initiative_settings_once"),
            models.CheckConstraint(
                condition=Q(widen_max__gte=0, tighten_min__lte=1, hysteresis__gte=0, widen_max__lt=F("tighten_min")),
                name="initiative_edges_apart",
            ),
            models.CheckConstraint(
                condition=Q(min_samples__gte=1, window_actions__gte=F("min_samples"), window_days__gte=1),
                name="initiative_window_holds_samples",
            ),
            models.CheckConstraint(
                condition=Q(most_open__lte=50, most_an_hour__lte=60, expire_hours__gte=1, cooldown_minutes__gte=1),
                name="initiative_within_bounds",
            ),
            models.CheckConstraint(condition=Q(preference_days__range=(1, 730)), name="initiative_preferences_end"),
        ]

    @property
    def config(self) -> CalibrationConfig:
        names = ("min_samples", "window_actions", "window_days", "widen_max", "tighten_min", "hysteresis")
        return CalibrationConfig(**{name: getattr(self, name) for name in names})


class Outcome(TenantModel):
    """How people decided about one action of a family: the most negative decision, at the time of the first one.

    `goal`: the goal whose template the action is a use of; `decided_by`: who made the first decision.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    family = models.CharField(max_length=80)
    subject_id = models.UUIDField()
    kind = models.CharField(max_length=16, choices=OutcomeKind.choices)
    risk = models.CharField(max_length=12, choices=Risk.choices)
    shortened = models.BooleanField(default=False, help_text=_("A person shortened it by a third or more"))
    card_kind = models.CharField(max_length=24, choices=kind_labels, blank=True, db_default="")
    goal = models.ForeignKey("work.WorkItem", on_delete=models.SET_NULL, null=True, related_name="+")
    decided_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    decided_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        app_label = "autonomy"
        ordering: ClassVar = ["-decided_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "subject_id"], name="outcome_once")]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "deployment", "family", "-decided_at"], name="outcome_by_family")
        ]


class FreedomProposal(TenantModel):
    """A proposed change of a family's approval thresholds, with its evidence. One is open at a time for each family."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    family = models.CharField(max_length=80)
    direction = models.CharField(max_length=8, choices=Direction.choices)
    changes: models.JSONField[list[Any], list[Any]] = models.JSONField()
    sample_size = models.PositiveIntegerField()
    corrections = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=FreedomState.choices, default=FreedomState.OPEN)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    settled_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "autonomy"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["deployment", "family"], condition=Q(state=FreedomState.OPEN), name="freedom_asked_once"
            ),
            models.CheckConstraint(condition=Q(corrections__lte=F("sample_size")), name="freedom_share"),
        ]

    deployment_id: UUID


class Suggestion(TenantModel):
    """Something that could be done next. One is open at a time for each cooldown key.

    `subject`: the row that it is about (`precedent:…`, `work:…`); `led_to`: what accepting it created.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    source = models.CharField(max_length=16, choices=SuggestionSource.choices)
    action = models.CharField(max_length=8, choices=SuggestionAction.choices)
    subject = models.CharField(max_length=80)
    intent = models.CharField(max_length=300)
    rationale = models.CharField(max_length=500)
    cooldown_key = models.CharField(max_length=120)
    state = models.CharField(max_length=10, choices=SuggestionState.choices, default=SuggestionState.OPEN)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    led_to = models.CharField(max_length=80, blank=True)
    decided_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    handled_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "autonomy"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["deployment", "cooldown_key"], condition=Q(state=SuggestionState.OPEN), name="suggested_once"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "deployment", "-created_at"], name="suggestion_by_age")]

    deployment_id: UUID


class Preference(TenantModel):
    """A preference inferred from a pattern of people's decisions, or of ratings.

    `content` is the server's own sentence; once a person keeps it, it is recalled as confirmed memory until it expires
    or is turned off (spec 6.6). `family`: the actions that it is about; `people`: how many persons it was learnt from.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=120, help_text=_("behavior:…"))
    family = models.CharField(max_length=80, blank=True, db_default="")
    content = models.CharField(max_length=300)
    sample_size = models.PositiveIntegerField()
    hits = models.PositiveIntegerField()
    people = models.PositiveIntegerField(default=0, db_default=0)
    state = models.CharField(max_length=12, choices=ProposalState.choices, default=ProposalState.PROPOSED)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    decided_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    decided_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    expires_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "autonomy"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "key"], name="preference_inferred_once"),
            models.CheckConstraint(
                condition=~Q(state=ProposalState.KEPT) | Q(expires_at__isnull=False), name="preference_kept_expires"
            ),
        ]

    deployment_id: UUID
