"""Admin of API keys, identity keys and message keys. Secrets are shown once; keys are never changed."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import confirm_action
from apps.tenants import queries, rules, services
from apps.tenants.admin.rows import TenantRowAdmin, TenantRowForm, actor_of, is_superuser
from apps.tenants.enums import IdentityAlgorithm
from apps.tenants.models import ApiKey, IdentityKey, Membership, MessageKey, User
from kernel.tenancy import tenant_scope
from kernel.tenancy.scope import current_scope


class KeyAdmin(TenantRowAdmin):
    """Keys are created and revoked, never changed or deleted, because the audit log refers to them. `public` names
    fields that an existing key shows besides those of the list."""

    public: ClassVar[tuple[str, ...]] = ()

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fields = (*self.list_display, *self.public)
        return super().get_fieldsets(request) if obj is None else [(None, {"fields": fields})]


@admin.register(ApiKey)
class ApiKeyAdmin(KeyAdmin):
    """The new key is shown once, in the response itself: it passes through no cookie and no message store."""

    list_display = ("name", "prefix", "created_at", "expires_at", "revoked_at")
    public = ("scopes", "last_used_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("name", "prefix")
    fields = ("name",)
    actions = ("revoke",)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: ModelForm[ApiKey], change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            made = services.create_api_key(obj.name, actor=actor_of(request))
        obj.pk, request.__dict__["api_key"] = made.row.pk, made

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "opts": self.opts, "made": request.__dict__["api_key"]}
        response = TemplateResponse(request, "admin/tenants/apikey/made.html", {**context, "title": _("New API key")})
        add_never_cache_headers(response)
        return response

    @admin.action(description=gettext_lazy("Revoke selected keys"), permissions=["change"])
    @confirm_action(gettext_lazy("Requests with these keys will be refused from now on. This can't be undone."))
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for row in queryset:
            with tenant_scope(row.tenant_id):
                services.revoke_api_key(row, actor=actor_of(request))


class IdentityKeyForm(TenantRowForm):
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        algorithm, public_key = cleaned.get("algorithm"), cleaned.get("public_key", "")
        if algorithm and (problem := rules.identity_key_problem(algorithm, public_key)):
            self.add_error("public_key", problem)
        return cleaned


@admin.register(IdentityKey)
class IdentityKeyAdmin(KeyAdmin):
    """A new secret is shown once, in the response itself. Rotation: add another key, then retire the old one."""

    form = IdentityKeyForm
    list_display = ("key_id", "deployment", "algorithm", "gate", "created_at", "retired_at")
    list_filter = (("retired_at", admin.EmptyFieldListFilter), "algorithm")
    search_fields = ("key_id",)
    list_select_related: ClassVar = ["deployment", "tenant"]
    fields = ("deployment", "key_id", "algorithm", "public_key", "gate")
    public = ("public_key",)
    actions = ("retire",)

    def save_model(self, request: HttpRequest, obj: IdentityKey, form: ModelForm[IdentityKey], change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            made = services.add_identity_key(
                obj.deployment,
                key_id=obj.key_id,
                algorithm=obj.algorithm,
                public_key=obj.public_key,
                gate=obj.gate,
                actor=actor_of(request),
            )
        obj.pk, request.__dict__["identity_key"] = made.row.pk, made

    def response_add(self, request: HttpRequest, obj: IdentityKey, post_url_continue: str | None = None) -> Any:
        made = request.__dict__["identity_key"]
        if not made.secret:
            return super().response_add(request, obj, post_url_continue)
        context = {**self.admin_site.each_context(request), "opts": self.opts, "made": made, "title": _("New secret")}
        response = TemplateResponse(request, "admin/tenants/identitykey/made.html", context)
        add_never_cache_headers(response)
        return response

    @admin.action(description=gettext_lazy("Retire selected keys"), permissions=["change"])
    @confirm_action(gettext_lazy("Signatures of these keys won't be accepted from now on. This can't be undone."))
    def retire(self, request: HttpRequest, queryset: QuerySet[IdentityKey]) -> None:
        for row in queryset:
            with tenant_scope(row.tenant_id):
                services.retire_identity_key(row, actor=actor_of(request))


class MessageKeyForm(TenantRowForm):
    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if problem := rules.identity_key_problem(IdentityAlgorithm.EDDSA, cleaned.get("public_key", "")):
            self.add_error("public_key", problem)
        user, tenant = cleaned.get("user"), cleaned.get("tenant")
        if user is not None:
            with tenant_scope(tenant.pk if tenant else current_scope().tenant_id):
                if queries.role_of(user) is None:
                    self.add_error("user", _("Only members can sign messages."))
        return cleaned


@admin.register(MessageKey)
class MessageKeyAdmin(KeyAdmin):
    """An owner registers the key of a member; it is retired, never changed."""

    form = MessageKeyForm
    list_display = ("key_id", "user", "created_at", "retired_at")
    list_filter = (("retired_at", admin.EmptyFieldListFilter),)
    search_fields = ("key_id", "user__email")
    list_select_related: ClassVar = ["user", "tenant"]
    fields = ("user", "key_id", "public_key")
    public = ("public_key",)
    actions = ("retire",)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Owners only see their own members, because other companies' users are none of their business."""
        if db_field.name == "user" and not is_superuser(request):
            kwargs["queryset"] = User.objects.filter(pk__in=Membership.objects.values("user_id"))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: MessageKey, form: ModelForm[MessageKey], change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            made = services.add_message_key(
                obj.user, key_id=obj.key_id, public_key=obj.public_key, actor=actor_of(request)
            )
        obj.pk = made.pk

    @admin.action(description=gettext_lazy("Retire selected keys"), permissions=["change"])
    @confirm_action(gettext_lazy("Signatures of these keys won't be accepted from now on. This can't be undone."))
    def retire(self, request: HttpRequest, queryset: QuerySet[MessageKey]) -> None:
        for row in queryset:
            with tenant_scope(row.tenant_id):
                services.retire_message_key(row, actor=actor_of(request))
