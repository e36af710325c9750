"""Releases of a chatbot, for owners: what would be published, figures by release, shares, and roll-back."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.pages.releases.presenter import figures_of, lines_of
from apps.releases import queries, rules, services
from apps.releases.enums import ReleaseStatus, SimulationRule
from apps.releases.schemas import Snapshot
from apps.releases.simulation_gate import outcome_of
from apps.releases.snapshots import take
from apps.simulations import queries as simulations
from apps.simulations.release_judge import overrides_of
from apps.simulations.services import run_simulation
from apps.tenants.enums import Role
from apps.tenants.queries import deployment_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ids import require_id

SHOWN = 20


@require_safe
@staff_view(Role.OWNER)
def releases(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    place = deployment_by_id(deployment_id)
    rows = list(queries.releases_of(place.pk).select_related("deployment")[:SHOWN])
    live = [row for row in rows if row.status == ReleaseStatus.LIVE]
    snapshot = take(place)
    names = names_for(row.created_by for row in rows)
    return page(
        request,
        "console/releases.html",
        at="studio",
        place=place,
        releases=[(row, names.of(row.created_by)) for row in rows],
        figures=figures_of([row for row in rows if row.status != ReleaseStatus.WITHDRAWN][:5], _zone(request)),
        live=live,
        newest=rows[0].number if rows else 0,
        changes=lines_of(rules.differences(live[0].read_snapshot(), snapshot)) if live else [],
        unchanged=bool(live) and live[0].sha256 == snapshot.sha256,
        sha256=snapshot.sha256,
        outcome=outcome_of(place, snapshot),
        simulation=simulations.newest_run_of(place, snapshot.sha256),
        rule=queries.simulation_rule(),
        rules=SimulationRule.choices,
        suites=simulations.suites_of(place),
    )


@require_safe
@staff_view(Role.OWNER)
def changes(request: StaffRequest, deployment_id: UUID, number: int) -> HttpResponseBase:
    """What a release changed against the one before it."""
    place = deployment_by_id(deployment_id)
    release = queries.release_by_number(place.pk, number)
    before = queries.release_by_number(place.pk, number - 1) if number > 1 else None
    found = rules.differences(before.read_snapshot(), release.read_snapshot()) if before else []
    return page(
        request,
        "console/release.html",
        at="studio",
        place=place,
        release=release,
        before=before,
        changes=lines_of(found),
        served=release.read_snapshot().served,
    )


@require_POST
@staff_view(Role.OWNER)
def publish(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    services.publish(
        deployment_by_id(deployment_id),
        actor=request.member.user.actor,
        sha256=request.POST.get("sha256", ""),
        share=_number(request, "share"),
        note=" ".join(request.POST.get("note", "").split())[:200],
        override_reason=request.POST.get("reason", ""),
    )
    return redirect("console-releases", deployment_id)


@require_POST
@staff_view(Role.OWNER)
def simulate(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    """Run a suite against exactly what would be published."""
    place, snapshot = deployment_by_id(deployment_id), _seen(request, deployment_id)
    suite = simulations.suite(require_id(request.POST.get("suite", "")))
    by = request.member.user.actor
    run = run_simulation(place, suite, overrides=overrides_of(snapshot), snapshot=snapshot.sha256, by=by)
    return redirect("console-simulation", run.pk)


@require_POST
@staff_view(Role.OWNER)
def change_share(request: StaffRequest, deployment_id: UUID, number: int) -> HttpResponseBase:
    services.change_share(
        deployment_by_id(deployment_id), number, share=_number(request, "share"), actor=request.member.user.actor
    )
    return redirect("console-releases", deployment_id)


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, deployment_id: UUID, number: int) -> HttpResponseBase:
    newest = _number(request, "newest")
    services.roll_back(deployment_by_id(deployment_id), number, newest=newest, actor=request.member.user.actor)
    return redirect("console-releases", deployment_id)


@require_POST
@staff_view(Role.OWNER)
def change_rule(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    wanted = request.POST.get("rule", "")
    if wanted not in SimulationRule.values:
        raise SilasError(ErrorCode.FORM_UNREADABLE)
    services.set_simulation_rule(SimulationRule(wanted), actor=request.member.user.actor)
    return redirect("console-releases", deployment_id)


def _seen(request: StaffRequest, deployment_id: UUID) -> Snapshot:
    """Raises `SilasError("release_changed")` when the working copy is another than the page showed."""
    snapshot = take(deployment_by_id(deployment_id))
    if request.POST.get("sha256") != snapshot.sha256:
        raise SilasError(ErrorCode.RELEASE_CHANGED)
    return snapshot


def _number(request: StaffRequest, name: str) -> int:
    try:
        return int(request.POST.get(name, ""))
    except ValueError:
        raise SilasError(ErrorCode.FORM_UNREADABLE) from None


def _zone(request: StaffRequest) -> str:
    return request.member.tenant.timezone
