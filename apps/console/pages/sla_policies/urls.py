"""The addresses of these pages below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.sla_policies import views

urlpatterns = [
    path("sla-policies/", views.sla_policies_page, name="console-sla-policies"),
    path("sla-policies/new/", views.new_policy, name="console-sla-policy-new"),
    path("sla-policies/<uuid:policy_id>/", views.policy, name="console-sla-policy"),
    path("sla-policies/<uuid:policy_id>/delete/", views.delete_policy, name="console-sla-policy-delete"),
]
