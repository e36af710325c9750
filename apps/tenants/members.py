"""List a tenant's members as its owners see them, and audit what happens to a person in all of their tenants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db import transaction

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Login, Membership, User
from apps.tenants.queries import memberships_of, users_with_second_factor
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import MEMBER_LANGUAGES, gettext
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope


def list_members() -> list[Membership]:
    """Members of the scope's tenant with their users, sorted by display name, each as `page_of_members` has it."""
    rows = with_logins(list(Membership.objects.select_related("user")))
    return sorted(rows, key=lambda row: row.user.display_name.lower())


def page_of_members(*, before: str, limit: int) -> tuple[list[Membership], str]:
    """Members of the scope's tenant with their users, the newest first, and the cursor of the next page.

    Each row carries two extra attributes: `has_factor` (whether the user has a second factor) and `last_seen`.
    """
    rows, following = read_page(Membership.objects.select_related("user"), before=before, limit=limit)
    return with_logins(rows), following


def with_logins(rows: list[Membership]) -> list[Membership]:
    """The same rows, each as `page_of_members` has it."""
    ids = [row.user_id for row in rows]
    protected = users_with_second_factor(ids)
    # Oldest first, so the newest login of each user wins.
    logins = Login.objects.filter(user_id__in=ids).order_by("seen_at").values_list("user_id", "seen_at")
    last_seen: dict[UUID, object] = dict(logins)
    for row in rows:
        row.__dict__.update(
            has_factor=row.user_id in protected, last_seen=last_seen.get(row.user_id) or row.user.last_login
        )
    return rows


def get_member(membership_id: UUID) -> Membership:
    """A member of the scope's tenant. Raises `NotFound` for any other tenant's."""
    membership: Membership | None = Membership.objects.select_related("user").filter(pk=membership_id).first()
    if membership is None:
        raise NotFound()
    return membership


def change_name(user: User, name: str) -> None:
    """Set the name colleagues see; an empty name falls back to the e-mail address."""
    first, _, last = " ".join(name.replace("\0", "").split())[:150].partition(" ")
    with transaction.atomic():
        user.first_name, user.last_name = first, last
        user.save(update_fields=["first_name", "last_name"])
        record_in_all_tenants(user, AuditEvent.NAME_CHANGED)


def change_language(user: User, language: str) -> None:
    """Set the language of the person's pages and e-mails; empty for the browser's. Raises `SilasError` 400 for one that
    we do not have."""
    if language and language not in MEMBER_LANGUAGES:
        raise SilasError(
            ErrorCode.UNKNOWN_LANGUAGE,
            gettext("Choose one of {listed}.").format(listed=", ".join(MEMBER_LANGUAGES.values())),
        )
    with transaction.atomic():
        user.language = language
        user.save(update_fields=["language"])
        record_in_all_tenants(user, AuditEvent.LANGUAGE_CHANGED, data={"language": language})


def record_in_all_tenants(
    user: User,
    event: AuditEvent,
    *,
    data: Mapping[str, object] | None = None,
    of: Iterable[Membership] | None = None,
    actor: str = "",
) -> None:
    """Audit an event about a person in the chain of each tenant they belong to; in the caller's transaction.

    Called outside any tenant scope. `of` limits it to some of their memberships; the actor is the person unless given.
    """
    memberships = memberships_of(user) if of is None else of
    # In the order of ids: every writer takes the chains' locks in the same order.
    for membership in sorted(memberships, key=lambda row: row.tenant_id):
        with tenant_scope(membership.tenant_id):
            record(event, actor=actor or f"user:{user.pk}", subject=f"user:{user.pk}", data=data)
