"""Try a question against the knowledge: the passages that a turn would find, and the quotes of the built-in model.

The search is the turn's own, at the access level that is asked for. Another model may quote other passages of these,
and none beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import async_to_sync

from apps.access.rules import PUBLIC, AccessController, Grant
from apps.knowledge import queries as knowledge
from apps.sessions import policy
from apps.sessions.steps.context import PASSAGES
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_id
from kernel.errors import NotFound
from kernel.tenancy import in_scope
from llm.briefing import Passage
from llm.offline import answers

LONGEST_QUESTION = 500


@dataclass(frozen=True)
class Found:
    """One passage, best first; `quote` is what would be cited of it, or empty."""

    passage: Passage
    quote: str = ""

    @property
    def nearness(self) -> int:
        """How near in meaning, in percent."""
        return round(max(0.0, self.passage.score) * 100)


@dataclass(frozen=True)
class Tried:
    question: str
    level: str
    found: tuple[Found, ...]
    answers: bool


def levels_of(deployment: Deployment) -> list[str]:
    """The access levels of its visitors, lowest first. Inside a scope."""
    return list(policy.load(deployment).levels) or [PUBLIC]


def all_levels() -> list[str]:
    """The access levels of all chatbots, public first. Inside a scope."""
    named = [name for place in Deployment.objects.order_by("created_at") for name in levels_of(place)]
    return list(dict.fromkeys([PUBLIC, *named]))


def try_question(tenant_id: UUID, deployment_id: UUID, question: str, *, level: str = PUBLIC) -> Tried:
    """`search_question` for synchronous callers outside of any scope."""
    return async_to_sync(search_question)(tenant_id, deployment_id, question, level=level)


async def search_question(tenant_id: UUID, deployment_id: UUID, question: str, *, level: str = PUBLIC) -> Tried:
    """Find the passages for a question; models are asked. Raises `NotFound` for a foreign deployment or level."""
    asked = " ".join(question.split())[:LONGEST_QUESTION]
    reached = await in_scope(tenant_id, _reached_levels, deployment_id, level)
    found = await knowledge.search_async(tenant_id, asked, levels=reached, k=PASSAGES)
    passages = await in_scope(tenant_id, knowledge.join_neighbours, found)
    finding = answers.find(asked, passages)
    quoted = {(each.version_id, each.start): each.quote for each in finding.citations}
    shown = tuple(Found(passage, _quote(passage, quoted)) for passage in passages)
    worth = finding.is_sure or finding.is_worth_showing
    return Tried(asked, level, shown if worth else tuple(Found(each.passage) for each in shown), worth)


def _reached_levels(deployment_id: UUID, level: str) -> tuple[str, ...]:
    levels = policy.load(deployment_by_id(deployment_id)).levels
    if level not in (levels or [PUBLIC]):
        raise NotFound()
    return AccessController(levels, Grant(level=level)).reached_levels()


def _quote(passage: Passage, quoted: dict[tuple[str, int], str]) -> str:
    held = (
        quote
        for (version, start), quote in quoted.items()
        if version == passage.version_id and passage.start <= start < passage.end
    )
    return next(held, "")
