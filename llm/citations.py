"""Verify citations: a citation is kept only if a passage of the briefing contains its quote byte for byte.

Offsets are computed here, from the passage, and never taken from a model. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from llm.briefing import Passage
from llm.schemas import AgentResponse, Citation


def drop_unverified(response: AgentResponse, passages: Sequence[Passage]) -> AgentResponse:
    """`response` with its provable citations only, each once."""
    located = (locate(citation, passages) for citation in response.citations)
    kept = list(dict.fromkeys(citation for citation in located if citation is not None))
    return response.model_copy(update={"citations": kept})


def locate(citation: Citation, passages: Iterable[Passage]) -> Citation | None:
    """The full citation, from the passage of the named document if it has the quote, else from any other; None when
    none has.
    """
    if not citation.quote.strip():
        return None
    holding = [passage for passage in passages if citation.quote in passage.quote]
    holding.sort(key=lambda passage: passage.document_id != citation.document_id)
    return cite(holding[0], citation.quote) if holding else None


def cite(passage: Passage, quote: str) -> Citation:
    """`quote`, which `passage` contains, with its byte offsets in the stored document version."""
    # Offsets count bytes of the stored UTF-8, an index counts characters.
    start = passage.start + len(passage.quote[: passage.quote.index(quote)].encode())
    return Citation(
        quote=quote,
        document_id=passage.document_id,
        version_id=passage.version_id,
        start=start,
        end=start + len(quote.encode()),
        title=passage.title,
        url=passage.url,
        is_file=passage.is_file,
    )
