"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.safety import views

urlpatterns = [
    path("safety/", views.safety, name="console-safety"),
    path("safety/keys/new/", views.key, name="console-safety-key"),
    path("safety/policy/", views.policy, name="console-safety-policy"),
    path("safety/policy/try/", views.try_hint, name="console-safety-try"),
    path("safety/policy/take-back/", views.take_back, name="console-safety-take-back"),
    path("safety/policy/<int:number>/again/", views.roll_back, name="console-safety-roll-back"),
    path("safety/<uuid:hold_id>/step-up/<slug:what>/", views.step_up, name="console-safety-step-up"),
    path("safety/<uuid:hold_id>/allow/", views.allow, name="console-safety-allow"),
    path("safety/<uuid:hold_id>/code/", views.code, name="console-safety-code"),
    path("safety/<uuid:hold_id>/token/", views.token, name="console-safety-token"),
]
