"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.activity import away, views

urlpatterns = [
    path("activity/", views.activity, name="console-activity"),
    path("activity/away/", away.away, name="console-away"),
    path("activity/<int:seq>/", views.entry, name="console-entry"),
    path("activity/verify/", views.verify, name="console-verify"),
    path("activity/export/", views.export, name="console-export"),
]
