"""What has every page of the administration in common? Changes are written down with what stood before and after, the
history of a row is its audit chain (Django's own log is not used), and actions ask before they act.

Words, numbers and ids stand in the chain as they are; of longer text it keeps the length and a digest, of secrets
nothing. Read-only pages are `apps.audit.admin.ReadOnlyAdmin`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from decimal import Decimal
from functools import wraps
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.rules import PLATFORM_CHAIN
from apps.audit.services import record
from kernel.canonical import canonical_json, sha256_hex

MASKED = "masked"
MOST_ENTRIES, MOST_NAMED, MOST_CHARACTERS = 100, 20, 400
_SECRET = re.compile(r"password|secret|sealed|hashed|hash$|private")
_WORD = re.compile(r"[\w.:/@+#-]{0,120}\Z")


class HouseAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """A page of ours. `written_as`: under which names the audit chain knows a row, besides its model's own."""

    show_full_result_count = False
    written_as: ClassVar[tuple[str, ...]] = ()

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Whoever sees several tenants can look at one."""
        filters = tuple(super().get_list_filter(request))
        if not is_superuser(request) or "tenant" in filters or not _has_tenant(self.model):
            return filters
        return (*filters, "tenant")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with self.scope_of(obj):
            kept = self._kept(obj) if change else None
            super().save_model(request, obj, form, change)
            names = form.changed_data if change else _settable(obj)
            write_down(request, obj, "changed" if change else "added", before=kept, after=obj, fields=names)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with self.scope_of(obj):
            write_down(request, obj, "deleted", before=obj, fields=_settable(obj))
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def scope_of(self, obj: Any) -> AbstractContextManager[Any]:
        """In whose chain a change of this row is written: by default that of the page's scope."""
        return nullcontext()

    def _kept(self, obj: Any) -> Any:
        """The row as it stands, locked until the change is written."""
        return type(obj)._base_manager.select_for_update(of=("self",), no_key=True).filter(pk=obj.pk).first()

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row: Any = self.get_object(request, unquote(object_id))
        if row is None:
            gone: HttpResponse = self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined]  # Django's own, not in its stubs
                request, self.opts, object_id
            )
            return gone
        shown = {"title": f"History: {row}", "object": row, "opts": self.opts, "entries": self._entries(row)}
        context = {**self.admin_site.each_context(request), **shown, **(extra_context or {})}
        return TemplateResponse(request, "admin/house_history.html", context)

    def _entries(self, row: Any) -> list[Any]:
        """What the chain says of the row, the newest first."""
        kinds = ("row", self.opts.model_name, *self.written_as)
        rows = AuditEntry.objects.filter(chain=chain_of(row), subject__in=[f"{kind}:{row.pk}" for kind in kinds])
        found = list(rows.order_by("-seq")[:MOST_ENTRIES])
        for entry in found:
            entry.said, entry.changes = AuditEvent(entry.event).label, changes_of(entry.data)
        return found

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Not in Django's log: the chain has it."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The same."""

    def log_deletion(self, request: HttpRequest, obj: Any, object_repr: str) -> Any:
        """The same."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """The same."""


def confirmed(question: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For an action: asks `question` on a page that names the rows, and acts when the answer is yes."""

    def wrap(act: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(act)
        def asked(self: Any, request: HttpRequest, queryset: Any) -> Any:
            if request.POST.get("post") == "yes":
                return act(self, request, queryset)
            chosen = [str(pk) for pk in queryset.values_list("pk", flat=True)]
            shown = {
                "title": "Are you sure?",
                "question": question,
                "opts": self.opts,
                "named": list(queryset[:MOST_NAMED]),
                "chosen": chosen,
                "more": max(len(chosen) - MOST_NAMED, 0),
                "action": act.__name__,
                "checkbox": ACTION_CHECKBOX_NAME,
            }
            context = {**self.admin_site.each_context(request), **shown}
            return TemplateResponse(request, "admin/house_confirm.html", context)

        return asked

    return wrap


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def actor_of(request: HttpRequest) -> str:
    return f"user:{request.user.pk}"


def write_down(
    request: HttpRequest, row: Any, change: str, *, before: Any = None, after: Any = None, fields: Iterable[str] = ()
) -> None:
    """The one place where a change made in the administration enters the chain of the open scope. `before` and `after`
    are the row as it was and as it is, None for what there is not; `fields` are those that count."""
    names = [name for name in fields if _field(row, name)]
    data: dict[str, Any] = {"model": row._meta.label_lower, "change": change, "fields": names}
    for when, state in (("before", before), ("after", after)):
        if state is not None:
            data[when] = {name: told_of(_field(row, name), state) for name in names}
    record(AuditEvent.ADMIN_CHANGED, actor=actor_of(request), subject=f"row:{row.pk}", data=data)


def told_of(field: Any, row: Any) -> Any:
    """What the chain says of a field's value."""
    value = getattr(row, field.attname)
    if value is None or isinstance(value, bool):
        return value
    if _SECRET.search(field.name):
        return MASKED
    if isinstance(field, models.JSONField):
        return value if _is_wordy(value) else _digest(canonical_json(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, int | float | UUID):
        return value if isinstance(value, int) else str(value)
    text = str(value)
    spoken = field.choices or isinstance(field, models.SlugField) or not text
    return text if spoken and _WORD.match(text) else _digest(text)


def chain_of(row: Any) -> UUID:
    """Whose chain speaks of this row: its tenant's, or the platform's own."""
    if row._meta.label_lower == "tenants.tenant":
        own: UUID = row.pk
        return own
    return getattr(row, "tenant_id", None) or PLATFORM_CHAIN


def changes_of(data: str) -> list[tuple[str, Any, Any]]:
    """Field, before and after of an entry's data; other data as one line each. Of an entry that a taken-over worker
    wrote both may be anything."""
    said: dict[str, Any] = json.loads(data)
    before, after = (each if isinstance(each := said.pop(name, None), dict) else None for name in ("before", "after"))
    if before is None and after is None:
        return [(name, "", value) for name, value in said.items()]
    names = dict.fromkeys([*(before or {}), *(after or {})])
    return [(name, (before or {}).get(name, ""), (after or {}).get(name, "")) for name in names]


def _has_tenant(model: Any) -> bool:
    return any(field.name == "tenant" for field in model._meta.fields)


def _field(row: Any, name: str) -> Any:
    try:
        field = row._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if field.concrete and not field.many_to_many else None


def _settable(row: Any) -> list[str]:
    return [field.name for field in row._meta.concrete_fields if field.editable and field.name != "tenant"]


def _is_wordy(value: Any) -> bool:
    """Whether this is a short list or map of words and numbers, as rights and hours are."""
    return len(canonical_json(value)) <= MOST_CHARACTERS and all(_WORD.match(text) for text in _texts(value))


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in (str(key), *_texts(item))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _digest(text: str) -> str:
    return f"text:{len(text)}:{sha256_hex(text)[:12]}"
