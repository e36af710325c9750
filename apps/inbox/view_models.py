"""Filters that members have saved under a name."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from apps.inbox.enums import ViewPage
from kernel.tenancy import TenantModel


class SavedView(TenantModel):
    """A filter of a page under a name. `parameters`: those of the page's address that differ from the whole list;
    without an `owner` the view is the team's."""

    name = models.CharField(max_length=60)
    page = models.CharField(max_length=8, choices=ViewPage.choices)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+")
    parameters: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)

    class Meta(TenantModel.Meta):
        app_label = "inbox"
        ordering: ClassVar = [Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                "tenant", "page", "owner", Lower("name"), name="saved_view_name_once", nulls_distinct=False
            ),
            models.CheckConstraint(condition=~Q(name=""), name="saved_view_has_name"),
        ]

    def __str__(self) -> str:
        return self.name
