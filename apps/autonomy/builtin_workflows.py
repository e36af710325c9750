"""The ready ways of work: each looks through guarded calls and comes to a draft. They need no model.

What they read was written by visitors and in documents: it becomes data of the draft, and instructs nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from apps.autonomy import contradictions, rules
from apps.autonomy.enums import BuiltinWorkflow, Severity
from apps.autonomy.guarded_client import GuardedClient
from apps.autonomy.schemas import Draft, DraftFinding, DraftPrecedent, DraftProposal, Source, storable_text
from apps.guard.enums import Intent
from kernel.llm.briefing import Passage
from kernel.llm.grounded import answers
from kernel.llm.schemas import Citation

_NEAR = 0.34  # as near as the built-in model calls near (kernel.llm.grounded.answers)
_TITLE = 200


async def search_documents(hand: GuardedClient, question: str) -> tuple[Passage, ...]:
    found = await hand.value(Intent.RETRIEVE_CHUNKS, rules.KNOWLEDGE, {"query": question[:1000]})
    return tuple(Passage(**each) for each in found.get("passages", ()))


async def review_open_questions(hand: GuardedClient) -> Draft:
    """Go through the questions nobody could answer: what the documents say after all, and what they lack."""
    asked = await hand.value(Intent.RUN_PLAYBOOK, "open_questions", {})
    questions = asked.get("questions", [])
    draft = Draft(summary="Nobody asked anything that could not be answered.")
    for question in questions:
        draft = _joined(draft, _about(question, await search_documents(hand, question["text"])))
    if questions:
        known, lacking = len(draft.findings), len(questions) - len(draft.findings)
        left = f" {asked['left']} more wait for the next review." if asked.get("left") else ""
        many = "1 open question" if len(questions) == 1 else f"{len(questions)} open questions"
        said = f"{many}: {known} the documents answer after all, {lacking} they do not.{left}"
        draft = draft.model_copy(update={"summary": said, "reviewed": tuple(each["id"] for each in questions)})
    return draft


def _about(question: Mapping[str, Any], found: tuple[Passage, ...]) -> Draft:
    """One question: a finding where the documents answer it, and always a proposal of what to add."""
    text, times = storable_text(question["text"], _TITLE), int(question["count"])
    evidence = {"question": question["id"], "asked": times}
    answer = answers.find(question["text"], found)
    if answer.is_sure:
        quotes = "\n".join(citation.quote.strip() for citation in answer.citations)
        finding = DraftFinding(
            title=storable_text(f"The documents answer: {text}", 300),
            content=f"Asked {times} times and not answered, although {found[0].title} says:\n\n{quotes}",
            sources=tuple(_cited(citation) for citation in answer.citations),
        )
        content = f"# {text}\n\n{quotes}\n"
        return Draft(findings=(finding,), proposals=(_addition(text, content, {**evidence, "known": True}),))
    near = [passage for passage in found if passage.score >= _NEAR][:2]
    places = "".join(f"\n- {passage.title}" for passage in near) or "\n- nothing like it in the documents"
    content = f"# {text}\n\n(Write the answer here.)\n\nAsked {times} times. What comes nearest:{places}\n"
    seen = DraftPrecedent(
        pattern_kind="unanswered", summary=near[0].title[:300] if near else "Nothing in the documents"
    )
    return Draft(proposals=(_addition(text, content, {**evidence, "known": False}),), precedents=(seen,))


def _addition(text: str, content: str, evidence: dict[str, Any]) -> DraftProposal:
    title = storable_text(f"Answer to: {text}", 300)
    return DraftProposal(kind="knowledge", title=title, content=content[:8000], evidence=evidence)


async def compare_new_documents(hand: GuardedClient) -> Draft:
    """Compare what new documents say in figures with what the others say of the same."""
    wanted = hand.job.params.get("subjects") or hand.job.params.get("documents") or []
    read = await hand.value(Intent.RUN_PLAYBOOK, "new_documents", {"documents": list(wanted)})
    clashes: list[DraftFinding] = []
    compared, told = 0, set[frozenset[str]]()
    for document in read.get("documents", ()):
        for statement in document["statements"]:
            compared += 1
            found = await search_documents(hand, statement)
            clashes += _clashes(document, statement, found, seen=told)
    names = ", ".join(document["title"] for document in read.get("documents", ()))
    said = (
        f"Compared {compared} statements with figures from {names or 'no document'}: {len(clashes)} contradict others."
    )
    seen = tuple(DraftPrecedent(pattern_kind="contradiction", summary=each.title) for each in clashes)
    return Draft(summary=said[:8000], findings=tuple(clashes[:20]), precedents=seen[:20])


def _clashes(
    document: Mapping[str, Any], statement: str, found: tuple[Passage, ...], *, seen: set[frozenset[str]]
) -> list[DraftFinding]:
    """At most one a document that says otherwise; two new documents are told of once."""
    clashing: dict[str, DraftFinding] = {}
    for passage in found:
        if passage.document_id == document["document_id"] or passage.document_id in clashing:
            continue
        clash = contradictions.find_contradiction(statement, passage.quote)
        if clash is not None and (pair := frozenset({statement, clash.sentence})) not in seen:
            seen.add(pair)
            clashing[passage.document_id] = _told(document, statement, passage, clash)
    return list(clashing.values())


def _told(
    document: Mapping[str, Any], statement: str, passage: Passage, clash: contradictions.Contradiction
) -> DraftFinding:
    title = f"{clash.ours.text} in {document['title']}, {clash.theirs.text} in {passage.title}"
    content = f"{document['title']} says:\n> {statement}\n\n{passage.title} says:\n> {clash.sentence}\n"
    begin = passage.start + len(passage.quote[: clash.start].encode())
    end = passage.start + len(passage.quote[: clash.end].encode())
    place = Source(
        document_id=passage.document_id,
        version_id=passage.version_id,
        title=passage.title,
        url=passage.url,
        start=begin,
        end=end,
        quote=clash.sentence[:400],
    )
    return DraftFinding(title=storable_text(title, 300), content=content, severity=Severity.WARN, sources=(place,))


async def report_goal_state(hand: GuardedClient) -> Draft:
    """How the goal stands, as the work room found it; repairs are its own, under its own approvals."""
    about = next(iter(hand.job.params.get("subjects") or ()), hand.job.params.get("goal"))
    state = await hand.value(Intent.RUN_PLAYBOOK, "goal_state", {"goal": str(about)})
    failed = [check["name"] for check in state.get("checks", ()) if not check["passed"]]
    outcome, spawned = str(state.get("outcome", "unknown")), state.get("spawned")
    if outcome == "healthy":
        return Draft(summary="All checks of the goal pass.", healthy=True)
    finding = DraftFinding(
        title=storable_text(f"The goal is not met: {', '.join(failed) or outcome}", 300),
        content=f"Outcome of the last look: {outcome}.",
        severity=Severity.WARN,
    )
    awaits = spawned["id"] if outcome == "asked" and spawned else ""
    return Draft(summary=finding.title, findings=(finding,), awaits=awaits)


def _cited(citation: Citation) -> Source:
    return Source.model_validate(citation.model_dump())


def _joined(one: Draft, other: Draft) -> Draft:
    return one.model_copy(
        update={
            "findings": (*one.findings, *other.findings),
            "proposals": (*one.proposals, *other.proposals),
            "precedents": (*one.precedents, *other.precedents),
        }
    )


WORKFLOWS: Mapping[str, Callable[[GuardedClient], Awaitable[Draft]]] = MappingProxyType(
    {
        BuiltinWorkflow.UNANSWERED.value: review_open_questions,
        BuiltinWorkflow.CONTRADICTIONS.value: compare_new_documents,
        BuiltinWorkflow.GOAL.value: report_goal_state,
    }
)
