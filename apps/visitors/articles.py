"""Search the company's documents for a visitor, and open one, without writing into a conversation or needing one.

The search is a turn's, at the visitor's access level of this moment, and asks no provider: neither the question nor a
document leaves the installation. A visitor without a conversation reads what one who is not verified reads. Every text
passes the response gates as an answer does, and what they block, or want a person to look at, is not shown. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from asgiref.sync import async_to_sync

from apps.access.grants import grant_of
from apps.access.rules import AccessController, Grant
from apps.gates.enums import GateLane, GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.services import check_gates
from apps.knowledge import queries as knowledge
from apps.sessions import markdown, policy
from apps.sessions.queries import session_by_id
from apps.sessions.state import Policy
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope
from llm.briefing import Passage
from llm.offline import answers

LONGEST_QUERY = 200
MOST_ARTICLES = 6
# Several passages of one document are one article.
_PASSAGES = 12
_LONGEST_SENTENCE = 240
# Of an article: gates and Markdown take time, and the original can be opened.
_LONGEST_TEXT = 12_000


@dataclass(frozen=True)
class Reader:
    """Who reads the articles of a chatbot. `grant`: of their conversation; without one, the lowest level."""

    deployment: Deployment
    grant: Grant = Grant()


@dataclass(frozen=True)
class FoundArticle:
    """An article, and the sentence of it that is nearest to what was searched for."""

    document_id: UUID
    title: str
    sentence: str


@dataclass(frozen=True)
class Article:
    """`html` is clean (`apps.sessions.markdown`). `is_whole`: nothing was cut off at its end."""

    document_id: UUID
    title: str
    url: str
    html: str
    is_whole: bool


def is_offered(deployment: Deployment) -> bool:
    """Whether a visitor who is not verified can find an article here. Inside a scope."""
    frozen = policy.load(deployment)
    return _can_check(frozen) and knowledge.can_find(AccessController(frozen.levels, Grant()).reached_levels())


def reader_of(tenant_id: UUID, session_id: UUID) -> Reader:
    """The visitor of a conversation, with the access level that they have there. Outside of any scope."""
    with tenant_scope(tenant_id):
        session = session_by_id(session_id)
        return Reader(session.deployment, grant_of(session))


def search(reader: Reader, query: str) -> list[FoundArticle]:
    """The articles that answer `query`, best first; none for a query without a word. Outside of any scope.

    Raises `NotFound` where the gates cannot check an article.
    """
    tenant_id, asked = reader.deployment.tenant_id, " ".join(query.split())
    frozen, levels = _policy_for(reader)
    passages = async_to_sync(knowledge.search_async)(tenant_id, asked, levels=levels, k=_PASSAGES, ask_providers=False)
    best: dict[str, Passage] = {}
    for passage in passages:
        best.setdefault(passage.document_id, passage)
    with tenant_scope(tenant_id):
        texts = knowledge.read_versions([passage.version_id for passage in best.values()])
    found = (_found(frozen, asked, passage, *texts.get(passage.version_id, ("", ""))) for passage in best.values())
    return list(islice((article for article in found if article is not None), MOST_ARTICLES))


def open_article(reader: Reader, document_id: UUID) -> Article:
    """Outside of any scope. Raises `NotFound` for one that is out of the visitor's reach, emptied or blocked."""
    frozen, levels = _policy_for(reader)
    with tenant_scope(reader.deployment.tenant_id):
        document = knowledge.read_within_reach(document_id, levels=levels)
    if document is None:
        raise NotFound()
    title, text = _shown(frozen, "", document.title), _shown(frozen, "", document.text[:_LONGEST_TEXT])
    if title is None or text is None:
        raise NotFound()
    html = "\n".join(markdown.render_for_visitors(piece) for piece in _pieces(_without_heading(text, title)))
    return Article(document_id, title, document.url, html, len(document.text) <= _LONGEST_TEXT)


def _policy_for(reader: Reader) -> tuple[Policy, tuple[str, ...]]:
    """The policy of the reader's chatbot, and the levels that they reach now. Raises `NotFound` as `search` does."""
    with tenant_scope(reader.deployment.tenant_id):
        frozen = policy.load(reader.deployment)
    if not _can_check(frozen):
        raise NotFound()
    return frozen, AccessController(frozen.levels, reader.grant).at(now()).reached_levels()


def _can_check(frozen: Policy) -> bool:
    """Whether the response gates decide from the text alone. One that asks a model or a script, which a turn pays for,
    or a person, cannot look at articles: then none is shown."""
    ours = (gate for gate in frozen.gates if gate.on == GateTrigger.EVERY_AGENT_RESPONSE)
    gates = (gate for gate in ours if gate.lane == GateLane.POLICY)
    return all(PROVIDERS[gate.provider].reads_only_text and not gate.may_need_approval for gate in gates)


def _found(frozen: Policy, asked: str, passage: Passage, title: str, text: str) -> FoundArticle | None:
    """None for what does not answer, and for an article of which the gates hold any part back."""
    finding = answers.find(asked, (passage,))
    if not finding.citations or not (finding.is_sure or finding.is_worth_showing):
        return None
    sentence = _shown(frozen, asked, _cut(finding.citations[0].quote))
    title_shown = _shown(frozen, asked, title)
    if not sentence or not title_shown or _shown(frozen, asked, text[:_LONGEST_TEXT]) is None:
        return None
    return FoundArticle(UUID(passage.document_id), title_shown, sentence)


def _shown(frozen: Policy, asked: str, text: str) -> str | None:
    """The text as the response gates leave it, or None where they hold it back."""
    gates = tuple(gate for gate in frozen.gates if gate.lane == GateLane.POLICY)
    context = {"response": text, "message": asked, "sender": "bot"}
    report = check_gates(gates, GateTrigger.EVERY_AGENT_RESPONSE, context, level_gates=policy.level_gates(frozen))
    if report.blocked is not None or report.needs_approval is not None:
        return None
    return str(report.context["response"])


def _cut(quote: str) -> str:
    line = " ".join(quote.split())
    return line if len(line) <= _LONGEST_SENTENCE else line[: _LONGEST_SENTENCE - 1].rstrip() + "…"


def _without_heading(text: str, title: str) -> str:
    """The text without a first heading that only repeats the title, which is shown above it."""
    heading, _, rest = text.lstrip().partition("\n")
    repeats = heading.startswith("#") and heading.strip("# \t\r").casefold().split() == title.casefold().split()
    return rest.lstrip("\n") if repeats else text


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that are short enough to be rendered, cut between paragraphs where there are any."""
    while len(text) > markdown.MAX_CHARS:
        end = text.rfind("\n\n", 1, markdown.MAX_CHARS)
        end = end if end > 0 else markdown.MAX_CHARS
        yield text[:end]
        text = text[end:]
    yield text
