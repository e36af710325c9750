"""SLA policies: the list in the order in which they are tried, and the page of one."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.templatetags.console import span_of_minutes
from apps.inbox import sla_policies
from apps.inbox.enums import SlaTarget
from apps.inbox.models import SlaPolicy, Team
from apps.inbox.sla_policies import MAX_MINUTES, MAX_POSITION, PolicyFields
from apps.tenants.enums import Capability
from apps.tenants.models import Deployment
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

HOUR = 60
# The minutes in a unit, as the form sends them, and its name.
UNITS = {"1": gettext_lazy("minutes"), str(HOUR): gettext_lazy("hours")}


@require_safe
@staff_view()
def sla_policies_page(request: StaffRequest) -> HttpResponseBase:
    teams, chatbots = _teams(), _chatbots()
    rows = [
        {
            "policy": policy,
            "targets": _targets_in_words(policy),
            "scope": [*_names(policy.teams, teams), *_names(policy.deployments, chatbots)],
            "is_orphan": sla_policies.is_orphan(policy, teams, chatbots),
        }
        for policy in sla_policies.sla_policies()
    ]
    return page(request, "console/sla_policies.html", at="inbox", rows=rows)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def new_policy(request: StaffRequest) -> HttpResponseBase:
    return _policy(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def policy(request: StaffRequest, policy_id: UUID) -> HttpResponseBase:
    return _policy(request, sla_policies.sla_policy(policy_id))


@require_POST
@staff_view(Capability.ADMINISTER)
def delete_policy(request: StaffRequest, policy_id: UUID) -> HttpResponseBase:
    sla_policies.delete_policy(request.member.user, policy_id)
    return redirect("console-sla-policies")


def _policy(request: StaffRequest, row: SlaPolicy | None) -> HttpResponseBase:
    refusal = None
    fields = sla_policies.fields_of(row) if row else PolicyFields("", position=_next_position())
    if request.method == "POST":
        fields = _fields_from(request.POST)
        try:
            saved = sla_policies.save_policy(request.member.user, fields, policy_id=row.pk if row else None)
        except SilasError as error:
            if error.code in (ErrorCode.FORBIDDEN_ROLE, ErrorCode.NOT_FOUND):
                raise
            refusal = error
        else:
            return redirect(f"{request.path}?saved=1") if row else redirect("console-sla-policy", saved.pk)
    return page(
        request,
        "console/sla_policy.html",
        at="inbox",
        status=refusal.status if refusal else 200,
        row=row,
        fields=fields,
        refusal=refusal,
        saved="saved" in request.GET and refusal is None,
        targets=[(target.value, target.label, *_in_units(getattr(fields, target))) for target in SlaTarget],
        units=UNITS,
        groups=[
            ("teams", _("Teams"), _("All teams, and conversations without one"), _ticks(_teams(), fields.teams)),
            ("deployments", _("Chatbots"), _("All chatbots"), _ticks(_chatbots(), fields.deployments)),
        ],
        most_number=MAX_MINUTES,
        most_position=MAX_POSITION,
    )


def _next_position() -> int:
    rows = sla_policies.sla_policies()
    return min(rows[-1].position + 1, MAX_POSITION) if rows else 1


def _teams() -> dict[str, str]:
    return {str(team.pk): team.name for team in Team.objects.all()}


def _chatbots() -> dict[str, str]:
    return {str(row.pk): row.title for row in Deployment.objects.order_by("title")}


def _names(ids: list[str], names: dict[str, str]) -> list[str]:
    return [names[one] for one in ids if one in names]


def _ticks(names: dict[str, str], chosen: Collection[str]) -> list[tuple[str, str, bool]]:
    return [(pk, name, pk in chosen) for pk, name in names.items()]


def _targets_in_words(policy: SlaPolicy) -> list[str]:
    return [
        _("{target} within {time}").format(target=target.label, time=span_of_minutes(minutes))
        for target in SlaTarget
        if (minutes := getattr(policy, target)) is not None
    ]


def _fields_from(posted: QueryDict) -> PolicyFields:
    return PolicyFields(
        name=posted.get("name", ""),
        first_reply=_minutes(posted, SlaTarget.FIRST_REPLY),
        next_reply=_minutes(posted, SlaTarget.NEXT_REPLY),
        resolution=_minutes(posted, SlaTarget.RESOLUTION),
        in_opening_hours=posted.get("in_opening_hours") == "1",
        teams=posted.getlist("teams"),
        deployments=posted.getlist("deployments"),
        position=_number(posted, "position") or 0,
    )


def _minutes(posted: QueryDict, target: SlaTarget) -> int | None:
    """The time of a target, entered as a number and its unit; minutes for an unknown unit."""
    number, unit = _number(posted, target), posted.get(f"{target}_unit", "")
    return number * (int(unit) if unit in UNITS else 1) if number is not None else None


def _in_units(minutes: int | None) -> tuple[int | None, str]:
    """The number and unit that a time is shown in: hours where they are whole."""
    if minutes and minutes % HOUR == 0:
        return minutes // HOUR, str(HOUR)
    return minutes, "1"


def _number(posted: QueryDict, name: str) -> int | None:
    """The number of a field, None for an empty one, and 0, which is refused, for anything else."""
    text = posted.get(name, "").strip()
    if not text:
        return None
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0
