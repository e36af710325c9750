"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.review import card_actions, views

urlpatterns = [
    path("review/", views.review, name="console-review"),
    path("review/news/", views.queue_news, name="console-review-news"),
    path("review/cards/", views.card_parts, name="console-card-parts"),
    path("review/preview/", views.draft_preview, name="console-draft-preview"),
    path("review/<uuid:card_id>/", views.review, name="console-card"),
    path("review/<uuid:card_id>/news/", views.card_news, name="console-card-news"),
    path("review/<uuid:card_id>/decision/", views.decide, name="console-decide"),
    path("review/<uuid:card_id>/edit/", card_actions.edit, name="console-edit"),
    path("review/<uuid:card_id>/edit/values/", card_actions.resubmit, name="console-ask-anew"),
    path("review/<uuid:card_id>/question/", card_actions.question, name="console-card-question"),
    path("review/<uuid:card_id>/question/send/", card_actions.ask, name="console-card-ask"),
    path("review/<uuid:card_id>/assignee/", card_actions.assign, name="console-assign"),
    path("review/<uuid:card_id>/take-back/", card_actions.take_back, name="console-take-back"),
    path("inbox/<uuid:session_id>/withdraw/", card_actions.withdraw, name="console-withdraw"),
]
