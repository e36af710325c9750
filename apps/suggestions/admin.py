"""Read-only admin of suggestions and calibration.

Owners edit `InitiativeSettings` here. Of recorded outcomes they may tighten the approvals, which only adds cards (spec
5.1.6).
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import ReadOnlyAdmin, confirm_action
from apps.suggestions.calibration_policy import CalibrationConfig, config_problems
from apps.suggestions.models import FreedomProposal, InitiativeSettings, Outcome, Preference, Suggestion
from apps.suggestions.services.calibration import tighten_approvals
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.work.models import ThresholdChange
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_CONFIG = ("min_samples", "window_actions", "window_days", "widen_max", "tighten_min", "hysteresis")


class InitiativeSettingsForm(TenantRowForm):
    def clean(self) -> dict[str, Any]:
        """Refuse thresholds that would make the calibration swing back and forth."""
        cleaned = super().clean()
        values = {name: cleaned[name] for name in _CONFIG if cleaned.get(name) is not None}
        for name, problem in config_problems(CalibrationConfig(**values)).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(InitiativeSettings)
class InitiativeSettingsAdmin(TenantRowAdmin):
    form = InitiativeSettingsForm
    list_display = ("tenant", "suggestions", "calibration", "preferences")


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("decided_at", "deployment", "family", "kind", "risk", "card_kind", "decided_by", "tenant")
    list_filter = ("kind",)
    list_select_related: ClassVar = ["tenant", "deployment", "decided_by"]
    actions = ("tighten",)  # type: ignore[assignment]  # the only action here: it can only add cards

    @admin.action(
        description=gettext_lazy("Require approval more often for the selected families"), permissions=["view"]
    )
    @confirm_action(gettext_lazy("From now on, actions of these families need approval more often."))
    def tighten(self, request: HttpRequest, queryset: QuerySet[Outcome]) -> None:
        assert request.user.is_authenticated
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
    list_display = ("created_at", "deployment", "key", "hits", "sample_size", "people", "state", "expires_at", "tenant")
    list_filter = ("state",)
    list_select_related: ClassVar = ["tenant", "deployment"]
