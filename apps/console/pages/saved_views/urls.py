"""The addresses of these pages below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.saved_views import views

urlpatterns = [
    path("views/", views.views_page, name="console-views"),
    path("views/new/", views.new_view, name="console-view-new"),
    path("views/<uuid:view_id>/save/", views.rename_view, name="console-view-save"),
    path("views/<uuid:view_id>/delete/", views.delete_view, name="console-view-delete"),
]
