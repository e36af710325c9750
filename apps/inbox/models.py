"""What staff keep about a conversation: its state, assignee, labels and notes; and canned replies.

None of it is in the chronicle, so none of it can reach a visitor or a model. A visitor's message reopens a snoozed or
resolved conversation in the transaction that stores it, by a trigger (`sessions.sql.inbox`). The
oldest models keep the label `silas_sessions`, under which their tables and migrations were made; others are `inbox`.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from apps.inbox.enums import Assignment, Colour, DeskStatus, Priority, RuleMatch, RuleTrigger
from apps.inbox.sla_models import SlaClock as SlaClock
from apps.inbox.sla_models import SlaMoment as SlaMoment
from apps.inbox.sla_models import SlaPolicy as SlaPolicy
from apps.inbox.view_models import SavedView as SavedView
from apps.tenants.models import User
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class DeskState(TenantModel):
    """What staff have said about one conversation. `until`: when a snoozed one is open again, by itself;
    None: not before its visitor answers."""

    session = models.OneToOneField("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="desk")
    status = models.CharField(max_length=8, choices=DeskStatus.choices, default=DeskStatus.OPEN)
    until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    team = models.ForeignKey("inbox.Team", on_delete=models.SET_NULL, null=True, related_name="+")
    priority = models.CharField(max_length=6, choices=Priority.choices, blank=True, default=Priority.NONE)
    changed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        indexes: ClassVar = [models.Index(fields=["tenant", "status"], name="desk_by_status")]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(status=DeskStatus.SNOOZED) | Q(until=None), name="desk_snoozed_until")
        ]


class Label(TenantModel):
    """A word of the tenant's that conversations can be found by."""

    name = models.CharField(max_length=40)
    colour = models.CharField(max_length=8, choices=Colour.choices, default=Colour.GREY)

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        ordering: ClassVar = [Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("name"), name="desk_label_once"),
            models.CheckConstraint(condition=~Q(name=""), name="desk_label_has_name"),
        ]

    def __str__(self) -> str:
        return self.name


class SessionLabel(TenantModel):
    """A conversation bears a label."""

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="session_labels")
    label = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="+")

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        constraints: ClassVar = [models.UniqueConstraint(fields=["session", "label"], name="session_label_once")]


class Note(TenantModel):
    """What staff tell each other about a conversation. `after`: behind which entry of the chronicle it stands."""

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="notes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    text = models.TextField()
    after = models.PositiveBigIntegerField()
    nonce = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        ordering: ClassVar = ["session", "created_at"]
        indexes: ClassVar = [models.Index(fields=["session", "-created_at"], name="note_by_session")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "nonce"], condition=~Q(nonce=""), name="note_nonce_once"),
            models.CheckConstraint(condition=~Q(text=""), name="note_says_something"),
        ]

    @property
    def mentioned(self) -> list[User]:
        """The members whom it mentions, by name."""
        return sorted((mention.user for mention in self.mentions.all()), key=lambda user: user.display_name)


class Mention(TenantModel):
    """A note names a member with `@`. `read`: they have had the conversation open since."""

    note = models.ForeignKey(Note, on_delete=models.CASCADE, related_name="mentions")
    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    read = models.BooleanField(default=False)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["note", "user"], name="mention_once")]
        indexes: ClassVar = [models.Index(fields=["user"], condition=Q(read=False), name="mention_unread")]


class ReadMark(TenantModel):
    """How far a member has read a conversation: the number of an entry, never text. `marked_unread`: they want to come
    back to it, although it may be the chatbot's alone."""

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    seq = models.PositiveBigIntegerField()
    marked_unread = models.BooleanField(db_default=False)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["user"], condition=Q(marked_unread=True), name="read_mark_unread")]
        constraints: ClassVar = [models.UniqueConstraint(fields=["session", "user"], name="read_mark_once")]


class CannedReply(TenantModel):
    """A reply that is ready, under a short name. `{visitor name}` is replaced with the visitor's name."""

    name = models.CharField(max_length=40)
    text = models.TextField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        verbose_name_plural = _("canned replies")
        ordering: ClassVar = [Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("name"), name="desk_canned_once"),
            models.CheckConstraint(condition=~Q(name="") & ~Q(text=""), name="desk_canned_says_something"),
        ]

    def __str__(self) -> str:
        return self.name


class Team(TenantModel):
    """Members who answer together. `queues`: the names of handover queues whose conversations are this team's, beside
    its own name; `is_default`: so are those of no other team. Empty `opening_hours` are those of the chatbot.
    `last_assignee`: who got the last conversation when they take turns."""

    name = models.CharField(max_length=60)
    queues: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    is_default = models.BooleanField(default=False)
    assignment = models.CharField(max_length=12, choices=Assignment.choices, default=Assignment.OFF)
    capacity = models.PositiveSmallIntegerField(
        default=10, help_text=_("How many open conversations a member gets at most")
    )
    opening_hours: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)
    timezone = models.CharField(max_length=64, blank=True)
    holidays: models.JSONField[list[str], list[str]] = models.JSONField(
        default=list, blank=True, help_text=_("Dates on which the team is closed, such as 2026-12-25")
    )
    last_assignee = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta(TenantModel.Meta):
        ordering: ClassVar = [Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("name"), name="team_name_once"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(is_default=True), name="team_default_once"),
            models.CheckConstraint(condition=~Q(name=""), name="team_has_name"),
            models.CheckConstraint(condition=Q(capacity__gte=1), name="team_capacity_is_positive"),
        ]

    def __str__(self) -> str:
        return self.name


class TeamMember(TenantModel):
    """A member of a team. `skills`: labels, languages and queues, in small letters."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    skills: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["team", "user"], name="team_member_once")]


class Availability(TenantModel):
    """Whether a member takes new conversations. Without a row they do, while they have the console open."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    away = models.BooleanField(default=False)
    changed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("availabilities")
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="availability_once")]


class Macro(TenantModel):
    """Steps that are run on a conversation with one press. `steps`: `{"do", "value"}` in order; without an `owner` it
    is everybody's."""

    name = models.CharField(max_length=60)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+")
    steps: models.JSONField[list[dict[str, str]], list[dict[str, str]]] = models.JSONField(default=list)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = [Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", "owner", Lower("name"), name="macro_name_once", nulls_distinct=False),
            models.CheckConstraint(condition=~Q(name=""), name="macro_has_name"),
        ]

    def __str__(self) -> str:
        return self.name


class InboxRule(TenantModel):
    """Steps that are run on a conversation when something happens in it and the conditions are met.

    `conditions`: `{"field", "operator", "value"}`; `steps`: `{"do", "value"}` in order; `minutes`: how long a visitor
    has waited, for that trigger alone; `version`: another one after every change. Rules run by `position`.
    """

    name = models.CharField(max_length=60)
    position = models.PositiveSmallIntegerField(default=1)
    is_active = models.BooleanField(default=False)
    trigger = models.CharField(max_length=12, choices=RuleTrigger.choices)
    minutes = models.PositiveSmallIntegerField(default=0)
    match = models.CharField(max_length=4, choices=RuleMatch.choices, default=RuleMatch.ALL)
    conditions: models.JSONField[list[dict[str, str]], list[dict[str, str]]] = models.JSONField(
        default=list, blank=True
    )
    steps: models.JSONField[list[dict[str, str]], list[dict[str, str]]] = models.JSONField(default=list)
    version = models.PositiveIntegerField(default=1)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["position", Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("name"), name="inbox_rule_name_once"),
            models.CheckConstraint(condition=~Q(name=""), name="inbox_rule_has_name"),
            models.CheckConstraint(
                condition=Q(trigger=RuleTrigger.WAITING, minutes__gte=1)
                | (~Q(trigger=RuleTrigger.WAITING) & Q(minutes=0)),
                name="inbox_rule_minutes_of_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.name
