"""The addresses of these pages below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.policies import views
from apps.console.pages.policies.kinds import ACCESS_LEVELS, APPROVALS, Kind


def _of(kind: Kind, start: str) -> list[object]:
    given = {"kind": kind}
    return [
        path(f"{start}/", views.policies, given, name=kind.address),
        path(f"{start}/new/", views.new_policy, given, name=f"{kind.address_of_one}-new"),
        path(f"{start}/<uuid:row_id>/", views.policy, given, name=kind.address_of_one),
        path(f"{start}/<uuid:row_id>/delete/", views.delete_policy, given, name=f"{kind.address_of_one}-delete"),
    ]


urlpatterns = [*_of(ACCESS_LEVELS, "settings/access-levels"), *_of(APPROVALS, "settings/approval-policies")]
