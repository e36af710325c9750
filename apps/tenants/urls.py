"""URLs of members, keys, apps, limits and the audit log in the REST API, and of OAuth (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.tenants.api import api_keys, audit, company, company_limits, members, oauth_apps
from apps.tenants.oauth import views as oauth

urlpatterns = [
    path("oauth/token", oauth.token, name="oauth-token"),
    path("oauth/revoke", oauth.revoke, name="oauth-revoke"),
    path("oauth/register/<slug:key>", oauth.register, name="oauth-register"),
    path(".well-known/oauth-authorization-server", oauth.metadata, name="oauth-metadata"),
    path(
        ".well-known/oauth-authorization-server/mcp/deployments/<slug:key>",
        oauth.metadata_of,
        name="oauth-metadata-of",
    ),
    path("api/v1/audit", audit.Audit.as_view(), name="api-audit"),
    path("api/v1/audit/<int:seq>", audit.OneEntry.as_view(), name="api-audit-entry"),
    path("api/v1/audit/verify", audit.VerifyLog.as_view(), name="api-audit-verify"),
    path("api/v1/audit/export", audit.ExportLog.as_view(), name="api-audit-export"),
    path("api/v1/api-keys", api_keys.ApiKeys.as_view(), name="api-keys"),
    path("api/v1/api-keys/<uuid:key_id>", api_keys.OneApiKey.as_view(), name="api-key"),
    path("api/v1/api-keys/<uuid:key_id>/rotate", api_keys.RotateApiKey.as_view(), name="api-key-rotate"),
    path("api/v1/oauth-apps", oauth_apps.OAuthApps.as_view(), name="api-oauth-apps"),
    path("api/v1/oauth-apps/<uuid:app_id>", oauth_apps.OneOAuthApp.as_view(), name="api-oauth-app"),
    path("api/v1/oauth-apps/<uuid:app_id>/secret", oauth_apps.NewSecret.as_view(), name="api-oauth-app-secret"),
    path("api/v1/company", company.Company.as_view(), name="api-company"),
    path("api/v1/retention", company_limits.RetentionOfCompany.as_view(), name="api-retention"),
    path("api/v1/visitor-limits", company_limits.VisitorLimitsOfCompany.as_view(), name="api-visitor-limits"),
    path("api/v1/members", members.Members.as_view(), name="api-members"),
    path("api/v1/members/<uuid:member_id>", members.OneMember.as_view(), name="api-member"),
    path("api/v1/invitations", members.Invitations.as_view(), name="api-invitations"),
    path("api/v1/invitations/<uuid:invitation_id>", members.OneInvitation.as_view(), name="api-invitation"),
    path(
        "api/v1/invitations/<uuid:invitation_id>/resend",
        members.ResendInvitation.as_view(),
        name="api-invitation-resend",
    ),
]
