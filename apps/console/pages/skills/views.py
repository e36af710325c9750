"""Skills: the catalogue, a skill with its versions, and adding a skill.

Owners and approvers view and propose skills; owners turn them off, roll back, purge, export, and trust publishers.
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.pages.skills import capabilities, presenter
from apps.console.pages.skills.imports import import_from_request
from apps.skills import bundled, differences, installation
from apps.skills.enums import PackageState, SkillStatus
from apps.skills.models import SkillDraft, SkillPackage, SkillVersion, TrustedPublisher
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from apps.skills.queries import contents_of
from apps.tenants.enums import Role
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

SHOWN, SHOWN_DRAFTS = 100, 20
_STATES = {
    "": pgettext_lazy("skills", "all"),
    "in-use": pgettext_lazy("skills", "active"),
    "waiting": gettext_lazy("waiting for approval"),
    "off": pgettext_lazy("state", "off"),
}
_OF_STATE = {
    "in-use": (SkillStatus.ACTIVE,),
    "waiting": (SkillStatus.PROPOSED,),
    "off": (SkillStatus.DISABLED, SkillStatus.WITHDRAWN),
}


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    words, state = request.GET.get("q", "")[:100].replace("\0", " ").strip(), request.GET.get("state", "")
    versions = _newest(words, state)
    rows = versions[:SHOWN]
    usage = capabilities.usage_of(tool for row in rows for tool in capabilities.tools_of(row.manifest))
    return page(
        request,
        "console/skills.html",
        at="skills",
        rows=[_row(version, usage) for version in rows],
        more=len(versions) > SHOWN,
        words=words,
        state=state,
        states=_STATES.items(),
        drafts=SkillDraft.objects.all()[:SHOWN_DRAFTS],
        packages=SkillPackage.objects.filter(state=PackageState.WAITING).defer("content")[:SHOWN_DRAFTS],
        offered=bundled.available_names() if request.member.may_administer else (),
    )


def _newest(words: str, state: str) -> list[SkillVersion]:
    """Return the active version of each skill, else the newest one, in one query."""
    rows = SkillVersion.objects.defer("body")
    if words:
        rows = rows.filter(Q(name__icontains=words) | Q(manifest__description__icontains=words))
    if state in _OF_STATE:
        rows = rows.filter(status__in=_OF_STATE[state])
    first = Case(When(status=SkillStatus.ACTIVE, then=0), default=1)
    return list(rows.order_by("name", first, "-number").distinct("name")[: SHOWN + 1])


def _row(version: SkillVersion, usage: dict[str, capabilities.Usage]) -> dict[str, Any]:
    tools = capabilities.tools_of(version.manifest)
    return {
        "version": version,
        "title": capabilities.title_of(version),
        "may": capabilities.permissions_in_words(version.manifest),
        "usage": capabilities.total_usage(tools, usage),
    }


@require_safe
@staff_view(*DECIDING_ROLES)
def skill(request: StaffRequest, name: str) -> HttpResponseBase:
    return _skill(request, name)


def _skill(
    request: StaffRequest, name: str, *, refusal: SilasError | None = None, unsure: str = "", status: int = 200
) -> HttpResponseBase:
    versions = _versions(name)
    displayed = _chosen(versions, request.GET.get("version", ""))
    tools = capabilities.tools_of(displayed.manifest)
    usage = capabilities.usage_of(tools)
    before = next((one for one in versions if one.number < displayed.number), None)
    deciders = presenter.deciders_of(versions)
    names = names_for([*(version.requested_by for version in versions), *deciders.values()])
    return page(
        request,
        "console/skill.html",
        at="skills",
        status=status,
        name=name,
        title=capabilities.title_of(displayed),
        shown=displayed,
        before=before,
        in_use=[one for one in versions if one.status == SkillStatus.ACTIVE],
        versions=[presenter.version_line(version, names, deciders) for version in versions],
        may=capabilities.permissions_in_words(displayed.manifest),
        tools=[(tool, usage.get(tool, capabilities.Usage())) for tool in tools],
        usage=capabilities.total_usage(tools, usage),
        files=presenter.files_of(displayed),
        report=presenter.report_of(displayed),
        refusal=refusal,
        unsure=unsure,
    )


@require_safe
@staff_view(*DECIDING_ROLES)
def compare(request: StaffRequest, name: str) -> HttpResponseBase:
    versions = _versions(name)
    old, new = _numbered(versions, request.GET.get("before", "")), _numbered(versions, request.GET.get("after", ""))
    changes = differences.compare(contents_of(old), contents_of(new))
    return page(request, "console/skill_compare.html", at="skills", name=name, old=old, new=new, changes=changes)


@require_POST
@staff_view(Role.OWNER)
def disable(request: StaffRequest, name: str) -> HttpResponseBase:
    return _unconfirmed(request, name, "disable") or _done(name, installation.disable(name, by=request.member.user))


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, name: str) -> HttpResponseBase:
    to = _numbered(_versions(name), request.POST.get("version", ""))
    return _unconfirmed(request, name, f"version-{to.number}") or _done(
        name, installation.roll_back(name, to=to, by=request.member.user)
    )


@require_POST
@staff_view(Role.OWNER)
def purge(request: StaffRequest, name: str) -> HttpResponseBase:
    return _unconfirmed(request, name, "purge") or _done(name, installation.purge(name, by=request.member.user))


def _unconfirmed(request: StaffRequest, name: str, press: str) -> HttpResponseBase | None:
    """Return the page again while the action is not confirmed, else None."""
    _versions(name)
    return None if request.POST.get("sure") == press else _skill(request, name, unsure=press, status=422)


def _done(name: str, _: object) -> HttpResponseBase:
    return redirect("console-skill", name)


@require_safe
@staff_view(Role.OWNER)
def export(request: StaffRequest, version_id: UUID) -> HttpResponseBase:
    """Download the version as a signed package."""
    raw = packages.export_version(version_id, actor=request.member.user.actor)
    version = SkillVersion.objects.get(pk=version_id)
    response = HttpResponse(raw, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{version.name}-{version.number}.silas-skill.zip"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES, scoped=False)
def add(request: StaffRequest) -> HttpResponseBase:
    """Add a skill. Fetching happens outside of any scope because it can take a while."""
    refusal = None
    if request.method == "POST":
        try:
            return redirect(*import_from_request(request))
        except SilasError as caught:
            if caught.status not in (400, 409, 413, 422, 502):
                raise
            refusal = caught
    with tenant_scope(request.member.tenant):
        context = {"refusal": refusal, "problems": (refusal.extra.get("problems") if refusal else None) or ()}
        answer = page(request, "console/skill_add.html", at="skills", status=422 if refusal else 200, **context)
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
    """Trust the publisher's key and propose the skill.

    The last group of the fingerprint is typed by hand, to make sure that it was compared. The package is opened outside
    of any scope.
    """
    with tenant_scope(request.member.tenant):
        row = _waiting(package_id)
        fingerprint = archive.fingerprint(row.public_key)
        if request.POST.get("last", "").strip().lower() != fingerprint.split()[-1]:
            refusal = SilasError(
                ErrorCode.FINGERPRINT_DIFFERS,
                _("These are not the last four characters of the fingerprint."),
                status=400,
            )
            return _package(request, package_id, refusal=refusal).render()
        raw = bytes(row.content or b"")
    package = archive.unpack(raw)
    with tenant_scope(request.member.tenant):
        trusted = packages.trust_publisher(package_id, fingerprint, package, by=request.member.user)
    return redirect("console-skill", trusted.name)


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
        raise NotFound()
    return row


def _versions(name: str) -> list[SkillVersion]:
    """Newest first. Raises `NotFound`."""
    rows = list(SkillVersion.objects.filter(name=name).order_by("-number")[:SHOWN])
    if not rows:
        raise NotFound()
    return rows


def _chosen(versions: Sequence[SkillVersion], number: str) -> SkillVersion:
    if number:
        return _numbered(versions, number)
    return next((version for version in versions if version.status == SkillStatus.ACTIVE), versions[0])


def _numbered(versions: Sequence[SkillVersion], number: str) -> SkillVersion:
    row = next((version for version in versions if str(version.number) == number), None)
    if row is None:
        raise NotFound()
    return row
