"""Channels beside the widget, the conversations that they carry, and the messages that came and went over them.

A thread joins one conversation to one address of a channel, and says how far that address was proved. Levels and
approvals never hang on it: they hang on the conversation's verified customer, as in the widget.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from apps.approvals.models import Card
from apps.contacts.enums import Proof
from apps.messengers.enums import Direction, MessageState, NoticeState, channel_kinds
from apps.sessions.models import ChatSession
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Channel(TenantModel):
    """One address of a chatbot: a mailbox, a bot of a messenger, a telephone number.

    `settings` is what the provider needs and everybody may know; `sealed` its secrets as JSON, sealed for this channel
    alone. `public_id` is in the address that the provider calls. `kept`: what the adapter remembers between two looks.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=10, choices=channel_kinds)
    name = models.CharField(max_length=80)
    public_id = models.CharField(max_length=40, unique=True)
    settings: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    sealed: models.BinaryField[bytes, bytes] = models.BinaryField(default=b"")
    kept: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    enabled = models.BooleanField(default=True)
    version = models.PositiveIntegerField(default=1)
    problem = models.CharField(max_length=60, blank=True)
    problem_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    removed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(removed_at=None) | Q(enabled=False, sealed=b""), name="removed_channel_is_off"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ChannelThread(TenantModel):
    """A conversation's place in a channel.

    `key` is the place as the adapter names it: a chat, a telephone number, a token in a mail address. `peer`: where
    answers go. `session` is None until the consent that the chatbot asks for was given. `reference`: what the adapter
    needs for its next message, such as the ids of the mails before. `last_received_at`: a provider's window for free
    messages counts from it. `follows_widget`: the conversation began in the widget, and answers are sent here while
    its visitor is away, once the address was confirmed.
    """

    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="threads")
    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, null=True, related_name="+")
    key = models.CharField(max_length=200)
    peer = models.CharField(max_length=254)
    peer_name = models.CharField(max_length=120, blank=True)
    proved_by = models.CharField(max_length=8, choices=Proof.choices, blank=True, default=Proof.NONE)
    reference: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    follows_widget = models.BooleanField(default=False)
    confirm_hash = models.CharField(max_length=64, blank=True)
    confirm_until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    opted_out_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    last_received_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    channel_id: UUID
    session_id: UUID | None

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["channel", "key"], name="channel_thread_once"),
            models.UniqueConstraint(
                fields=["confirm_hash"], condition=~Q(confirm_hash=""), name="channel_confirmation_once"
            ),
        ]


class ChannelMessage(TenantModel):
    """A message that came or went. One received twice, under the same `external_id`, is stored once; an entry of a
    conversation leaves once. `seq`: the entry; None for what went into no conversation. `held`: a received message
    whose files have yet to be fetched."""

    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="messages")
    thread = models.ForeignKey(ChannelThread, on_delete=models.CASCADE, null=True, related_name="messages")
    direction = models.CharField(max_length=3, choices=Direction.choices)
    state = models.CharField(max_length=10, choices=MessageState.choices)
    external_id = models.CharField(max_length=255, blank=True)
    # Whose entry it is: a thread may go on in another conversation.
    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    seq: models.PositiveBigIntegerField[int | None, int | None] = models.PositiveBigIntegerField(null=True)
    problem = models.CharField(max_length=60, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    held: models.JSONField[dict[str, object] | None, dict[str, object] | None] = models.JSONField(null=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    channel_id: UUID
    thread_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["channel", "external_id"], condition=Q(direction=Direction.IN), name="channel_message_in_once"
            ),
            models.UniqueConstraint(
                fields=["thread", "session", "seq"],
                condition=Q(direction=Direction.OUT),
                name="channel_message_out_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["channel", "-created_at"], name="channel_message_by_time"),
            models.Index(
                F("channel"),
                F("external_id"),
                condition=Q(direction=Direction.OUT) & ~Q(external_id=""),
                name="channel_message_by_id",
            ),
        ]


class InboundMail(TenantModel):
    """A mail as it came, for the worker that reads it in the sandbox. Deleted once it was applied."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+")
    content: models.BinaryField[bytes, bytes] = models.BinaryField()
    created_at = models.DateTimeField()

    channel_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name = _("inbound email")


class ReadMail(TenantModel):
    """What a worker read of a mail: JSON that is validated again before it is applied, "" for a mail that could not be
    read, and the bytes of its files one after the other. Workers may only insert."""

    mail = models.OneToOneField(InboundMail, on_delete=models.CASCADE, related_name="+")
    found = models.TextField()
    files: models.BinaryField[bytes, bytes] = models.BinaryField(default=b"")

    class Meta(TenantModel.Meta):
        verbose_name = _("email that was read")


MOST_DAYS = 365


class CardPolicy(TenantModel):
    """Whether and how cards reach approvers in channels; none do without a row.

    `channels`: ids of channels, and "email", in the order in which they are tried. `people`: ids of members in the
    order in which they are asked; empty for everybody at once. `decide_in_place`: cards of low risk may be decided by a
    button, from an account verified within `verified_days`. The certificate covers all of it.
    """

    enabled = models.BooleanField(default=False)
    channels: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    people: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    decide_in_place = models.BooleanField(default=False)
    verified_days = models.PositiveSmallIntegerField(
        default=30, validators=[MinValueValidator(1), MaxValueValidator(MOST_DAYS)]
    )
    certificate = models.CharField(max_length=120)
    version = models.PositiveIntegerField(default=1)

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("card policies")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="card_policy_once"),
            models.CheckConstraint(condition=Q(verified_days__range=(1, MOST_DAYS)), name="card_policy_days"),
        ]


class ApproverAccount(TenantModel):
    """A member's account in a channel, where they get cards. The certificate says that they proved it to be theirs, and
    when they last did."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+")
    account = models.CharField(max_length=254)
    name = models.CharField(max_length=120, blank=True)
    linked_at = models.DateTimeField()
    last_verified_at = models.DateTimeField()
    certificate = models.CharField(max_length=120)

    user_id: UUID
    channel_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["linked_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["channel", "account"], name="approver_account_once"),
            models.UniqueConstraint(fields=["channel", "user"], name="approver_account_once_a_member"),
        ]

    def __str__(self) -> str:
        return self.name or self.account


class AccountCode(TenantModel):
    """The code that a member sends from an account to link it; only its keyed hash is stored, and a new one replaces
    it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    hashed = models.CharField(max_length=64)
    expires_at = models.DateTimeField()

    user_id: UUID

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="account_code_once_a_member")]


class CardNotice(TenantModel):
    """A card's message to one member, in a channel or, without one, by email. `face`: what the card showed when it was
    sent (`approvals.queries.face_hash`); `progress`: how far the card was that the message shows."""

    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True, related_name="+")
    account = models.CharField(max_length=254, blank=True)
    state = models.CharField(max_length=8, choices=NoticeState.choices, default=NoticeState.WAITING)
    face = models.CharField(max_length=64)
    progress = models.CharField(max_length=80, blank=True)
    external_id = models.CharField(max_length=255, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    problem = models.CharField(max_length=60, blank=True)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField()

    card_id: UUID
    user_id: UUID
    channel_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["card", "user", "channel"], name="card_notice_once", nulls_distinct=False)
        ]
