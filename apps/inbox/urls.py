"""The addresses of conversations and insights in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.inbox import (
    api,
    card_questions_api,
    files_api,
    inbox_rules_api,
    insights_api,
    macros_api,
    saved_views_api,
    sla_policies_api,
    teams_api,
)

_SESSION = "api/v1/sessions/<uuid:session_id>"

urlpatterns = [
    path("api/v1/insights", insights_api.Insights.as_view(), name="api-insights"),
    path("api/v1/sessions", api.Conversations.as_view(), name="api-sessions"),
    path(_SESSION, api.OneConversation.as_view(), name="api-session"),
    path(f"{_SESSION}/withdraw-requests", api.WithdrawRequests.as_view(), name="api-session-withdraw"),
    path(f"{_SESSION}/messages", api.Messages.as_view(), name="api-session-messages"),
    path(f"{_SESSION}/visitor-messages", api.VisitorMessages.as_view(), name="api-session-visitor-messages"),
    path(f"{_SESSION}/read-state/<uuid:member_id>", api.ReadState.as_view(), name="api-session-read-state"),
    path(f"{_SESSION}/files", files_api.SessionFiles.as_view(), name="api-session-files"),
    path(f"{_SESSION}/notes", api.Notes.as_view(), name="api-session-notes"),
    path("api/v1/cards/<uuid:card_id>/question", card_questions_api.CardQuestion.as_view(), name="api-card-question"),
    path("api/v1/teams", teams_api.Teams.as_view(), name="api-teams"),
    path("api/v1/teams/<uuid:team_id>", teams_api.OneTeam.as_view(), name="api-team"),
    path("api/v1/availability", teams_api.Availabilities.as_view(), name="api-availability"),
    path(
        "api/v1/availability/<uuid:member_id>",
        teams_api.OneAvailability.as_view(),
        name="api-member-availability",
    ),
    path("api/v1/saved-views", saved_views_api.SavedViews.as_view(), name="api-saved-views"),
    path("api/v1/saved-views/<uuid:view_id>", saved_views_api.OneSavedView.as_view(), name="api-saved-view"),
    path("api/v1/macros", macros_api.Macros.as_view(), name="api-macros"),
    path("api/v1/macros/<uuid:macro_id>", macros_api.OneMacro.as_view(), name="api-macro"),
    path(f"{_SESSION}/macros", macros_api.SessionMacro.as_view(), name="api-session-macros"),
    path("api/v1/inbox-rules", inbox_rules_api.InboxRules.as_view(), name="api-inbox-rules"),
    path("api/v1/inbox-rules/<uuid:rule_id>", inbox_rules_api.OneInboxRule.as_view(), name="api-inbox-rule"),
    path("api/v1/sla-policies", sla_policies_api.SlaPolicies.as_view(), name="api-sla-policies"),
    path("api/v1/sla-policies/<uuid:policy_id>", sla_policies_api.OneSlaPolicy.as_view(), name="api-sla-policy"),
    path("api/v1/labels", api.Labels.as_view(), name="api-labels"),
    path("api/v1/labels/<uuid:label_id>", api.OneLabel.as_view(), name="api-label"),
    path("api/v1/canned-replies", api.CannedReplies.as_view(), name="api-canned-replies"),
    path("api/v1/canned-replies/<uuid:reply_id>", api.OneCannedReply.as_view(), name="api-canned-reply"),
]
