"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.connections import views

urlpatterns = [
    path("connections/", views.listing, name="console-connections"),
    path("connections/new/<slug:name>/", views.new, name="console-connection-new"),
    path("connections/<uuid:connection_id>/", views.connection, name="console-connection"),
    path("connections/<uuid:connection_id>/sign-in/", views.sign_in, name="console-connection-sign-in"),
    path("connections/<uuid:connection_id>/done/", views.done, name="console-connection-done"),
    path("connections/<uuid:connection_id>/cancel/", views.cancel, name="console-connection-cancel"),
    path("connections/<uuid:connection_id>/reconnect/", views.reconnect, name="console-connection-reconnect"),
    path("connections/<uuid:connection_id>/pause/", views.pause, name="console-connection-pause"),
    path("connections/<uuid:connection_id>/choose/", views.choose, name="console-connection-choose"),
    path("connections/<uuid:connection_id>/resume/", views.resume, name="console-connection-resume"),
    path("connections/<uuid:connection_id>/it-request/", views.it_request, name="console-connection-it-request"),
    path("connections/<uuid:connection_id>/remove/", views.remove, name="console-connection-remove"),
    path("connections/<uuid:connection_id>/widen/", views.widen, name="console-connection-widen"),
]
