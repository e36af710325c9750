"""The two kinds of policy that have a page of their own in Settings: access levels and approval policies.

Their forms are those of the administration, so both check the same. A form is made inside the scope of its request,
because it lists the company's chatbots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.access.models import AccessLevel
from apps.approvals.admin import ApprovalPolicyForm, passkey_warning
from apps.approvals.enums import ApprovalScope, Deciders, Risk
from apps.approvals.models import ApprovalPolicy
from apps.sessions import policy
from apps.sessions.admin import AccessLevelForm
from apps.tenants.admin import TenantRowForm
from apps.tenants.admin.fields import DurationInSecondsField
from apps.tenants.models import Deployment

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_SCOPES: dict[ApprovalScope, StrOrPromise] = {
    ApprovalScope.FULL_PLAN: gettext_lazy("A whole plan"),
    ApprovalScope.SINGLE_STEP: gettext_lazy("One step"),
    ApprovalScope.SKILL_INSTALL: gettext_lazy("Installing a skill"),
    ApprovalScope.BUDGET: gettext_lazy("A larger budget"),
    ApprovalScope.CONNECTION_ACT: gettext_lazy("Acting with a connected account"),
    ApprovalScope.CONNECTION_MANAGE: gettext_lazy("Changing a connected account"),
    ApprovalScope.AUTONOMY_THRESHOLD: gettext_lazy("Changing an automation's threshold"),
    ApprovalScope.STANDING: gettext_lazy("A standing approval"),
}
_APPROVAL_FIELDS = ("scope", "risk", "who", "people", "passkey", "own_requests")
_APPROVAL_LABELS: dict[str, StrOrPromise] = {
    "who": gettext_lazy("Whose approval counts"),
    "people": gettext_lazy("Approvals required"),
    "passkey": gettext_lazy("Passkey needed"),
    "own_requests": gettext_lazy("Allow people to approve their own requests"),
}
_LEVEL_LABELS: dict[str, StrOrPromise] = {
    "deployment": gettext_lazy("Chatbot"),
    "name": gettext_lazy("Name"),
    "order": gettext_lazy("Order"),
    "description": gettext_lazy("Description"),
    "tools": gettext_lazy("Tools"),
    "requires": gettext_lazy("Required gates"),
    "expires_after": gettext_lazy("Ends after"),
}


def _approval_form(_row: ApprovalPolicy | None) -> type[TenantRowForm]:
    made: Any = forms.modelform_factory(ApprovalPolicy, form=ApprovalPolicyForm, fields=_APPROVAL_FIELDS)
    for name, label, every, choices in (
        ("scope", gettext_lazy("Request"), gettext_lazy("Every request"), list(_SCOPES.items())),
        ("risk", gettext_lazy("Risk"), gettext_lazy("Every risk"), Risk.choices),
    ):
        made.base_fields[name] = forms.ChoiceField(label=label, required=False, choices=[("", every), *choices])
    return _labelled(made, _APPROVAL_LABELS)


def _level_form(row: AccessLevel | None) -> type[TenantRowForm]:
    """Tools and gates are chosen from what the level's chatbot has, for a new level from what all chatbots have; the
    form refuses what the chosen one lacks. What the row names and is gone stays in sight, to be taken out."""
    made: Any = forms.modelform_factory(AccessLevel, form=AccessLevelForm, fields=tuple(_LEVEL_LABELS))
    chatbots = [row.deployment] if row else list(Deployment.objects.all())
    for name, known, about in (
        ("tools", policy.known_tools, gettext_lazy("What visitors of this level can use.")),
        ("requires", policy.known_gates, gettext_lazy("Visitors reach this level by passing all of these.")),
    ):
        names = {*(getattr(row, name) if row else ()), *(each for chatbot in chatbots for each in known(chatbot))}
        made.base_fields[name] = forms.MultipleChoiceField(
            required=False,
            choices=[(each, each) for each in sorted(names)],
            widget=forms.CheckboxSelectMultiple,
            help_text=about,
        )
    made.base_fields["expires_after"] = ends = DurationInSecondsField(
        required=False, help_text=gettext_lazy("Leave empty to keep the level until the conversation ends.")
    )
    ends.widget.widgets[0].attrs["aria-label"] = _LEVEL_LABELS["expires_after"]
    return _labelled(made, _LEVEL_LABELS)


def _labelled(form: type[TenantRowForm], labels: Mapping[str, StrOrPromise]) -> type[TenantRowForm]:
    for name, label in labels.items():
        form.base_fields[name].label = label
    return form


@dataclass(frozen=True)
class Kind:
    """One kind of policy with its addresses, its form and its words. `rows`: the company's, with what a line shows."""

    model: type[ApprovalPolicy | AccessLevel]
    rows: Callable[[], QuerySet[ApprovalPolicy] | QuerySet[AccessLevel]]
    make_form: Callable[[Any], type[TenantRowForm]]
    fields: tuple[str, ...]
    address: str
    address_of_one: str
    title: StrOrPromise
    new_title: StrOrPromise
    about: StrOrPromise
    none: StrOrPromise

    @property
    def admin_address(self) -> str:
        return f"admin:{self.model._meta.app_label}_{self.model._meta.model_name}_changelist"


APPROVALS = Kind(
    model=ApprovalPolicy,
    rows=ApprovalPolicy.objects.all,
    make_form=_approval_form,
    fields=_APPROVAL_FIELDS,
    address="console-approval-policies",
    address_of_one="console-approval-policy",
    title=gettext_lazy("Approval policies"),
    new_title=gettext_lazy("New approval policy"),
    about=gettext_lazy(
        "Who may approve, how many have to, and whether with a passkey. If several policies match, the most specific "
        "one applies; a kind of request counts for more than a risk."
    ),
    none=gettext_lazy(
        "No policies yet. Any owner or approver can approve on their own, except what they asked for themselves."
    ),
)
ACCESS_LEVELS = Kind(
    model=AccessLevel,
    rows=partial(AccessLevel.objects.select_related, "deployment"),
    make_form=_level_form,
    fields=tuple(_LEVEL_LABELS),
    address="console-access-levels",
    address_of_one="console-access-level",
    title=gettext_lazy("Access levels"),
    new_title=gettext_lazy("New access level"),
    about=gettext_lazy(
        "What visitors can use at each level of identity check. Levels apply to chatbots whose goal has no levels of "
        "its own, from the next message on."
    ),
    none=gettext_lazy("No levels yet. Visitors reach what is public."),
)


def title_of(row: ApprovalPolicy | AccessLevel) -> str:
    if isinstance(row, AccessLevel):
        return row.name
    scope = _SCOPES[ApprovalScope(row.scope)] if row.scope else _("Every request")
    return f"{scope}, {row.get_risk_display() if row.risk else _('every risk')}"


def facts_of(row: ApprovalPolicy | AccessLevel) -> list[str]:
    """What a line of the list says beside the title."""
    if isinstance(row, AccessLevel):
        return [row.deployment.title, *row.requires]
    return [str(Deciders(row.who).label), _("{number} to approve").format(number=row.people)]


def warning_about(row: ApprovalPolicy | AccessLevel) -> str:
    """What keeps the policy from working, if something does."""
    return passkey_warning(row) if isinstance(row, ApprovalPolicy) else ""
