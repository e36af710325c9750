"""What can the bots do, and who said that they may? The catalogue, a skill with its versions, and how one comes in.

Deciders look and propose; owners switch off, roll back, purge, hand on and say whose packages are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Case, Q, When
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console import capabilities, skill_faces
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.skill_coming import coming_in
from apps.console.views.pages import page
from apps.skills import bundled, differences, installation
from apps.skills.enums import PackageState, SkillStatus
from apps.skills.models import SkillDraft, SkillPackage, SkillVersion, TrustedPublisher
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from apps.tenants.enums import Role
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

SHOWN, SHOWN_DRAFTS = 100, 20
_STATES = {"": "all", "in-use": "in use", "waiting": "waiting", "off": "switched off"}
_OF_STATE = {
    "in-use": (SkillStatus.ACTIVE,),
    "waiting": (SkillStatus.PROPOSED,),
    "off": (SkillStatus.DISABLED, SkillStatus.WITHDRAWN),
}


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    said, state = request.GET.get("q", "")[:100].replace("\0", " ").strip(), request.GET.get("state", "")
    found = _newest(said, state)
    rows = found[:SHOWN]
    usage = capabilities.usage_of(tool for row in rows for tool in capabilities.tools_of(row.manifest))
    return page(
        request,
        "console/skills.html",
        at="skills",
        rows=[_row(version, usage) for version in rows],
        more=len(found) > SHOWN,
        said=said,
        state=state,
        states=_STATES.items(),
        drafts=SkillDraft.objects.all()[:SHOWN_DRAFTS],
        packages=SkillPackage.objects.filter(state=PackageState.WAITING).defer("content")[:SHOWN_DRAFTS],
        offered=bundled.available_names() if request.member.may_administer else (),
    )


def _newest(said: str, state: str) -> list[SkillVersion]:
    """Of each skill the version in use, else the newest; one query however many there are."""
    rows = SkillVersion.objects.defer("body")
    if said:
        rows = rows.filter(Q(name__icontains=said) | Q(manifest__description__icontains=said))
    if state in _OF_STATE:
        rows = rows.filter(status__in=_OF_STATE[state])
    first = Case(When(status=SkillStatus.ACTIVE, then=0), default=1)
    return list(rows.order_by("name", first, "-number").distinct("name")[: SHOWN + 1])


def _row(version: SkillVersion, usage: dict[str, capabilities.Usage]) -> dict[str, Any]:
    tools = capabilities.tools_of(version.manifest)
    return {
        "version": version,
        "title": capabilities.title_of(version),
        "may": capabilities.may(version.manifest),
        "usage": capabilities.summed(tools, usage),
    }


@require_safe
@staff_view(*DECIDING_ROLES)
def skill(request: StaffRequest, name: str) -> HttpResponseBase:
    return _skill(request, name)


def _skill(
    request: StaffRequest, name: str, *, refusal: SilasError | None = None, unsure: str = "", status: int = 200
) -> HttpResponseBase:
    versions = _versions(name)
    shown = _chosen(versions, request.GET.get("version", ""))
    tools = capabilities.tools_of(shown.manifest)
    usage = capabilities.usage_of(tools)
    before = next((one for one in versions if one.number < shown.number), None)
    called = names_for([*(one.requested_by for one in versions), *skill_faces.deciders_of(versions).values()])
    return page(
        request,
        "console/skill.html",
        at="skills",
        status=status,
        name=name,
        title=capabilities.title_of(shown),
        shown=shown,
        before=before,
        in_use=[one for one in versions if one.status == SkillStatus.ACTIVE],
        versions=[skill_faces.line_of(one, called, skill_faces.deciders_of(versions)) for one in versions],
        may=capabilities.may(shown.manifest),
        tools=[(tool, usage.get(tool, capabilities.Usage())) for tool in tools],
        usage=capabilities.summed(tools, usage),
        files=skill_faces.files_of(shown),
        report=skill_faces.report_of(shown),
        refusal=refusal,
        unsure=unsure,
    )


@require_safe
@staff_view(*DECIDING_ROLES)
def compare(request: StaffRequest, name: str) -> HttpResponseBase:
    versions = _versions(name)
    old, new = _numbered(versions, request.GET.get("before", "")), _numbered(versions, request.GET.get("after", ""))
    changes = differences.compare(skill_faces.contents_of(old), skill_faces.contents_of(new))
    return page(request, "console/skill_compare.html", at="skills", name=name, old=old, new=new, changes=changes)


@require_POST
@staff_view(Role.OWNER)
def disable(request: StaffRequest, name: str) -> HttpResponseBase:
    return _sure(request, name, "disable") or _done(name, installation.disable(name, by=request.member.user))


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, name: str) -> HttpResponseBase:
    to = _numbered(_versions(name), request.POST.get("version", ""))
    return _sure(request, name, f"version-{to.number}") or _done(
        name, installation.roll_back(name, to=to, by=request.member.user)
    )


@require_POST
@staff_view(Role.OWNER)
def purge(request: StaffRequest, name: str) -> HttpResponseBase:
    return _sure(request, name, "purge") or _done(name, installation.purge(name, by=request.member.user))


def _sure(request: StaffRequest, name: str, press: str) -> HttpResponseBase | None:
    """The page again while the press was not confirmed."""
    _versions(name)
    return None if request.POST.get("sure") == press else _skill(request, name, unsure=press, status=422)


def _done(name: str, _: Any) -> HttpResponseBase:
    return redirect("console-skill", name)


@require_safe
@staff_view(Role.OWNER)
def export(request: StaffRequest, version_id: UUID) -> HttpResponseBase:
    """The version as one signed file."""
    raw = packages.export_version(version_id, actor=request.member.user.actor)
    version = SkillVersion.objects.get(pk=version_id)
    response = HttpResponse(raw, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{version.name}-{version.number}.silas-skill.zip"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES, scoped=False)
def add(request: StaffRequest) -> HttpResponseBase:
    """What is fetched is fetched outside of any scope."""
    refusal = None
    if request.method == "POST":
        try:
            return redirect(*coming_in(request))
        except SilasError as caught:
            if caught.status not in (400, 409, 413, 422, 502):
                raise
            refusal = caught
    with tenant_scope(request.member.tenant):
        shown = {"refusal": refusal, "problems": (refusal.extra.get("problems") if refusal else None) or ()}
        answer = page(request, "console/skill_add.html", at="skills", status=422 if refusal else 200, **shown)
        return answer.render()


@require_POST
@staff_view(Role.OWNER)
def add_shipped(request: StaffRequest) -> HttpResponseBase:
    version = bundled.install(request.POST.get("name", ""))
    return redirect("console-skill", version.name)


@require_safe
@staff_view(*DECIDING_ROLES)
def package(request: StaffRequest, package_id: UUID) -> HttpResponseBase:
    return _package(request, package_id)


@require_POST
@staff_view(Role.OWNER, scoped=False)
def trust(request: StaffRequest, package_id: UUID) -> HttpResponseBase:
    """The last group of the fingerprint is typed by hand: whoever types has looked at it. The package is opened outside
    of any scope."""
    with tenant_scope(request.member.tenant):
        row = _waiting(package_id)
        told = archive.fingerprint(row.public_key)
        if request.POST.get("last", "").strip().lower() != told.split()[-1]:
            refusal = SilasError("fingerprint_differs", "These aren't the last four characters of the fingerprint.")
            return _package(request, package_id, refusal=refusal).render()
        raw = bytes(row.content or b"")
    package = archive.unpack(raw)
    with tenant_scope(request.member.tenant):
        taken = packages.trust_publisher(package_id, told, package, by=request.member.user)
    return redirect("console-skill", taken.name)


@require_POST
@staff_view(Role.OWNER)
def refuse(request: StaffRequest, package_id: UUID) -> HttpResponseBase:
    packages.refuse_package(package_id, actor=request.member.user.actor)
    return redirect("console-skills")


def _package(request: StaffRequest, package_id: UUID, *, refusal: SilasError | None = None) -> TemplateResponse:
    row = _waiting(package_id)
    return page(
        request,
        "console/skill_package.html",
        at="skills",
        status=422 if refusal else 200,
        package=row,
        fingerprint=archive.fingerprint(row.public_key).split(),
        same_name=TrustedPublisher.objects.filter(name=row.publisher).exists(),
        refusal=refusal,
    )


def _waiting(package_id: UUID) -> SkillPackage:
    row: SkillPackage | None = SkillPackage.objects.filter(pk=package_id, state=PackageState.WAITING).first()
    if row is None:
        raise NotFound("package that waits")
    return row


def _versions(name: str) -> list[SkillVersion]:
    """Newest first. Raises `NotFound`."""
    rows = list(SkillVersion.objects.filter(name=name).order_by("-number")[:SHOWN])
    if not rows:
        raise NotFound("skill")
    return rows


def _chosen(versions: Sequence[SkillVersion], number: str) -> SkillVersion:
    if number:
        return _numbered(versions, number)
    return next((one for one in versions if one.status == SkillStatus.ACTIVE), versions[0])


def _numbered(versions: Sequence[SkillVersion], number: str) -> SkillVersion:
    found = next((one for one in versions if str(one.number) == number), None)
    if found is None:
        raise NotFound("version of this skill")
    return found
