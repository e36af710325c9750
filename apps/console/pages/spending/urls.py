"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.spending import views

urlpatterns = [
    path("spending/", views.spending_page, name="console-spending"),
    path("spending/limits/", views.save_limit, name="console-limit-save"),
    path("spending/limits/<uuid:budget_id>/remove/", views.remove_limit, name="console-limit-remove"),
    path("spending/policy/", views.spending_policy, name="console-spending-policy"),
    path("spending/prices/", views.prices, name="console-prices"),
    path("spending/prices/<uuid:price_id>/remove/", views.remove_price, name="console-price-remove"),
    path("spending/resume/", views.resume, name="console-spending-resume"),
]
