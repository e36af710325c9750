"""URLs of what a visitor's browser, and a company's own system, ask of a conversation beside talking (contract
interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.visitors.api import conversations, deployments, memories, proactive_messages, prompts, sessions, widget

_DEPLOYMENT = "api/v1/deployments/<uuid:deployment_id>"
_SESSION = "api/v1/sessions/<uuid:session_id>"
_CARDS = f"{_SESSION}/cards"

urlpatterns = [
    path("api/v1/deployments", deployments.Deployments.as_view(), name="api-deployments"),
    path(_DEPLOYMENT, deployments.OneDeployment.as_view(), name="api-deployment"),
    path(f"{_DEPLOYMENT}/provider-keys", deployments.ProviderKeys.as_view(), name="api-provider-keys"),
    path(f"{_DEPLOYMENT}/provider-keys/<slug:provider>", deployments.OneProviderKey.as_view(), name="api-provider-key"),
    path(f"{_DEPLOYMENT}/logo", deployments.Logo.as_view(), name="api-deployment-logo"),
    path(f"{_DEPLOYMENT}/avatar", deployments.Avatar.as_view(), name="api-deployment-avatar"),
    path(f"{_DEPLOYMENT}/install", deployments.Install.as_view(), name="api-deployment-install"),
    path(
        f"{_DEPLOYMENT}/proactive-messages",
        proactive_messages.ProactiveMessages.as_view(),
        name="api-proactive-messages",
    ),
    path(
        f"{_DEPLOYMENT}/proactive-messages/<uuid:message_id>",
        proactive_messages.OneProactiveMessage.as_view(),
        name="api-proactive-message",
    ),
    path("api/v1/memories/customer", memories.CustomerMemories.as_view(), name="api-memory-customer"),
    path("api/v1/widget/<str:key>/sessions", sessions.WidgetSessions.as_view(), name="widget-sessions"),
    path("secrets/<uuid:ref_id>", prompts.Secrets.as_view(), name="secrets"),
    path(f"{_SESSION}/files/<uuid:file_id>", conversations.OneSessionFile.as_view(), name="api-session-file"),
    path(f"{_SESSION}/turns/<int:number>/trace", conversations.PromptTrace.as_view(), name="api-session-trace"),
    path(f"{_SESSION}/forget", conversations.ForgetVisitor.as_view(), name="api-session-forget"),
    path(_CARDS, prompts.SessionCards.as_view(), name="api-session-cards"),
    path(f"{_CARDS}/<uuid:card_id>", prompts.OneSessionCard.as_view(), name="api-session-card"),
    path(f"{_CARDS}/<uuid:card_id>/secret", prompts.TakeSecret.as_view(), name="api-session-card-secret"),
    path("api/v1/widget/<str:key>/offers", widget.WidgetOffers.as_view(), name="widget-offers"),
    path("api/v1/widget/<str:key>/form", widget.WidgetForm.as_view(), name="widget-form"),
    path("api/v1/widget/<str:key>/files", widget.WidgetFiles.as_view(), name="widget-files"),
    path("api/v1/widget/<str:key>/files/<uuid:file_id>", widget.WidgetFile.as_view(), name="widget-file"),
    path("api/v1/widget/<str:key>/conversations", widget.WidgetConversations.as_view(), name="widget-list"),
    path("api/v1/widget/<str:key>/articles/search", widget.WidgetArticleSearch.as_view(), name="widget-article-search"),
    path("api/v1/widget/<str:key>/articles/<uuid:document_id>", widget.WidgetArticle.as_view(), name="widget-article"),
    path("api/v1/widget/<str:key>/transcripts", widget.WidgetTranscripts.as_view(), name="widget-transcripts"),
    path(
        "api/v1/widget/<str:key>/transcripts/<uuid:request_id>",
        widget.WidgetTranscript.as_view(),
        name="widget-transcript",
    ),
    path("api/v1/widget/<str:key>/cards/<uuid:card_id>", prompts.WidgetCard.as_view(), name="widget-card"),
    path("api/v1/widget/<str:key>/rating", widget.WidgetRating.as_view(), name="widget-rating"),
]
