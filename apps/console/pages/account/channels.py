"""Accounts of a member in channels, where they get cards, and the owner's policy for them.

Linking needs the password, so that an open session alone is not enough.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.rules import APPROVING_ROLES
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.login.reauthentication import require_password
from apps.messengers import ports, queries
from apps.messengers.cards import accounts
from apps.messengers.models import MOST_DAYS
from apps.tenants.enums import Capability
from apps.tenants.models import Membership
from apps.tenants.rules import roles_with
from kernel.errors import SilasError


class CardPolicyForm(forms.Form):
    """Order follows the fields `first`, `second` and so on; an empty one is skipped."""

    enabled = forms.BooleanField(label=gettext_lazy("Send cards to approvers in channels"), required=False)
    decide_in_place = forms.BooleanField(
        label=gettext_lazy("Decide low risk by a button"),
        required=False,
        help_text=gettext_lazy("Anything else opens a page where the approver's passkey decides."),
    )
    verified_days = forms.IntegerField(
        label=gettext_lazy("Days until an account has to be linked again"), min_value=1, max_value=MOST_DAYS
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.orders = {
            "channels": (gettext_lazy("Channel {number}"), _channel_choices()),
            "people": (gettext_lazy("Person {number}"), _people_choices()),
        }
        for name, (label, choices) in self.orders.items():
            for number in range(1, len(choices) + 1):
                self.fields[f"{name}_{number}"] = forms.ChoiceField(
                    label=str(label).format(number=number),
                    choices=[("", "-"), *choices],
                    required=False,
                )

    def ordered(self, name: str) -> list[str]:
        numbers = range(1, len(self.orders[name][1]) + 1)
        return [value for number in numbers if (value := self.cleaned_data[f"{name}_{number}"])]


@require_safe
@staff_view(*DECIDING_ROLES)
def account_channels(request: StaffRequest) -> HttpResponseBase:
    return _page(request)


@require_POST
@sensitive_post_parameters("password")
@staff_view(*DECIDING_ROLES)
def create_code(request: StaffRequest) -> HttpResponseBase:
    """Show a new code, once."""
    require_password(request)
    return _page(request, code=accounts.create_code(request.member.user))


@require_POST
@staff_view(*DECIDING_ROLES)
def unlink(request: StaffRequest, account_id: UUID) -> HttpResponseBase:
    accounts.unlink(account_id, user=request.member.user)
    return redirect("console-account-channels")


@require_POST
@staff_view(*roles_with(Capability.ADMINISTER))
def save_policy(request: StaffRequest) -> HttpResponseBase:
    form = CardPolicyForm(request.POST)
    if not form.is_valid():
        return _page(request, form=form, status=400)
    values = form.cleaned_data
    try:
        accounts.set_policy(
            request.member.user,
            enabled=values["enabled"],
            channels=form.ordered("channels"),
            people=form.ordered("people"),
            decide_in_place=values["decide_in_place"],
            verified_days=values["verified_days"],
        )
    except SilasError as refusal:
        form.add_error(None, refusal.message)
        return _page(request, form=form, status=refusal.status)
    return redirect("console-account-channels")


def _page(request: StaffRequest, *, status: int = 200, **more: object) -> HttpResponseBase:
    context = {"accounts": accounts.accounts_of(request.member.user), "rule": accounts.policy(), **more}
    if request.member.may_administer and "form" not in context:
        context["form"] = CardPolicyForm(initial=_initial())
    return page(request, "console/account_channels.html", at="account", status=status, **context)


def _initial() -> dict[str, object]:
    row = accounts.saved_policy()
    chosen = {
        f"{name}_{number}": value
        for name in ("channels", "people")
        for number, value in enumerate(getattr(row, name), 1)
    }
    return {name: getattr(row, name) for name in ("enabled", "decide_in_place", "verified_days")} | chosen


def _channel_choices() -> list[tuple[str, Any]]:
    rows = [row for row in queries.channels() if ports.adapter_of(row.kind).carries_cards]
    return [*((str(row.pk), row.name) for row in rows), (accounts.EMAIL, gettext_lazy("Email"))]


def _people_choices() -> list[tuple[str, str]]:
    rows = Membership.objects.select_related("user").filter(role__in=APPROVING_ROLES).order_by("created_at")[:10]
    return [(str(row.user_id), row.user.display_name) for row in rows]
