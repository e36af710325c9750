"""The built-in workflows: each reads through guarded calls and comes to a draft. They need no model.

What they read was written by visitors and in documents: it becomes data of the draft and is never followed as an
instruction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from apps.autonomy import operations_workflows, rules
from apps.autonomy.enums import BuiltinWorkflow, Severity
from apps.autonomy.guarded_client import GuardedClient
from apps.autonomy.schemas import Draft, DraftFinding, DraftPrecedent, DraftProposal, Source, storable_text
from apps.guard.enums import Intent
from kernel.canonical import sha256_hex
from llm.briefing import Passage
from llm.offline import answers, contradictions

_NEAR = 0.34  # the score from which the built-in model calls a passage near (llm.offline.answers)
_LONGEST_TITLE = 200


async def search_documents(client: GuardedClient, question: str) -> tuple[Passage, ...]:
    value = await client.call_value(Intent.RETRIEVE_CHUNKS, rules.KNOWLEDGE, {"query": question[:1000]})
    return tuple(Passage(**passage) for passage in value.get("passages", ()))


async def review_open_questions(client: GuardedClient) -> Draft:
    """Review the questions that could not be answered: what the documents say after all, and what they lack."""
    value = await client.call_value(Intent.RUN_PLAYBOOK, "open_questions", {})
    questions = value.get("questions", [])
    draft = Draft(summary="There are no unanswered questions.")
    for question in questions:
        part = _review_question(question, await search_documents(client, question["text"]))
        draft = draft.model_copy(
            update={
                "findings": (*draft.findings, *part.findings),
                "proposals": (*draft.proposals, *part.proposals),
                "precedents": (*draft.precedents, *part.precedents),
            }
        )
    if questions:
        answered, missing = len(draft.findings), len(questions) - len(draft.findings)
        total = "1 unanswered question" if len(questions) == 1 else f"{len(questions)} unanswered questions"
        more = f" {value['left']} more wait for the next review." if value.get("left") else ""
        summary = f"{total}: {answered} answered by the documents, {missing} still without an answer.{more}"
        draft = draft.model_copy(update={"summary": summary, "reviewed": tuple(row["id"] for row in questions)})
    return draft


def _review_question(question: Mapping[str, Any], passages: tuple[Passage, ...]) -> Draft:
    """A finding where the documents answer the question, and always a proposal of what to add."""
    text, times = storable_text(question["text"], _LONGEST_TITLE), int(question["count"])
    evidence = {"question": question["id"], "asked": times}
    title = storable_text(f"Answer to: {text}", 300)
    answer = answers.find(question["text"], passages)
    # Only a sure answer is offered as an answer; anything less is left for a person to write.
    if answer.is_sure:
        quotes = "\n".join(citation.quote.strip() for citation in answer.citations)
        finding = DraftFinding(
            title=storable_text(f"The documents answer: {text}", 300),
            content=f"Asked {times} times without an answer, although {passages[0].title} says:\n\n{quotes}",
            sources=tuple(Source.of(citation) for citation in answer.citations),
        )
        proposal = DraftProposal(
            kind="knowledge",
            title=title,
            content=f"# {text}\n\n{quotes}\n"[:8000],
            evidence={**evidence, "known": True},
        )
        return Draft(findings=(finding,), proposals=(proposal,))
    near = [passage for passage in passages if passage.score >= _NEAR][:2]
    places = "".join(f"\n- {passage.title}" for passage in near) or "\n- none"
    content = f"# {text}\n\n(Write the answer here.)\n\nAsked {times} times. Closest documents:{places}\n"
    proposal = DraftProposal(
        kind="knowledge", title=title, content=content[:8000], evidence={**evidence, "known": False}
    )
    precedent = DraftPrecedent(
        pattern_kind="unanswered", summary=near[0].title[:300] if near else "Nothing in the documents"
    )
    return Draft(proposals=(proposal,), precedents=(precedent,))


async def compare_new_documents(client: GuardedClient) -> Draft:
    """Compare the statements with figures in new documents with what other documents say about the same.

    A contradiction that an earlier run of the task reported is counted in the summary and not reported again.
    """
    # The documents that triggered the run, or those named by hand; without either, the newest.
    documents = client.job.params.get("subjects") or client.job.params.get("documents") or []
    value = await client.call_value(Intent.RUN_PLAYBOOK, "new_documents", {"documents": list(documents)})
    found: dict[str, DraftFinding] = {}
    compared = 0
    for document in value.get("documents", ()):
        for statement in document["statements"]:
            compared += 1
            passages = await search_documents(client, statement)
            for finding in _find_contradictions(document, statement, passages):
                found.setdefault(finding.key, finding)
    known = found.keys() & set(value.get("known", ()))
    findings = [finding for key, finding in found.items() if key not in known]
    names = ", ".join(document["title"] for document in value.get("documents", ()))
    summary = (
        f"Compared {compared} statements with figures from {names or 'no document'}: "
        f"{len(findings)} contradict other documents."
    )
    if known:
        summary += f" {len(known)} more, reported before, still do."
    precedents = tuple(DraftPrecedent(pattern_kind="contradiction", summary=finding.title) for finding in findings)
    return Draft(summary=summary[:8000], findings=tuple(findings[:20]), precedents=precedents[:20])


def _find_contradictions(
    document: Mapping[str, object], statement: str, passages: tuple[Passage, ...]
) -> list[DraftFinding]:
    """At most one finding for each other document."""
    findings: dict[str, DraftFinding] = {}
    for passage in passages:
        if passage.document_id == document["document_id"] or passage.document_id in findings:
            continue
        contradiction = contradictions.find_contradiction(statement, passage.quote)
        if contradiction is not None:
            findings[passage.document_id] = _contradiction_finding(document, statement, passage, contradiction)
    return list(findings.values())


def _contradiction_finding(
    document: Mapping[str, object], statement: str, passage: Passage, contradiction: contradictions.Contradiction
) -> DraftFinding:
    title = f"{contradiction.ours.text} in {document['title']}, {contradiction.theirs.text} in {passage.title}"
    content = f"{document['title']} says:\n> {statement}\n\n{passage.title} says:\n> {contradiction.sentence}\n"
    source = Source(
        document_id=passage.document_id,
        version_id=passage.version_id,
        title=passage.title,
        url=passage.url,
        start=passage.start + len(passage.quote[: contradiction.start].encode()),
        end=passage.start + len(passage.quote[: contradiction.end].encode()),
        quote=contradiction.sentence[:400],
    )
    # The two sentences in either order: a changed figure makes another key, and so a new finding.
    key = sha256_hex("\n".join(sorted((statement, contradiction.sentence))))
    return DraftFinding(
        title=storable_text(title, 300), content=content, severity=Severity.WARN, sources=(source,), key=key
    )


async def report_goal_state(client: GuardedClient) -> Draft:
    """Report the goal's last check. Repairs are the work room's, under its own approvals."""
    goal_id = next(iter(client.job.params.get("subjects") or ()), client.job.params.get("goal"))
    state = await client.call_value(Intent.RUN_PLAYBOOK, "goal_state", {"goal": str(goal_id)})
    outcome, spawned = str(state.get("outcome", "unknown")), state.get("spawned")
    if outcome == "healthy":
        return Draft(summary="All checks of the goal pass.", healthy=True)
    failed = [check["name"] for check in state.get("checks", ()) if not check["passed"]]
    finding = DraftFinding(
        title=storable_text(f"The goal is not met: {', '.join(failed) or outcome}", 300),
        content=f"Outcome of the last check: {outcome}.",
        severity=Severity.WARN,
    )
    awaits = spawned["id"] if outcome == "asked" and spawned else ""
    return Draft(summary=finding.title, findings=(finding,), awaits=awaits)


WORKFLOWS: Mapping[str, Callable[[GuardedClient], Awaitable[Draft]]] = MappingProxyType(
    {
        BuiltinWorkflow.UNANSWERED.value: review_open_questions,
        BuiltinWorkflow.CONTRADICTIONS.value: compare_new_documents,
        BuiltinWorkflow.GOAL.value: report_goal_state,
        **operations_workflows.WORKFLOWS,
    }
)
