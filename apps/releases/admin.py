"""Releases in Django admin, to view. They are published in the studio and over the API."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.releases.models import Release, ReleasePolicy


@admin.register(Release)
class ReleaseAdmin(ReadOnlyAdmin):
    list_display = ("deployment", "number", "status", "share", "simulation", "created_by", "published_at")
    list_select_related: ClassVar = ["tenant", "deployment"]
    list_filter = ("status", "simulation")


@admin.register(ReleasePolicy)
class ReleasePolicyAdmin(ReadOnlyAdmin):
    list_display = ("tenant", "simulations")
    list_select_related: ClassVar = ["tenant"]
