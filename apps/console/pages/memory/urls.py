"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.memory import views

urlpatterns = [
    path("memory/", views.listing, name="console-memories"),
    path("memory/customer/", views.customer_file, name="console-memory-customer"),
    path("memory/bundle/", views.bundle, name="console-memory-bundle"),
    path("memory/bundle/export/", views.export_bundle, name="console-memory-bundle-export"),
    path("memory/bundle/import/", views.import_bundle, name="console-memory-bundle-import"),
    path("memory/<uuid:memory_id>/", views.memory, name="console-memory"),
    path("memory/<uuid:memory_id>/correct/", views.correct, name="console-memory-correct"),
    path("memory/<uuid:memory_id>/pin/", views.pin, name="console-memory-pin"),
    path("memory/<uuid:memory_id>/confirm/", views.confirm, name="console-memory-confirm"),
    path("memory/<uuid:memory_id>/restore/", views.restore, name="console-memory-restore"),
    path("memory/<uuid:memory_id>/delete/", views.delete, name="console-memory-delete"),
]
