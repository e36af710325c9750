"""The addresses that providers call, and channels in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.messengers import api, views, widget_api

_CHANNEL = "api/v1/channels/<uuid:channel_id>"

urlpatterns = [
    path("channels/confirm/<str:secret>/", views.Confirm.as_view(), name="channel-confirm"),
    path("channels/files/<str:token>", views.OneFile.as_view(), name="channel-file"),
    path("api/v1/widget/<str:key>/email-answers", widget_api.EmailAnswers.as_view(), name="widget-email-answers"),
    path("api/v1/widget/<str:key>/continue", widget_api.Continue.as_view(), name="widget-continue"),
    path("channels/<slug:kind>/<str:public_id>", views.Webhook.as_view(), name="channel-webhook"),
    path("api/v1/card-policy", api.OneCardPolicy.as_view(), name="api-card-policy"),
    path("api/v1/channels", api.Channels.as_view(), name="api-channels"),
    path("api/v1/channel-kinds", api.ChannelKinds.as_view(), name="api-channel-kinds"),
    path(_CHANNEL, api.OneChannel.as_view(), name="api-channel"),
    path(f"{_CHANNEL}/check", api.Check.as_view(), name="api-channel-check"),
    path(f"{_CHANNEL}/test", api.SendTest.as_view(), name="api-channel-test"),
    path(f"{_CHANNEL}/messages", api.Messages.as_view(), name="api-channel-messages"),
]
