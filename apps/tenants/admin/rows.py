"""Base classes for editable rows of a tenant in the administration.

Superusers choose the tenant of a new row; an owner's rows belong to their own tenant. Each change is audited in the
chain of the tenant that the row belongs to (`apps.audit.admin_base`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext as _

from apps.audit.admin_base import BaseAdmin, actor_of, is_superuser
from kernel.tenancy import TenantModel, tenant_scope
from kernel.tenancy.scope import current_scope

__all__ = ["TenantRowAdmin", "TenantRowForm", "actor_of", "is_superuser"]


class TenantRowForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """Assigns the row to the open tenant and refuses references to other tenants' rows."""

    def _post_clean(self) -> None:
        if self.instance.tenant_id is None:
            self.instance.tenant_id = current_scope().tenant_id
        super()._post_clean()  # type: ignore[misc]  # Django's own hook, which its stubs leave out

    def _get_validation_exclusions(self) -> set[str]:
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # Django's own hook, which its stubs leave out
        return excluded - {"tenant"}

    def _update_errors(self, errors: ValidationError) -> None:
        """Show errors about the tenant above the form if the form has no such field."""
        by_field = getattr(errors, "error_dict", {})
        if "tenant" in by_field and "tenant" not in self.fields:
            by_field.setdefault(NON_FIELD_ERRORS, []).extend(by_field.pop("tenant"))
        super()._update_errors(errors)  # type: ignore[misc]  # Django's own hook, which its stubs leave out

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        tenant = cleaned.get("tenant")
        mine = tenant.pk if tenant else self.instance.tenant_id or current_scope().tenant_id
        for name, value in list(cleaned.items()):
            if isinstance(value, TenantModel) and value.tenant_id != mine:
                self.add_error(name, _("This belongs to another tenant."))
        return cleaned


class TenantRowAdmin(BaseAdmin):
    """Admin of a model whose rows belong to one tenant."""

    form = TenantRowForm
    formfield_overrides: ClassVar = {models.JSONField: {"widget": forms.Textarea(attrs={"rows": 3, "cols": 80})}}
    list_select_related: ClassVar = ["tenant"]

    def get_exclude(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        others = tuple(name for name in super().get_exclude(request, obj) or () if name != "tenant")
        return others if is_superuser(request) else (*others, "tenant")

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return (*fields, "tenant") if is_superuser(request) and obj is not None else fields

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fieldsets = list(super().get_fieldsets(request, obj))
        shown = {name for _, options in fieldsets for name in options["fields"]}
        if is_superuser(request) and "tenant" not in shown:
            fieldsets.insert(0, (None, {"fields": ("tenant",)}))
        return fieldsets

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:
        listed = tuple(super().get_list_display(request))
        return (*listed, "tenant") if is_superuser(request) and "tenant" not in listed else listed

    def scope_of(self, obj: Any) -> AbstractContextManager[object]:
        return tenant_scope(obj.tenant_id)
