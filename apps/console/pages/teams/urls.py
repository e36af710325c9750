"""The addresses of these pages below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.teams import views

urlpatterns = [
    path("teams/", views.teams_page, name="console-teams"),
    path("teams/new/", views.new_team, name="console-team-new"),
    path("teams/<uuid:team_id>/", views.team, name="console-team"),
    path("teams/<uuid:team_id>/delete/", views.delete_team, name="console-team-delete"),
    path("availability/", views.availability, name="console-availability"),
    path("inbox/<uuid:session_id>/team/", views.set_team, name="console-conversation-team"),
    path("inbox/<uuid:session_id>/priority/", views.set_priority, name="console-conversation-priority"),
]
