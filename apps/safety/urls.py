"""The addresses of the safety loop in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.safety import operators_api
from apps.safety.api import SafetyView

_POLICY = "api/v1/safety-policy"

urlpatterns = [
    path("api/v1/safety-holds", operators_api.SafetyHolds.as_view(), name="api-safety-holds"),
    path(_POLICY, operators_api.SafetyPolicy.as_view(), name="api-safety-policy"),
    path(f"{_POLICY}/backtest", operators_api.SafetyPolicyBacktest.as_view(), name="api-safety-policy-backtest"),
    path("api/v1/safety/<slug:surface>", SafetyView.as_view(), name="safety"),
]
