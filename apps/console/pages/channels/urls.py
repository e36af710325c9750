"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.channels import views

urlpatterns = [
    path("channels/", views.listing, name="console-channels"),
    path("channels/new/<slug:kind>/", views.new, name="console-channel-new"),
    path("channels/<uuid:channel_id>/", views.channel, name="console-channel"),
    path("channels/<uuid:channel_id>/check/", views.check, name="console-channel-check"),
    path("channels/<uuid:channel_id>/test/", views.send_test, name="console-channel-test"),
    path("channels/<uuid:channel_id>/switch/", views.switch, name="console-channel-switch"),
    path("channels/<uuid:channel_id>/remove/", views.remove, name="console-channel-remove"),
]
