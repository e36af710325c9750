"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.account import alerts, approval_keys, channels, connected_apps, views

urlpatterns = [
    path("account/", views.account, name="console-account"),
    path("account/name/", views.change_name, name="console-account-name"),
    path("account/language/", views.change_language, name="console-account-language"),
    path("account/theme/", views.change_theme, name="console-theme"),
    path("account/password/", views.change_password, name="console-account-password"),
    path("account/app/", views.begin_app, name="console-account-app"),
    path("account/app/confirm/", views.confirm_app, name="console-account-app-confirm"),
    path("account/app/remove/", views.remove_app, name="console-account-app-remove"),
    path("account/codes/", views.make_codes, name="console-account-codes"),
    path("account/passkeys/begin/", views.begin_passkey, name="console-account-passkey-begin"),
    path("account/passkeys/finish/", views.finish_passkey, name="console-account-passkey-finish"),
    path("account/passkeys/<uuid:passkey_id>/remove/", views.remove_passkey, name="console-account-passkey-remove"),
    path("account/logins/others/end/", views.end_other_logins, name="console-logins-end"),
    path("account/logins/<uuid:login_id>/end/", views.end_login, name="console-login-end"),
    path("review/<uuid:card_id>/step-up/options/", approval_keys.step_up_options, name="console-step-up"),
    path("account/keys/", approval_keys.approval_keys, name="console-passkeys"),
    path("account/keys/begin/", approval_keys.begin, name="console-passkey-begin"),
    path("account/keys/finish/", approval_keys.finish, name="console-passkey-finish"),
    path("account/keys/replace/", approval_keys.replace_key, name="console-key-replace"),
    path("account/keys/<uuid:passkey_id>/remove/", approval_keys.remove, name="console-passkey-remove"),
    path("account/keys/<uuid:passkey_id>/rename/", approval_keys.rename, name="console-passkey-rename"),
    path("account/apps/", connected_apps.connected_apps, name="console-connected-apps"),
    path("account/apps/<uuid:grant_id>/revoke/", connected_apps.revoke, name="console-connected-app-revoke"),
    path("account/channels/", channels.account_channels, name="console-account-channels"),
    path("account/channels/code/", channels.create_code, name="console-account-channel-code"),
    path("account/channels/policy/", channels.save_policy, name="console-account-channel-policy"),
    path("account/channels/<uuid:account_id>/remove/", channels.unlink, name="console-account-channel-remove"),
    path("account/alerts/", alerts.alerts_page, name="console-alerts"),
    path("account/alerts/notices/", alerts.choose_notices, name="console-alerts-notices"),
    path("account/alerts/choose/", alerts.choose, name="console-alerts-choose"),
    path("account/alerts/browsers/", alerts.add_browser, name="console-push-add"),
    path("account/alerts/browsers/<uuid:subscription_id>/remove/", alerts.remove_browser, name="console-push-remove"),
]
