"""Access levels and approval policies: the list, and the page of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.access.models import AccessLevel
from apps.approvals.models import ApprovalPolicy
from apps.audit.admin_base import audit_values
from apps.audit.services import record_row_change
from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.policies.kinds import Kind, facts_of, title_of, warning_about
from apps.tenants.admin import TenantRowForm
from apps.tenants.enums import Capability
from kernel.errors import NotFound


@require_safe
@staff_view(Capability.ADMINISTER)
def policies(request: StaffRequest, kind: Kind) -> HttpResponseBase:
    rows = [(row, title_of(row), facts_of(row)) for row in kind.rows()]
    return page(request, "console/policies.html", at="settings", kind=kind, rows=rows)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def new_policy(request: StaffRequest, kind: Kind) -> HttpResponseBase:
    return _policy(request, kind, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def policy(request: StaffRequest, kind: Kind, row_id: UUID) -> HttpResponseBase:
    return _policy(request, kind, _row(kind, row_id, lock=request.method == "POST"))


@require_POST
@staff_view(Capability.ADMINISTER)
def delete_policy(request: StaffRequest, kind: Kind, row_id: UUID) -> HttpResponseBase:
    row = _row(kind, row_id, lock=True)
    before = audit_values(row, list(kind.fields))
    record_row_change(row, "deleted", actor=request.member.user.actor, before=before, after={})
    row.delete()
    return redirect(kind.address)


def _policy(request: StaffRequest, kind: Kind, row: ApprovalPolicy | AccessLevel | None) -> HttpResponseBase:
    form = kind.make_form(row)(request.POST if request.method == "POST" else None, instance=row)
    # The form writes what was typed into its row while it checks.
    title, before = (title_of(row), audit_values(row, list(kind.fields))) if row else ("", {})
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                saved = _save(form, before, actor=request.member.user.actor)
        except IntegrityError:
            # A rival saved the same after the form's look: a second look finds it, and the form says so.
            form.full_clean()
            if form.is_valid():
                raise
        else:
            return redirect(kind.address_of_one, saved.pk)
    return page(
        request,
        "console/policy.html",
        at="settings",
        status=422 if form.errors else 200,
        kind=kind,
        row=row,
        title=title,
        form=form,
        warning=warning_about(row) if row and not form.is_bound else "",
    )


def _save(form: TenantRowForm, stored: Mapping[str, object], *, actor: str) -> Any:
    """Save the row and record the change as the administration does. `stored`: the row's values before; none of a new
    one."""
    names = form.changed_data if stored else list(form.fields)
    row = form.save()
    if names:
        change, before = ("changed", {name: stored[name] for name in names}) if stored else ("added", {})
        record_row_change(row, change, actor=actor, before=before, after=audit_values(row, names))
    return row


def _row(kind: Kind, row_id: UUID, *, lock: bool = False) -> ApprovalPolicy | AccessLevel:
    """Raises `NotFound`. With `lock` rivals change and delete it one after the other, each from what the one before
    left."""
    rows: QuerySet[ApprovalPolicy | AccessLevel] = kind.model.objects.filter(pk=row_id)
    row = (rows.select_for_update(of=("self",), no_key=True) if lock else rows).first()
    if row is None:
        raise NotFound()
    return row
