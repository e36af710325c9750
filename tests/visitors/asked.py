"""A visitor who was asked something, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from apps.sessions.models import ChatSession, ChronicleEntry
from apps.visitors import prompts
from apps.visitors.models import VisitorCard
from apps.visitors.prompts import Question, SecretWanted
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, visitor_of

OPTIONS = [{"value": "send", "label": "Send it to me"}, {"value": "keep", "label": "Keep it here"}]


def question(**fields: Any) -> Question:
    return Question.model_validate({"question": "Where shall it go?", "options": OPTIONS, **fields})


def secret_wanted() -> SecretWanted:
    return SecretWanted.model_validate({"label": "Your PIN", "guidance": {"instructions": "Six digits."}})


@dataclass
class Asked:
    """A visitor who was asked something."""

    deployment: Any
    session: ChatSession
    card: VisitorCard

    def do(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with tenant_scope(self.session.tenant_id):
            return fn(*args, **kwargs)

    def answer(self, value: str = "send", *, session: ChatSession | None = None, **fields: Any) -> Any:
        visitor = visitor_of(self.deployment, (session or self.session).pk)
        return self.do(prompts.answer, visitor, self.card.pk, value=value, **fields)

    def refusal(self, value: str = "send", **fields: Any) -> str:
        with pytest.raises(SilasError) as refused:
            self.answer(value, **fields)
        return refused.value.code

    @property
    def entries(self) -> list[ChronicleEntry]:
        rows: list[ChronicleEntry] = self.do(lambda: list(ChronicleEntry.objects.filter(session=self.session)))
        return rows


def ask(deployment: Any, asked: Any = None, *, session: ChatSession | None = None, **fields: Any) -> Asked:
    session = session or make_session(deployment)
    with tenant_scope(session.tenant_id):
        card = prompts.ask_visitor(session.pk, asked or question(**fields), actor="api_key:test")
    return Asked(deployment, session, card)
