"""With what does a person log in, where are they logged in, and who was invited?

What belongs to a person (factors, logins, letters) is the platform's own directory, as `User` is: a person may be in
several tenants. Invitations and a company's login provider belong to one tenant and stand behind its wall. Secrets
stand here sealed or as hashes; a letter's link is made when it leaves and stands nowhere.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.tenants.enums import EmailKind, EmailState, LoginMethod, Role
from kernel.tenancy import TenantModel


class Totp(models.Model):
    """A person's authenticator app. Counts from `confirmed_at` on; `last_step` is the newest code's and never falls."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="totp"
    )
    sealed_secret = models.BinaryField()
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    confirmed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    user_id: UUID

    def __str__(self) -> str:
        return "Authenticator app"


class RecoveryCode(models.Model):
    """One of a person's codes for the day the other factor is lost, as a hash; good once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    hashed = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "hashed"], name="recovery_code_once")]

    def __str__(self) -> str:
        return "Recovery code"


class LoginPasskey(models.Model):
    """A discoverable WebAuthn credential with which a person logs in, good at one address (`rp_id`)."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    credential_id = models.CharField(max_length=1400, unique=True, help_text="base64url")
    public_key = models.BinaryField(help_text="COSE")
    rp_id = models.CharField(max_length=253)
    sign_count = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    user_id: UUID

    class Meta:
        ordering: ClassVar = ["created_at"]

    def __str__(self) -> str:
        return self.name


class Login(models.Model):
    """One place where a person is logged in. Ended, the row is gone; that it was there says the audit log."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    method = models.CharField(max_length=16, choices=LoginMethod.choices)
    device = models.CharField(max_length=80)
    address = models.CharField(max_length=60, help_text="Shortened: it names a neighbourhood, not a line")
    created_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-seen_at"]

    def __str__(self) -> str:
        return self.device


class Letter(models.Model):
    """What is to be told somebody by e-mail. Its text and its link are made when it leaves."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=EmailKind.choices)
    address = models.CharField(max_length=254)
    origin = models.CharField(max_length=300, help_text="Where the console is opened")
    # Of an invitation, by their ids: the wall of its tenant stands between.
    company_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    invitation_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    state = models.CharField(max_length=12, choices=EmailState.choices, default=EmailState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField()
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return self.get_kind_display()


class Invitation(TenantModel):
    """Somebody may become a member by a link that works once and for a week. `hashed` is the newest link's; empty
    until one was made."""

    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role.choices)
    hashed = models.CharField(max_length=64, blank=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    revoked_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "email"],
                condition=Q(accepted_at=None, revoked_at=None),
                name="invitation_open_once",
            ),
            models.UniqueConstraint(fields=["hashed"], condition=~Q(hashed=""), name="invitation_link_once"),
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="invitation_ends_after_it_begins"),
            models.CheckConstraint(condition=Q(accepted_at=None) | Q(revoked_at=None), name="invitation_has_one_end"),
        ]

    def __str__(self) -> str:
        return self.email


class LoginProvider(TenantModel):
    """A company's own OpenID Connect provider: whoever it says works there may come in."""

    issuer = models.CharField(max_length=300)
    client_id = models.CharField(max_length=200)
    sealed_secret = models.BinaryField()
    domains: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    default_role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="login_provider_once"),
            models.CheckConstraint(condition=~Q(default_role=Role.OWNER), name="login_provider_makes_no_owner"),
        ]

    def __str__(self) -> str:
        return self.issuer


class ProviderAccount(TenantModel):
    """Who somebody is at a company's provider: its issuer's `subject` is this person, whatever their address is now."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=300)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "issuer", "subject"], name="provider_account_once"),
        ]

    def __str__(self) -> str:
        return self.subject
