"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.settings import views

urlpatterns = [
    path("settings/", views.overview, name="console-settings"),
    path("settings/company/", views.company, name="console-company-settings"),
    path("settings/retention/", views.retention, name="console-retention"),
    path("settings/card-timings/", views.card_timings, name="console-card-timings"),
    path("settings/visitor-limits/", views.visitor_limits, name="console-visitor-limits"),
]
