"""The WebSocket URL of the sessions room."""

from django.urls import path

from apps.sessions.consumers import VisitorConsumer

websocket_urlpatterns = [path("ws/widget/<str:key>/", VisitorConsumer.as_asgi())]
