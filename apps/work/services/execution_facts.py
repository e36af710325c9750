"""Where a call would be carried out, what it could reach there, and how risky its tool was judged.

Each answer comes from what decides the dispatch of such a call: the places of a sandbox from `skills.queries`, an
account and its places from `connections.permits`, an outside server from `toolservers.queries`. Inside a scope.
"""

from __future__ import annotations

from apps.approvals.enums import Risk
from apps.approvals.schemas import Fact
from apps.connections import permissions
from apps.skills import queries as skills
from apps.skills.schemas import OutsideToolSpec, ToolSpec

RUNS, JUDGED, COMPARED = "Runs", "Judged", "Compared first"
# Lines that only the house writes: a tool that says something under these names is quoted.
RESERVED_LABELS = frozenset({RUNS, JUDGED, COMPARED, "Account"})


def describe_execution(tool: ToolSpec) -> str:
    """One sentence about how a call of this tool would run now."""
    if isinstance(tool, OutsideToolSpec):
        return f"{tool.runs[:1].upper()}{tool.runs[1:]}" if tool.runs else f"By {tool.server}, outside of our sandbox"
    name = tool.skill.partition("@")[0]
    if tool.connection:
        account, places = permissions.reach_of(tool)
        whose = f", with the account {account}" if account else ""
        return f"By the script of {name} in a sandbox {_reaching(places)}{whose}"
    return f"By the script of {name} in a sandbox {_reaching(skills.places_of(tool))}"


def execution_facts(tool: ToolSpec) -> list[Fact]:
    """The lines of a card: how it runs, how risky its tool was judged, and what cannot be compared before."""
    found = [Fact(RUNS, text=describe_execution(tool))]
    if isinstance(tool, OutsideToolSpec):
        found.append(Fact(JUDGED, text=f"{Risk(tool.risk).label} risk when your company accepted this tool"))
    if tool.acting and (isinstance(tool, OutsideToolSpec) or tool.connection):
        found.append(Fact(COMPARED, text="No. It changes what another service keeps, and that is not compared."))
    return found


def raises_risk(tool: ToolSpec) -> bool:
    """Whether the rung of a card about it rises because it cannot be undone. A person judged the risk of an outside
    tool with that in view."""
    return not tool.reversible and not isinstance(tool, OutsideToolSpec)


def _reaching(places: tuple[str, ...]) -> str:
    return f"that may reach {', '.join(places)}" if places else "without network"
