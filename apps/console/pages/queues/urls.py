"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.queues import views

urlpatterns = [
    path("queues/", views.queues, name="console-queues"),
    path("queues/<uuid:message_id>/retry/", views.retry, name="console-queue-retry"),
    path("queues/<uuid:message_id>/drop/", views.drop, name="console-queue-drop"),
]
