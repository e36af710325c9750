"""Create a skill: describe it, let a model draft it, run its tests, and request approval.

Models and sandboxes run outside of any scope; each answer shows the current draft.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.pages.skills import presenter
from apps.skills import differences
from apps.skills.maker import services, writer
from apps.skills.models import DraftRevision, SkillDraft
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

_SHOWN_ON_PAGE = (400, 409, 422, 503)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES, scoped=False)
def new(request: StaffRequest) -> HttpResponseBase:
    """Start a draft, outside of any scope because writing can take a while."""
    name, wish, refusal = request.POST.get("name", "").strip(), request.POST.get("wish", ""), None
    if request.method == "POST":
        try:
            draft = services.create_draft(request.member.tenant.pk, name=name, wish=wish, by=request.member.user)
            return redirect("console-draft", draft.pk)
        except SilasError as caught:
            refusal = _if_shown(caught)
    with tenant_scope(request.member.tenant):
        context = {"name": name, "wish": wish, "refusal": refusal, "has_model": writer.has_model()}
        status = 422 if refusal else 200
        return page(request, "console/skill_draft_new.html", at="skills", status=status, **context).render()


@require_safe
@staff_view(*DECIDING_ROLES)
def draft(request: StaffRequest, draft_id: UUID) -> HttpResponseBase:
    return _draft(request, draft_id)


@require_POST
@staff_view(*DECIDING_ROLES, scoped=False)
def revise(request: StaffRequest, draft_id: UUID) -> HttpResponseBase:
    words, revision = request.POST.get("words", ""), _seen(request)
    return _act(
        request,
        draft_id,
        lambda: services.revise_draft(
            request.member.tenant.pk, draft_id, words=words, seen=revision, by=request.member.user
        ),
        words=words,
    )


@require_POST
@staff_view(*DECIDING_ROLES, scoped=False)
def rewrite(request: StaffRequest, draft_id: UUID) -> HttpResponseBase:
    path, text, revision = request.POST.get("path", "").strip(), request.POST.get("text", ""), _seen(request)
    by, tenant_id = request.member.user, request.member.tenant.pk
    return _act(
        request, draft_id, lambda: services.write_file(tenant_id, draft_id, path=path, text=text, seen=revision, by=by)
    )


@require_POST
@staff_view(*DECIDING_ROLES, scoped=False)
def try_out(request: StaffRequest, draft_id: UUID) -> HttpResponseBase:
    revision = _seen(request)
    return _act(
        request,
        draft_id,
        lambda: services.run_draft_tests(request.member.tenant.pk, draft_id, seen=revision, by=request.member.user),
    )


@require_POST
@staff_view(*DECIDING_ROLES, scoped=False)
def propose(request: StaffRequest, draft_id: UUID) -> HttpResponseBase:
    """Request approval and go to the skill."""
    try:
        with tenant_scope(request.member.tenant):
            version = services.propose_draft(draft_id, seen=_seen(request), by=request.member.user)
    except SilasError as caught:
        return _again(request, draft_id, _if_shown(caught))
    return redirect("console-skill", version.name)


@require_POST
@staff_view(*DECIDING_ROLES)
def delete(request: StaffRequest, draft_id: UUID) -> HttpResponseBase:
    services.delete_draft(draft_id, by=request.member.user)
    return redirect("console-skills")


def _act(request: StaffRequest, draft_id: UUID, action: Callable[[], object], **typed: object) -> HttpResponseBase:
    try:
        action()
    except SilasError as caught:
        return _again(request, draft_id, _if_shown(caught), **typed)
    return redirect("console-draft", draft_id)


def _again(request: StaffRequest, draft_id: UUID, refusal: SilasError, **typed: Any) -> HttpResponseBase:
    with tenant_scope(request.member.tenant):
        return _draft(request, draft_id, refusal=refusal, **typed).render()


def _draft(
    request: StaffRequest, draft_id: UUID, *, refusal: SilasError | None = None, words: str = ""
) -> TemplateResponse:
    row = SkillDraft.objects.select_related("version").filter(pk=draft_id).first()
    if row is None:
        raise NotFound()
    revisions = list(DraftRevision.objects.filter(draft=row).order_by("-number"))
    newest, before = next(iter(revisions), None), revisions[1] if len(revisions) > 1 else None
    return page(
        request,
        "console/skill_draft.html",
        at="skills",
        status=422 if refusal else 200,
        draft=row,
        who=names_for([row.by]).of(row.by),
        newest=newest,
        texts=sorted(newest.files.items()) if newest else (),
        before=before,
        changes=differences.compare(_encoded(before), _encoded(newest)) if before and newest else (),
        revisions=revisions,
        is_template=bool(newest and newest.written_by == services.LAID_OUT),
        has_model=writer.has_model(),
        by_hand=services.BY_HAND,
        words=words,
        refusal=refusal,
        problems=presenter.problems_in(refusal),
    )


def _encoded(revision: DraftRevision) -> dict[str, bytes]:
    return {path: text.encode() for path, text in revision.files.items()}


def _seen(request: StaffRequest) -> int:
    text = request.POST.get("seen", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _if_shown(refusal: SilasError) -> SilasError:
    """Return refusals that are shown on the page, raise others."""
    if refusal.status not in _SHOWN_ON_PAGE:
        raise refusal
    return refusal
