"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.login import invitations, password_reset, second_factor, single_sign_on, views

urlpatterns = [
    path("login/", views.log_in, name="console-login"),
    path("welcome/<str:who>/<str:token>/", views.welcome, name="console-welcome"),
    path("logout/", views.log_out, name="console-logout"),
    path("login/second/", second_factor.second, name="console-second"),
    path("login/passkey/begin/", second_factor.begin_passkey, name="console-login-passkey-begin"),
    path("login/passkey/finish/", second_factor.finish_passkey, name="console-login-passkey-finish"),
    path("login/forgotten/", password_reset.forgotten, name="console-forgotten"),
    path("login/new-password/<str:who>/<str:token>/", password_reset.reset, name="console-reset"),
    path("login/company/", single_sign_on.company, name="console-company"),
    path("login/company/<slug:slug>/", single_sign_on.go, name="console-company-go"),
    path("login/company/<slug:slug>/back/", single_sign_on.back, name="console-company-back"),
    path("invitation/<str:token>/", invitations.invitation, name="console-invitation"),
    path("tenant/", views.change_tenant, name="console-tenant"),
]
