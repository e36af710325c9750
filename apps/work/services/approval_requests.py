"""What is a person shown about the calls of a proposed item? The skill's words, the records, the values that are bound.

Nothing of a model's prose stands outside of the plan, and each of several calls is told apart from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, CardKind, Pace, Risk
from apps.approvals.models import WAITING as CARD_WAITS
from apps.approvals.models import Card
from apps.approvals.queries import patience
from apps.approvals.risk import highest
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card
from apps.connections import queries as connections
from apps.gates.schemas import GateResult
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from apps.work import document_tools
from apps.work.checks import checks_of
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.provenance import origins_in, without_origins
from apps.work.schemas import VerificationCheck, WorkItemSpec
from apps.work.services import execution_facts
from apps.work.services.items import announce
from apps.work.visitor_messages import WAITING
from kernel.llm.calls import PlannedCall
from kernel.provenance import Origin

_TITLE_CHARS, _LABEL_CHARS, _WHY_CHARS = 200, 150, 600
_DAY_SECONDS = 86_400
PREPARED = "The assistant prepared this."
BY_RULES = "This chatbot's own rules and goals led to this. It was not asked for in a conversation."
CHECK_ORIGINS = "Not every value is the customer's or your own: look at where each comes from."
WORK_ITEM = "work_item"
# By whom a plan is started that the assistant prepares for somebody.
_IN_CONVERSATIONS = frozenset({Origin.VISITOR, Origin.STAFF, Origin.MODEL})


@dataclass(frozen=True)
class RequestedCall:
    """One call of a plan with the tool it names."""

    call: PlannedCall
    tool: ToolSpec

    def say(self, template: str) -> str:
        return skill_rules.fill(template, self.call.args)

    @property
    def intent(self) -> str:
        return shorten(self.say(self.tool.intent) or self.tool.description, _TITLE_CHARS)

    @property
    def buttons(self) -> dict[str, str]:
        """What a yes and a no to it do, in the skill's words."""
        said = self.tool.consequence
        approve, decline = (said.approve, said.decline) if said else ("Approve, do it", "Nothing changes")
        return {
            "approve": shorten(self.say(approve), _LABEL_CHARS),
            "decline": shorten(self.say(decline), _LABEL_CHARS),
        }


def shorten(said: str, most: int) -> str:
    """Values of any length stand in these words; what is bound is shown whole among the facts and in the plan."""
    return said if len(said) <= most else f"{said[:most]}…"


def title_of(wanted: Sequence[RequestedCall]) -> str:
    return wanted[0].intent if len(wanted) == 1 else f"{wanted[0].intent}, and {len(wanted) - 1} more"


def request_approval(
    item: WorkItem,
    wanted: Sequence[RequestedCall],
    asks: GateResult | None,
    *,
    marks: Sequence[str] = (),
    instead_of: Card | None = None,
    rationale: str = "",
    told: str = "",
) -> Card:
    """`marks`: what its author read before, in lines for the card. `instead_of`: the card that asked before, whose risk
    and marks stand. `rationale`: the reasons, where they are not those of its tool. `told`: the values of the calls
    in lines, as far as the visitor may read them."""
    spec = item.spec
    marks = marks or (instead_of.details.get("marks", ()) if instead_of is not None else ())
    text = card_text_of(wanted, spec, item.subject, asks, marks)
    text = replace(text, rationale=rationale or text.rationale)
    if instead_of is not None:
        asked_by = {"asked_by_gate": instead_of.details.get("asked_by_gate", "")}
        text = replace(text, details={**text.details, **asked_by})
    card = open_card(
        CardKind.PLAN,
        about=About(WORK_ITEM, item.pk, item.deployment_id, item.session_id, item.requested_by),
        binding=Binding(
            ApprovalScope.FULL_PLAN,
            spec.as_plan(),
            reversible=not any(execution_facts.raises_risk(each.tool) for each in wanted),
            declared_risk=highest(
                highest_risk(each.tool for each in wanted), Risk(instead_of.risk) if instead_of else Risk.LOW
            ),
            lifted=has_marked_values(spec) and instead_of is None,
            token_seconds=_seconds(spec),
            reads=card_reads_of(wanted, item.subject),
        ),
        text=text,
        seconds=card_timeout_of(item),
        supersedes=instead_of,
    )
    if instead_of is None:
        announce(item, "\n".join(filter(None, (WAITING.format(title=item.title.rstrip(".")), told))))
    return card


def card_reads_of(wanted: Sequence[RequestedCall], subject: str) -> list[dict[str, object]]:
    """The records whose state the card shows, each once."""
    found = [read for each in wanted for read in skills.card_reads(each.tool, each.call.args, subject)]
    return [read for place, read in enumerate(found) if read not in found[:place]]


def needs_card(item: WorkItem) -> bool:
    """Does the item wait, and nobody has been asked about it?"""
    asked = Card.objects.filter(subject_kind=WORK_ITEM, subject_id=item.pk, status__in=CARD_WAITS)
    return item.status == WorkItemStatus.PENDING and item.approval_token_id is None and not asked.exists()


def card_timeout_of(item: WorkItem) -> int | None:
    """How long a card about it waits: as its kind does where a conversation waits for it, else as if nobody did."""
    return None if item.session_id else patience(Pace.CALM, item.deployment_id)


def highest_risk(tools: Iterable[ToolSpec]) -> Risk:
    """What the gravest of these tools declares."""
    return highest(*(Risk(tool.risk) for tool in tools))


def has_marked_values(spec: WorkItemSpec) -> bool:
    """An outsider or the model decided where something goes."""
    account = origins_in(spec.body)
    return account is not None and account.is_marked


def card_text_of(
    wanted: Sequence[RequestedCall],
    spec: WorkItemSpec,
    subject: str,
    asks: GateResult | None,
    marks: Sequence[str] = (),
) -> CardText:
    """What a card about this plan says."""
    first = wanted[0]
    more = "" if len(wanted) == 1 else f", and {len(wanted) - 1} more"
    return CardText(
        intent=spec.title,
        rationale=_rationale(first, spec, asks),
        consequence={**first.buttons, "approve": first.buttons["approve"] + more},
        affected="" if len(wanted) == 1 else f"{len(wanted)} actions",
        facts=[*(Fact("Warning", text=mark) for mark in marks), *_facts(wanted, spec, subject)],
        details=_details(wanted, spec, asks) | ({"marks": list(marks)} if marks else {}),
    )


def _seconds(spec: WorkItemSpec) -> int:
    """A yes to a project lasts as long as the project may take, up to a day; any other as long as the house says."""
    if spec.type != WorkItemType.PROJECT:
        return int(settings.APPROVAL_TOKEN_SECONDS)
    return int(max(settings.APPROVAL_TOKEN_SECONDS, min(spec.budget.max_wall_time_seconds, _DAY_SECONDS)))


def _rationale(first: RequestedCall, spec: WorkItemSpec, asks: GateResult | None) -> str:
    """The skill's own words, which may speak of a customer who asked, where one did and every value is theirs or the
    company's; else what the harness knows."""
    account = origins_in(spec.body)
    started = account.started.origin if account else Origin.AUTHOR
    said = PREPARED if started in _IN_CONVERSATIONS else BY_RULES
    if account is not None and not account.is_vouched({name for values in account.calls for name in values}):
        said = f"{said} {CHECK_ORIGINS}"
    elif started is Origin.VISITOR:
        said = shorten(first.say(first.tool.rationale) or PREPARED, _WHY_CHARS)
    return f"{said} {asks.reason}." if asks and asks.reason else said


def _facts(wanted: Sequence[RequestedCall], spec: WorkItemSpec, subject: str) -> list[Fact]:
    """What the skill says about its calls, then what it left unsaid of undo and proof."""
    said = [
        fact for place, each in enumerate(wanted, start=1) for fact in call_facts_of(each, subject, place, len(wanted))
    ]
    labels = {fact.label for fact in said}
    ours = [*_accounts(wanted), *_assurances([each.tool for each in wanted], _checks(wanted, spec))]
    return [*said, *(fact for fact in ours if fact.label not in labels)]


def call_facts_of(each: RequestedCall, subject: str, place: int = 1, of: int = 1) -> list[Fact]:
    """The lines of one call; among several it says first which one it is."""
    told = (Fact(**fact) for fact in skills.card_facts(each.tool, each.call.args, subject))
    said = [
        replace(fact, label=f"{fact.label} (says the tool)") if fact.label in execution_facts.RESERVED_LABELS else fact
        for fact in told
    ]
    said += [*document_tools.change_facts(each.tool, each.call.args), *execution_facts.execution_facts(each.tool)]
    return said if of == 1 else [Fact(f"{place} of {of}", text=each.intent), *said]


def _accounts(wanted: Sequence[RequestedCall]) -> list[Fact]:
    """On whose outside account it would be done."""
    meant = dict.fromkeys(each.tool.connection for each in wanted if each.tool.connection)
    names = [name for one in meant if (name := connections.account_name(one))]
    return [Fact("Account", text=", ".join(names))] if names else []


def _checks(wanted: Sequence[RequestedCall], spec: WorkItemSpec) -> list[VerificationCheck]:
    """What proves it from outside: a project's tasks have their own checks beside those of the whole."""
    tasks = checks_of([each.tool for each in wanted]) if spec.type == WorkItemType.PROJECT else []
    return [*tasks, *(check for check in spec.verify if check not in tasks)]


def _assurances(tools: Sequence[ToolSpec], checks: Sequence[VerificationCheck]) -> list[Fact]:
    undo = "Yes, by a further change" if all(tool.reversible for tool in tools) else "No"
    count = len(checks)
    proof = (
        f"{count} check{'s' if count != 1 else ''} outside the agent" if count else "nothing but the tool's own word"
    )
    return [Fact("Can be undone", text=undo), Fact("Proved by", text=proof)]


def _details(wanted: Sequence[RequestedCall], spec: WorkItemSpec, asks: GateResult | None) -> dict[str, object]:
    return {
        "plan": without_origins(spec.body),
        "plan_hash": spec.plan_hash,
        "calls": [
            {"tool": each.call.tool, "args": each.call.args, "runs": execution_facts.describe_execution(each.tool)}
            for each in wanted
        ],
        "checks": [check.model_dump(mode="json", exclude_none=True) for check in _checks(wanted, spec)],
        "gates": [gate.name for gate in spec.gates],
        "asked_by_gate": asks.gate_name if asks else "",
        "skills": spec.skills,
    }
