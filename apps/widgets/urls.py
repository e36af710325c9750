"""URLs of the widget (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.widgets import views

urlpatterns = [
    path("", views.landing, name="landing"),
    path("demo/<slug:tenant_slug>/", views.demo, name="demo"),
    path("widget/v1/loader.js", views.loader, name="widget-loader"),
    path("widget/v1/<str:key>/", views.frame, name="widget-frame"),
    path("widget/v1/<str:key>/appearance/", views.appearance, name="widget-appearance"),
    path("widget/v1/<str:key>/<slug:kind>/<str:file>", views.picture, name="widget-picture"),
]
