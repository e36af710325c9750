"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.simulations import views

urlpatterns = [
    path("simulations/", views.listing, name="console-simulations"),
    path("simulations/make/", views.make, name="console-simulation-make"),
    path("simulations/<uuid:deployment_id>/visitors/", views.add_visitor, name="console-simulation-visitor"),
    path("simulations/<uuid:suite_id>/start/", views.start, name="console-simulation-start"),
    path("simulations/runs/<uuid:run_id>/", views.run, name="console-simulation"),
    path("simulations/runs/<uuid:run_id>/resume/", views.resume, name="console-simulation-resume"),
    path("simulations/runs/<uuid:run_id>/stop/", views.stop, name="console-simulation-stop"),
]
