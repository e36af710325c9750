"""Models of login: second factors, passkeys, sessions, account e-mails, invitations and login providers.

What belongs to a user (factors, logins, e-mails) has no tenant, because a user may be a member of several. Invitations
and login providers belong to one tenant and are covered by row-level security. Secrets are stored sealed or as hashes;
the link in an e-mail is created when it is sent and is not stored.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.tenants.enums import EmailKind, EmailState, LoginMethod, Role
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Totp(models.Model):
    """A user's authenticator app, active from `confirmed_at`. `last_step` is the step of the newest used code; it only
    rises."""

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
    """A one-time recovery code of a user, stored as a hash."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    hashed = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["user", "hashed"], name="recovery_code_once")]

    def __str__(self) -> str:
        return "Recovery code"


class LoginPasskey(models.Model):
    """A discoverable WebAuthn credential of a user, valid for one domain (`rp_id`)."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    credential_id = models.CharField(max_length=1400, unique=True, help_text=_("base64url"))
    public_key = models.BinaryField(help_text=_("COSE"))
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
    """One login session of a user. The row is deleted when the session ends; the audit log keeps the record."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, unique=True)
    method = models.CharField(max_length=16, choices=LoginMethod.choices)
    device = models.CharField(max_length=80)
    address = models.CharField(max_length=60, help_text=_("Shortened: it names a neighbourhood, not a line"))
    created_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-seen_at"]

    def __str__(self) -> str:
        return self.device


class Letter(models.Model):
    """An account e-mail to be sent. Its text and its link are created when it is sent."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=EmailKind.choices)
    address = models.CharField(max_length=254)
    origin = models.CharField(max_length=300, help_text=_("Where the console is opened"))
    # Ids instead of foreign keys: this table has no tenant, and an invitation is behind its tenant's row security.
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
    """An invitation to become a member, by a link that works once and for seven days. `hashed` is the hash of the
    newest link; empty until one was created. `invited_by` is None for one by a program."""

    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role.choices)
    hashed = models.CharField(max_length=64, blank=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True)
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
    """A company's own OpenID Connect provider, whose users may log in to the company."""

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
    """Links an issuer's `subject` to a user, independent of the user's current e-mail address."""

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
