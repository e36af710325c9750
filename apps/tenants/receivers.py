"""Signal receivers: record logins and logouts, seal the empty policy lists of a new tenant, and revoke what a former
member granted to apps."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest

from apps.tenants import logins, policy_seals
from apps.tenants.models import Tenant, User
from apps.tenants.oauth import services as oauth
from apps.tenants.signals import member_removed
from kernel.tenancy import tenant_scope


@receiver(post_save, sender=Tenant)
def _seal_new_tenant(instance: Tenant, created: bool, **_: object) -> None:
    if created:
        with tenant_scope(instance):
            policy_seals.seal_empty_lists(instance.pk)


@member_removed.connect
def _revoke_apps(user_id: UUID) -> None:
    oauth.revoke_all_access(user_id)


@receiver(user_logged_in)
def _record_login(request: HttpRequest, user: User, **_: object) -> None:
    logins.begin(request, user)


@receiver(user_logged_out)
def _delete_login(request: HttpRequest, user: User, **_: object) -> None:
    if user is not None:
        logins.forget(request.session)
