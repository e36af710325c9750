"""Configure a company's login provider, and decide whom it lets in.

A provider speaks for its own company: its logins open that tenant and nothing else (`access.ONLY_TENANT`), never a
superuser's account. A person is known by issuer and subject. A new person needs an address that the provider has
verified, of a domain that the owner named; an account that is there already joins only where it is a member (ADR 49).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.models import LoginProvider, Membership, ProviderAccount, Tenant, User
from apps.tenants.oidc import Claims
from apps.tenants.services import add_member
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.language import gettext
from kernel.secrets_key import seal_secret, unseal_secret
from kernel.tenancy import tenant_scope

_DOMAIN = re.compile(r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")
_MOST_DOMAINS = 20


def provider_here() -> LoginProvider | None:
    """Of the scope's tenant, switched on or off."""
    found: LoginProvider | None = LoginProvider.objects.first()
    return found


def provider_of(slug: str) -> LoginProvider | None:
    """The provider of the company with this slug, with its tenant; None where none is switched on."""
    tenant = Tenant.objects.filter(slug=slug).first() if len(slug) <= 60 and "\0" not in slug else None
    if tenant is None:
        return None
    with tenant_scope(tenant):
        found: LoginProvider | None = LoginProvider.objects.select_related("tenant").filter(enabled=True).first()
        return found


def secret_of(provider: LoginProvider) -> str:
    sealed = bytes(provider.sealed_secret)
    return unseal_secret(sealed, belongs_to=_seal_of(provider)).decode()


def save_provider(
    *, issuer: str, client_id: str, secret: str, domains: Iterable[str], default_role: str, enabled: bool, actor: str
) -> LoginProvider:
    """How the scope's tenant logs its people in, from this commit on. An empty `secret` leaves the one that is there.

    Another issuer is another provider: who was known by the one before is not known by it. Raises `SilasError`
    `invalid_provider` 422.
    """
    wanted = _checked(issuer, client_id, domains, default_role)
    row = provider_here() or LoginProvider()
    if not secret and (row._state.adding or row.issuer != wanted["issuer"]):
        raise SilasError(ErrorCode.INVALID_PROVIDER, gettext("Enter the client secret from your provider."))
    for name, value in wanted.items():
        setattr(row, name, value)
    row.enabled = enabled
    if secret:
        row.sealed_secret = seal_secret(secret.encode(), belongs_to=_seal_of(row))
    row.save()
    data = {"enabled": enabled, "role": default_role, "domains": len(wanted["domains"]), "secret": bool(secret)}
    record(AuditEvent.LOGIN_PROVIDER_CHANGED, actor=actor, subject=f"login_provider:{row.pk}", data=data)
    return row


def require_second_factor(tenant: Tenant, *, required: bool, actor: str) -> None:
    """Whether members need one before they see anything. In the tenant's scope."""
    if (
        Tenant.objects.filter(pk=tenant.pk)
        .exclude(second_factor_required=required)
        .update(second_factor_required=required)
    ):
        record(
            AuditEvent.SECOND_FACTOR_REQUIRED, actor=actor, subject=f"tenant:{tenant.pk}", data={"required": required}
        )


def person_of(provider: LoginProvider, claims: Claims) -> User:
    """Whom the provider has just vouched for. In its tenant's scope.

    Raises `SilasError`, 403: `provider_not_a_member`, `provider_unverified`, `provider_domain`, `provider_account`.
    """
    # By subject, never by address: an address may be given to another person later.
    known = ProviderAccount.objects.filter(issuer=provider.issuer, subject=claims.subject).select_related("user")
    account: ProviderAccount | None = known.first()
    user = account.user if account else _newcomer(provider, claims)
    # A company must not be able to log in as the operator of the installation.
    if not user.is_active or user.is_superuser or user.is_staff:
        raise _no(
            ErrorCode.PROVIDER_ACCOUNT,
            gettext("This account can't log in through a company. Log in with its password."),
        )
    if not Membership.objects.filter(user=user).exists():
        raise _no(ErrorCode.PROVIDER_NOT_A_MEMBER, gettext("You're no longer a member. Ask an owner to invite you."))
    if account is None:
        ProviderAccount.objects.create(user=user, issuer=provider.issuer, subject=claims.subject)
    return user


def _newcomer(provider: LoginProvider, claims: Claims) -> User:
    """The member with this address, or a new member. Never a stranger's account, which another person may have
    created."""
    if not claims.email or not claims.email_verified:
        raise _no(ErrorCode.PROVIDER_UNVERIFIED, gettext("Your company's login hasn't verified your email address."))
    address = claims.email.lower()
    if address.rpartition("@")[2] not in provider.domains:
        raise _no(ErrorCode.PROVIDER_DOMAIN, gettext("Your email address isn't in a domain that may log in here."))
    user = User.objects.filter(email__iexact=address).first()
    if user is None:
        role = Role(provider.default_role)
        made = add_member(address, role=role, full_name=claims.name[:120], actor=f"login_provider:{provider.pk}")
        return made.membership.user
    if not Membership.objects.filter(user=user).exists():
        raise _no(
            ErrorCode.PROVIDER_NOT_A_MEMBER, gettext("Your account isn't a member here. Ask an owner to invite you.")
        )
    return user


def _checked(issuer: str, client_id: str, domains: Iterable[str], default_role: str) -> dict[str, Any]:
    plain = issuer.strip()
    named = sorted({one.strip().lower().lstrip("@") for one in domains if one.strip()})
    if not _may_be_issuer(plain):
        raise SilasError(ErrorCode.INVALID_PROVIDER, gettext("The issuer must be a public https URL."))
    if not client_id.strip() or len(client_id.strip()) > 200:
        raise SilasError(ErrorCode.INVALID_PROVIDER, gettext("Enter the client ID from your provider."))
    if not named or len(named) > _MOST_DOMAINS or not all(map(_DOMAIN.fullmatch, named)):
        message = gettext("Enter up to 20 domains of your members' email addresses, such as example.com.")
        raise SilasError(ErrorCode.INVALID_PROVIDER, message)
    # Otherwise a person who can add people at the provider could make themselves owners here.
    if default_role not in Role.values or default_role == Role.OWNER:
        raise SilasError(ErrorCode.INVALID_PROVIDER, gettext("New members can be approvers, agents or viewers."))
    return {"issuer": plain, "client_id": client_id.strip(), "domains": named, "default_role": default_role}


def _may_be_issuer(url: str) -> bool:
    if len(url) > 300 or "?" in url or "#" in url:
        return False
    if settings.LOGIN_PROVIDERS_PRIVATE:
        return bool(host_of(url, schemes=("https", "http")))
    return is_public_url(url)


def _seal_of(row: LoginProvider) -> str:
    return f"login_provider:{row.pk}"


def _no(code: ErrorCode, message: str) -> SilasError:
    return SilasError(code, message)
