"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.studio import comparison, proactive_messages, views

urlpatterns = [
    path("studio/", views.listing, name="console-studios"),
    path("studio/new/", views.new, name="console-studio-new"),
    path("studio/<uuid:deployment_id>/", views.studio, name="console-studio"),
    path("studio/<uuid:deployment_id>/turn/", views.turn, name="console-studio-turn"),
    path("studio/<uuid:deployment_id>/compare/", comparison.compare, name="console-studio-compare"),
    path("studio/<uuid:deployment_id>/key/", views.save_key, name="console-studio-key"),
    path("studio/<uuid:deployment_id>/key/remove/", views.remove_key, name="console-studio-key-drop"),
    path("studio/<uuid:deployment_id>/pictures/<slug:kind>/", views.save_picture, name="console-studio-picture"),
    path(
        "studio/<uuid:deployment_id>/pictures/<slug:kind>/remove/",
        views.drop_picture,
        name="console-studio-picture-drop",
    ),
    path(
        "studio/<uuid:deployment_id>/preferences/<uuid:preference_id>/off/",
        views.turn_off_preference,
        name="console-studio-preference-off",
    ),
    path("studio/<uuid:deployment_id>/messages/", proactive_messages.listing, name="console-studio-messages"),
    path("studio/<uuid:deployment_id>/messages/new/", proactive_messages.new, name="console-studio-message-new"),
    path(
        "studio/<uuid:deployment_id>/messages/<uuid:message_id>/",
        proactive_messages.edit,
        name="console-studio-message",
    ),
    path(
        "studio/<uuid:deployment_id>/messages/<uuid:message_id>/delete/",
        proactive_messages.delete,
        name="console-studio-message-delete",
    ),
    path("studio/<uuid:deployment_id>/install/", views.install, name="console-install"),
]
