"""What is a person shown about the calls of a proposed item? The skill's words, the records, the values that are bound.

Nothing of a model's prose stands outside of the plan, and each of several calls is told apart from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card
from apps.gates.schemas import GateResult
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from apps.work.models import WorkItem
from apps.work.schemas import WorkItemSpec
from apps.work.services.items import announce
from apps.work.wording import WAITING
from kernel.llm.calls import PlannedCall

_TITLE_CHARS = 200


@dataclass(frozen=True)
class Wanted:
    """One call of a plan with the tool it names."""

    call: PlannedCall
    tool: ToolSpec

    def say(self, template: str) -> str:
        return skill_rules.fill(template, self.call.args)

    @property
    def intent(self) -> str:
        said = self.say(self.tool.intent) or self.tool.description
        return said if len(said) <= _TITLE_CHARS else f"{said[:_TITLE_CHARS]}…"


def intent_of(wanted: Sequence[Wanted]) -> str:
    return wanted[0].intent if len(wanted) == 1 else f"{wanted[0].intent}, and {len(wanted) - 1} more"


def ask_a_person(item: WorkItem, wanted: Sequence[Wanted], asks: GateResult | None) -> None:
    first, tools, spec = wanted[0], [each.tool for each in wanted], item.spec
    consequence = first.tool.consequence
    more = "" if len(wanted) == 1 else f", and {len(wanted) - 1} more"
    open_card(
        CardKind.PLAN,
        subject_kind="work_item",
        subject_id=item.pk,
        payload=spec.as_plan(),
        scope=ApprovalScope.FULL_PLAN,
        intent=item.title,
        rationale=_rationale(first, asks),
        consequence={
            "approve": (first.say(consequence.approve) if consequence else "Approve, do it") + more,
            "decline": first.say(consequence.decline) if consequence else "Decline, nothing changes",
        },
        reversible=all(tool.reversible for tool in tools),
        declared_risk=max((Risk(tool.risk) for tool in tools), key=list(Risk).index),
        affected="" if len(wanted) == 1 else f"{len(wanted)} actions",
        facts=_facts(wanted, item),
        details=_details(spec, asks),
        deployment_id=item.deployment_id,
        session_id=item.session_id,
    )
    announce(item, WAITING.format(title=item.title.rstrip(".")))


def _rationale(first: Wanted, asks: GateResult | None) -> str:
    said = first.say(first.tool.rationale) or "A customer asked for this."
    return f"{said} {asks.reason}." if asks and asks.reason else said


def _facts(wanted: Sequence[Wanted], item: WorkItem) -> list[Fact]:
    """What the skill says about its calls, then what it left unsaid of undo and proof."""
    said = [fact for place, each in enumerate(wanted, start=1) for fact in _facts_of(each, item, place, len(wanted))]
    labels = {fact.label for fact in said}
    ours = _assurances([each.tool for each in wanted], item.spec)
    return [*said, *(fact for fact in ours if fact.label not in labels)]


def _facts_of(each: Wanted, item: WorkItem, place: int, of: int) -> list[Fact]:
    """The lines of one call; among several it says first which one it is."""
    said = [Fact(**fact) for fact in skills.card_facts(each.tool, each.call.args, item.subject)]
    return said if of == 1 else [Fact(f"{place} of {of}", text=each.intent), *said]


def _assurances(tools: Sequence[ToolSpec], spec: WorkItemSpec) -> list[Fact]:
    undo = "Yes, by a further change" if all(tool.reversible for tool in tools) else "No"
    count = len(spec.verify)
    proof = (
        f"{count} check{'s' if count != 1 else ''} outside the agent" if count else "nothing but the tool's own word"
    )
    return [Fact("Can be undone", text=undo), Fact("Proved by", text=proof)]


def _details(spec: WorkItemSpec, asks: GateResult | None) -> dict[str, object]:
    return {
        "plan": spec.body,
        "plan_hash": spec.plan_hash,
        "calls": [{"tool": call.tool, "args": call.args} for call in spec.calls],
        "checks": [check.model_dump(mode="json", exclude_none=True) for check in spec.verify],
        "gates": [gate.name for gate in spec.gates],
        "asked_by_gate": asks.gate_name if asks else "",
        "skills": spec.skills,
    }
