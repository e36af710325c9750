"""Pictures of the product: `make screenshots` takes them from the demo, with a web process and a worker as the tests
start them.

A picture for the documents is a line in STATES (docs/screenshots): its name, where it is, in which looks, as whom, and
what is done on the page before. STRAINED is for the eyes of whoever changed a page (var/screenshots, not committed):
every page on a laptop, in German and at 200 %, with long names, open menus and 1,000 rows, and the widget in Arabic.
The console has no language that is written from right to left.
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
STRAIN_FOLDER = FOLDER.parents[1] / "var" / "screenshots"
MOST_BYTES = 150 * 1024
LONG_NAME = "Maria-Magdalena Ortega de la Fuente y Castellanos-Wittgenstein of Upper Slaughter"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 375, "height": 812}
LAPTOP = {"width": 1366, "height": 768}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": WIDE},
    "dark": {"color_scheme": "dark", "viewport": WIDE},
    "phone": {"color_scheme": "light", "viewport": PHONE, "has_touch": True},
    "phone-dark": {"color_scheme": "dark", "viewport": PHONE, "has_touch": True},
    "laptop": {"color_scheme": "light", "viewport": LAPTOP},
    "german": {"color_scheme": "light", "viewport": LAPTOP, "locale": "de-DE"},
    "arabic": {"color_scheme": "light", "viewport": LAPTOP, "locale": "ar"},
    "zoom": {"color_scheme": "light", "viewport": {"width": 683, "height": 384}, "device_scale_factor": 2},
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


async def _account_menu(page: Page) -> None:
    await page.locator("#account > summary").click()


async def _filters(page: Page) -> None:
    await page.keyboard.press("Alt+o")


async def _scrolled(page: Page) -> None:
    await page.locator(".stack, .rows, main").first.hover()
    await page.mouse.wheel(0, 1_500)


async def _canned(page: Page) -> None:
    await page.keyboard.press("Alt+l")
    await page.keyboard.type("/")


def _named_long(scene: Scene) -> str:
    return f"/console/inbox/{scene.find(ChatSession, customer_name=LONG_NAME).pk}/"


EVERYWHERE = "laptop german zoom"
STRAINED = [
    *(
        State(state.name, state.path, EVERYWHERE, state.role, None, state.shop)
        for state in STATES
        if state.act is None and state.name != "offline"
    ),
    State("account-menu", "/console/review/", "laptop phone zoom german", act=_account_menu),
    State("inbox-filters", "/console/inbox/", "laptop phone zoom", act=_filters),
    State("inbox-1000", "/console/inbox/?tab=all", "laptop phone dark"),
    State("inbox-1000-scrolled", "/console/inbox/?tab=all", "laptop", act=_scrolled),
    State("inbox-long-name", _named_long, "laptop phone zoom"),
    State("inbox-canned", lambda scene: f"/console/inbox/{scene.mine().pk}/", "laptop phone", "agent", _canned),
    State("review-scrolled", "/console/review/", "laptop phone", act=_scrolled),
    State("contacts", "/console/contacts/", "laptop phone"),
    State("settings", "/console/settings/", "laptop phone zoom german"),
]


@pytest.fixture(scope="session")
def demo_tenants(migrated: None, django_db_blocker: Any) -> None:
    with django_db_blocker.unblock():
        demo.seed(progress=lambda _: None)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(web: str, worker: None, demo_tenants: None, django_db_blocker: Any) -> Scene:
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
    for said, answered in (
        (CLAIM, "verify your identity"),
        (MARIA, "assessed"),
        (MOVE.replace("Flat 3", "Flat 5"), "prepared"),
    ):
        await widget.say(said)
        await expect(widget.bot.last).to_contain_text(answered)
    await expect(widget.work).to_be_visible()
    await _take(widget.page, "widget-asked-light")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(scene: Scene, django_db_blocker: Any) -> Scene:
    """The same company with 1,000 more conversations, 60 more cards, and a customer with a long name."""
    with django_db_blocker.unblock():
        await in_thread(_crowd, scene)
    return scene


def _crowd(scene: Scene) -> None:
    deployment = scene.find(Deployment)
    for number in range(1_000):
        session = make_session(deployment)
        if number % 50 == 0:
            say(session, f"Where is my refund for the order {40_000 + number}? It should have come a week ago.")
    with tenant_scope(scene.tenant):
        ChatSession.objects.filter(pk=session.pk).update(customer_name=LONG_NAME)
    for number in range(60):
        intent = f"Change the postal address on policy HM-{30_000 + number}"
        make_card(scene.tenant, intent=intent, deployment_id=deployment.pk)


@pytest.mark.parametrize("state", STRAINED, ids=lambda state: f"{state.name}-strained")
async def test_strained(crowded: Scene, open_page: OpenPage, database: None, state: State) -> None:
    """After all others: what it makes would stand in their pictures."""
    path = await in_thread(state.path, crowded) if callable(state.path) else state.path
    user = await in_thread(lambda: crowded.member(state.role, shop=state.shop))
    for look in state.looks.split():
        page = await log_in(open_page, crowded.web, user, path, **LOOKS[look], reduced_motion="reduce")
        if state.act:
            await state.act(page)
        STRAIN_FOLDER.mkdir(parents=True, exist_ok=True)
        await page.evaluate("document.fonts.ready.then(() => true)")
        await page.screenshot(path=STRAIN_FOLDER / f"{state.name}-{look}.png", animations="disabled", caret="hide")
    open_page.errors.clear()


async def test_strained_widget(scene: Scene, worker: None, open_page: OpenPage, database: None) -> None:
    for look in ("laptop", "german", "arabic", "zoom"):
        widget = await opened(await open_page(f"{scene.web}/demo/meridian-insurance/", **LOOKS[look]))
        await widget.say(QUESTION)
        await expect(widget.bot.last).to_contain_text("50,000")
        STRAIN_FOLDER.mkdir(parents=True, exist_ok=True)
        await widget.page.screenshot(path=STRAIN_FOLDER / f"widget-{look}.png", animations="disabled", caret="hide")


async def _take(page: Page, name: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    await page.evaluate("document.fonts.ready.then(() => true)")
    picture = in_few_colours(await page.screenshot(animations="disabled", caret="hide"))
    assert len(picture) <= MOST_BYTES, f"{name}.png has {len(picture) // 1024} KiB"
    (FOLDER / f"{name}.png").write_bytes(picture)
