"""What a conversation is served by (`apps.releases.served`). Inside the tenant's scope."""

from __future__ import annotations

from apps.releases import served
from apps.releases.schemas import ServedRelease, ServedSettings
from apps.sessions import rules
from apps.sessions.models import ChatSession
from kernel.language import LANGUAGES
from kernel.tenancy import Read


def release_for(session: ChatSession) -> Read[ServedRelease | None]:
    """A test is served by the working copy."""
    return served.release_for(
        session.deployment_id, session_id=session.pk, bound=session.release_id, draft=session.is_test
    )


def settings_of(session: ChatSession) -> ServedSettings:
    """Without the axes of a personality, which only a turn reads."""
    return served.settings_of(session.deployment, release_for(session).value)


def languages_of(session: ChatSession) -> tuple[str, ...]:
    """The languages in which to write to this visitor, the best first: their own, else those of the deployment."""
    language = rules.language_of(session)
    return (language,) if language in LANGUAGES else settings_of(session).languages
