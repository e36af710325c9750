"""Start or resume a conversation for a visitor's browser, with consent, signed identity and site attributes.

All in one transaction: no conversation exists without its consent. A signed token is verified before it, because
attempts are counted outside of the database. Called by the sessions API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.sessions.schemas import StartedSession
from apps.sessions.services import describe, start_session
from apps.tenants.models import Deployment
from apps.visitors import consent, identity, prechat
from kernel.tenancy import tenant_scope


@dataclass(frozen=True)
class Wish:
    """What a browser asks for. `token`: who the site says this is, signed; `consent`: the version agreed to. A program
    says who it is (`started_by`), and may name the conversation (`session_id`)."""

    resume_token: str = ""
    locale: str = ""
    consent: str = ""
    token: str = ""
    is_test: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    started_by: str = ""
    session_id: UUID | None = None


@dataclass(frozen=True)
class Begun:
    """`reason`: why the token was not believed; empty when it was, or there was none."""

    started: StartedSession
    form_due: bool
    reason: str = ""


def begin(deployment: Deployment, wish: Wish) -> Begun:
    """Raises 403 `consent_required`, with nothing stored and no try counted."""
    named = _named(deployment, wish) if wish.token else None
    with tenant_scope(deployment.tenant_id):
        offers = consent.require(deployment, given=wish.consent, resume_token=wish.resume_token)
        started, reason = _started(deployment, wish, named)
        consent.give(started.session_id, offers, given=wish.consent)
        if wish.attributes:
            describe(started.session_id, wish.attributes)
        form_due = prechat.is_shown(deployment.pk, started.session_id)
    if named is not None and not reason:
        identity.believed(named)
    return Begun(started, form_due, reason)


def _named(deployment: Deployment, wish: Wish) -> identity.Named:
    with tenant_scope(deployment.tenant_id):
        consent.require(deployment, given=wish.consent, resume_token=wish.resume_token)
        known = identity.known(deployment, resume_token=wish.resume_token)
    return identity.look(deployment, wish.token, known)


def _started(deployment: Deployment, wish: Wish, named: identity.Named | None) -> tuple[StartedSession, str]:
    whom: dict[str, Any] = {
        "resume_token": wish.resume_token,
        "locale": wish.locale,
        "started_by": wish.started_by,
        "session_id": wish.session_id,
    }
    if named is not None:
        return identity.start(deployment, named, **whom)
    return start_session(deployment, **whom, is_test=wish.is_test), ""
