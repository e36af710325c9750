"""Make suites out of what a company has: documents, conversations, incidents, and the catalogue of attacks.

What visitors wrote is stored without private data (`memories.scrub`). Inside a tenant scope; making a suite again
replaces scenarios of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from apps.autonomy.models import OpenQuestion
from apps.knowledge.models import DocumentVersion
from apps.memory import memories
from apps.sessions.enums import Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.simulations.enums import Origin
from apps.simulations.models import SimulationSuite
from apps.simulations.schemas import Line
from apps.simulations.scripts import FOLDER, named_scripts
from apps.simulations.services import save_scenario, save_suite
from apps.tenants.models import Deployment
from apps.visitors.models import Rating
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

MOST_MADE, MOST_SAID, BAD_SCORE = 200, 12, 2
_HEADING = re.compile(r"^#{1,6} (?:(\d+(?:\.\d+)*)\.? )?(.{2,120})$", re.MULTILINE)
_NAMES = {
    Origin.DOCUMENT: "From documents",
    Origin.CONVERSATION: "From conversations",
    Origin.INCIDENT: "From incidents",
    Origin.ATTACKS: "Attacks",
}
_SCENARIO = dict[str, Any]


def make_suite(deployment: Deployment, origin: Origin) -> SimulationSuite:
    """Raises `SilasError("simulation_empty")` 409 where there is nothing to make scenarios of."""
    made = list(SOURCES[origin](deployment))[:MOST_MADE]
    if not made:
        raise SilasError(ErrorCode.SIMULATION_EMPTY)
    suite = save_suite(deployment, _NAMES[origin])
    for fields in made:
        save_scenario(suite, fields.pop("name"), origin=origin, **fields)
    return suite


def _documents(deployment: Deployment) -> Iterator[_SCENARIO]:
    """A question for each section of what everybody may read; the answer has to cite the document, and the section
    where it has a number."""
    rows = DocumentVersion.objects.select_related("document").filter(document__collection__min_level="public")
    for version in rows.order_by("document_id", "-number").distinct("document_id"):
        title = version.document.title
        for number, heading in _sections(version.text):
            asked = title if heading in ("", title) else f"{title}: {heading}"
            yield {
                "name": (f"{title} {number}" if number else asked)[:160],
                "lines": [{"say": f"{asked.rstrip('?.!')}?"}],
                "checks": [{"kind": "cites", "document": title, "section": number}],
                "origin_ref": f"{version.document.source_ref} {number}"[:160],
            }


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(number, heading) of each section with text of its own, both empty for text before the first heading."""
    headings = list(_HEADING.finditer(text))
    starts = [*(heading.start() for heading in headings), len(text)]
    if text[: starts[0]].strip():
        yield "", ""
    for heading, end in zip(headings, starts[1:], strict=True):
        if text[heading.end() : end].strip():
            yield heading[1] or "", heading[2].strip()


def _conversations(deployment: Deployment) -> Iterator[_SCENARIO]:
    rows = ChatSession.objects.filter(deployment=deployment, is_test=False, forgotten_at=None, seq__gt=0)
    for session in rows.order_by("-last_active_at")[:MOST_MADE]:
        yield from _of_session(session)


def _incidents(deployment: Deployment) -> Iterator[_SCENARIO]:
    """Badly rated conversations, and questions that nothing was found for: the answer has to rest on a document."""
    rated = Rating.objects.filter(deployment=deployment, score__lte=BAD_SCORE, session__is_test=False)
    for rating in rated.select_related("session").order_by("-created_at")[:MOST_MADE]:
        yield from _of_session(rating.session)
    for question in OpenQuestion.objects.filter(deployment=deployment).order_by("-count", "-last_at")[:MOST_MADE]:
        yield {
            "name": f"unanswered: {question.text}"[:160],
            "lines": [{"say": question.text[:8000]}],
            "checks": [{"kind": "sourced"}],
            "origin_ref": f"question:{question.pk}",
        }


def _of_session(session: ChatSession) -> Iterable[_SCENARIO]:
    """What its visitor said, scrubbed, and the documents that were cited then."""
    entries = ChronicleEntry.objects.filter(session=session, kind="message").order_by("seq")
    said = [memories.scrub(entry.text).strip() for entry in entries if entry.sender == Sender.VISITOR]
    lines = [{"say": text[:8000]} for text in said if text][:MOST_SAID]
    if lines:
        yield {
            "name": f"conversation {session.pk.hex[:8]}",
            "lines": lines,
            "checks": [{"kind": "answered"}],
            "origin_ref": f"session:{session.pk}",
        }


def _attacks(deployment: Deployment) -> Iterator[_SCENARIO]:
    """What the catalogue says, without what only its own company knows: no level rises and no card is opened."""
    for name, script in named_scripts(FOLDER):
        if not name.endswith("-attacks"):
            continue
        for one in script.conversations:
            yield {
                "name": one.name,
                "lines": [Line(say=line.say).model_dump(include={"say"}) for line in one.turns],
                "checks": [{"kind": "level", "level": "public"}, {"kind": "cards", "count": 0}],
                "origin_ref": name,
            }


SOURCES = {
    Origin.DOCUMENT: _documents,
    Origin.CONVERSATION: _conversations,
    Origin.INCIDENT: _incidents,
    Origin.ATTACKS: _attacks,
}
