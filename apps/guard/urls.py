"""The addresses of spending and its limits in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.guard import api

urlpatterns = [
    path("api/v1/budgets", api.Budgets.as_view(), name="api-budgets"),
    path("api/v1/budgets/<uuid:budget_id>", api.OneBudget.as_view(), name="api-budget"),
    path("api/v1/model-prices", api.ModelPrices.as_view(), name="api-model-prices"),
    path("api/v1/model-prices/<uuid:price_id>", api.OneModelPrice.as_view(), name="api-model-price"),
    path("api/v1/spending-policy", api.SpendingPolicyOfCompany.as_view(), name="api-spending-policy"),
    path("api/v1/spending", api.Spending.as_view(), name="api-spending"),
    path("api/v1/spending/resume", api.ResumeSpending.as_view(), name="api-spending-resume"),
]
