"""Where the values of a card come from, in words. Only data that the approval covers is read.

A plan contains the account of its values; a draft and a batch name their plans by hash, and only a plan with that hash
is read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import Card
from apps.console.names import Names, names_for
from apps.work.enums import WorkItemType
from apps.work.models import WorkItem
from apps.work.project_rules import covered_tasks
from apps.work.provenance import PlanOrigins, ValueOrigin, origins_in
from apps.work.schemas import WorkItemSpec
from kernel.provenance import Origin
from llm.calls import PlannedCall, parse_calls

_WORDS = {
    Origin.VISITOR: gettext_lazy("From the customer's message"),
    Origin.STAFF: gettext_lazy("Entered by a colleague"),
    Origin.RECORDS: gettext_lazy("From your records"),
    Origin.AUTHOR: gettext_lazy("Set in this chatbot's own rules"),
    Origin.DOCUMENT: gettext_lazy("From the document “%(label)s”"),
    Origin.TOOL: gettext_lazy("From an external tool: %(label)s"),
    Origin.MEMORY: gettext_lazy("From memory, not said in this conversation"),
    Origin.MODEL: gettext_lazy("Written by the assistant"),
}
_STARTED = {
    Origin.VISITOR: gettext_lazy("A customer, in a message to the assistant"),
    Origin.STAFF: gettext_lazy("A colleague"),
    Origin.RECORDS: gettext_lazy("One of your goals, based on your records"),
    Origin.AUTHOR: gettext_lazy("This chatbot's own rules"),
    Origin.TOOL: gettext_lazy("One of your goals, based on an external tool: %(label)s"),
}
_OFFERED = gettext_lazy("Offered automatically after the work was done")
_AFTER_READING = gettext_lazy("The assistant, after reading %(read)s. The customer may not have asked for this.")
_OWN_CHOICE = gettext_lazy("The assistant, in a conversation with a customer. Not every value came from the customer.")


@dataclass(frozen=True)
class Line:
    """One value with its origin in words, and the message it comes from, if any.

    `is_marked` is true for a value that decides where something goes and comes from neither customer nor company.
    """

    name: str
    value: str
    origin: str
    is_marked: bool
    at: datetime | None = None
    seq: str = ""


@dataclass(frozen=True)
class Origins:
    """The origins of all values of a card; `asked_by` says who requested it, as far as that is known."""

    asked_by: str
    lines: tuple[Line, ...]
    is_marked: bool


def origins_of(card: Card) -> Origins | None:
    """Return the origins, or None if none are recorded or the plan is no longer the one the card covers."""
    accounts = list(_accounts(card))
    if not accounts:
        return None
    people = names_for([value.ref for _, account in accounts for call in account.calls for value in call.values()])
    lines = [line for calls, account in accounts for line in _lines(calls, account, people)]
    marked = any(line.is_marked for line in lines)
    return Origins(
        str(_OFFERED) if card.of_kind.is_offered else _asked_by([account for _, account in accounts]),
        tuple(lines),
        marked,
    )


def _accounts(card: Card) -> Iterator[tuple[Sequence[PlannedCall], PlanOrigins]]:
    """Yield the calls that the card is about with their accounts.

    The account of a call that a gate holds back is on the card itself, covered by the approval's signature.
    """
    if "origins" in card.details:
        holds = card.payload["holds"]
        yield [PlannedCall(holds["tool"], holds["args"])], PlanOrigins.model_validate(card.details["origins"])
    for body in _bodies(card):
        if (account := origins_in(body)) is not None:
            yield parse_calls(body), account


def _bodies(card: Card) -> Iterator[str]:
    """Yield the bodies of the plans that an approval of this card covers."""
    payload = card.payload
    if card.scope == ApprovalScope.FULL_PLAN and payload["type"] == WorkItemType.PROJECT:
        hashes = covered_tasks(WorkItemSpec.model_validate(payload))
        yield from _bound(hashes, hashes.values())
    elif card.scope == ApprovalScope.FULL_PLAN:
        yield str(payload["body"])
    elif card.scope == ApprovalScope.SINGLE_STEP and "plan_hash" in payload:
        yield from _bound([payload["work_item_id"]], [payload["plan_hash"]])
    elif "item_ids" in payload:
        rows = WorkItem.objects.filter(plan_hash__in=payload["item_ids"]).order_by("created_at")
        yield from _bound(rows.values_list("pk", flat=True), payload["item_ids"])


def _bound(ids: Iterable[object], hashes: Collection[str]) -> list[str]:
    """Return the plans of these rows whose hash is still one of `hashes`."""
    specs = [item.spec for item in WorkItem.objects.filter(pk__in=list(ids)).order_by("created_at")]
    return [spec.body for spec in specs if spec.plan_hash in hashes]


def _lines(calls: Sequence[PlannedCall], account: PlanOrigins, people: Names) -> Iterator[Line]:
    for call, values in zip(calls, account.calls, strict=False):
        for name, value in call.args.items():
            known = values.get(name, ValueOrigin(origin=Origin.MODEL))
            yield Line(
                name.replace("_", " "),
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
                _origin_in_words(known, people),
                known.is_marked,
                datetime.fromisoformat(known.at) if known.origin is Origin.VISITOR and known.at else None,
                known.ref.removeprefix("seq:") if known.origin is Origin.VISITOR else "",
            )


def _origin_in_words(value: ValueOrigin, people: Names) -> str:
    if value.origin is Origin.MODEL and value.listed:
        return _("Chosen by the assistant from a fixed list")
    if value.origin is Origin.STAFF and value.ref.startswith("user:"):
        return _("Entered by %(name)s") % {"name": people.of(value.ref)}
    return str(_WORDS[value.origin]) % {"label": value.label or _("an unnamed source")}


def _asked_by(accounts: list[PlanOrigins]) -> str:
    """Return who requested it; not the customer if a document, an external tool or the assistant had a part."""
    first = accounts[0].started
    read = list(dict.fromkeys(name for account in accounts for name in account.read))
    read += [
        value.label
        for account in accounts
        for call in account.calls
        for value in call.values()
        if value.origin in (Origin.DOCUMENT, Origin.TOOL) and value.label and value.label not in read
    ]
    if first.origin is Origin.VISITOR and read:
        return str(_AFTER_READING) % {"read": ", ".join(dict.fromkeys(f"“{name}”" for name in read))}
    if first.origin is Origin.VISITOR and any(account.is_marked for account in accounts):
        return str(_OWN_CHOICE)
    return str(_STARTED.get(first.origin) or _("The assistant")) % {"label": first.label}
