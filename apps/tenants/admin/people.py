"""Admin of memberships and users."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model, Q
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import BaseAdmin, record_change
from apps.tenants import queries, rules, services
from apps.tenants.admin.rows import TenantRowAdmin, TenantRowForm, actor_of, is_superuser
from apps.tenants.enums import Role
from apps.tenants.models import Membership, User
from kernel.tenancy import tenant_scope
from kernel.tenancy.scope import current_scope


class RoleForm(TenantRowForm):
    """Changes a member's role, except the last owner's."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("role") != Role.OWNER and queries.is_last_owner(self.instance):
            self.add_error("role", rules.LAST_OWNER)
        return cleaned


class MembershipForm(TenantRowForm):
    email = forms.EmailField(
        label=gettext_lazy("E-mail address"),
        help_text=gettext_lazy("Creates an account if there is none with this address."),
    )

    class Meta:
        model = Membership
        fields = ("tenant", "role")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        tenant = cleaned.get("tenant")
        mine = tenant.pk if tenant else current_scope().tenant_id
        taken = Membership.objects.filter(Q(tenant_id=mine), user__email__iexact=cleaned.get("email", ""))
        if taken.exists():
            self.add_error("email", _("This person is already a member."))
        return cleaned


class NewMemberForm(MembershipForm):
    """Form with which owners add members. An existing account may have been created by another tenant's owner, who
    knows its password, so only a superuser may add it."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.has_error("email") and User.objects.filter(email__iexact=cleaned.get("email", "")).exists():
            self.add_error(
                "email", _("An account with this address already exists. Ask the platform operator to add it.")
            )
        return cleaned


@admin.register(Membership)
class MembershipAdmin(TenantRowAdmin):
    form = RoleForm
    list_display = ("user", "role", "created_at")
    list_filter = ("role",)
    search_fields = ("user__email", "user__first_name", "user__last_name")
    list_select_related: ClassVar = ["user", "tenant"]

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: object) -> Any:
        if obj is None:
            kwargs["form"] = MembershipForm if is_superuser(request) else NewMemberForm
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        tenant = ("tenant",) if is_superuser(request) else ()
        return [(None, {"fields": (*tenant, *(("user", "role") if obj else ("email", "role")))})]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "user") if obj else fields

    def save_model(self, request: HttpRequest, obj: Membership, form: ModelForm[Membership], change: bool) -> None:
        with tenant_scope(obj.tenant_id):
            if change:
                services.change_role(obj, Role(obj.role), actor=actor_of(request))
                return
            new = services.add_member(form.cleaned_data["email"], role=Role(obj.role), actor=actor_of(request))
        obj.pk, obj.user = new.membership.pk, new.membership.user
        if new.welcome:
            link = request.build_absolute_uri(new.welcome)
            sentence = _("Send this link to %(email)s. It works once and expires in three days: %(link)s")
            messages.info(request, sentence % {"email": obj.user.email, "link": link})

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        with tenant_scope(obj.tenant_id):
            services.remove_member(obj, actor=actor_of(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List the last owner as protected, so that the confirmation page explains it and has no button."""
        to_delete, counts, forbidden, protected = super().get_deleted_objects(objs, request)
        last = [f"{row}: {rules.LAST_OWNER}" for row in objs if queries.is_last_owner(row)]
        return to_delete, counts, forbidden, [*protected, *last]


# Rights come from memberships only, so groups are hidden.
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(BaseAdmin, UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Users are deactivated, never deleted, because their decisions and signatures refer to them."""

    list_display = ("email", "first_name", "last_name", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("email", "first_name", "last_name")
    ordering = ("email",)
    fieldsets: ClassVar = [
        (None, {"fields": ("email", "password")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name")}),
        (gettext_lazy("Access"), {"fields": ("is_active", "is_superuser")}),
    ]
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
    filter_horizontal = ()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        """Audit that the password was changed, and nothing else about it."""
        response = super().user_change_password(request, id, form_url)
        if request.method == "POST" and response.status_code == 302:
            person = User.objects.get(pk=id)
            record_change(request, person, "changed", before=person, after=person, fields=["password"])
        return response
