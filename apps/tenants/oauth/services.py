"""Register and revoke apps, also those that register themselves, grant and revoke their access, issue and check their
tokens.

A token acts within its scopes and, for a member, within the member's role at the time of each request: a member who
left or was deactivated has no valid tokens. Secrets, codes and tokens are returned once and stored as hashes.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role, TokenKind
from apps.tenants.models import OAuthApp, OAuthGrant, OAuthToken, Tenant, User
from apps.tenants.queries import role_of
from apps.tenants.rules import APP_SCOPES, SELF_REGISTERED_SCOPES, is_access_token, redirects_problem
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.ids import parse_id
from kernel.pagination import read_page
from kernel.tenancy import lookup_scope, tenant_scope

CODE_SECONDS, ACCESS_SECONDS = 60, 3600
REFRESH_LIFETIME = timedelta(days=30)
# Apps that registered themselves and wait for the first member to consent. Older ones are deleted.
MOST_WAITING = 50
_USE_RECORDED_EVERY = timedelta(minutes=5)


@dataclass(frozen=True)
class NewApp:
    """The row and, for a confidential app, its secret, which is only available here."""

    app: OAuthApp
    secret: str = ""


@dataclass(frozen=True)
class TokenHolder:
    """For whom an access token acts: a member with their present role, or the app itself (`user` is None)."""

    grant: OAuthGrant
    scopes: tuple[str, ...]
    expires_at: datetime
    user: User | None = None
    role: Role | None = None


def register_app(
    name: str,
    *,
    redirect_uris: Collection[str],
    scopes: Iterable[str],
    is_confidential: bool,
    actor: str,
) -> NewApp:
    """Register an app of the scope's tenant. Raises 422 `oauth_redirect_invalid` and `oauth_scopes_invalid`."""
    secret = _new("ocs") if is_confidential else ""
    app = OAuthApp(
        name=name,
        redirect_uris=list(dict.fromkeys(redirect_uris)),
        scopes=sorted(set(scopes)),
        hashed_secret=sha256_hex(secret) if secret else "",
    )
    _require_valid(app)
    app.save()
    data = {"scopes": app.scopes, "confidential": is_confidential}
    record(AuditEvent.OAUTH_APP_REGISTERED, actor=actor, subject=f"oauth_app:{app.pk}", data=data)
    return NewApp(app, secret)


def register_itself(name: str, *, redirect_uris: Collection[str], scopes: Iterable[str]) -> OAuthApp:
    """Register an app that a stranger describes, in the scope of a tenant that allows it: public, for MCP servers.

    Of those to which no member has consented the newest `MOST_WAITING` stay. Raises as `register_app`.
    """
    app = OAuthApp(
        name=name,
        redirect_uris=list(dict.fromkeys(redirect_uris)),
        scopes=sorted(set(scopes)),
        is_self_registered=True,
    )
    _require_valid(app)
    app.save()
    data = {"scopes": app.scopes}
    record(AuditEvent.OAUTH_APP_SELF_REGISTERED, actor="system", subject=f"oauth_app:{app.pk}", data=data)
    consented = OAuthGrant.objects.filter(app=OuterRef("pk"))
    waiting = OAuthApp.objects.filter(~Exists(consented), is_self_registered=True, revoked_at=None)
    # A member who consents at this moment keeps the row locked, and the app stays.
    newest = waiting.order_by("-created_at", "-pk")
    old = newest.select_for_update(no_key=True, skip_locked=True, of=("self",))[MOST_WAITING:]
    OAuthApp.objects.filter(pk__in=[row.pk for row in old]).delete()
    return app


def allow_self_registration(tenant: Tenant, *, allowed: bool, actor: str) -> None:
    """Decide whether apps may register themselves. In the tenant's scope. Those that have done so stay."""
    changed = Tenant.objects.filter(pk=tenant.pk).exclude(apps_register_themselves=allowed)
    if changed.update(apps_register_themselves=allowed):
        subject, data = f"tenant:{tenant.pk}", {"allowed": allowed}
        record(AuditEvent.OAUTH_REGISTRATION_CHANGED, actor=actor, subject=subject, data=data)


def change_app(
    app: OAuthApp,
    *,
    actor: str,
    name: str | None = None,
    redirect_uris: Collection[str] | None = None,
    scopes: Iterable[str] | None = None,
) -> OAuthApp:
    """Change what is given of an app that `get_app` locked. Tokens lose the scopes that it loses at once; for more
    than a member consented to, the member has to consent again.

    Raises 409 `oauth_app_ended` for a revoked app, and what `register_app` raises.
    """
    if app.revoked_at is not None:
        raise SilasError(ErrorCode.OAUTH_APP_ENDED)
    given = {
        "name": name,
        "redirect_uris": None if redirect_uris is None else list(dict.fromkeys(redirect_uris)),
        "scopes": None if scopes is None else sorted(set(scopes)),
    }
    changed = [field for field, value in given.items() if value is not None and value != getattr(app, field)]
    for field in changed:
        setattr(app, field, given[field])
    _require_valid(app)
    if changed:
        app.save(update_fields=changed)
        data = {"changed": changed, "scopes": app.scopes}
        record(AuditEvent.OAUTH_APP_CHANGED, actor=actor, subject=f"oauth_app:{app.pk}", data=data)
    return app


def _require_valid(app: OAuthApp) -> None:
    if problem := redirects_problem(app.redirect_uris):
        raise SilasError(ErrorCode.OAUTH_REDIRECT_INVALID, problem)
    if not app.redirect_uris and not app.is_confidential:
        raise SilasError(ErrorCode.OAUTH_REDIRECT_INVALID)
    most = SELF_REGISTERED_SCOPES if app.is_self_registered else APP_SCOPES
    if not app.scopes or not set(app.scopes) <= set(most):
        raise SilasError(ErrorCode.OAUTH_SCOPES_INVALID)


def replace_secret(app_id: UUID, *, actor: str) -> NewApp:
    """Replace the secret of a confidential app; the one before ends at once. Raises `NotFound`, and 409
    `oauth_app_ended` for an app that is public or revoked."""
    secret = _new("ocs")
    changed = OAuthApp.objects.filter(pk=app_id, revoked_at=None).exclude(hashed_secret="")
    replaced = changed.update(hashed_secret=sha256_hex(secret))
    app = get_app(app_id)
    if not replaced:
        raise SilasError(ErrorCode.OAUTH_APP_ENDED)
    record(AuditEvent.OAUTH_SECRET_REPLACED, actor=actor, subject=f"oauth_app:{app.pk}")
    return NewApp(app, secret)


def revoke_app(app_id: UUID, *, actor: str) -> bool:
    """Revoke an app with all its tokens; returns whether it was active. Raises `NotFound`."""
    app = get_app(app_id)
    revoked: bool = OAuthApp.objects.filter(pk=app.pk, revoked_at=None).update(revoked_at=now()) == 1
    if revoked:
        record(AuditEvent.OAUTH_APP_REVOKED, actor=actor, subject=f"oauth_app:{app.pk}")
    return revoked


def get_app(app_id: UUID, *, lock: bool = False) -> OAuthApp:
    """One of the scope's apps, locked until the scope ends if it will be changed. Raises `NotFound` for any other
    tenant's."""
    rows = OAuthApp.objects.select_for_update(no_key=True) if lock else OAuthApp.objects.all()
    app: OAuthApp | None = rows.filter(pk=app_id).first()
    if app is None:
        raise NotFound()
    return app


def list_apps() -> list[OAuthApp]:
    """The scope's apps: active ones first, newest first within each group."""
    return sorted(OAuthApp.objects.order_by("-created_at"), key=lambda app: app.revoked_at is not None)


def page_of_apps(*, before: str, limit: int) -> tuple[list[OAuthApp], str]:
    """The scope's apps, newest first, and the cursor of the next page."""
    return read_page(OAuthApp.objects.all(), before=before, limit=limit)


def app_by_client_id(client_id: str) -> OAuthApp | None:
    """The active app with this client id, of any tenant. Opens its own lookup scope."""
    app_id = parse_id(client_id)
    if app_id is None:
        return None
    with lookup_scope(str(app_id)):
        app: OAuthApp | None = OAuthApp.objects.select_related("tenant").filter(pk=app_id, revoked_at=None).first()
        return app


def grant_access(
    app: OAuthApp, user: User, *, scopes: Collection[str], audience: str, redirect_uri: str, code_challenge: str
) -> str:
    """Record a member's consent and return the code for the app, valid once and for `CODE_SECONDS`. Raises `NotFound`
    for an app that has just been deleted."""
    get_app(app.pk, lock=True)
    moment, code = now(), _new("oac")
    unused = OAuthGrant.objects.filter(app=app, user=user, code_used_at=None, code_expires_at__lt=moment)
    # Consents whose code was never fetched, or each try of an app would leave one.
    unused.delete()
    OAuthGrant.objects.create(
        app=app,
        user=user,
        scopes=sorted(set(scopes)),
        audience=audience,
        redirect_uri=redirect_uri,
        code_hashed=sha256_hex(code),
        code_challenge=code_challenge,
        code_expires_at=moment + timedelta(seconds=CODE_SECONDS),
    )
    data = {"scopes": sorted(set(scopes)), "audience": audience}
    record(AuditEvent.OAUTH_ACCESS_GRANTED, actor=f"user:{user.pk}", subject=f"oauth_app:{app.pk}", data=data)
    return code


def connected_apps(user: User) -> list[OAuthGrant]:
    """What apps may do on the member's behalf, newest first."""
    rows = OAuthGrant.objects.select_related("app").filter(
        user_id=user.pk, revoked_at=None, app__revoked_at=None, code_used_at__isnull=False
    )
    return list(rows.order_by("-created_at"))


def revoke_access(grant_id: UUID, *, user: User) -> None:
    """Revoke what the member granted, with all its tokens. Raises `NotFound` for another's."""
    grant: OAuthGrant | None = OAuthGrant.objects.filter(pk=grant_id, user_id=user.pk).first()
    if grant is None:
        raise NotFound()
    end_grant(grant, reason="member", actor=f"user:{user.pk}")


def revoke_all_access(user_id: UUID) -> None:
    """Revoke everything that a person who left the scope's tenant granted there."""
    for grant in OAuthGrant.objects.filter(user_id=user_id, revoked_at=None):
        end_grant(grant, reason="left", actor="system")


def end_grant(grant: OAuthGrant, *, reason: str, actor: str) -> None:
    """Revoke a grant with all its tokens."""
    if OAuthGrant.objects.filter(pk=grant.pk, revoked_at=None).update(revoked_at=now()):
        data = {"reason": reason, "grant": str(grant.pk)}
        record(AuditEvent.OAUTH_ACCESS_REVOKED, actor=actor, subject=f"oauth_app:{grant.app_id}", data=data)


def lock_code(app: OAuthApp, code: str) -> OAuthGrant | None:
    """Lock the grant of a code that is valid now. A code that was used before revokes what came of it."""
    rows = OAuthGrant.objects.select_for_update(no_key=True, of=("self",)).filter(app=app, code_hashed=sha256_hex(code))
    grant: OAuthGrant | None = rows.first()
    if grant is None:
        return None
    # Who sends it the second time is either a thief or the victim: all tokens of the code end (RFC 6749, 4.1.2).
    if grant.code_used_at is not None:
        end_grant(grant, reason="code_replayed", actor="system")
        return None
    return grant if grant.revoked_at is None and _expires_after_now(grant.code_expires_at) else None


def lock_refresh_token(app: OAuthApp, token: str) -> OAuthToken | None:
    """Lock a refresh token that is valid now. One that was used before revokes its grant."""
    rows = OAuthToken.objects.select_for_update(no_key=True, of=("self",)).select_related("grant__user")
    row: OAuthToken | None = rows.filter(
        grant__app=app, kind=TokenKind.REFRESH, hashed=sha256_hex(token), grant__revoked_at=None
    ).first()
    if row is None:
        return None
    # The same for a refresh token that was already exchanged (RFC 9700, 4.14.2).
    if row.used_at is not None:
        end_grant(row.grant, reason="refresh_replayed", actor="system")
        return None
    user = row.grant.user
    # A refresh must not outlive the membership.
    is_member = user is not None and user.is_active and role_of(user) is not None
    return row if is_member and _expires_after_now(row.expires_at) else None


def own_grant(app: OAuthApp, *, scopes: Collection[str], audience: str) -> OAuthGrant:
    """The grant under which the app acts for itself (client credentials)."""
    grant, is_new = OAuthGrant.objects.get_or_create(
        app=app, user=None, audience=audience, revoked_at=None, defaults={"scopes": app.scopes}
    )
    if is_new:
        data = {"scopes": sorted(scopes), "audience": audience}
        actor, subject = f"oauth_grant:{grant.pk}", f"oauth_app:{app.pk}"
        record(AuditEvent.OAUTH_ACCESS_GRANTED, actor=actor, subject=subject, data=data)
    own: OAuthGrant = grant
    return own


def save_tokens(
    grant: OAuthGrant, *, access_token: str, refresh_token: str, scopes: Collection[str], used: OAuthToken | None
) -> None:
    """Store new tokens of a grant, mark the refresh token that was used for them, and delete expired ones."""
    moment = now()
    OAuthToken.objects.filter(grant=grant, expires_at__lt=moment).delete()
    if used is not None:
        OAuthToken.objects.filter(pk=used.pk).update(used_at=moment)
    else:
        OAuthGrant.objects.filter(pk=grant.pk).update(code_used_at=moment if grant.code_hashed else None)
    lifetimes = {access_token: (TokenKind.ACCESS, timedelta(seconds=ACCESS_SECONDS))}
    if refresh_token:
        lifetimes[refresh_token] = (TokenKind.REFRESH, REFRESH_LIFETIME)
    # A refresh token keeps the scopes of the grant, also where one access token was limited to fewer (RFC 6749, 6).
    OAuthToken.objects.bulk_create(
        OAuthToken(
            tenant_id=grant.tenant_id,
            grant=grant,
            kind=kind,
            hashed=sha256_hex(token),
            scopes=sorted(scopes) if kind == TokenKind.ACCESS else grant.scopes,
            expires_at=moment + lifetime,
        )
        for token, (kind, lifetime) in lifetimes.items()
    )


def revoke_token(app: OAuthApp, token: str) -> None:
    """Revoke what an app hands back (RFC 7009): an access token alone, a refresh token with its grant."""
    row: OAuthToken | None = (
        OAuthToken.objects.select_related("grant").filter(grant__app=app, hashed=sha256_hex(token)).first()
    )
    if row is None:
        return
    if row.kind == TokenKind.REFRESH:
        end_grant(row.grant, reason="app", actor=f"oauth_grant:{row.grant_id}")
    else:
        row.delete()


def token_holder(token: str, *, audience: str) -> TokenHolder | None:
    """For whom an access token acts; None if it is unknown, expired, revoked, or issued for another resource."""
    if not is_access_token(token):
        return None
    hashed = sha256_hex(token)
    with lookup_scope(hashed):
        found = Q(hashed=hashed, kind=TokenKind.ACCESS, expires_at__gt=now())
        row: OAuthToken | None = OAuthToken.objects.filter(found).first()
    if row is None:
        return None
    with tenant_scope(row.tenant_id):
        grants = OAuthGrant.objects.select_related("app", "user")
        grant: OAuthGrant | None = grants.filter(
            pk=row.grant_id, audience=audience, revoked_at=None, app__revoked_at=None
        ).first()
        if grant is None:
            return None
        role = None
        if grant.user is not None:
            role = role_of(grant.user) if grant.user.is_active else None
            if role is None:
                return None
            grant.user.acts_as = f"oauth_grant:{grant.pk}"
        _note_use(grant)
        scopes = tuple(scope for scope in row.scopes if scope in grant.app.scopes)
        return TokenHolder(grant, scopes, row.expires_at, grant.user, role)


def _note_use(grant: OAuthGrant) -> None:
    moment = now()
    if grant.last_used_at is None or moment - grant.last_used_at > _USE_RECORDED_EVERY:
        OAuthGrant.objects.filter(pk=grant.pk).update(last_used_at=moment)


def _expires_after_now(moment: Any) -> bool:
    return moment is not None and moment > now()


def _new(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def new_access_token(_: object = None) -> str:
    return _new("oat")


def new_refresh_token(_: object = None) -> str:
    return _new("ort")
