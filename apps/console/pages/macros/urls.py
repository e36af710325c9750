"""The addresses of these pages below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.macros import views

urlpatterns = [
    path("macros/", views.macros_page, name="console-macros"),
    path("macros/new/", views.new_macro, name="console-macro-new"),
    path("macros/<uuid:macro_id>/", views.macro, name="console-macro"),
    path("macros/<uuid:macro_id>/delete/", views.delete_macro, name="console-macro-delete"),
    path("inbox/<uuid:session_id>/macros/<uuid:macro_id>/", views.run, name="console-macro-run"),
]
