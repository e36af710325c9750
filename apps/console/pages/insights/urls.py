"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.insights import views

urlpatterns = [
    path("insights/", views.insights, name="console-insights"),
    path("insights/file/", views.insights_file, name="console-insights-file"),
]
