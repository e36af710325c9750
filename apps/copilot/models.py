"""Which assistance a chatbot's owner has switched off, and a record of each request, without any text."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.db import models

from apps.copilot.enums import AssistanceKind, AssistanceStatus
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class AssistanceSettings(TenantModel):
    """A chatbot without a row has every kind switched on."""

    deployment = models.OneToOneField("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    switched_off: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name = _("assistance for staff")
        verbose_name_plural = _("assistance for staff")

    def __str__(self) -> str:
        return str(self.deployment)


class Assistance(TenantModel):
    """One request of a member or a program. `context` says what the model saw, by ids and counts: the same record as a
    turn's, so that the texts are looked up where they are kept. `reason` is the code of why it did not end with a
    result, or of why the chatbot's model did not write it."""

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="+")
    member = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    actor = models.CharField(max_length=80)
    kind = models.CharField(max_length=20, choices=AssistanceKind.choices)
    status = models.CharField(max_length=10, choices=AssistanceStatus.choices, default=AssistanceStatus.RUNNING)
    reason = models.CharField(max_length=60, blank=True)
    model_name = models.CharField(max_length=120, blank=True)
    cost_usd = models.DecimalField(max_digits=18, decimal_places=9, default=0)
    context: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    run_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    session_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name = _("request for assistance")
        verbose_name_plural = _("requests for assistance")
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [models.Index(fields=["session", "-created_at"], name="assistance_by_session")]
