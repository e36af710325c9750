"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.work import views

urlpatterns = [
    path("work/", views.work, name="console-work"),
    path("work/<uuid:item_id>/", views.item, name="console-work-item"),
    path("work/<uuid:item_id>/cancel/", views.cancel, name="console-work-cancel"),
    path("work/<uuid:item_id>/resume/", views.resume, name="console-work-resume"),
]
