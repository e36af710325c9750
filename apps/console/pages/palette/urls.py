"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.palette import views

urlpatterns = [
    path("palette/", views.palette, name="console-palette"),
]
