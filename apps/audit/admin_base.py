"""Base classes of all admin pages: changes are recorded in the audit chain, which is also the history of a row.

Django's own admin log is not used, and actions ask for confirmation. Words, numbers and ids are recorded as they are,
longer text by its length and a digest, secrets not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from decimal import Decimal
from functools import wraps
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.db import IntegrityError, models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.rules import PLATFORM_CHAIN
from apps.audit.services import record
from kernel.canonical import canonical_json, sha256_hex

MASKED = "masked"
MAX_ENTRIES, MAX_NAMED, MAX_CHARACTERS = 100, 20, 400
_SECRET = re.compile(r"password|secret|sealed|hashed|hash$|private")
_WORD = re.compile(r"[\w.:/@+#-]{0,120}\Z")


class AmountField(forms.DecimalField):
    """An amount with cents and without further trailing zeros: 20.00, 0.004."""

    def prepare_value(self, value: object) -> object:
        return amount(value) if isinstance(value, Decimal) else value


class BaseAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """The base of every page of the administration: changes and history go through the audit chain."""

    show_full_result_count = False

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Add a filter by tenant for users who see several tenants."""
        filters = tuple(super().get_list_filter(request))
        if not is_superuser(request) or "tenant" in filters or not _has_tenant(self.model):
            return filters
        return (*filters, "tenant")

    def get_view_on_site_url(self, obj: models.Model | None = None) -> str | None:
        """The page of the console about the same thing."""
        address: str | None = self.admin_site.console_address(obj) if obj is not None else None  # type: ignore[attr-defined]  # our own site's
        return address

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show amounts of money as money, not with nine digits."""
        return [
            _money_column(self.model, name) if isinstance(name, str) and _is_money(self.model, name) else name
            for name in self.list_display
        ]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if isinstance(db_field, models.DecimalField):
            kwargs.setdefault("form_class", AmountField)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check and save. Where a rival saved the same after the form's look, a second look finds it and the form says
        so."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except IntegrityError:
            return super().changeform_view(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with self.scope_of(obj):
            before = self._locked_row(obj) if change else None
            super().save_model(request, obj, form, change)
            names = form.changed_data if change else _settable(obj)
            record_change(request, obj, "changed" if change else "added", before=before, after=obj, fields=names)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with self.scope_of(obj):
            record_change(request, obj, "deleted", before=obj, fields=_settable(obj))
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def scope_of(self, obj: Any) -> AbstractContextManager[object]:
        """Return the scope whose chain records a change of this row: by default the scope of the page."""
        return nullcontext()

    def _locked_row(self, obj: models.Model) -> models.Model | None:
        """Return the stored row, locked until the change is written."""
        return type(obj)._base_manager.select_for_update(of=("self",), no_key=True).filter(pk=obj.pk).first()

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row: models.Model | None = self.get_object(request, unquote(object_id))
        if row is None:
            redirect: HttpResponse = self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]  # Django's own, not in its stubs
                request, self.opts, object_id
            )
            return redirect
        shown = {
            "title": _("History: %(row)s") % {"row": row},
            "object": row,
            "opts": self.opts,
            "entries": self._entries(row),
        }
        context = {**self.admin_site.each_context(request), **shown, **(extra_context or {})}
        return TemplateResponse(request, "admin/audit_history.html", context)

    def _entries(self, row: models.Model) -> list[Any]:
        """Return the chain's entries about the row, the newest first."""
        subjects = [f"{kind}:{row.pk}" for kind in ("row", self.opts.model_name)]
        rows = AuditEntry.objects.filter(chain=chain_of(row), subject__in=subjects)
        entries: list[Any] = list(rows.order_by("-seq")[:MAX_ENTRIES])
        for entry in entries:
            entry.label, entry.changes = AuditEvent(entry.event).label, changes_in(entry.data)
        return entries

    def log_addition(self, request: HttpRequest, obj: models.Model, message: object) -> Any:
        """Write nothing to Django's log: the audit chain has it."""

    def log_change(self, request: HttpRequest, obj: models.Model, message: object) -> Any:
        """Write nothing, as `log_addition`."""

    def log_deletion(self, request: HttpRequest, obj: models.Model, object_repr: str) -> None:
        """Write nothing, as `log_addition`."""

    def log_deletions(self, request: HttpRequest, queryset: models.QuerySet[models.Model]) -> Any:
        """Write nothing, as `log_addition`."""


def confirm_action(question: str | Promise) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Decorate an admin action: ask `question` on a page that lists the rows, and run the action once confirmed."""

    def wrap(act: Callable[..., object]) -> Callable[..., Any]:
        @wraps(act)
        def confirm(self: Any, request: HttpRequest, queryset: Any) -> object:
            if request.POST.get("post") == "yes":
                return act(self, request, queryset)
            chosen = [str(pk) for pk in queryset.values_list("pk", flat=True)]
            shown = {
                "title": _("Are you sure?"),
                "question": question,
                "opts": self.opts,
                "named": list(queryset[:MAX_NAMED]),
                "chosen": chosen,
                "more": max(len(chosen) - MAX_NAMED, 0),
                "action": act.__name__,
                "checkbox": ACTION_CHECKBOX_NAME,
            }
            context = {**self.admin_site.each_context(request), **shown}
            return TemplateResponse(request, "admin/confirm_action.html", context)

        return confirm

    return wrap


def amount(value: Decimal) -> str:
    """Return an amount with at least two digits after the point and no zeros beyond them."""
    whole, _point, rest = f"{value:f}".partition(".")
    return f"{whole}.{rest.rstrip('0').ljust(2, '0')}"


def _is_money(model: type[models.Model], name: str) -> bool:
    try:
        return isinstance(model._meta.get_field(name), models.DecimalField)
    except FieldDoesNotExist:
        return False


def _money_column(model: Any, name: str) -> Callable[[object], str]:
    """Return a column of the list with this amount of each row."""

    def column(row: object) -> str:
        value = getattr(row, name)
        return "-" if value is None else amount(value)

    return admin.display(description=model._meta.get_field(name).verbose_name, ordering=name)(column)


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def actor_of(request: HttpRequest) -> str:
    return f"user:{request.user.pk}"


def record_change(
    request: HttpRequest,
    row: models.Model,
    change: str,
    *,
    before: models.Model | None = None,
    after: models.Model | None = None,
    fields: Iterable[str] = (),
) -> None:
    """Record a change made in the administration in the chain of the open scope. Nothing else records one.

    `before` and `after` are the row as it was and as it is, None where it did not or does not exist; `fields` are the
    names of those to record.
    """
    names = [name for name in fields if _field(row, name)]
    data: dict[str, object] = {"model": row._meta.label_lower, "change": change, "fields": names}
    for when, state in (("before", before), ("after", after)):
        if state is not None:
            data[when] = {name: audit_value(_field(row, name), state) for name in names}
    record(AuditEvent.ADMIN_CHANGED, actor=actor_of(request), subject=f"row:{row.pk}", data=data)


def audit_value(field: Any, row: models.Model) -> Any:
    """Return how the chain records a field's value: as it is, masked, or as a digest."""
    value = getattr(row, field.attname)
    if value is None or isinstance(value, bool):
        return value
    if _SECRET.search(field.name):
        return MASKED
    if isinstance(field, models.JSONField):
        return value if _is_short_data(value) else _digest(canonical_json(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, int | float | UUID):
        return value if isinstance(value, int) else str(value)
    text = str(value)
    is_safe = field.choices or isinstance(field, models.SlugField) or not text
    return text if is_safe and _WORD.match(text) else _digest(text)


def audit_values(row: models.Model, names: Iterable[str]) -> dict[str, object]:
    """Return the row's fields of these names as the chain records them, for `record_row_change`."""
    return {name: audit_value(row._meta.get_field(name), row) for name in names}


def chain_of(row: models.Model) -> UUID:
    """Return the chain that records changes of this row: its tenant's, or the platform's own."""
    if row._meta.label_lower == "tenants.tenant":
        tenant_id: UUID = row.pk
        return tenant_id
    return getattr(row, "tenant_id", None) or PLATFORM_CHAIN


def changes_in(data: str) -> list[tuple[str, object, object]]:
    """Return (field, before, after) of an entry's data; other data with its value as `after`.

    A compromised worker may have written any JSON, so neither `before` nor `after` need be an object.
    """
    values: dict[str, object] = json.loads(data)
    before, after = values.pop("before", None), values.pop("after", None)
    before = before if isinstance(before, dict) else None
    after = after if isinstance(after, dict) else None
    if before is None and after is None:
        return [(name, "", value) for name, value in values.items()]
    names = dict.fromkeys([*(before or {}), *(after or {})])
    return [(name, (before or {}).get(name, ""), (after or {}).get(name, "")) for name in names]


def _has_tenant(model: type[models.Model]) -> bool:
    return any(field.name == "tenant" for field in model._meta.fields)


def _field(row: models.Model, name: str) -> Any:
    try:
        field = row._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if field.concrete and not field.many_to_many else None


def _settable(row: models.Model) -> list[str]:
    return [field.name for field in row._meta.concrete_fields if field.editable and field.name != "tenant"]


def _is_short_data(value: object) -> bool:
    """True for a short list or map of words and numbers, such as permissions or opening hours."""
    return len(canonical_json(value)) <= MAX_CHARACTERS and all(_WORD.match(text) for text in _texts(value))


def _texts(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in (str(key), *_texts(item))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _digest(text: str) -> str:
    return f"text:{len(text)}:{sha256_hex(text)[:12]}"


class ReadOnlyAdmin(BaseAdmin):
    """A page that lists and shows rows; nothing is added, changed or deleted."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return True
