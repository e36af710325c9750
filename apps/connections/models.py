"""Tables of outside accounts: connections, their sealed credentials, and their set-ups.

Only `Credential` and `SetupAnswer` hold secrets, sealed and bound to the tenant, the connection and the name. A status
changes as `rules.TRANSITIONS` allows.
"""

from __future__ import annotations

import secrets
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.connections.enums import AuthStrategy, Backend, ConnectionStatus, Purpose, SetupState
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


def new_ref() -> UUID:
    """Return 128 random bits."""
    return UUID(bytes=secrets.token_bytes(16))


class Connection(TenantModel):
    """An outside account of the tenant.

    `skill` is the pinned reference; `permissions` are our tiers, `permissions_granted` the service's own words.
    `recovered`: the one automatic recovery since it was last healthy was made. `discovering`: its skill has not yet
    said how it would sign in. `is_usual`: of several accounts of its skill, a person chose this one for tools.
    """

    name = models.CharField(max_length=120)
    domain = models.CharField(max_length=120, blank=True)
    skill = models.CharField(max_length=100)
    skill_name = models.CharField(max_length=64)
    provider = models.CharField(max_length=120, blank=True)
    identity = models.CharField(max_length=200, blank=True)
    auth_strategy = models.CharField(max_length=20, choices=AuthStrategy.choices)
    permissions = models.JSONField(default=list)
    permissions_granted = models.JSONField(default=list)
    permissions_available = models.JSONField(default=list)
    initial_permissions = models.JSONField(default=list)
    settings = models.JSONField(default=dict)
    status = models.CharField(max_length=12, choices=ConnectionStatus.choices, default=ConnectionStatus.PROPOSED)
    failure = models.JSONField(null=True, blank=True)
    health_check = models.CharField(max_length=100, default="*/30 * * * *")
    token_expires_at = models.DateTimeField(null=True, blank=True)
    refresh_token_expires_at = models.DateTimeField(null=True, blank=True)
    last_health_check = models.DateTimeField(null=True, blank=True)
    last_refresh = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)
    next_check_at = models.DateTimeField(null=True, blank=True)
    warned_at = models.DateTimeField(null=True, blank=True)
    recovered = models.BooleanField(default=False)
    discovering = models.BooleanField(default=False, db_default=False)
    is_usual = models.BooleanField(default=False, db_default=False)
    requested_by = models.CharField(max_length=60, blank=True)
    callback = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "skill_name"], name="connection_by_skill"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "skill_name"], condition=Q(is_usual=True), name="connection_usual_once"
            )
        ]

    def __str__(self) -> str:
        return self.name


class SetupRun(TenantModel):
    """One set-up conversation.

    `step` is what the person is shown now, `state_token` what a browser must bring back from the service, `browser` the
    hash of the browser session that was sent there. `wanted`: the permissions it asks for.
    """

    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="setups")
    purpose = models.CharField(max_length=12, choices=Purpose.choices)
    state = models.CharField(max_length=12, choices=SetupState.choices, default=SetupState.WAITING)
    wanted = models.JSONField(default=list)
    identity_hint = models.JSONField(default=dict)
    step_id = models.CharField(max_length=60, blank=True)
    step = models.JSONField(null=True, blank=True)
    failure = models.JSONField(null=True, blank=True)
    summary = models.JSONField(null=True, blank=True)
    ignored = models.PositiveIntegerField(default=0)
    state_token = models.UUIDField(default=new_ref, unique=True)
    browser = models.CharField(max_length=64, blank=True)
    card_id = models.UUIDField(null=True, blank=True)
    started_by = models.CharField(max_length=60, blank=True)
    begins_at = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at", "-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["connection"],
                condition=Q(state__in=[SetupState.WAITING, SetupState.RUNNING, SetupState.ASKING]),
                name="setup_one_at_a_time",
            )
        ]


class SetupAnswer(TenantModel):
    """A person's answer to a step, or the service's through their browser; sealed, and deleted once the script has
    it."""

    setup = models.ForeignKey(SetupRun, on_delete=models.CASCADE, related_name="answers")
    step_id = models.CharField(max_length=60)
    sealed = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["setup", "step_id"], name="setup_answer_once")]


class PendingSecret(TenantModel):
    """A request for a secret, under an opaque reference of 128 random bits; it is stored once, in time."""

    id = models.UUIDField(primary_key=True, default=new_ref, editable=False)
    setup = models.ForeignKey(SetupRun, on_delete=models.CASCADE, related_name="pending")
    name = models.CharField(max_length=60)
    expires_at = models.DateTimeField()
    stored_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["setup", "name"], name="pending_secret_once")]


class Credential(TenantModel):
    """One sealed value.

    With `setup` it is partial: it counts once that set-up is completed and probed, and is deleted with it when it is
    cancelled. `sealed` is a reference where another `backend` keeps the value.
    """

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="credentials")
    setup = models.ForeignKey(SetupRun, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    name = models.CharField(max_length=60)
    backend = models.CharField(max_length=12, choices=Backend.choices, default=Backend.DATABASE)
    sealed = models.BinaryField()
    changed_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["connection", "name"], condition=Q(setup=None), name="credential_once"),
            models.UniqueConstraint(
                fields=["setup", "name"], condition=Q(setup__isnull=False), name="credential_partial_once"
            ),
        ]


class OnceGrant(TenantModel):
    """An approval of permissions for one execution only (`just this once`), with the token that is spent by it."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="once")
    permissions = models.JSONField()
    payload = models.JSONField()
    token_id = models.UUIDField(unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())


class ItRequest(TenantModel):
    """The message that asks a company's IT department to allow an account (spec 5.10.4).

    A draft that staff read, change, and send themselves or by work of ours. `work_item_id`: that work, once it was
    requested.
    """

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="it_request")
    to = models.CharField(max_length=254, blank=True)
    subject = models.CharField(max_length=200)
    text = models.TextField()
    work_item_id = models.UUIDField(null=True, blank=True)
    changed_by = models.CharField(max_length=60)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        verbose_name = _("IT request")
        verbose_name_plural = _("IT requests")

    def __str__(self) -> str:
        return self.subject
