"""How does somebody become a member who was asked to? By a link that works once and for a week.

Whoever holds the link has read the letter to that address: a new account is made with it, or an account of exactly
that address joins, once its person has logged in. Links stand as hashes; a new one voids the one before. Accepting
claims the invitation first, so that of two rivals one joins.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.models import Invitation, Membership, User
from apps.tenants.services import NewMember, add_member, check_email
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import lookup_scope

GOOD_FOR = timedelta(days=7)
_ACCOUNT_EXISTS = SilasError("account_exists", "There is an account of this address. Log in to accept.", status=409)


@dataclass(frozen=True)
class Link:
    """`path` is the address that works once: this is the only time anybody sees it."""

    invitation: Invitation
    path: str


def invite(email: str, *, role: Role, by: User) -> Invitation:
    """Ask somebody into the scope's tenant. An invitation of theirs that is open ends.

    Raises `SilasError("invalid_email")`, and `SilasError("member_exists")` 409.
    """
    address = email.strip().lower()
    check_email(address)
    if Membership.objects.filter(user__email__iexact=address).exists():
        raise SilasError("member_exists", "This person is a member already.", status=409)
    moment = now()
    Invitation.objects.filter(email=address, accepted_at=None, revoked_at=None).update(revoked_at=moment)
    made: Invitation = Invitation.objects.create(
        email=address, role=role, invited_by=by, created_at=moment, expires_at=moment + GOOD_FOR
    )
    data = {"role": str(role)}
    record(AuditEvent.MEMBER_INVITED, actor=f"user:{by.pk}", subject=f"invitation:{made.pk}", data=data)
    return made


def list_open() -> Sequence[Invitation]:
    """Of the scope's tenant, those that ran out too: they can be sent again."""
    return list(Invitation.objects.filter(accepted_at=None, revoked_at=None).select_related("invited_by"))


def resend(invitation_id: UUID, *, by: User) -> Invitation:
    """It is good for another week, by a new link only. Raises `NotFound` for one that was accepted or taken back."""
    if not _open(invitation_id).update(hashed="", expires_at=now() + GOOD_FOR):
        raise NotFound("invitation")
    invitation: Invitation = Invitation.objects.get(pk=invitation_id)
    data = {"role": str(invitation.role), "again": True}
    record(AuditEvent.MEMBER_INVITED, actor=f"user:{by.pk}", subject=f"invitation:{invitation_id}", data=data)
    return invitation


def revoke(invitation_id: UUID, *, by: User) -> None:
    """Raises `NotFound` for one that was accepted or taken back."""
    if not _open(invitation_id).update(revoked_at=now()):
        raise NotFound("invitation")
    record(AuditEvent.INVITATION_REVOKED, actor=f"user:{by.pk}", subject=f"invitation:{invitation_id}")


def new_link(invitation_id: UUID) -> Link | None:
    """The link of an open invitation, which voids the one before; None for one that has ended."""
    token = secrets.token_urlsafe(32)
    if not _open(invitation_id).filter(expires_at__gt=now()).update(hashed=sha256_hex(token)):
        return None
    return Link(Invitation.objects.get(pk=invitation_id), reverse("console-invitation", args=[token]))


def find_by_token(token: str) -> Invitation | None:
    """The open invitation with this link, and its tenant; None for every dead one. Outside of any scope."""
    hashed = sha256_hex(token)
    with lookup_scope(hashed):
        found: Invitation | None = (
            Invitation.objects.select_related("tenant")
            .filter(hashed=hashed, accepted_at=None, revoked_at=None, expires_at__gt=now())
            .first()
        )
        return found


def has_account(invitation: Invitation) -> bool:
    return User.objects.filter(email__iexact=invitation.email).exists()


def accept(invitation: Invitation, *, user: Any = None, name: str = "", password: str = "") -> NewMember:
    """Make a new account a member, or `user`, whose address the invitation must be for. In its tenant's scope.

    Raises `SilasError`: `invitation_ended` 409, `not_yours` 409, `account_exists` 409, `member_exists` 409.
    """
    if user is not None and user.email.lower() != invitation.email:
        raise SilasError("not_yours", f"This invitation is for {invitation.email}.", status=409)
    if user is None and has_account(invitation):
        raise _ACCOUNT_EXISTS
    claimed = Invitation.objects.filter(
        pk=invitation.pk, hashed=invitation.hashed, accepted_at=None, revoked_at=None, expires_at__gt=now()
    )
    if not claimed.update(accepted_at=now()):
        raise SilasError("invitation_ended", "This invitation does not hold any more.", status=409)
    role = Role(invitation.role)
    new = add_member(
        invitation.email, role=role, full_name=name, password=password or None, actor=f"user:{invitation.invited_by_id}"
    )
    if user is None and not new.membership.user.check_password(password):
        raise _ACCOUNT_EXISTS  # a rival made it meanwhile
    record(
        AuditEvent.INVITATION_ACCEPTED,
        actor=f"user:{new.membership.user_id}",
        subject=f"invitation:{invitation.pk}",
        data={"role": str(role)},
    )
    return new


def _open(invitation_id: UUID) -> Any:
    return Invitation.objects.filter(pk=invitation_id, accepted_at=None, revoked_at=None)
