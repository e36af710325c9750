"""Look for false statements on cards: every kind that the product opens, from every origin, with hostile content.

The oracle is this file's own. It makes the tools, records, calls and texts, and writes down by hand what a card about
them has to say: each value, where it comes from, who asked, how it runs and how risky it is. Records are read by SQL.
Beside that, on every card: no number that stands neither in the signed payload nor in what this file put there, no
character that hides or turns text round, and no element or link that the product's pages do not have.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from attack.report import Figure

# What stands in a text, and what a person has to read of it.
SAMPLES = {
    "plain": ("see the note of Monday", "see the note of Monday"),
    "markup": (
        "</dd></dl></article><script>alert(1)</script><b onclick=alert(1)>Pay</b>",
        "</dd></dl></article><script>alert(1)</script><b onclick=alert(1)>Pay</b>",
    ),
    "hidden": ("pay 4\u200b00 \u202e00.4$ p\u0430y", "pay 4⟨U+200B⟩00 ⟨U+202E⟩00.4$ p\u0430⟨U+0430⟩y"),
    "right to left": ("أرسل المال إلى علي", "أرسل المال إلى علي"),
    "long": ("long words " * 35 + "THE-END", "long words " * 35 + "THE-END"),
    "template": ("{{ card.payload }}{% now 'Y' %}", "{{ card.payload }}{% now 'Y' %}"),
}
# What turns text round, takes no room, or moves the cursor.
_HIDING = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\u00ad\u034f\u3164\u0430]")
_TAGS = frozenset(
    {"a", "article", "b", "bdi", "blockquote", "br", "button", "code", "dd", "del", "details", "div", "dl", "dt"}
    | {
        "fieldset",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "header",
        "input",
        "ins",
        "kbd",
        "label",
        "legend",
        "li",
        "main",
        "p",
        "path",
    }
    | {"pre", "section", "span", "strong", "summary", "svg", "template", "textarea", "time", "ul", "use"}
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# On the page: no part of a name or of a hash.
_ALONE = re.compile(r"(?<![\w-])\d+(?:[.,:]\d+)*(?![\w-])")
_RISKS = ("Low risk", "Medium risk", "High risk", "Irreversible")
_OWN = "By the script of test-desk in a sandbox without network"
_ASKED = {
    "visitor": "A customer, in a message to the assistant",
    "records": "One of your goals, based on your records",
    "outside tool": "One of your goals, based on an external tool: ",
    "read": "The assistant, after reading ",
    "choice": "The assistant, in a conversation with a customer. Not every value came from the customer.",
    "staff": "A colleague",
}
_OFFERED = "Offered automatically after the work was done"
_NOTE = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}
_ARGS = {
    "type": "object",
    "properties": {
        "order": {"type": "string"},
        "note": {"type": "number", "minimum": 0},
        "words": {"type": "string", "maxLength": 2000},
    },
    "required": ["order", "note"],
}


@dataclass(frozen=True)
class Truth:
    """What a card has to say and must not say; `numbers`: those it may show beside those of its payload; `asked`: who
    asked for it, empty where the card says nothing of that; `lines`: value, and where it comes from."""

    risk: str
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    numbers: str = ""
    asked: str = ""
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One card, its kind and origin, and the truth about it; no card where the contract refused it."""

    kind: str
    origin: str
    card: Any
    truth: Truth


def run(short: bool) -> list[Figure]:
    """The tools are this file's own and ship with no release, which is another attack's subject."""
    from django.conf import settings
    from django.test import override_settings

    hosts = [*settings.ALLOWED_HOSTS, "testserver"]
    with override_settings(BUNDLED_SKILLS_CHECKED=False, ALLOWED_HOSTS=hosts), tempfile.TemporaryDirectory() as folder:
        return _figures(Stage(Path(folder), short))


def _figures(stage: Stage) -> list[Figure]:
    tried, false, kinds = Counter[str](), list[str](), set[str]()
    for attempt in stage.attempts():
        name = f"{attempt.kind} from {attempt.origin}"
        kinds.add(attempt.kind)
        for sentence, is_false in _judge(stage.page(attempt.card), attempt):
            tried[name] += 1
            false += [f"{name}: {sentence}"] if is_false else []
    missing = sorted(stage.every_kind() - kinds)
    result = "; ".join([str(len(false)), *false[:6], *(f"not tried: {kind}" for kind in missing)])
    what = f"false sentences on cards of {len(kinds)} kinds, {len(tried)} kinds and origins"
    return [Figure(what, sum(tried.values()), result, "0 of each kind and origin", not false and not missing)]


# --- the oracle


class _Reader(HTMLParser):
    """Text as a person reads it, and what a browser would make of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.counted: list[str] = []
        self.strange: list[str] = []
        self.skipped = self.timed = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text.append(" ")
        if tag not in _TAGS:
            self.strange.append(f"element {tag}")
        for name, value in attrs:
            if name.startswith("on") or (name in ("href", "src", "action") and not _is_ours(str(value))):
                self.strange.append(f"{tag} {name}={value}")
        self.skipped += tag == "textarea"
        self.timed += tag in ("time", "pre")

    def handle_endtag(self, tag: str) -> None:
        self.text.append(" ")
        self.skipped -= tag == "textarea"
        self.timed -= tag in ("time", "pre")

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.text.append(data)
        if not self.skipped and not self.timed:
            self.counted.append(f" {data}")


def _is_ours(address: str) -> bool:
    return address.startswith(("/console/", "/static/", "#"))


@dataclass(frozen=True)
class Read:
    """A card as it was read: its text, that without times and the raw payload, and what does not belong on it."""

    text: str
    counted: str
    strange: tuple[str, ...]
    origins: dict[str, str]


def _read(page: str) -> Read:
    start = page.index('<article class="card"')
    article = page[start : page.index("</article>", start)]
    reader = _Reader()
    reader.feed(article)
    found = re.findall(r'<span class="value">(.*?)</span><span class="from">(.*?)</span></dd>', article, re.S)
    origins = {_shown(one): _shown(two) for one, two in found}
    return Read(_plain("".join(reader.text)), _plain("".join(reader.counted)), tuple(reader.strange), origins)


def _shown(markup: str) -> str:
    reader = _Reader()
    reader.feed(markup)
    return _plain("".join(reader.text))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _judge(page: str, attempt: Attempt) -> Iterator[tuple[str, bool]]:
    """Each sentence with whether it is false."""
    read, truth = _read(page), attempt.truth
    for sentence in truth.says:
        yield f"does not say {sentence[-60:]!r}", _plain(sentence) not in read.text
    for sentence in truth.never:
        yield f"says {sentence[:60]!r}", _plain(sentence) in read.counted
    for risk in _RISKS:
        yield f"risk {risk}", read.text.startswith(risk) is not (risk == truth.risk)
    if truth.asked:
        yield f"asked for by: not {truth.asked!r}", f"Requested by {truth.asked}" not in read.text
    for name, sentence in _ASKED.items():
        if not truth.asked or not truth.asked.startswith(sentence):
            yield f"asked for by {name}", f"Requested by {sentence} " in f"{read.text} "
    for value, origin in truth.lines:
        yield (
            f"origin of {value[:20]!r}: {read.origins.get(_plain(value))!r}",
            read.origins.get(_plain(value)) != origin,
        )
    yield f"strange {read.strange[:2]}", bool(read.strange)
    # The Cyrillic letter is on the page with its code point behind it.
    unwritten = _HIDING.search(read.text.replace("\u0430⟨U+0430⟩", ""))
    yield f"hides {unwritten and hex(ord(unwritten[0]))}", unwritten is not None
    foreign = sorted(_numbers(read.counted, attempt.card) - _known_numbers(attempt))
    yield f"numbers of nowhere {foreign[:5]}", bool(foreign)


def _numbers(text: str, card: Any) -> set[str]:
    """Every number but those of times and of hashes, which are no subject of a sentence."""
    said = text.replace(card.payload_hash, " ").replace(card.payload_hash[:8], " ")
    return {
        found.strip(".,:")
        for found in _ALONE.findall(re.sub(r"Visitor [0-9A-F]{4}|U\+[0-9A-F]{4}|[0-9a-f]{12}", " ", said))
    }


def _known_numbers(attempt: Attempt) -> set[str]:
    signed = re.sub("[\u200b\u202e]", " ", json.dumps(attempt.card.payload, ensure_ascii=False))
    known = set(_NUMBER.findall(f"{signed} {attempt.truth.numbers} {SAMPLES['markup'][0]}"))
    return known | {number.strip(".,:") for number in known} | {"4", "00", "00.4"} | _percent(signed)


def _percent(signed: str) -> set[str]:
    """Shares are read in hundredths."""
    return {f"{float(found) * 100:.0f}" for found in re.findall(r"\b0\.\d+|\b1\.0\b", signed)}


# --- the stage


@dataclass
class Stage:
    """One company, and a way to open each kind of card from each origin that leads to it."""

    folder: Path
    short: bool
    desks: int = 0
    owners: dict[Any, Any] = field(default_factory=dict)

    def every_kind(self) -> set[str]:
        from apps.approvals.enums import CardKind

        return {kind.value for kind in CardKind}

    def owner(self, tenant_id: Any) -> Any:
        from apps.tenants.models import Tenant
        from tests.factories.tenants import make_member

        if tenant_id not in self.owners:
            self.owners[tenant_id] = make_member(Tenant.objects.get(pk=tenant_id), "owner")
        return self.owners[tenant_id]

    def page(self, card: Any) -> str:
        from django.urls import reverse

        from tests.factories.console import browser

        client = browser(self.owner(card.tenant_id))
        return str(client.get(reverse("console-card", args=[card.pk])).content.decode())

    def samples(self) -> list[tuple[str, str]]:
        return list(SAMPLES.values())

    def attempts(self) -> Iterator[Attempt]:
        for opening in (
            self.plans,
            self.plans_of_other_shapes,
            self.edited_plans,
            self.goal_findings,
            self.results,
            self.standing,
            self.gates,
            self.budgets,
            self.connections,
            self.suggestions,
            self.questions,
            self.skills,
            self.thresholds,
        ):
            yield from opening()

    def desk(self, *, tool: dict[str, Any] | None = None, needs: dict[str, Any] | None = None) -> Any:
        """A company of its own, whose one tool writes a note on an order."""
        from tests.factories.skills import acting_tool, install, make_folder, read_tool, save_record
        from tests.factories.tenants import make_tenant
        from tests.factories.work import NOTE, NOTED, adopt

        self.desks += 1
        tenant = make_tenant()
        tools = [read_tool(), acting_tool(**{"args": _ARGS, "facts": [_NOTE], "decides": ["note"], **(tool or {})})]
        files = {"scripts/act.py": NOTE, "checks/done.py": NOTED}
        install(tenant, make_folder(self.folder / str(self.desks), tools=tools, files=files, requirements=needs or {}))
        save_record(tenant, "orders", "H-1", subject="C-1", total=1, note=uuid4().int % 1000 + 1000)
        return adopt(tenant)

    # --- plans

    def plans(self) -> Iterator[Attempt]:
        """One plan for each origin and content, in a conversation; every argument comes from the same origin."""
        desk = self.desk()
        before = _stored(desk.tenant)
        for origin in ("visitor", "staff", "records", "author", "document", "outside tool", "memory", "model"):
            for number, (sample, shown) in enumerate(self.samples(), start=50):
                card = self._plan(desk, origin, number, sample)
                if card is None:
                    continue
                yield Attempt("plan", origin, card, _truth_of_plan(origin, number, shown, before))
                self._decline(card)

    def _plan(self, desk: Any, origin: str, number: int, words: str) -> Any:
        """The card of one plan; None for characters that hide, which no plan may hold."""
        from apps.work.provenance import Tracer
        from kernel.provenance import Sources
        from llm.calls import PlannedCall

        said = _source(origin, f"H-1 and {number} and: {words}")
        call = PlannedCall("act", {"order": "H-1", "note": number, "words": words})
        started = _source("visitor", "").traced
        tracing = Tracer(Sources(() if origin == "model" else (said,)), started)
        proposal = desk.propose(call, tracing=tracing, always_asks=True, gates=())
        assert (proposal.code == "hidden_characters") is (words == SAMPLES["hidden"][0]), proposal
        return desk.card(desk.item(proposal.work_item_id)) if proposal.work_item_id else None

    def _decline(self, card: Any) -> None:
        """A company has room for ten plans that wait."""
        from apps.approvals.cards.services import decide_card
        from apps.approvals.enums import ApprovalVerdict
        from kernel.tenancy import tenant_scope

        with tenant_scope(card.tenant_id):
            decide_card(card.pk, user=self.owner(card.tenant_id), verdict=ApprovalVerdict.DECLINED)

    def plans_of_other_shapes(self) -> Iterator[Attempt]:
        """How it runs, how risky it was declared, several calls, and a tool that poses as the house."""
        from apps.work.provenance import trace_to
        from tests.factories.work import note

        check = "Verified by 1 independent check"
        network = {"network": ["api.example.com"]}
        reach = "in a sandbox that may reach api.example.com:443"
        posing = [{"label": "Runs", "text": "in a vault"}, {"label": "Account", "text": "yours"}, _NOTE]
        shapes: tuple[tuple[Any, Any, tuple[int, ...], Truth], ...] = (
            ({}, network, (41,), Truth("Medium risk", (reach, "Can be undone Yes", check), ("without network",))),
            ({"reversible": False}, {}, (42,), Truth("High risk", (_OWN, "Can be undone No"), ("Can be undone Yes",))),
            ({"risk": "high"}, {}, (43,), Truth("High risk", (_OWN, "Can be undone Yes"))),
            ({}, {}, (44, 45), Truth("Medium risk", ("1 of 2", "2 of 2", "2 actions", "after: 44", "after: 45"))),
            (
                {"facts": posing},
                {},
                (46,),
                Truth(
                    "Medium risk",
                    (_OWN, "Runs (says the tool) in a vault", "Account (says the tool) yours"),
                    ("Runs in a vault", "Account yours"),
                ),
            ),
        )
        for tool, needs, notes, truth in shapes:
            desk = self.desk(tool=tool, needs=needs)
            for asked_by in ("visitor", "goal", "staff"):
                by = {"visitor": "visitor", "goal": f"goal:{desk.goal_id}", "staff": f"user:{uuid4()}"}[asked_by]
                origin = {"goal": "records"}.get(asked_by, asked_by)
                tracing = trace_to(_source(origin, "").traced)
                proposal = desk.propose(*map(note, notes), requested_by=by, tracing=tracing, always_asks=True, gates=())
                card = desk.card(desk.item(proposal.work_item_id))
                known = f"{_stored(desk.tenant)} 1 2 443"
                yield Attempt(
                    "plan", f"{asked_by}, another shape", card, _with(truth, numbers=known, asked=_ASKED[origin])
                )
                self._decline(card)

    def edited_plans(self) -> Iterator[Attempt]:
        """A colleague changes one value of a plan that a page asked for: that value is theirs, the rest is not."""
        from apps.work.services import edits
        from kernel.tenancy import tenant_scope

        desk = self.desk()
        owner = self.owner(desk.tenant.pk)
        for sample, shown in self.samples():
            card = self._plan(desk, "outside tool", 61, sample)
            if card is None:
                continue
            args = {"order": "H-1", "note": 62, "words": sample}
            with tenant_scope(desk.tenant):
                fresh = edits.edit_plan(card.pk, user=owner, calls=[{"tool": "act", "args": args}])
            lines = (("62", f"Entered by {owner.display_name}"), (shown, "From an external tool: the page"))
            says = (_OWN, f"{_stored(desk.tenant)} after: 62")
            asked = f"{_ASKED['read']}“the page”. The customer may not have asked for this."
            truth = Truth("High risk", says, ("after: 61",), _stored(desk.tenant) + " 1", asked, lines)
            yield Attempt("plan", "staff, edited", fresh, truth)
            self._decline(fresh)

    # --- what goals find

    def goal_findings(self) -> Iterator[Attempt]:
        """A goal found something it is sure of, something it is not, and something no rule fits."""
        from tests.factories.batches import card_of, found, route, undoable_desk
        from tests.factories.tenants import make_tenant

        for sample, shown in self.samples():
            self.desks += 1
            desk = undoable_desk(make_tenant(), self.folder / str(self.desks), args=_ARGS, decides=["note"])
            about = {"actor": sample[:120], "reason": sample}
            words = sample if sample != SAMPLES["hidden"][0] else "see the note"
            told = shown if words == sample else words
            things = [
                found(number, confidence=sure, **about).model_copy(
                    update={"args": {"order": f"H-{number}", "note": 10 + number, "words": words}}
                )
                for number, sure in ((1, 0.95), (2, 0.95), (3, 0.6), (4, 0.2), (5, None))
            ]
            routed = route(desk, *things)
            asked = _ASKED["records"]
            lines = (("11", "From your records"), ("12", "From your records"), (told, "From your records"))
            batch = card_of(desk, routed.batches[0].pk)
            says = ("Change H-1", "Change H-2", "2 actions", "95 % sure", _OWN, shown[:80])
            yield Attempt("batch_review", "records", batch, Truth("Medium risk", says, (), "2 11 12 95", asked, lines))
            draft = card_of(desk, routed.drafts[0].pk)
            says = ("Change H-3", shown, _OWN)
            lines = (("13", "From your records"), (told, "From your records"))
            yield Attempt("draft_review", "records", draft, Truth("Medium risk", says, (), "3 13", asked, lines))
            yield from self._reworded(desk, draft)
            for item, number in ((routed.attention, 4), (routed.teaching, 5)):
                says = (f"Change H-{number}", shown, "Low risk")
                numbers = f"{number} {10 + number}"
                yield Attempt("decision", "records", card_of(desk, item[0].pk), Truth("Low risk", says, (), numbers))

    def _reworded(self, desk: Any, draft: Any) -> Iterator[Attempt]:
        from tests.factories.batches import answer, card_of

        owner = self.owner(desk.tenant.pk)
        answer(desk, draft, owner, "edit", text="We took it down as you wished.")
        lines = (("13", "From your records"), ("We took it down as you wished.", "Entered by a colleague"))
        truth = Truth("Medium risk", (_OWN,), (), "3 13", _ASKED["records"], lines)
        yield Attempt("draft_review", "staff, reworded", card_of(desk, draft.subject_id), truth)

    def results(self) -> Iterator[Attempt]:
        """What was carried out of a batch, of which one part could not be."""
        from apps.approvals.enums import CardKind
        from apps.approvals.models import Card
        from apps.skills.models import Record
        from kernel.tenancy import tenant_scope
        from tests.factories.batches import answer, card_of, carry_out, found, route, undoable_desk
        from tests.factories.tenants import make_tenant

        for whole in (True, False):
            self.desks += 1
            desk = undoable_desk(make_tenant(), self.folder / str(self.desks))
            owner = self.owner(desk.tenant.pk)
            (batch,) = route(desk, found(1), found(2)).batches
            answer(desk, card_of(desk, batch.pk), owner, "approve")
            if not whole:
                with tenant_scope(desk.tenant):
                    Record.objects.filter(key="H-2").update(key="H-none")
            for _ in range(2):
                carry_out(desk)
            with tenant_scope(desk.tenant):
                card = Card.objects.filter(kind=CardKind.POST_EXECUTION).first()
            if card is None:
                raise AssertionError("a batch that was carried out shows no result")
            says, never = (("Done: 2 actions", "Done and verified"), ("of 2",))
            if not whole:
                says, never = (("Done: 1 of 2 actions",), ("Done: 2 actions", "Done and verified"))
            yield Attempt("post_execution", "records", card, Truth("Low risk", says, never, "1 2 0 11 12", _OFFERED))

    def standing(self) -> Iterator[Attempt]:
        from apps.work.models import WorkItem
        from apps.work.services import request_standing_approval
        from kernel.tenancy import tenant_scope

        for tool, risk in (({}, "High risk"), ({"reversible": False}, "Irreversible"), ({"risk": "high"}, "High risk")):
            desk = self.desk(tool=tool)
            for sample, shown in self.samples() if not tool else self.samples()[:1]:
                with tenant_scope(desk.tenant):
                    goal = WorkItem.objects.get(pk=desk.goal_id)
                    card = request_standing_approval(goal, uses=7, days=9, rationale=sample)
                says = ("Let “Look after orders” run act without asking, up to 7 times in 9 days", shown, _OWN)
                yield Attempt("standing", "staff", card, Truth(risk, says, ("Requested by",), "7 9"))
                self._decline(card)

    # --- gates

    def gates(self) -> Iterator[Attempt]:
        """A message of a visitor, an answer of the model, and a call with values of either, held back by a gate."""
        from apps.approvals.cards import pauses
        from apps.approvals.cards.schemas import CardSubject, GateReason
        from apps.approvals.enums import PauseTrigger
        from kernel.tenancy import tenant_scope

        desk = self.desk()
        held = {
            "visitor": (PauseTrigger.INPUT, lambda words: {"message": words}, "What the visitor wrote ", "Low risk"),
            "model": (
                PauseTrigger.OUTPUT,
                lambda words: {"response": words},
                "What the bot would answer ",
                "Medium risk",
            ),
            "model, a call": (
                PauseTrigger.TOOL,
                lambda words: {"tool": "look", "args": {"order": "H-1", "words": words}},
                "look order H-1 words ",
                "Low risk",
            ),
        }
        for origin, (trigger, holds, before, risk) in held.items():
            for sample, shown in self.samples():
                with tenant_scope(desk.tenant):
                    pause = pauses.open_pause(
                        trigger,
                        subject=CardSubject("turn", uuid4(), desk.deployment.pk),
                        gates=[GateReason(name="refund_limit", reason=sample[:300])],
                        holds=holds(sample),
                    )
                    card = pauses.open_pause_card(pause, reversible=trigger != PauseTrigger.OUTPUT)
                says = (f"{before}{shown}", "Gate refund limit")
                yield Attempt("gate", origin, card, Truth(risk, says, ("Requested by",), "1"))

    def budgets(self) -> Iterator[Attempt]:
        """A session that its own limit stopped; its name is a colleague's."""
        from apps.autonomy.services import limit_increases
        from tests.factories.autonomy import make_house
        from tests.factories.tenants import make_tenant

        house = make_house(make_tenant())
        for which in ("markup", "right to left"):
            sample, shown = SAMPLES[which]
            session = house.through(house.task(name=sample, limits={"calls": 2}, route={"kind": "notify"}))
            card = house.do(limit_increases.open_increase_card, session.pk)
            says = (f"Raise the limit of {shown}", "before: 2 after: 4")
            yield Attempt("budget", "staff", card, Truth("Medium risk", says, ("after: 5",), "1"))

    # --- outside accounts

    def connections(self) -> Iterator[Attempt]:
        """A skill's own words about its service, and what its script says of a failure."""
        from apps.connections.services import recovery, requests
        from kernel.tenancy import tenant_scope
        from tests.factories.connections import make_connection

        tenant = self.desk().tenant
        for sample, shown in self.samples():
            told = {"settings": {"server": sample}, "provider": sample[:60], "initial_permissions": ["Mail.Read"]}
            row = make_connection(tenant, status="proposed", permissions_granted=[], **told)
            with tenant_scope(tenant):
                card = requests.open_connection_card(row)
            says = ("Connect Shop mail", "Permissions Mail.Read", f"server {shown}")
            yield Attempt("connection", "outside tool", card, Truth("Medium risk", says, ("Mail.Send",)))
            row = make_connection(tenant)
            with tenant_scope(tenant):
                card = requests.open_escalation_card(row, ["Mail.Send"], sample)
            says = ("before: Mail.Read", "after: Mail.Read, Mail.Send", f"Reason {shown}")
            yield Attempt("permission_escalation", "staff", card, Truth("Medium risk", says))
            row = make_connection(tenant, failure={"failure_type": "rate_limited", "message": sample})
            with tenant_scope(tenant):
                card = recovery.open_failure_card(row)
            yield Attempt("connection_failure", "outside tool", card, Truth("Low risk", ("Shop mail",), (shown[-9:],)))

    def suggestions(self) -> Iterator[Attempt]:
        """A sign-in that ends soon, and a pattern of what sessions saw."""
        from apps.autonomy.models import AutonomySettings
        from apps.connections.services import recovery
        from apps.suggestions.services import suggestions
        from kernel.clock import now
        from kernel.tenancy import tenant_scope
        from tests.factories.connections import make_connection
        from tests.factories.proposals import card_about, make_precedent, make_run, make_task

        desk = self.desk()
        row = make_connection(desk.tenant, refresh_token_expires_at=now() + timedelta(days=3))
        with tenant_scope(desk.tenant):
            card = recovery.open_reconnect_card(row)
            AutonomySettings.objects.create(enabled=True)
        ends = row.refresh_token_expires_at
        says = ("Shop mail", f"{ends:%Y-%m-%d}")
        never = ("by what a goal found", "nothing else was going on")
        numbers = f"{ends:%Y-%m-%d}"
        yield Attempt("suggestion", "records, a sign-in", card, Truth("Low risk", says, never, numbers))
        make_precedent(make_run(make_task(desk.deployment)), summary=SAMPLES["markup"][0])
        with tenant_scope(desk.tenant):
            (found,) = suggestions.suggest_from_rows(desk.deployment.pk)
        truth = Truth("Low risk", (SAMPLES["markup"][1],), ("by what a goal found",), "3")
        yield Attempt("suggestion", "model", card_about(desk.tenant, found.pk), truth)

    def questions(self) -> Iterator[Attempt]:
        """What an unattended session wants to be remembered."""
        from apps.autonomy.services import proposals
        from kernel.tenancy import tenant_scope
        from tests.factories.proposals import make_proposal, make_run, make_task

        desk = self.desk()
        for sample, shown in self.samples():
            task = make_task(desk.deployment)
            proposal = make_proposal(make_run(task), content=sample, title=sample[:100])
            with tenant_scope(desk.tenant):
                card = proposals._open_card(proposal)
            truth = Truth("Low risk", (f"Exact text {shown}", f"The task “{task.name}” proposes it"), (), task.name)
            yield Attempt("decision", "model", card, truth)

    def skills(self) -> Iterator[Attempt]:
        """A version from outside: its author's words about itself."""
        from apps.skills import trials
        from kernel.tenancy import tenant_scope
        from tests.factories.skills import make_folder, propose
        from tests.factories.tenants import make_tenant

        for sample, shown in self.samples():
            self.desks += 1
            tenant = make_tenant()
            folder = make_folder(self.folder / str(self.desks), description=f"Use it when asked: {sample}")
            version = propose(tenant, folder, source="folder")
            with tenant_scope(tenant):
                trials._open_card(version, [])
                version.refresh_from_db()
                from apps.approvals.models import Card

                card = Card.objects.get(pk=version.card_id)
            says = ("Use the skill test-desk", f"Use it when asked: {shown}")
            truth = Truth("Medium risk", says, (), f"1 2 {sample} {json.dumps(card.body)}")
            yield Attempt("skill_install", "outside tool", card, truth)

    def thresholds(self) -> Iterator[Attempt]:
        """Thirty decisions of which three were corrected."""
        from apps.approvals.models import Card
        from apps.suggestions.models import Outcome
        from apps.suggestions.services import calibration
        from kernel.clock import now
        from kernel.tenancy import tenant_scope

        for corrected in (0, 20):
            desk = self.desk()
            with tenant_scope(desk.tenant):
                for place in range(40):
                    Outcome.objects.create(
                        deployment=desk.deployment,
                        family="act",
                        subject_id=uuid4(),
                        kind="declined" if place < corrected else "approved",
                        risk="medium",
                        decided_at=now() - timedelta(minutes=place + 1),
                    )
                (proposal,) = calibration.propose_changes(desk.deployment.pk)
                card = Card.objects.get(subject_id=proposal.pk)
            said = card.payload["changes"]
            moves = tuple(f"now: {one['current_value']} then: {one['proposed_value']}" for one in said)
            counted = (f"{card.payload['sample_size']} decisions", *moves)
            yield Attempt("autonomy_threshold", "records", card, Truth("High risk", counted, (), f"{corrected}"))


def _truth_of_plan(origin: str, number: int, shown: str, before: str) -> Truth:
    """What the card of one plan has to say when every value of it comes from there."""
    asked = {
        "document": f"{_ASKED['read']}“the manual”. The customer may not have asked for this.",
        "outside tool": f"{_ASKED['read']}“the page”. The customer may not have asked for this.",
        "memory": _ASKED["choice"],
        "model": _ASKED["choice"],
    }.get(origin, _ASKED["visitor"])
    said = {
        "visitor": "From the customer's message",
        "staff": "Entered by a colleague",
        "records": "From your records",
        "author": "Set in this chatbot's own rules",
        "document": "From the document “the manual”",
        "outside tool": "From an external tool: the page",
        "memory": "From memory, not said in this conversation",
        "model": "Written by the assistant",
    }[origin]
    is_foreign = origin in ("document", "outside tool", "memory", "model")
    return Truth(
        "High risk" if is_foreign else "Medium risk",
        (_OWN, "Can be undone Yes", "Verified by 1 independent check", f"{before} after: {number}", "Change H-1"),
        ("may reach", "1 of 2", "without asking", "customer asked") if is_foreign else ("may reach", "Check this"),
        f"{before} 1 {number}",
        asked,
        ((str(number), f"Check this {said}" if is_foreign else said), (shown, said)),
    )


def _with(truth: Truth, *, numbers: str, asked: str) -> Truth:
    return Truth(truth.risk, truth.says, truth.never, numbers, asked, truth.lines)


def _source(origin: str, text: str) -> Any:
    """Something the model was shown."""
    from kernel.provenance import Origin, Source, Traced

    made = {
        "visitor": Traced(Origin.VISITOR, "seq:1"),
        "staff": Traced(Origin.STAFF),
        "records": Traced(Origin.RECORDS),
        "author": Traced(Origin.AUTHOR),
        "document": Traced(Origin.DOCUMENT, "doc:1", "the manual"),
        "outside tool": Traced(Origin.TOOL, "call:1", "the page"),
        "memory": Traced(Origin.MEMORY),
        "model": Traced(Origin.MODEL),
    }
    return Source(made[origin], text)


def _stored(tenant: Any) -> str:
    """The note of the order, from the table itself."""
    with psycopg.connect(os.environ["SILAS_TEST_SUPERUSER_DSN"]) as raw:
        rows = raw.execute("SELECT data->>'note' FROM skills_record WHERE tenant_id = %s", [tenant.pk]).fetchall()
    return str(rows[0][0])
