"""How forward are a company's bots, and what have they earned? Owners set the first; the second is there to look at,
with the one tap that makes more come before people again (spec 5.1.6). Found by `admin`."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.http import HttpRequest

from apps.audit.admin import ReadOnlyAdmin
from apps.audit.house import confirmed
from apps.autonomy.calibration import Config, problems_with
from apps.autonomy.models import FreedomProposal, InitiativeSettings, Outcome, Preference, Suggestion
from apps.autonomy.services.calibrating import tighten_approvals
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.work.earned_models import ThresholdChange
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_CONFIG = ("min_samples", "window_actions", "window_days", "widen_max", "tighten_min", "hysteresis")


class InitiativeSettingsForm(TenantRowForm):
    def clean(self) -> dict[str, Any]:
        """What could go back and forth is refused."""
        cleaned = super().clean()
        meant = {name: cleaned[name] for name in _CONFIG if cleaned.get(name) is not None}
        for name, problem in problems_with(Config(**meant)).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(InitiativeSettings)
class InitiativeSettingsAdmin(TenantRowAdmin):
    form = InitiativeSettingsForm
    list_display = ("tenant", "suggestions", "calibration", "preferences")


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("decided_at", "deployment", "family", "kind", "risk", "tenant")
    list_filter = ("kind",)
    list_select_related: ClassVar = ["tenant", "deployment"]
    actions = ("tighten",)  # type: ignore[assignment]  # the one thing that may be done here; it only adds cards

    @admin.action(description="Tighten approvals of the chosen families", permissions=["view"])
    @confirmed("Actions of these families come before people more often from now on.")
    def tighten(self, request: HttpRequest, queryset: Any) -> None:
        families = {(row.tenant_id, row.deployment_id, row.family) for row in queryset}
        for tenant_id, deployment_id, family in sorted(families, key=str):
            try:
                with tenant_scope(tenant_id):
                    tighten_approvals(deployment_id, family, user=request.user)
            except SilasError as refusal:
                self.message_user(request, refusal.message, messages.ERROR)


@admin.register(ThresholdChange)
class ThresholdChangeAdmin(ReadOnlyAdmin):
    list_display = ("changed_at", "deployment", "family", "direction", "size_after", "high_after", "user", "tenant")
    list_filter = ("direction",)
    list_select_related: ClassVar = ["tenant", "deployment", "user"]


@admin.register(FreedomProposal)
class FreedomProposalAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "deployment", "family", "direction", "sample_size", "corrections", "state", "tenant")
    list_filter = ("state", "direction")
    list_select_related: ClassVar = ["tenant", "deployment"]


@admin.register(Suggestion)
class SuggestionAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "deployment", "source", "action", "state", "led_to", "tenant")
    list_filter = ("state", "source")
    list_select_related: ClassVar = ["tenant", "deployment"]


@admin.register(Preference)
class PreferenceAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "deployment", "key", "hits", "sample_size", "state", "tenant")
    list_filter = ("state",)
    list_select_related: ClassVar = ["tenant", "deployment"]
