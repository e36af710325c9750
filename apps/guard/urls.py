"""URLs of the spending limits in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.guard import api

urlpatterns = [
    path("api/v1/budgets", api.Budgets.as_view(), name="api-budgets"),
    path("api/v1/budgets/<uuid:budget_id>", api.OneBudget.as_view(), name="api-budget"),
]
