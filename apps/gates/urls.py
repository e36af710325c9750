"""The addresses of gates in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.gates import api
from apps.gates.backtest.api import GateDryRun

urlpatterns = [
    path("api/v1/gates", api.Gates.as_view(), name="api-gates"),
    path("api/v1/gates/<uuid:gate_id>", api.OneGate.as_view(), name="api-gate"),
    path("api/v1/gates/<uuid:gate_id>/versions", api.Versions.as_view(), name="api-gate-versions"),
    path("api/v1/gates/<uuid:gate_id>/diff", api.Diff.as_view(), name="api-gate-diff"),
    path("api/v1/gates/<uuid:gate_id>/dry-run", GateDryRun.as_view(), name="api-gate-dry-run"),
    path("api/v1/gates/<uuid:gate_id>/activate", api.Activation.as_view(), name="api-gate-activate"),
    path("api/v1/gates/<uuid:gate_id>/roll-back", api.RollBack.as_view(), name="api-gate-roll-back"),
    path("api/v1/gates/<uuid:gate_id>/retire", api.Retirement.as_view(), name="api-gate-retire"),
]
