"""Describe where a call would be carried out, what it could reach there, and how risky its tool was rated.

Each answer comes from what decides the dispatch of such a call: the allowed addresses of a sandbox from
`skills.queries`, an account and its addresses from `connections.permits`, an outside server from `toolservers.queries`.
Inside a scope.
"""

from __future__ import annotations

from functools import cache

from apps.approvals.cards.schemas import EXACT_TEXT, Fact
from apps.approvals.enums import Risk
from apps.connections import permissions
from apps.skills import queries as skills
from apps.skills.schemas import OutsideToolSpec, ToolSpec
from kernel.language import MEMBER_LANGUAGES, in_language
from kernel.stored_texts import show_stored, stored_text

RUNS, RISK, COMPARED = stored_text("Runs"), stored_text("Risk rating"), stored_text("Checked for conflicts")
UNDO, VERIFIED_BY = stored_text("Can be undone"), stored_text("Verified by")
_RATED = {
    Risk.LOW: stored_text("Low risk when your company accepted this tool"),
    Risk.MEDIUM: stored_text("Medium risk when your company accepted this tool"),
    Risk.HIGH: stored_text("High risk when your company accepted this tool"),
    Risk.IRREVERSIBLE: stored_text("Irreversible risk when your company accepted this tool"),
}
_RESERVED = (RUNS, RISK, COMPARED, UNDO, VERIFIED_BY, EXACT_TEXT, stored_text("Account"))


def is_reserved(label: str, tool: ToolSpec) -> bool:
    """True for a label that only the platform writes, in any language in which a member may read it: a tool's fact
    under such a label is marked as the tool's. What verifies an outside tool is written by `skills.outside_tools`."""
    if isinstance(tool, OutsideToolSpec) and label == VERIFIED_BY:
        return False
    return label.strip().casefold() in _reserved_labels()


@cache
def _reserved_labels() -> frozenset[str]:
    labels: set[str] = set()
    for language in MEMBER_LANGUAGES:
        with in_language(language):
            labels |= {show_stored(label).casefold() for label in _RESERVED}
    return frozenset(labels)


def describe_execution(tool: ToolSpec) -> str:
    """Return one sentence about how a call of this tool would run now."""
    if isinstance(tool, OutsideToolSpec):
        return (
            f"{tool.runs[:1].upper()}{tool.runs[1:]}"
            if tool.runs
            else stored_text("By {server}, outside of our sandbox").format(server=tool.server)
        )
    name = tool.skill.partition("@")[0]
    if tool.connection:
        account, places = permissions.reach_of(tool)
        return _in_sandbox(name, places, account)
    places = skills.places_of(tool)
    if tool.executor:
        return _code_in_sandbox(places)
    return _in_sandbox(name, places)


def execution_facts(tool: ToolSpec) -> list[Fact]:
    """Return the card's lines: how it runs, how risky its tool was rated, and what cannot be compared first."""
    facts = [Fact(RUNS, text=describe_execution(tool))]
    if tool.executor and not tool.verify:
        facts.append(Fact(VERIFIED_BY, text=stored_text("Nothing. The result is not verified.")))
    if isinstance(tool, OutsideToolSpec):
        facts.append(Fact(RISK, text=_RATED[Risk(tool.risk)]))
    if tool.acting and (isinstance(tool, OutsideToolSpec) or tool.connection):
        facts.append(
            Fact(COMPARED, text=stored_text("No. It changes data at another service, which cannot be compared first."))
        )
    return facts


def raises_risk(tool: ToolSpec) -> bool:
    """Whether the tool's being irreversible raises a card's risk. A person who accepted an outside tool rated that
    already."""
    return not tool.reversible and not isinstance(tool, OutsideToolSpec)


def _code_in_sandbox(places: tuple[str, ...]) -> str:
    if not places:
        return stored_text("As the code below, in a sandbox without network")
    text = stored_text("As the code below, in a sandbox that may reach {places}")
    return text.format(places=", ".join(places))


def _in_sandbox(skill: str, places: tuple[str, ...], account: str = "") -> str:
    if not places:
        text = stored_text("By the script of {skill} in a sandbox without network")
    else:
        text = stored_text("By the script of {skill} in a sandbox that may reach {places}")
    text = text.format(skill=skill, places=", ".join(places))
    if not account:
        return text
    return stored_text("{text}, with the account {account}").format(text=text, account=account)
