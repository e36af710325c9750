"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.members import api_keys, apps, login_settings, views

urlpatterns = [
    path("members/", views.members, name="console-members"),
    path("members/invite/", views.invite, name="console-invite"),
    path("members/invitations/<uuid:invitation_id>/again/", views.invite_again, name="console-invite-again"),
    path("members/invitations/<uuid:invitation_id>/revoke/", views.uninvite, name="console-uninvite"),
    path("members/<uuid:membership_id>/role/", views.change_role, name="console-member-role"),
    path("members/<uuid:membership_id>/remove/", views.remove, name="console-member-remove"),
    path("members/login/", login_settings.member_logins, name="console-member-logins"),
    path("members/login/second-factor/", login_settings.require_second_factor, name="console-second-required"),
    path("members/login/provider/", login_settings.save_provider, name="console-provider"),
    path("apps/", apps.apps, name="console-apps"),
    path("apps/register/", apps.register, name="console-app-register"),
    path("apps/self-registration/", apps.allow_self_registration, name="console-app-self-registration"),
    path("apps/<uuid:app_id>/change/", apps.change, name="console-app-change"),
    path("apps/<uuid:app_id>/secret/", apps.replace_secret, name="console-app-secret"),
    path("apps/<uuid:app_id>/revoke/", apps.revoke, name="console-app-revoke"),
    path("api-keys/", api_keys.api_keys, name="console-api-keys"),
    path("api-keys/make/", api_keys.make, name="console-api-key-make"),
    path("api-keys/<uuid:key_id>/rotate/", api_keys.rotate, name="console-api-key-rotate"),
    path("api-keys/<uuid:key_id>/signing/", api_keys.add_client_key, name="console-client-key-add"),
    path("api-keys/signing/<str:key_id>/revoke/", api_keys.revoke_client_key, name="console-client-key-revoke"),
    path("api-keys/<uuid:key_id>/revoke/", api_keys.revoke, name="console-api-key-revoke"),
]
