"""An insurance desk for models: its passages, its tools, and a toolset that records what was called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import FunctionToolset, Tool

from llm.briefing import Briefing, HistoryMessage, Passage, ToolBrief, WithheldTool
from llm.enums import Role

ASK_WHO = "Please tell me your full name and date of birth."

CLAIM_STATUS = ToolBrief(
    name="claim_status",
    description="Look up the status of a claim",
    parameters={
        "type": "object",
        "properties": {"claim": {"type": "string", "pattern": "^CLM-\\d{4}$", "title": "claim number"}},
        "required": ["claim"],
        "additionalProperties": False,
    },
    keywords=("claim status", "status of my claim", "my claim"),
    ask={"claim": "Which claim is it? Its number looks like CLM-2001."},
    requires_level="verified",
    skill="desk",
)
POLICY_LOOKUP = ToolBrief(
    name="policy_lookup",
    description="Show what is written in a policy",
    parameters={
        "type": "object",
        "properties": {"policy": {"type": "string", "pattern": "^POL-\\d{4}$"}},
        "required": ["policy"],
    },
    keywords=("my policy", "policy details"),
    ask={"policy": "Which policy is it? Its number looks like POL-1001."},
    requires_level="verified",
    skill="desk",
)
UPDATE_ADDRESS = ToolBrief(
    name="update_address",
    description="Change the postal address on a policy",
    parameters={
        "type": "object",
        "properties": {
            "policy": {"type": "string", "pattern": "^POL-\\d{4}$"},
            "address": {"type": "string", "minLength": 8, "maxLength": 200, "title": "new address"},
        },
        "required": ["policy", "address"],
        "additionalProperties": False,
    },
    acting=True,
    keywords=("change address", "new address", "moved house", "update address"),
    ask={"policy": "Which policy is it for? Its number looks like POL-1001.", "address": "What is the new address?"},
    requires_level="verified",
    skill="desk",
    intent="Change the postal address on {policy}",
)
REFUND = ToolBrief(
    name="refund",
    description="Refund an order",
    parameters={
        "type": "object",
        "properties": {
            "order": {"type": "string", "pattern": "^H-\\d{4}$"},
            "amount": {"type": "number", "exclusiveMinimum": 0},
            "reason": {"type": "string", "enum": ["damaged", "late", "wrong_item", "changed_mind"]},
        },
        "required": ["order", "amount", "reason"],
    },
    acting=True,
    keywords=("refund", "money back", "return an order"),
    ask={"order": "Which order is it?", "amount": "How much should be refunded?", "reason": "What is the reason?"},
    skill="orders",
    intent="Refund {amount} on order {order}",
)
FILE_CLAIM = ToolBrief(
    name="file_claim",
    description="File a claim on a policy",
    parameters={
        "type": "object",
        "properties": {
            "policy": {"type": "string", "pattern": "^POL-\\d{4}$"},
            "incident_date": {"type": "string", "format": "date"},
            "description": {"type": "string", "minLength": 10, "maxLength": 500},
        },
        "required": ["policy", "incident_date", "description"],
    },
    acting=True,
    keywords=("file a claim", "report damage", "make a claim"),
    ask={
        "policy": "Which policy is it for?",
        "incident_date": "On which date did it happen?",
        "description": "What happened?",
    },
    skill="desk",
)
DESK = (CLAIM_STATUS, POLICY_LOOKUP, UPDATE_ADDRESS, FILE_CLAIM)

HOME_TERMS = Passage(
    document_id="doc-home",
    version_id="ver-home",
    title="Home insurance: what is covered",
    url="https://example.org/home",
    start=100,
    end=360,
    quote=(
        "# Water damage\n\nYour home policy covers sudden escape of water, for example from a burst pipe. "
        "Damage from slow leaks that you could have noticed is not covered.\n\n# Storms\n\n"
        "- Roof damage by a storm is covered from wind force 8.\n- Garden furniture is not covered.\n"
    ),
    score=0.3,
)
FEES = Passage(
    document_id="doc-fees",
    version_id="ver-fees",
    title="Fees",
    url="",
    start=0,
    end=90,
    quote="The excess is 250 € for each claim. There is no fee for a change of address.",
    score=0.2,
)


def held(*tools: ToolBrief) -> tuple[WithheldTool, ...]:
    return tuple(WithheldTool(tool, "verified", ASK_WHO) for tool in tools)


def briefing(text: str, **known: Any) -> Briefing:
    defaults: dict[str, Any] = {
        "role": Role.PROXY,
        "title": "Meridian Insurance",
        "passages": (HOME_TERMS, FEES),
        "suggestions": ("Is water damage covered?",),
        "today": "2025-05-03",
        "reference": "turn-1",
    }
    return Briefing(text=text, **{**defaults, **known})


def said(*lines: str) -> tuple[HistoryMessage, ...]:
    """A history in which visitor and bot take turns, the visitor first."""
    return tuple(HistoryMessage(("visitor", "bot")[number % 2], line) for number, line in enumerate(lines))


class RecordingToolset:
    """`toolset` runs the given tools; `calls` lists what was run, in order. `answer` makes the results."""

    def __init__(self, *tools: ToolBrief, answer: Callable[[str, dict[str, Any]], Any] | None = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._answer = answer or (lambda name, args: {"say": f"{name} done."})
        self.toolset: FunctionToolset[Any] = FunctionToolset([self._tool(tool) for tool in tools])

    def _tool(self, brief: ToolBrief) -> Tool[Any]:
        async def run(**args: Any) -> Any:
            self.calls.append((brief.name, args))
            return self._answer(brief.name, args)

        return Tool.from_schema(run, brief.name, brief.description, dict(brief.parameters))
