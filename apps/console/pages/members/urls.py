"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.members import api_keys, login_settings, views

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
    path("api-keys/", api_keys.api_keys, name="console-api-keys"),
    path("api-keys/make/", api_keys.make, name="console-api-key-make"),
    path("api-keys/<uuid:key_id>/revoke/", api_keys.revoke, name="console-api-key-revoke"),
]
