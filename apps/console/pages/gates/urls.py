"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.gates import views

urlpatterns = [
    path("gates/", views.listing, name="console-gates"),
    path("gates/new/<slug:template>/", views.new_from_template, name="console-gate-template"),
    path("gates/<uuid:gate_id>/", views.gate, name="console-gate"),
    path("gates/<uuid:gate_id>/edit/", views.edit, name="console-gate-edit"),
    path("gates/<uuid:gate_id>/compare/", views.compare, name="console-gate-compare"),
    path("gates/<uuid:gate_id>/try/", views.dry_run, name="console-gate-try"),
    path("gates/<uuid:gate_id>/activate/", views.activate, name="console-gate-activate"),
    path("gates/<uuid:gate_id>/roll-back/", views.roll_back, name="console-gate-roll-back"),
    path("gates/<uuid:gate_id>/retire/", views.retire, name="console-gate-retire"),
]
