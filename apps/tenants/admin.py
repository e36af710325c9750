"""Tenants, people and deployments in Django admin, and what every editable row of a tenant has in common there.

A superuser says which tenant a new row belongs to; an owner's rows are their own tenant's. Each change is written down
in the chain of the tenant it belongs to.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import services
from apps.tenants.enums import Role
from apps.tenants.models import ApiKey, Deployment, Membership, Tenant, User
from kernel.tenancy import TenantModel, tenant_scope
from kernel.tenancy.scope import current_scope


class TenantRowForm(forms.ModelForm):  # type: ignore[type-arg]
    """Belongs to the open tenant, and refers to rows of its own tenant only."""

    def _post_clean(self) -> None:
        if self.instance.tenant_id is None:
            self.instance.tenant_id = current_scope().tenant_id
        super()._post_clean()  # type: ignore[misc]

    def _get_validation_exclusions(self) -> set[str]:
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]
        return excluded - {"tenant"}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        tenant = cleaned.get("tenant")
        mine = tenant.pk if tenant else self.instance.tenant_id or current_scope().tenant_id
        for name, value in list(cleaned.items()):
            if isinstance(value, TenantModel) and value.tenant_id != mine:
                self.add_error(name, "This belongs to another tenant.")
        return cleaned


class TenantRowAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A row of one tenant, to be edited."""

    form = TenantRowForm
    formfield_overrides: ClassVar = {models.JSONField: {"widget": forms.Textarea(attrs={"rows": 3, "cols": 80})}}
    list_select_related: ClassVar = ["tenant"]

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        others = tuple(name for name in super().get_exclude(request, obj) or () if name != "tenant")
        return others if _is_superuser(request) else (*others, "tenant")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return (*fields, "tenant") if _is_superuser(request) and obj is not None else fields

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = list(super().get_fieldsets(request, obj))
        shown = {name for _, options in fieldsets for name in options["fields"]}
        if _is_superuser(request) and "tenant" not in shown:
            fieldsets.insert(0, (None, {"fields": ("tenant",)}))
        return fieldsets

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:
        listed = tuple(super().get_list_display(request))
        return (*listed, "tenant") if _is_superuser(request) and "tenant" not in listed else listed

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            super().save_model(request, obj, form, change)
            _write_down(request, obj, "changed" if change else "added")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with tenant_scope(obj.tenant_id):
            _write_down(request, obj, "deleted")
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            self.delete_model(request, row)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _actor(request: HttpRequest) -> str:
    return f"user:{request.user.pk}"


def _write_down(request: HttpRequest, row: Any, change: str) -> None:
    data = {"model": row._meta.label_lower, "change": change}
    record(AuditEvent.ADMIN_CHANGED, actor=_actor(request), subject=f"row:{row.pk}", data=data)


class DeploymentForm(TenantRowForm):
    class Meta:
        help_texts: ClassVar = {
            "allowed_origins": 'Sites that may show the widget, exactly: ["https://www.example.com"]',
            "theme": 'Accent, mode, position and font: {"accent": "#1f5f8b", "mode": "auto"}',
            "suggestions": 'What a visitor may press instead of typing: ["Where is my order?"]',
            "active_goal_id": "The id of the goal whose levels and rules govern the conversations",
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name, problem in services.deployment_problems(cleaned).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(Deployment)
class DeploymentAdmin(TenantRowAdmin):
    """A deployment is switched off, not deleted: its conversations stay where they were held."""

    form = DeploymentForm
    list_display = ("title", "slug", "public_key", "enabled")
    list_filter = ("enabled",)
    search_fields = ("title", "slug", "public_key")
    fieldsets: ClassVar = [
        (None, {"fields": ("title", "slug", "enabled", "public_key", "allowed_origins")}),
        ("How it looks and sounds", {"fields": ("greeting", "suggestions", "theme", "persona")}),
        ("What answers", {"fields": ("model_names", "active_goal_id")}),
    ]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class MembershipForm(TenantRowForm):
    email = forms.EmailField(label="E-mail address", help_text="A new account is made when there is none.")

    class Meta:
        model = Membership
        fields = ("tenant", "role")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        tenant = cleaned.get("tenant")
        mine = tenant.pk if tenant else current_scope().tenant_id
        taken = Membership.objects.filter(tenant_id=mine, user__email__iexact=cleaned.get("email", ""))
        if taken.exists():
            self.add_error("email", "This person is a member already.")
        return cleaned


class NewcomerForm(MembershipForm):
    """What an owner adds people with. An account that is there already may have been made by another tenant's owner,
    who knows its password: only whoever runs the platform can tell, and lets it in."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.has_error("email") and User.objects.filter(email__iexact=cleaned.get("email", "")).exists():
            self.add_error("email", "This address has an account already. Whoever runs the platform can add it here.")
        return cleaned


@admin.register(Membership)
class MembershipAdmin(TenantRowAdmin):
    list_display = ("user", "role", "created_at")
    list_filter = ("role",)
    list_select_related: ClassVar = ["user", "tenant"]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is None:
            kwargs["form"] = MembershipForm if _is_superuser(request) else NewcomerForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        tenant = ("tenant",) if _is_superuser(request) else ()
        return [(None, {"fields": (*tenant, *(("user", "role") if obj else ("email", "role")))})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "user") if obj else fields

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            if change:
                services.change_role(obj, Role(obj.role), actor=_actor(request))
                return
            new = services.add_member(form.cleaned_data["email"], role=Role(obj.role), actor=_actor(request))
        obj.pk, obj.user = new.membership.pk, new.membership.user
        if new.welcome:
            link = request.build_absolute_uri(new.welcome)
            messages.info(request, f"Give {obj.user.email} this link; it works once, for three days: {link}")


@admin.register(ApiKey)
class ApiKeyAdmin(TenantRowAdmin):
    """Made here, shown once in the answer itself (no cookie, no message store), revoked here; never changed."""

    list_display = ("name", "prefix", "created_at", "revoked_at")
    fields = ("name",)
    actions = ("revoke",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fieldsets(request) if obj is None else [(None, {"fields": self.list_display})]

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            made = services.create_api_key(obj.name, actor=_actor(request))
        obj.pk, request.__dict__["api_key"] = made.row.pk, made

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        shown = {**self.admin_site.each_context(request), "opts": self.opts, "made": request.__dict__["api_key"]}
        response = TemplateResponse(request, "admin/tenants/apikey/made.html", {**shown, "title": "The new API key"})
        add_never_cache_headers(response)
        return response

    @admin.action(description="Revoke the chosen keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            with tenant_scope(row.tenant_id):
                services.revoke_api_key(row, actor=_actor(request))


@admin.register(Tenant)
class TenantAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("name", "slug", "timezone", "created_at")
    search_fields = ("name", "slug")

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        with tenant_scope(obj):
            _write_down(request, obj, "changed" if change else "added")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    list_display = ("email", "first_name", "last_name", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("email", "first_name", "last_name")
    ordering = ("email",)
    fieldsets: ClassVar = [
        (None, {"fields": ("email", "password")}),
        ("Person", {"fields": ("first_name", "last_name")}),
        ("Access", {"fields": ("is_active", "is_superuser")}),
    ]
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
    filter_horizontal = ()
