"""Messages that the widget shows above its button on chosen pages, before a visitor has written anything."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.core.validators import MaxValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from apps.visitors.enums import Audience
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel

MOST_SECONDS, MOST_DAYS = 3600, 365


class ProactiveMessage(TenantModel):
    """One message of a deployment and when it is shown.

    `page`: an address with `*` for anything, empty for every page; `repeat_days`: 0 for once per visitor; `language`:
    the language that the widget must speak, empty for any; `answered_count`: in how many conversations it was answered.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    text = models.CharField(_("message"), max_length=300)
    page = models.CharField(
        _("pages"),
        max_length=200,
        blank=True,
        validators=[RegexValidator(r"^[^\s?#]+$", _("Use an address without spaces, ? and #."))],
        help_text=_(
            "Such as /pricing, /shop/* or shop.example.com/*, where * stands for any characters. Empty for every page."
        ),
    )
    seconds = models.PositiveSmallIntegerField(
        _("seconds on the page"), default=10, validators=[MaxValueValidator(MOST_SECONDS)]
    )
    audience = models.CharField(_("visitors"), max_length=10, choices=Audience.choices, default=Audience.EVERYONE)
    language = models.CharField(
        _("language"),
        max_length=2,
        blank=True,
        help_text=_("Shown only where the chat speaks this language; any if empty"),
    )
    repeat_days = models.PositiveSmallIntegerField(
        _("show again after days"),
        default=0,
        validators=[MaxValueValidator(MOST_DAYS)],
        help_text=_("0 shows it once per visitor"),
    )
    is_active = models.BooleanField(_("active"), default=False)
    answered_count = models.PositiveIntegerField(_("answered"), default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        verbose_name = _("proactive message")
        verbose_name_plural = _("proactive messages")
        ordering: ClassVar = ["created_at", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(text=""), name="proactive_message_has_text"),
            models.CheckConstraint(
                condition=Q(seconds__lte=MOST_SECONDS, repeat_days__lte=MOST_DAYS), name="proactive_message_in_bounds"
            ),
        ]

    def __str__(self) -> str:
        return self.text
