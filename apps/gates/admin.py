"""Admin of gates: owners write and activate versions; invalid gates are refused with their problems.

Everything is saved through `services.versions`; gates are retired, never deleted.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import confirm_action
from apps.gates import queries, services
from apps.gates.forms import GateForm, initial_of
from apps.gates.models import Gate
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.tenants.models import Deployment
from kernel.tenancy import tenant_scope

_CHECK = ("provider", "type", "check", "extract", "config")
_LIMITS = ("auto_from", "auto_to", "ask_from", "ask_to", "block_low", "block_high", "allowed_values", "approval_values")
_SCRIPT = ("check_command", "check_expect")


class GateAdminForm(GateForm, TenantRowForm):
    """Starts from the newest version."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        gate: Gate | None = kwargs.get("instance")
        if gate is not None and gate.newest:
            initial = initial_of(queries.version_of(gate, gate.newest))
            kwargs["initial"] = {**initial, **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        if gate is not None and gate.newest:
            self.keep_name(gate.name)


@admin.register(Gate)
class GateAdmin(TenantRowAdmin):
    form = GateAdminForm
    change_form_template = "admin/gates/gate/change_form.html"
    list_display = ("name", "deployment", "status", "active", "newest")
    list_filter = ("status", "deployment")
    list_select_related: ClassVar = ["deployment", "tenant"]
    search_fields = ("name",)
    ordering = ("name",)
    actions = ("put_in_force", "retire")
    fieldsets: ClassVar = [
        (None, {"fields": ("name", "deployment", "on", "after_step", "order", "on_block")}),
        (gettext_lazy("Check"), {"fields": _CHECK}),
        (gettext_lazy("Allowed values"), {"fields": _LIMITS}),
        (gettext_lazy("Scripts"), {"fields": _SCRIPT}),
        (gettext_lazy("Models"), {"fields": ("promote_to_policy",)}),
        (gettext_lazy("This change"), {"fields": ("note", "seen")}),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "name", "deployment") if obj else fields

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Gate, form: GateAdminForm, change: bool) -> None:
        data = form.cleaned_data
        with tenant_scope(obj.tenant_id):
            version = services.write_version(
                form.spec,
                deployment_id=obj.deployment_id,
                order=data["order"],
                actor=_actor(request),
                note=data["note"],
                seen=data["seen"],
            )
        obj.pk, obj.newest = version.gate_id, version.number
        # The service has stored the row; Django would otherwise insert it a second time.
        obj._state.adding = False

    def response_change(self, request: HttpRequest, obj: Gate) -> HttpResponse:
        if "_put_in_force" in request.POST:
            self._set_active(request, obj, retire=False)
        return super().response_change(request, obj)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        gate = self.get_object(request, object_id)
        places = Deployment.objects.filter(tenant_id=gate.tenant_id).order_by("title") if gate else ()
        context = {"versions": queries.versions_of(gate) if gate else [], "trial_places": places}
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    @admin.action(description=gettext_lazy("Activate the newest version of the selected gates"), permissions=["change"])
    @confirm_action(gettext_lazy("The newest version of these gates will apply from the next message on."))
    def put_in_force(self, request: HttpRequest, queryset: QuerySet[Gate]) -> None:
        for gate in queryset:
            self._set_active(request, gate, retire=False)

    @admin.action(description=gettext_lazy("Deactivate the selected gates"), permissions=["change"])
    @confirm_action(gettext_lazy("These gates won't apply from the next message on."))
    def retire(self, request: HttpRequest, queryset: QuerySet[Gate]) -> None:
        for gate in queryset:
            self._set_active(request, gate, retire=True)

    def _set_active(self, request: HttpRequest, gate: Gate, *, retire: bool) -> None:
        with tenant_scope(gate.tenant_id):
            if retire:
                services.retire(gate.pk, actor=_actor(request))
            else:
                services.activate(gate.pk, gate.newest, actor=_actor(request))


def _actor(request: HttpRequest) -> str:
    return f"user:{request.user.pk}"
