"""Invite people to become members, by a link that works once and for seven days.

The link proves access to the mailbox of the invited address: it creates an account with that address, or lets the
logged-in account with exactly that address join. Links are stored as hashes; a new link voids the previous one.
Accepting claims the invitation first, so that of two requests at once only one joins.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.models import Invitation, Membership, User
from apps.tenants.services import NewMember, add_member, check_email
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext, gettext_lazy
from kernel.tenancy import lookup_scope

GOOD_FOR = timedelta(days=7)
_ACCOUNT_EXISTS = SilasError(
    ErrorCode.ACCOUNT_EXISTS, gettext_lazy("An account with this email address already exists. Log in to accept.")
)


@dataclass(frozen=True)
class Link:
    """`path` is the one-time URL; it is not stored, so it is only available here."""

    invitation: Invitation
    path: str


def invite(email: str, *, role: Role, by: User | None, actor: str) -> Invitation:
    """Invite someone to the scope's tenant. Revokes an open invitation for the same address.

    `by` is None for a program.     Raises `SilasError("invalid_email")`, and `SilasError("member_exists")` 409.
    """
    address = email.strip().lower()
    check_email(address)
    if Membership.objects.filter(user__email__iexact=address).exists():
        raise SilasError(ErrorCode.MEMBER_EXISTS)
    moment = now()
    Invitation.objects.filter(email=address, accepted_at=None, revoked_at=None).update(revoked_at=moment)
    invitation: Invitation = Invitation.objects.create(
        email=address, role=role, invited_by=by, created_at=moment, expires_at=moment + GOOD_FOR
    )
    data = {"role": str(role)}
    record(AuditEvent.MEMBER_INVITED, actor=actor, subject=f"invitation:{invitation.pk}", data=data)
    return invitation


def find_open(invitation_id: UUID) -> Invitation:
    """Raises `NotFound` for an accepted, revoked or foreign one."""
    invitation: Invitation | None = _open(invitation_id).first()
    if invitation is None:
        raise NotFound()
    return invitation


def list_open() -> Sequence[Invitation]:
    """Open invitations of the scope's tenant, including expired ones, which can be sent again."""
    return list(Invitation.objects.filter(accepted_at=None, revoked_at=None).select_related("invited_by"))


def resend(invitation_id: UUID, *, actor: str) -> Invitation:
    """Extend it by seven days and void its link. Raises `NotFound` for an accepted or revoked one."""
    if not _open(invitation_id).update(hashed="", expires_at=now() + GOOD_FOR):
        raise NotFound()
    invitation: Invitation = Invitation.objects.get(pk=invitation_id)
    data = {"role": str(invitation.role), "again": True}
    record(AuditEvent.MEMBER_INVITED, actor=actor, subject=f"invitation:{invitation_id}", data=data)
    return invitation


def revoke(invitation_id: UUID, *, actor: str) -> None:
    """Raises `NotFound` for an accepted or revoked invitation."""
    if not _open(invitation_id).update(revoked_at=now()):
        raise NotFound()
    record(AuditEvent.INVITATION_REVOKED, actor=actor, subject=f"invitation:{invitation_id}")


def new_link(invitation_id: UUID) -> Link | None:
    """A new link for an open invitation, which voids the previous one; None if the invitation has ended."""
    token = secrets.token_urlsafe(32)
    # Only the hash is stored: a reader of the database holds no link.
    if not _open(invitation_id).filter(expires_at__gt=now()).update(hashed=sha256_hex(token)):
        return None
    return Link(Invitation.objects.get(pk=invitation_id), reverse("console-invitation", args=[token]))


def find_by_token(token: str) -> Invitation | None:
    """The open invitation with this token and its tenant, or None. Outside any scope."""
    hashed = sha256_hex(token)
    with lookup_scope(hashed):
        invitation: Invitation | None = (
            Invitation.objects.select_related("tenant")
            .filter(hashed=hashed, accepted_at=None, revoked_at=None, expires_at__gt=now())
            .first()
        )
        return invitation


def has_account(invitation: Invitation) -> bool:
    return User.objects.filter(email__iexact=invitation.email).exists()


def accept(invitation: Invitation, *, user: User | None = None, name: str = "", password: str = "") -> NewMember:
    """Make `user` a member, whose address must be the invited one, or a new account. In the tenant's scope.

    Raises `SilasError`: `invitation_ended` 409, `not_yours` 409, `account_exists` 409, `member_exists` 409.
    """
    # The link may have been passed on; it is for the person who reads that mailbox.
    if user is not None and user.email.lower() != invitation.email:
        raise SilasError(ErrorCode.NOT_YOURS, gettext("This invitation is for {email}.").format(email=invitation.email))
    if user is None and has_account(invitation):
        raise _ACCOUNT_EXISTS
    claimed = Invitation.objects.filter(
        # `hashed`: a link that was replaced while its page was open is void.
        pk=invitation.pk,
        hashed=invitation.hashed,
        accepted_at=None,
        revoked_at=None,
        expires_at__gt=now(),
    )
    if not claimed.update(accepted_at=now()):
        raise SilasError(ErrorCode.INVITATION_ENDED)
    role = Role(invitation.role)
    actor = f"user:{invitation.invited_by_id}" if invitation.invited_by_id else "system"
    new = add_member(invitation.email, role=role, full_name=name, password=password or None, actor=actor)
    if user is None and not new.membership.user.check_password(password):
        raise _ACCOUNT_EXISTS  # another request created it meanwhile
    record(
        AuditEvent.INVITATION_ACCEPTED,
        actor=f"user:{new.membership.user_id}",
        subject=f"invitation:{invitation.pk}",
        data={"role": str(role)},
    )
    return new


def _open(invitation_id: UUID) -> QuerySet[Invitation]:
    rows: QuerySet[Invitation] = Invitation.objects.filter(pk=invitation_id, accepted_at=None, revoked_at=None)
    return rows
