"""Build and open approval cards for proposed items: the skill's words, the records, and the values that are bound.

A model's prose appears only inside the plan, and each of several calls is told apart from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from apps.approvals.cards.risk import max_risk
from apps.approvals.cards.schemas import EXACT_TEXT, Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind, Pace, Risk
from apps.approvals.models import OPEN_STATUSES as CARD_WAITS
from apps.approvals.models import Card
from apps.approvals.queries import card_lifetime
from apps.connections import queries as connections
from apps.gates.schemas import GateResult
from apps.skills import executors
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from apps.work import document_tools, visitor_messages
from apps.work.checks import checks_of
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.provenance import origins_in, without_origins
from apps.work.schemas import VerificationCheck, WorkItemSpec
from apps.work.services import execution_facts
from apps.work.services.items import announce_waiting
from kernel.provenance import Origin
from kernel.stored_texts import stored_text
from llm.calls import PlannedCall

_TITLE_CHARS, _LABEL_CHARS, _WHY_CHARS = 200, 150, 600
_DAY_SECONDS = 86_400
PREPARED = stored_text("The assistant prepared this.")
BY_RULES = stored_text("This chatbot's rules and goals started this. No visitor asked for it in a conversation.")
CHECK_ORIGINS = stored_text(
    "Some values don't come from the customer or your company. Check where each one comes from."
)
WORK_ITEM = "work_item"
# Origins of plans that the assistant prepares during a conversation.
_IN_CONVERSATIONS = frozenset({Origin.VISITOR, Origin.STAFF, Origin.MODEL})


@dataclass(frozen=True)
class RequestedCall:
    """One call of a plan with the tool that it names."""

    call: PlannedCall
    tool: ToolSpec

    def say(self, template: str) -> str:
        return skill_rules.fill(template, self.call.args)

    @property
    def intent(self) -> str:
        return shorten(self.say(self.tool.intent) or self.tool.description, _TITLE_CHARS)

    @property
    def buttons(self) -> dict[str, str]:
        """The consequences of approval and rejection, in the skill's words."""
        consequence = self.tool.consequence
        approve, decline = (
            (consequence.approve, consequence.decline)
            if consequence
            else (stored_text("Approve"), stored_text("Nothing changes"))
        )
        return {
            "approve": shorten(self.say(approve), _LABEL_CHARS),
            "decline": shorten(self.say(decline), _LABEL_CHARS),
        }


def shorten(text: str, most: int) -> str:
    """Shorten a text that contains values of any length; the bound values are shown whole among the facts and in the
    plan."""
    return text if len(text) <= most else f"{text[:most]}…"


def and_more(text: str, count: int) -> str:
    return stored_text("{text}, and {count:d} more").format(text=text, count=count)


def title_of(calls: Sequence[RequestedCall]) -> str:
    return calls[0].intent if len(calls) == 1 else and_more(calls[0].intent, len(calls) - 1)


def request_approval(
    item: WorkItem,
    calls: Sequence[RequestedCall],
    asks: GateResult | None,
    *,
    marks: Sequence[str] = (),
    instead_of: Card | None = None,
    rationale: str = "",
    changes: tuple[visitor_messages.Change, ...] = (),
) -> Card:
    """Open the card that asks a person to approve the item.

    `marks`: warning lines about what the plan's author had read. `instead_of`: the card before, whose risk and marks
    are kept. `rationale`: replaces the tool's own reasons. `changes`: the values of the calls, as far as the visitor
    may read them.
    """
    spec = item.spec
    marks = marks or (instead_of.details.get("marks", ()) if instead_of is not None else ())
    text = card_text_of(calls, spec, item.subject, asks, marks)
    text = replace(text, rationale=rationale or text.rationale)
    if instead_of is not None:
        asked_by = {"asked_by_gate": instead_of.details.get("asked_by_gate", "")}
        text = replace(text, details={**text.details, **asked_by})
    card = open_card(
        CardKind.PLAN,
        subject=CardSubject(WORK_ITEM, item.pk, item.deployment_id, item.session_id, item.requested_by),
        binding=Binding(
            ApprovalScope.FULL_PLAN,
            spec.as_plan(),
            reversible=not any(execution_facts.raises_risk(requested.tool) for requested in calls),
            declared_risk=max_risk(
                highest_risk(requested.tool for requested in calls), Risk(instead_of.risk) if instead_of else Risk.LOW
            ),
            untrusted_target=has_marked_values(spec) and instead_of is None,
            token_seconds=_seconds(spec),
            reads=card_reads_of(calls, item.subject),
        ),
        text=text,
        seconds=card_timeout_of(item),
        supersedes=instead_of,
    )
    if instead_of is None:
        announce_waiting(item, changes)
    return card


def card_reads_of(calls: Sequence[RequestedCall], subject: str) -> list[dict[str, object]]:
    """Return the records whose state the card shows, each once."""
    reads = [read for requested in calls for read in skills.card_reads(requested.tool, requested.call.args, subject)]
    return [read for place, read in enumerate(reads) if read not in reads[:place]]


def needs_card(item: WorkItem) -> bool:
    """Whether the item waits for approval and no open card asks for it."""
    open_cards = Card.objects.filter(subject_kind=WORK_ITEM, subject_id=item.pk, status__in=CARD_WAITS)
    return item.status == WorkItemStatus.PENDING and item.approval_token_id is None and not open_cards.exists()


def card_timeout_of(item: WorkItem) -> int | None:
    """Seconds that a card about the item stays open: its kind's usual time if a conversation waits for it, else the
    longer one."""
    return None if item.session_id else card_lifetime(Pace.CALM, item.deployment_id)


def highest_risk(tools: Iterable[ToolSpec]) -> Risk:
    """Return the highest risk that these tools declare."""
    return max_risk(*(Risk(tool.risk) for tool in tools))


def has_marked_values(spec: WorkItemSpec) -> bool:
    """Whether an outsider or the model decided where something goes."""
    account = origins_in(spec.body)
    return account is not None and account.is_marked


def card_text_of(
    calls: Sequence[RequestedCall],
    spec: WorkItemSpec,
    subject: str,
    asks: GateResult | None,
    marks: Sequence[str] = (),
) -> CardText:
    """Return the text of a card about this plan."""
    first = calls[0]
    approve = first.buttons["approve"]
    return CardText(
        intent=spec.title,
        rationale=_rationale(first, spec, asks),
        consequence={**first.buttons, "approve": approve if len(calls) == 1 else and_more(approve, len(calls) - 1)},
        affected="" if len(calls) == 1 else stored_text("{count:d} actions").format(count=len(calls)),
        facts=[*(Fact(stored_text("Warning"), text=mark) for mark in marks), *_facts(calls, spec, subject)],
        details=_details(calls, spec, asks) | ({"marks": list(marks)} if marks else {}),
    )


def _seconds(spec: WorkItemSpec) -> int:
    """Lifetime of the approval: a project's is as long as the project may take, up to a day; others use the setting."""
    if spec.type != WorkItemType.PROJECT:
        return int(settings.APPROVAL_TOKEN_SECONDS)
    return int(max(settings.APPROVAL_TOKEN_SECONDS, min(spec.budget.max_wall_time_seconds, _DAY_SECONDS)))


def _rationale(first: RequestedCall, spec: WorkItemSpec, asks: GateResult | None) -> str:
    """Return the reason on the card. The skill's own words may speak of a customer who asked, so they are used only if
    one did and every value is theirs or the company's; else a neutral sentence."""
    account = origins_in(spec.body)
    started = account.started.origin if account else Origin.AUTHOR
    text = PREPARED if started in _IN_CONVERSATIONS else BY_RULES
    if account is not None and not account.is_vouched({name for values in account.calls for name in values}):
        text = f"{text} {CHECK_ORIGINS}"
    elif started is Origin.VISITOR:
        text = shorten(first.say(first.tool.rationale) or PREPARED, _WHY_CHARS)
    return f"{text} {asks.reason}." if asks and asks.reason else text


def _facts(calls: Sequence[RequestedCall], spec: WorkItemSpec, subject: str) -> list[Fact]:
    """Return the facts that the skill states about its calls, then ours about undo and verification."""
    facts = [
        fact
        for place, requested in enumerate(calls, start=1)
        for fact in call_facts_of(requested, subject, place, len(calls))
    ]
    labels = {fact.label for fact in facts}
    ours = [*_accounts(calls), *_assurances([requested.tool for requested in calls], _checks(calls, spec))]
    return [*facts, *(fact for fact in ours if fact.label not in labels)]


def call_facts_of(requested: RequestedCall, subject: str, place: int = 1, of: int = 1) -> list[Fact]:
    """Return the fact lines of one call; among several, first which one it is."""
    skill_facts = (Fact(**fact) for fact in skills.card_facts(requested.tool, requested.call.args, subject))
    facts = [
        replace(fact, label=stored_text("{label} (says the tool)").format(label=fact.label))
        # A skill's author must not speak in our name.
        if execution_facts.is_reserved(fact.label, requested.tool)
        else fact
        for fact in skill_facts
    ]
    facts += [
        *document_tools.change_facts(requested.tool, requested.call.args),
        *execution_facts.execution_facts(requested.tool),
    ]
    if requested.tool.executor:
        facts.append(Fact(EXACT_TEXT, executors.code_of(requested.tool.executor, requested.call.args)))
    return (
        facts
        if of == 1
        else [Fact(stored_text("{some:d} of {all:d}").format(some=place, all=of), text=requested.intent), *facts]
    )


def _accounts(calls: Sequence[RequestedCall]) -> list[Fact]:
    """Return the outside account that would be used."""
    connections_used = dict.fromkeys(requested.tool.connection for requested in calls if requested.tool.connection)
    names = [name for connection in connections_used if (name := connections.account_name(connection))]
    return [Fact(stored_text("Account"), text=", ".join(names))] if names else []


def _checks(calls: Sequence[RequestedCall], spec: WorkItemSpec) -> list[VerificationCheck]:
    """Return the independent checks: a project's tasks have their own beside those of the whole."""
    tasks = checks_of([requested.tool for requested in calls]) if spec.type == WorkItemType.PROJECT else []
    return [*tasks, *(check for check in spec.verify if check not in tasks)]


def _assurances(tools: Sequence[ToolSpec], checks: Sequence[VerificationCheck]) -> list[Fact]:
    undo = stored_text("Yes, by a further change") if all(tool.reversible for tool in tools) else stored_text("No")
    count = len(checks)
    proof = _checks_in_words(count) if count else stored_text("the tool's own report only")
    return [Fact(execution_facts.UNDO, text=undo), Fact(execution_facts.VERIFIED_BY, text=proof)]


def _checks_in_words(count: int) -> str:
    if count == 1:
        return stored_text("1 independent check")
    return stored_text("{count:d} independent checks").format(count=count)


def _details(calls: Sequence[RequestedCall], spec: WorkItemSpec, asks: GateResult | None) -> dict[str, object]:
    return {
        "plan": without_origins(spec.body),
        "plan_hash": spec.plan_hash,
        "calls": [
            {
                "tool": requested.call.tool,
                "args": requested.call.args,
                "runs": execution_facts.describe_execution(requested.tool),
            }
            for requested in calls
        ],
        "checks": [check.model_dump(mode="json", exclude_none=True) for check in _checks(calls, spec)],
        "gates": [gate.name for gate in spec.gates],
        "asked_by_gate": asks.gate_name if asks else "",
        "skills": spec.skills,
    }
