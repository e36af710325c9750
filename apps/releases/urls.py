"""The addresses of releases in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.releases import api

_RELEASES = "api/v1/deployments/<uuid:deployment_id>/releases"

urlpatterns = [
    path("api/v1/release-rule", api.ReleaseRule.as_view(), name="api-release-rule"),
    path(_RELEASES, api.Releases.as_view(), name="api-releases"),
    path(f"{_RELEASES}/<int:number>", api.OneRelease.as_view(), name="api-release"),
    path(f"{_RELEASES}/<int:number>/diff", api.ReleaseDiff.as_view(), name="api-release-diff"),
    path(f"{_RELEASES}/<int:number>/share", api.ReleaseShare.as_view(), name="api-release-share"),
    path(f"{_RELEASES}/<int:number>/roll-back", api.ReleaseRollBack.as_view(), name="api-release-roll-back"),
]
