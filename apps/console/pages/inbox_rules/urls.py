"""The addresses of these pages below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.inbox_rules import views

urlpatterns = [
    path("inbox-rules/", views.inbox_rules_page, name="console-inbox-rules"),
    path("inbox-rules/new/", views.new_rule, name="console-inbox-rule-new"),
    path("inbox-rules/<uuid:rule_id>/", views.rule, name="console-inbox-rule"),
    path("inbox-rules/<uuid:rule_id>/activate/", views.activate, name="console-inbox-rule-activate"),
    path("inbox-rules/<uuid:rule_id>/delete/", views.delete_rule, name="console-inbox-rule-delete"),
]
