"""The addresses of simulations in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.simulations import api

_SUITES, _RUNS = "api/v1/simulation-suites", "api/v1/simulations"

urlpatterns = [
    path(_SUITES, api.SimulationSuites.as_view(), name="api-simulation-suites"),
    path(f"{_SUITES}/<uuid:suite_id>", api.OneSimulationSuite.as_view(), name="api-simulation-suite"),
    path(f"{_SUITES}/<uuid:suite_id>/scenarios", api.Scenarios.as_view(), name="api-simulation-scenarios"),
    path(_RUNS, api.Simulations.as_view(), name="api-simulations"),
    path(f"{_RUNS}/<uuid:run_id>", api.OneSimulation.as_view(), name="api-simulation"),
    path(f"{_RUNS}/<uuid:run_id>/stop", api.StopSimulation.as_view(), name="api-simulation-stop"),
    path(f"{_RUNS}/<uuid:run_id>/resume", api.ResumeSimulation.as_view(), name="api-simulation-resume"),
]
