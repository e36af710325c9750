"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.tool_servers import views

urlpatterns = [
    path("tool-servers/", views.listing, name="console-tool-servers"),
    path("tool-servers/web/", views.save_search, name="console-web-search"),
    path("tool-servers/web/remove/", views.remove_search, name="console-web-search-remove"),
    path("tool-servers/new/", views.new, name="console-tool-server-new"),
    path("tool-servers/program/", views.new_program, name="console-tool-program-new"),
    path("tool-servers/<uuid:server_id>/", views.server, name="console-tool-server"),
    path("tool-servers/<uuid:server_id>/refresh/", views.refresh, name="console-tool-server-refresh"),
    path("tool-servers/<uuid:server_id>/switch/", views.switch, name="console-tool-server-switch"),
    path("tool-servers/<uuid:server_id>/remove/", views.remove, name="console-tool-server-remove"),
    path("tool-servers/<uuid:server_id>/<uuid:tool_id>/accept/", views.accept, name="console-tool-accept"),
    path("tool-servers/<uuid:server_id>/<uuid:tool_id>/suspend/", views.suspend, name="console-tool-suspend"),
]
