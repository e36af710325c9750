"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.exports import views

urlpatterns = [path("lists/<slug:name>.csv", views.list_file, name="console-list-file")]
