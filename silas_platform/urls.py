"""URL configuration of the project."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from apps.console.pages.account import connected_apps
from silas_platform import health
from silas_platform.telemetry.views import metrics

handler404 = "silas_platform.errors.unknown_address"
urlpatterns: list[URLPattern | URLResolver] = [
    path("health", health.alive, name="health"),
    path("health/ready", health.ready, name="health-ready"),
    path("metrics", metrics, name="metrics"),
    path("favicon.ico", RedirectView.as_view(url=f"/{settings.STATIC_URL.strip('/')}/console/icon.svg")),
    path("admin/", admin.site.urls),
    path("console/", include("apps.console.urls")),
    path("approve/", include("apps.console.pages.decision_link.urls")),
    path("oauth/authorize", connected_apps.authorize, name="oauth-authorize"),
    path("oauth/authorize/<slug:key>", connected_apps.authorize, name="oauth-authorize-of"),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("", include("apps.approvals.urls")),
    path("", include("apps.autonomy.urls")),
    path("", include("apps.bus.urls")),
    path("", include("apps.connections.urls")),
    path("", include("apps.copilot.urls")),
    path("", include("apps.contacts.urls")),
    path("", include("apps.events.urls")),
    path("", include("apps.gates.urls")),
    path("", include("apps.guard.urls")),
    path("", include("apps.imports.urls")),
    path("", include("apps.inbox.urls")),
    path("", include("apps.knowledge.urls")),
    path("", include("apps.memory.urls")),
    path("", include("apps.messengers.urls")),
    path("", include("apps.persona.urls")),
    path("", include("apps.protocols.urls")),
    path("", include("apps.releases.urls")),
    path("", include("apps.safety.urls")),
    path("", include("apps.sessions.urls")),
    path("", include("apps.simulations.urls")),
    path("", include("apps.skills.urls")),
    path("", include("apps.suggestions.urls")),
    path("", include("apps.tenants.urls")),
    path("", include("apps.toolservers.urls")),
    path("", include("apps.visitors.urls")),
    path("", include("apps.widgets.urls")),
    path("", include("apps.work.urls")),
]
