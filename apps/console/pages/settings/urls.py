"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.settings import views

urlpatterns = [
    path("settings/", views.overview, name="console-settings"),
]
