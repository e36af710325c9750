"""Who acts on conversations: a member who may answer, or the company's own program with an API key.

A program answers under no name: its conversations have a person as owner and no member (`owner_user` is None), and
every member may take them over.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with

ANSWERING_ROLES = roles_with(Capability.ANSWER)
ADMINISTERING_ROLES = roles_with(Capability.ADMINISTER)


@dataclass(frozen=True)
class ApiClient:
    """A program, by its actor in the audit log; the scopes of its key were checked where it came in."""

    actor: str


@dataclass(frozen=True)
class RuleClient(ApiClient):
    """An inbox rule at work. What it does triggers no rule."""


Staff = User | ApiClient
# Assignment and clocks, which act by what people have set up.
AUTOMATIC = ApiClient("system")


def require_staff(by: Staff) -> None:
    """Raises 403 `forbidden_role` for a member who may not answer."""
    if isinstance(by, User):
        require_role(by, ANSWERING_ROLES)


def require_administrator(by: Staff) -> None:
    """Raises 403 `forbidden_role` for a member who may not set the company up."""
    if isinstance(by, User):
        require_role(by, ADMINISTERING_ROLES)


def member_of(by: Staff) -> User | None:
    """The member; None for a program."""
    return by if isinstance(by, User) else None
