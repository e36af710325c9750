"""Show approvals in the administration, except sealed keys. Policies and timings can be edited, a lost passkey can be
taken out of use, and nothing else can be changed."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.approvals import queries
from apps.approvals.enums import Deciders, PasskeyRule
from apps.approvals.models import (
    Answer,
    ApprovalPolicy,
    ApprovalToken,
    ApproverKey,
    Card,
    CardTiming,
    ClientKey,
    Decision,
    DecisionLink,
    Passkey,
    TokenRevocation,
    TokenUse,
)
from apps.approvals.passkeys import services as passkeys
from apps.audit.admin_base import ReadOnlyAdmin
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from apps.tenants.admin.fields import DurationInSecondsField
from kernel.tenancy import tenant_scope
from kernel.tenancy.scope import current_scope


def passkey_warning(policy: ApprovalPolicy) -> str:
    """Say that a policy requires a passkey of more people than have one; empty if it can be met."""
    if policy.passkey != PasskeyRule.REQUIRED:
        return ""
    approvers = queries.eligible_memberships(Deciders(policy.who), tenant_id=policy.tenant_id)
    having = queries.count_with_passkey(approvers)
    if having >= policy.people:
        return ""
    warning = _(
        "Only %(having)s of the members who may approve have a passkey. Until more of them add one (Your account, "
        "Approval keys), nothing of this kind can be approved."
    )
    return warning % {"having": having}


@admin.register(Card)
class CardAdmin(ReadOnlyAdmin):
    list_display = ("intent", "kind", "risk", "status", "created_at")
    list_filter = ("status", "risk", "kind")
    search_fields = ("intent",)
    ordering = ("-created_at",)


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ("card", "verdict", "user", "decided_at")
    list_filter = ("verdict",)
    list_select_related: ClassVar = ["card", "user"]
    ordering = ("-decided_at",)


@admin.register(ApprovalToken)
class ApprovalTokenAdmin(ReadOnlyAdmin):
    list_display = ("id", "scope", "work_item_id", "issued_at", "expires_at", "key_id")
    ordering = ("-issued_at",)


@admin.register(TokenUse)
class TokenUseAdmin(ReadOnlyAdmin):
    list_display = ("token_nonce", "ordinal", "subject_id", "used_at")
    ordering = ("-used_at",)


@admin.register(ApproverKey)
class ApproverKeyAdmin(ReadOnlyAdmin):
    list_display = ("user", "key_id", "created_at", "retired_at", "revoked_at")
    list_select_related: ClassVar = ["user"]
    search_fields = ("key_id", "user__email")
    exclude: ClassVar = ["sealed_private"]


@admin.register(ClientKey)
class ClientKeyAdmin(ReadOnlyAdmin):
    list_display = ("user", "api_key", "key_id", "max_risk", "created_at", "revoked_at")
    list_select_related: ClassVar = ["user", "api_key"]
    search_fields = ("key_id", "user__email")


@admin.register(DecisionLink)
class DecisionLinkAdmin(ReadOnlyAdmin):
    list_display = ("card", "user", "created_at", "expires_at", "spent_at")
    list_select_related: ClassVar = ["card", "user"]
    search_fields = ("user__email",)
    exclude: ClassVar = ["hashed"]
    ordering = ("-created_at",)


@admin.register(Answer)
class AnswerAdmin(ReadOnlyAdmin):
    list_display = ("card", "user", "verdict", "answered_at", "key_id")
    list_select_related: ClassVar = ["card", "user"]
    ordering = ("-answered_at",)


@admin.register(TokenRevocation)
class TokenRevocationAdmin(ReadOnlyAdmin):
    list_display = ("token", "user", "reason", "revoked_at")
    list_select_related: ClassVar = ["token", "user"]
    ordering = ("-revoked_at",)


class ApprovalPolicyForm(TenantRowForm):
    class Meta:
        help_texts: ClassVar = {
            "scope": gettext_lazy("What is asked for. Blank: every scope"),
            "risk": gettext_lazy("How risky it is. Blank: every risk"),
            "who": gettext_lazy(
                "Whose approval counts. Anyone who may decide can still reject, and one rejection is final"
            ),
            "people": gettext_lazy(
                "How many different people have to approve. The requester does not count, unless allowed below"
            ),
            "passkey": gettext_lazy("People add passkeys themselves: Your account, Approval keys"),
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        who = Deciders(cleaned.get("who") or Deciders.APPROVERS)
        able = queries.eligible_memberships(who, tenant_id=_tenant_of(self, cleaned)).count()
        if (cleaned.get("people") or 0) > able:
            problem = _("Only %(number)s of your members may approve, so nothing would ever be approved.")
            self.add_error("people", problem % {"number": able})
        return cleaned


def _tenant_of(form: TenantRowForm, cleaned: dict[str, Any]) -> UUID | None:
    chosen = cleaned.get("tenant")
    tenant: UUID | None = chosen.pk if chosen else form.instance.tenant_id or current_scope().tenant_id
    return tenant


@admin.register(ApprovalPolicy)
class ApprovalPolicyAdmin(TenantRowAdmin):
    """Edit who may approve what. The most specific row applies to a card: scope and risk, scope, risk, neither."""

    form = ApprovalPolicyForm
    list_display = ("__str__", "who", "people", "passkey", "own_requests")
    list_filter = ("risk", "who", "passkey")
    search_fields = ("scope",)
    fields = ("scope", "risk", "who", "people", "passkey", "own_requests")

    def save_model(
        self, request: HttpRequest, obj: ApprovalPolicy, form: ModelForm[ApprovalPolicy], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if warning := passkey_warning(obj):
            messages.warning(request, warning)


@admin.register(Passkey)
class PasskeyAdmin(ReadOnlyAdmin):
    """Show passkeys. Deleting takes a lost one out of use; the row stays, as evidence for what it signed."""

    list_display = ("user", "name", "rp_id", "created_at", "last_used_at", "removed_at")
    list_select_related: ClassVar = ["user"]
    exclude: ClassVar = ["public_key"]
    ordering = ("-created_at",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is not None and obj.removed_at is None and request.user.has_perm("approvals.delete_passkey")

    def delete_model(self, request: HttpRequest, obj: Passkey) -> None:
        with tenant_scope(obj.tenant_id):
            passkeys.remove_passkey(obj.pk, user=obj.user, actor=f"user:{request.user.pk}")


class CardTimingForm(TenantRowForm):
    seconds = DurationInSecondsField(
        label=gettext_lazy("Time to decide"),
        help_text=gettext_lazy(
            "From 10 seconds to 30 days. When the time is up nothing runs, and the requester is told."
        ),
    )

    class Meta:
        help_texts: ClassVar = {"pace": gettext_lazy("Which cards, by who waits for the answer")}


@admin.register(CardTiming)
class CardTimingAdmin(TenantRowAdmin):
    """Edit how long cards wait until they count as declined; a deployment's own row takes precedence over the
    tenant's."""

    form = CardTimingForm
    list_display = ("pace", "deployment", "seconds")
    list_filter = ("pace",)
    list_select_related: ClassVar = ["deployment", "tenant"]
    fields = ("deployment", "pace", "seconds")
