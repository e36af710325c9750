"""The console's addresses: the shell here, every other page in the `urls.py` of its package."""

from __future__ import annotations

from django.urls import include, path

from apps.console import base, pwa

# One package below `pages/` for each, in no particular order: no two pages share an address.
PAGES = (
    "account",
    "activity",
    "automations",
    "channels",
    "connections",
    "contacts",
    "exports",
    "first_run",
    "gates",
    "inbox",
    "inbox_rules",
    "insights",
    "knowledge",
    "login",
    "macros",
    "members",
    "memory",
    "palette",
    "policies",
    "queues",
    "releases",
    "review",
    "safety",
    "saved_views",
    "settings",
    "simulations",
    "skills",
    "sla_policies",
    "spending",
    "studio",
    "teams",
    "tool_servers",
    "work",
)

urlpatterns = [
    path("", base.start, name="console"),
    path("rail/", base.rail, name="console-rail"),
    path("sw.js", pwa.service_worker, name="console-service-worker"),
    path("offline/", pwa.offline, name="console-offline"),
    *(path("", include(f"apps.console.pages.{name}.urls")) for name in PAGES),
]
