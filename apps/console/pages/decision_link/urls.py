"""The addresses of this page below `/approve/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.decision_link import views

urlpatterns = [
    path("<str:secret>/", views.start, name="decision-link"),
    path("<str:secret>/opening/", views.opening_options, name="decision-link-opening"),
    path("<str:secret>/card/", views.show_card, name="decision-link-card"),
    path("<str:secret>/signing/", views.answer_options, name="decision-link-signing"),
    path("<str:secret>/decision/", views.decide, name="decision-link-decision"),
]
