"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.first_run import views

urlpatterns = [
    path("setup/<str:code>/", views.set_up, name="console-setup"),
    path("begin/", views.begin, name="console-begin"),
    path("begin/model/", views.model, name="console-begin-model"),
    path("begin/knowledge/", views.knowledge, name="console-begin-knowledge"),
    path("begin/sites/", views.sites, name="console-begin-sites"),
    path("begin/ready/", views.ready, name="console-begin-ready"),
]
