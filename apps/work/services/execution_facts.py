"""Describe where a call would be carried out, what it could reach there, and how risky its tool was rated.

Each answer comes from what decides the dispatch of such a call: the allowed addresses of a sandbox from
`skills.queries`, an account and its addresses from `connections.permits`, an outside server from `toolservers.queries`.
Inside a scope.
"""

from __future__ import annotations

from apps.approvals.cards.schemas import Fact
from apps.approvals.enums import Risk
from apps.connections import permissions
from apps.skills import queries as skills
from apps.skills.schemas import OutsideToolSpec, ToolSpec
from kernel.language import in_english

RUNS, RISK, COMPARED = "Runs", "Risk rating", "Checked for conflicts"
# Labels that only the platform writes: facts of a tool under these labels are marked as the tool's.
RESERVED_LABELS = frozenset({RUNS, RISK, COMPARED, "Account"})


def describe_execution(tool: ToolSpec) -> str:
    """Return one sentence about how a call of this tool would run now."""
    if isinstance(tool, OutsideToolSpec):
        return f"{tool.runs[:1].upper()}{tool.runs[1:]}" if tool.runs else f"By {tool.server}, outside of our sandbox"
    name = tool.skill.partition("@")[0]
    if tool.connection:
        account, places = permissions.reach_of(tool)
        whose = f", with the account {account}" if account else ""
        return f"By the script of {name} in a sandbox {_reaching(places)}{whose}"
    return f"By the script of {name} in a sandbox {_reaching(skills.places_of(tool))}"


def execution_facts(tool: ToolSpec) -> list[Fact]:
    """Return the card's lines: how it runs, how risky its tool was rated, and what cannot be compared first."""
    facts = [Fact(RUNS, text=describe_execution(tool))]
    if isinstance(tool, OutsideToolSpec):
        facts.append(Fact(RISK, text=f"{in_english(Risk(tool.risk).label)} risk when your company accepted this tool"))
    if tool.acting and (isinstance(tool, OutsideToolSpec) or tool.connection):
        facts.append(Fact(COMPARED, text="No. It changes data at another service, which cannot be compared first."))
    return facts


def raises_risk(tool: ToolSpec) -> bool:
    """Whether the tool's being irreversible raises a card's risk. A person who accepted an outside tool rated that
    already."""
    return not tool.reversible and not isinstance(tool, OutsideToolSpec)


def _reaching(places: tuple[str, ...]) -> str:
    return f"that may reach {', '.join(places)}" if places else "without network"
