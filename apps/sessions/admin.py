"""Access levels, to edit, and conversations, to read only, in the administration."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.access.models import AccessLevel
from apps.access.rules import PUBLIC, requires_problem, tools_problem
from apps.audit.admin_base import ReadOnlyAdmin
from apps.sessions import policy
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.tenants.admin.fields import LinesField
from kernel.tenancy import tenant_scope


class AccessLevelForm(TenantRowForm):
    tools = LinesField(
        label=gettext_lazy("Tools"),
        help_text=gettext_lazy("All that may be called at this level, one per line, such as knowledge_search"),
    )
    requires = LinesField(
        label=gettext_lazy("Required gates"),
        help_text=gettext_lazy("The gates that all have to be passed, one per line, such as identity_verified"),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        deployment = cleaned.get("deployment")
        if deployment is not None and not self.errors:
            with tenant_scope(deployment.tenant_id):
                tools, gates = policy.known_tools(deployment), policy.known_gates(deployment)
            is_public = cleaned["name"] == PUBLIC
            self._refuse("tools", tools_problem(cleaned["tools"], tools))
            self._refuse("requires", requires_problem(cleaned["requires"], gates, is_public=is_public))
            if is_public and cleaned.get("expires_after") is not None:
                self._refuse("expires_after", _("Public does not end."))
        return cleaned

    def _refuse(self, field: str, problem: str) -> None:
        if problem:
            self.add_error(field, problem)


@admin.register(AccessLevel)
class AccessLevelAdmin(TenantRowAdmin):
    """Levels of a deployment whose goal has none. From the next message on they hold for everybody who writes."""

    form = AccessLevelForm
    list_display = ("name", "deployment", "order", "requires", "expires_after")
    list_filter = ("deployment",)
    list_select_related: ClassVar = ["deployment", "tenant"]
    fields = ("deployment", "name", "order", "description", "tools", "requires", "expires_after")


@admin.register(ChatSession)
class ChatSessionAdmin(ReadOnlyAdmin):
    list_display = ("visitor_name", "deployment", "owner", "level", "turns", "last_active_at")
    list_filter = ("owner", "level", "deployment")
    search_fields = ("customer", "customer_name")
    list_select_related: ClassVar = ["deployment"]
    exclude = ("resume_hash",)
    ordering = ("-last_active_at",)


@admin.register(ChronicleEntry)
class ChronicleEntryAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "session_id", "seq", "kind", "sender", "taint")
    list_filter = ("kind", "sender")
    ordering = ("-created_at",)


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("started_at", "session_id", "number", "status", "reason", "step", "model_name")
    list_filter = ("status",)
    ordering = ("-started_at",)
