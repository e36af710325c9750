"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.releases import views

_RELEASES = "studio/<uuid:deployment_id>/releases/"

urlpatterns = [
    path(_RELEASES, views.releases, name="console-releases"),
    path(f"{_RELEASES}publish/", views.publish, name="console-release-publish"),
    path(f"{_RELEASES}simulate/", views.simulate, name="console-release-simulate"),
    path(f"{_RELEASES}rule/", views.change_rule, name="console-release-rule"),
    path(f"{_RELEASES}<int:number>/", views.changes, name="console-release"),
    path(f"{_RELEASES}<int:number>/share/", views.change_share, name="console-release-share"),
    path(f"{_RELEASES}<int:number>/roll-back/", views.roll_back, name="console-release-roll-back"),
]
