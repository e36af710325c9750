"""How does the product look? `make screenshots` writes docs/screenshots/*.png from the demo, with a web process and a
worker as the tests start them.

A new picture is a line in STATES: its name, where it is, in which looks, as whom, and what is done on the page before.
No test: nothing here says whether it works, and `make test` leaves it out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from apps.approvals.cards.schemas import Fact
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import CardKind, Risk
from apps.approvals.models import Card
from apps.approvals.queries import open_cards
from apps.audit.models import AuditEntry
from apps.autonomy.models import Task
from apps.connections.models import Connection
from apps.gates.models import Gate
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.inbox import handoff
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment, Membership, Tenant
from apps.toolservers.models import ToolServer
from apps.work.models import WorkItem
from kernel.tenancy import in_thread, tenant_scope
from silas_platform import demo
from tests.e2e.conftest import OpenPage
from tests.e2e.console import log_in
from tests.e2e.pictures import in_few_colours
from tests.e2e.scenery import CALLS, DIARY, asked, furnish
from tests.e2e.turns import all_answered
from tests.e2e.widget import Widget, opened
from tests.factories.autonomy import House
from tests.factories.cards import make_kind
from tests.factories.console import make_card
from tests.factories.sessions import make_session, say

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
MOST_BYTES = 150 * 1024
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 375, "height": 812}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": WIDE},
    "dark": {"color_scheme": "dark", "viewport": WIDE},
    "phone": {"color_scheme": "light", "viewport": PHONE, "has_touch": True},
    "phone-dark": {"color_scheme": "dark", "viewport": PHONE, "has_touch": True},
}
QUESTION, CLAIM = "Does my home policy cover a burst pipe?", "What is the status of my claim CL-3071?"
MARIA = "Maria Ortega, 12 March 1984"
MOVE = "Please change the address on my policy HM-20418 to Flat 3, 41 Canal Wharf, Leeds LS11 5PS"
# Three visitors: one asks, one proves who she is and moves house, one wants a person.
TALKS = ((QUESTION,), (CLAIM, MARIA, MOVE), ("Is my cello insured while I travel?", "Talk to a person"))

ADDRESS = {"kind": "plan", "status": "open", "intent__startswith": "Change the postal address"}
MAILBOX = {
    "intent": "Let the bot read the claims mailbox",
    "rationale": "Half of the open claims wait for letters that came by e-mail. It would read them, and answer none.",
    "consequence": {"approve": "Let it read the mailbox", "decline": "It keeps asking for the letters"},
    "affected": "1 mailbox, about 40 letters a day",
    "facts": [
        Fact("Rights", before="none", after="read letters to claims@meridian.example"),
        Fact("Can be undone", text="Yes, at any time"),
    ],
    "details": {
        "checks": [{"name": "no_letter_is_marked_or_moved"}],
        "body": "Ask for the right to read.",
    },
}
DELETION = {
    "intent": "Delete the documents of policy HM-18870",
    "rationale": "The policy ended six years ago, and the law no longer asks you to keep what belongs to it.",
    "consequence": {"approve": "Delete them for good", "decline": "Keep them"},
    "affected": "1 policy, 23 documents",
    "facts": [Fact("Documents", before="23 kept since 2014", after="none"), Fact("Can be undone", text="No")],
    "details": {
        "checks": [{"name": "policy_has_ended"}, {"name": "no_open_claim"}],
        "body": "Delete all 23.",
    },
}


@dataclass(frozen=True)
class Scene:
    """The demo insurance after a morning's work, and the demo shop, where nothing waits."""

    web: str
    tenant: Tenant
    shop: Tenant

    def find(self, model: Any, **which: Any) -> Any:
        with tenant_scope(self.tenant):
            return model.objects.filter(**which).order_by("-created_at").first()

    def member(self, role: str, *, shop: bool = False) -> Any:
        with tenant_scope(self.shop if shop else self.tenant):
            return Membership.objects.select_related("user").filter(role=role).earliest("created_at").user

    def mine(self) -> Any:
        """The conversation that somebody has taken over."""
        return self.find(ChatSession, owner="human")

    def connection(self, name: str) -> str:
        return f"/console/connections/{self.find(Connection, name=name).pk}/"

    def card(self, **which: Any) -> str:
        return f"/console/review/{self.find(Card, **which).pk}/"


@dataclass(frozen=True)
class State:
    """`path`: where it is, or how to find out; `looks`: words of LOOKS; `act`: what is done there first."""

    name: str
    path: str | Callable[[Scene], str]
    looks: str = "light"
    role: str = "owner"
    act: Callable[[Page], Awaitable[Any]] | None = None
    shop: bool = False


async def _confirm(page: Page) -> None:
    await page.keyboard.press("a")
    await expect(page.get_by_role("button", name="Confirm")).to_be_visible()


async def _all_of_it(page: Page) -> None:
    for name in ("Archive all 4", "Confirm"):
        await page.get_by_role("button", name=name).click()
    await expect(page.get_by_role("alert").filter(has_text="not ticked")).to_be_visible()


async def _palette(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.keyboard.type("maria")
    await expect(page.get_by_text("Conversations", exact=True)).to_be_visible()


async def _keys(page: Page) -> None:
    await page.keyboard.press("?")


async def _verify(page: Page) -> None:
    await page.get_by_role("button", name="Verify now").click()
    await expect(page.locator("#verdict")).to_contain_text("Whole")


async def _note(page: Page) -> None:
    await page.keyboard.press("Alt+p")
    await page.keyboard.type("She travels with it every summer; ask for the instrument rider.")


async def _snooze(page: Page) -> None:
    await page.keyboard.press("Alt+m")


async def _previewed(page: Page) -> None:
    if await (narrow := page.get_by_role("link", name="Try it")).is_visible():
        await narrow.click()
    await expect(page.frame_locator("iframe").first.get_by_text("Meridian").first).to_be_visible()


def _proof(scene: Scene) -> str:
    with tenant_scope(scene.tenant):
        return f"/console/activity/{AuditEntry.objects.filter(event='approval_token_issued').latest('seq').seq}/"


STATES = [
    State("review", lambda scene: scene.card(**ADDRESS), "light dark phone phone-dark"),
    State("review-confirm", lambda scene: scene.card(**ADDRESS), "light", act=_confirm),
    State("review-high", lambda scene: scene.card(risk="high", status="open"), "light phone"),
    State("review-irreversible", lambda scene: scene.card(risk="irreversible", status="open"), "dark"),
    State("review-batch", lambda scene: scene.card(kind="batch_review"), "light phone"),
    State("review-batch-told", lambda scene: scene.card(kind="batch_review"), "light", act=_all_of_it),
    State("review-draft", lambda scene: scene.card(kind="draft_review"), "light"),
    State("review-decided", lambda scene: scene.card(kind="gate", status="decided"), "light"),
    State("review-viewer", lambda scene: scene.card(kind="draft_review"), "light", role="viewer"),
    State("review-empty", "/console/review/", "light", shop=True),
    State("palette", "/console/review/", "light dark", act=_palette),
    State("keys", "/console/review/", "light", act=_keys),
    State(
        "inbox",
        lambda scene: f"/console/inbox/{scene.find(ChatSession, customer_name='Maria Ortega').pk}/",
        "light dark phone",
    ),
    State(
        "inbox-note",
        lambda scene: f"/console/inbox/{scene.mine().pk}/?tab=mine",
        "light phone",
        role="agent",
        act=_note,
    ),
    State("inbox-snooze", lambda scene: f"/console/inbox/{scene.mine().pk}/", "light", role="agent", act=_snooze),
    State("activity", "/console/activity/", "light dark phone"),
    State("activity-verified", "/console/activity/", "light", act=_verify),
    State("activity-narrowed", "/console/activity/?show=everything&who=platform", "light"),
    State("away", "/console/activity/away/", "light phone"),
    State("entry", _proof, "light"),
    State("work", "/console/work/", "light"),
    State("work-item", lambda scene: f"/console/work/{scene.find(WorkItem, type='goal').pk}/", "light"),
    State("runs", "/console/runs/", "light"),
    State("task", lambda scene: f"/console/runs/tasks/{scene.find(Task, playbook='unanswered').pk}/", "dark"),
    State("gates", "/console/gates/", "light"),
    State("gate", lambda scene: f"/console/gates/{scene.find(Gate, status='active').pk}/", "light"),
    State("insights", "/console/insights/", "light"),
    State("spending", "/console/spending/?days=30", "light"),
    State("studio", lambda scene: f"/console/studio/{scene.find(Deployment).pk}/", "light dark phone", act=_previewed),
    State("install", lambda scene: f"/console/studio/{scene.find(Deployment).pk}/install/", "light"),
    State("knowledge", "/console/knowledge/", "light"),
    State("skills", "/console/skills/", "light phone"),
    State("skill", "/console/skills/of/meridian-callbacks/", "light"),
    State("skill-import", "/console/skills/of/word-count/", "light dark"),
    State("skill-card", lambda scene: scene.card(kind="skill_install", status="open"), "light"),
    State("connections", "/console/connections/", "light phone"),
    State("connection", lambda scene: scene.connection(CALLS), "light"),
    State("connection-setup", lambda scene: scene.connection(DIARY), "light"),
    State("connection-failed", lambda scene: scene.card(kind="connection_failure", status="open"), "light"),
    State("tool-servers", "/console/tool-servers/", "light"),
    State("tool-server", lambda scene: f"/console/tool-servers/{scene.find(ToolServer).pk}/", "light"),
    State("members", "/console/members/", "light"),
    State("account", "/console/account/", "light dark"),
    State("api-keys", "/console/api-keys/", "light"),
    State("alerts", "/console/account/alerts/", "light"),
    State("safety", "/console/safety/", "light"),
    State("offline", "/console/offline/", "phone"),
]


@pytest.fixture(scope="session")
def demo_tenants(migrated: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        demo.seed(progress=lambda _: None)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(web: str, demo_tenants: None, django_db_blocker: Any) -> Scene:
    with django_db_blocker.unblock():
        tenant, shop = await in_thread(_tenants)
        made = Scene(web, tenant, shop)
        for lines in TALKS:
            session = await in_thread(_begun, made)
            for turns, line in enumerate(lines, 1):
                await in_thread(say, session, line)
                await all_answered(session, turns=turns)
        await in_thread(_happened, made)
        await asked(tenant)
        return made


def _tenants() -> tuple[Tenant, Tenant]:
    return Tenant.objects.get(slug="meridian-insurance"), Tenant.objects.get(slug="harbor-retail")


def _begun(scene: Scene) -> ChatSession:
    return make_session(scene.find(Deployment))


def _happened(scene: Scene) -> None:
    """A decision, cards of the other rungs, a hand that was lent, and a task's nightly run."""
    tenant, owner, deployment = scene.tenant, scene.member("owner"), scene.find(Deployment)
    about: dict[str, Any] = {"deployment_id": deployment.pk}
    decided = make_kind(tenant, CardKind.GATE, **about)
    with tenant_scope(tenant):
        decide_card(decided.pk, user=owner, verdict="approved")  # type: ignore[arg-type]
        waits = ChatSession.objects.filter(wanted_person_at__isnull=False).order_by("-created_at").first()
        if waits is not None:
            handoff.take_over(waits.pk, scene.member("agent"))
            handoff.reply(waits.pk, scene.member("agent"), "Hello, this is Grace. I look it up for you.")
    make_kind(tenant, CardKind.BATCH_REVIEW, subject_kind="batch", **about)
    about["subject_kind"] = "work_item"
    make_kind(tenant, CardKind.DRAFT_REVIEW, **about)
    make_card(tenant, risk=Risk.HIGH, **about, **MAILBOX)
    make_card(tenant, risk=Risk.IRREVERSIBLE, reversible=False, **about, **DELETION)
    passwords = {"name": "no_passwords", "type": "regex", "config": {"pattern": r"\A(?!.*password)"}}
    with tenant_scope(tenant):
        save_gate(GateSpec(on="every_user_message", on_block="report", **passwords))
    with tenant_scope(scene.shop):
        for card in open_cards():
            decide_card(card.pk, user=scene.member("owner", shop=True), verdict="declined")  # type: ignore[arg-type]
    house = House(tenant, owner=owner, deployment=deployment)
    house.through(scene.find(Task, playbook="unanswered"))
    furnish(tenant, owner)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
async def test_state(scene: Scene, open_page: OpenPage, database: None, state: State) -> None:
    path = await in_thread(state.path, scene) if callable(state.path) else state.path
    user = await in_thread(lambda: scene.member(state.role, shop=state.shop))
    for look in state.looks.split():
        if state.name == "offline":
            page = await open_page(f"{scene.web}{path}", **LOOKS[look], reduced_motion="reduce")
        else:
            page = await log_in(open_page, scene.web, user, path, **LOOKS[look], reduced_motion="reduce")
        if state.act:
            await state.act(page)
        await _take(page, f"{state.name}-{look}")
    open_page.errors.clear()  # a refusal that is shown is reported by the browser


async def test_administration(scene: Scene, open_page: OpenPage, database: None) -> None:
    owner = await in_thread(lambda: scene.member("owner"))
    page = await log_in(open_page, scene.web, owner, "/console/activity/", **LOOKS["light"])
    await page.goto(f"{scene.web}/admin/tenants/deployment/")
    await _take(page, "admin-light")


async def test_login(web: str, open_page: OpenPage, database: None) -> None:
    await _take(await open_page(f"{web}/console/login/", **LOOKS["light"]), "login-light")


async def test_widget(scene: Scene, worker: None, open_page: OpenPage, database: None) -> None:
    for look in ("light", "dark", "phone"):
        widget = await opened(await open_page(f"{scene.web}/demo/meridian-insurance/", **LOOKS[look]))
        await widget.say(QUESTION)
        await expect(widget.bot.last).to_contain_text("£50,000")
        await _take(widget.page, f"widget-{look}")
        if look == "light":
            await _ask_for_change(widget)


async def _ask_for_change(widget: Widget) -> None:
    """She proves who she is and asks for what a person has to decide: the picture of the README."""
    for said, answered in ((CLAIM, "who you are"), (MARIA, "assessed"), (MOVE.replace("Flat 3", "Flat 5"), "prepared")):
        await widget.say(said)
        await expect(widget.bot.last).to_contain_text(answered)
    await expect(widget.work).to_be_visible()
    await _take(widget.page, "widget-asked-light")


async def _take(page: Page, name: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    await page.evaluate("document.fonts.ready.then(() => true)")
    picture = in_few_colours(await page.screenshot(animations="disabled", caret="hide"))
    assert len(picture) <= MOST_BYTES, f"{name}.png has {len(picture) // 1024} KiB"
    (FOLDER / f"{name}.png").write_bytes(picture)
