"""Models of OAuth 2.1: apps of third parties, what members granted them, and their tokens (ADR 127).

Secrets, codes and tokens are stored as SHA-256 hashes only. A grant is one authorization with all tokens that came of
it: when it is revoked, none of them is valid any more.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.tenants.enums import TokenKind
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class OAuthApp(TenantModel):
    """A third-party program that an owner registered, or that registered itself (RFC 7591). Its id is its `client_id`;
    an app without a secret is public. One that registered itself has no secret and gets tokens for MCP servers only."""

    name = models.CharField(max_length=80)
    redirect_uris: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    scopes: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    hashed_secret = models.CharField(max_length=64, blank=True, editable=False)
    is_self_registered = models.BooleanField(default=False, db_default=False, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        verbose_name = _("app")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(is_self_registered=False) | Q(hashed_secret=""), name="oauth_app_registered_itself_public"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def client_id(self) -> str:
        return str(self.pk)

    @property
    def is_confidential(self) -> bool:
        return bool(self.hashed_secret)


class OAuthGrant(TenantModel):
    """What a member allowed an app, or without a member what an app does for itself (client credentials). `audience`
    is the path of the resource for which its tokens are valid (RFC 8707); empty for the REST API."""

    app = models.ForeignKey(OAuthApp, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+")
    scopes: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    audience = models.CharField(max_length=120, blank=True)
    redirect_uri = models.CharField(max_length=500, blank=True, editable=False)
    code_hashed = models.CharField(max_length=64, unique=True, null=True, editable=False)
    code_challenge = models.CharField(max_length=64, blank=True, editable=False)
    code_expires_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, editable=False
    )
    code_used_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, editable=False
    )
    revoked_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    app_id: UUID
    user_id: UUID | None

    class Meta(TenantModel.Meta):
        verbose_name = _("access of an app")
        verbose_name_plural = _("access of apps")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=True, code_hashed__isnull=True, code_challenge="")
                | (Q(user__isnull=False, code_hashed__isnull=False, code_expires_at__isnull=False))
                & ~Q(code_challenge=""),
                name="oauth_grant_of_member_has_code",
            ),
            models.UniqueConstraint(
                fields=["app", "audience"],
                condition=Q(user__isnull=True, revoked_at__isnull=True),
                name="oauth_grant_of_app_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.app}, {self.user or _('itself')}"


class OAuthToken(TenantModel):
    """An access or refresh token of a grant. A refresh token is used once: a second use revokes its grant."""

    grant = models.ForeignKey(OAuthGrant, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=8, choices=TokenKind.choices)
    hashed = models.CharField(max_length=64, unique=True)
    scopes: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    grant_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name = _("token of an app")
        verbose_name_plural = _("tokens of apps")

    def __str__(self) -> str:
        return self.get_kind_display()
