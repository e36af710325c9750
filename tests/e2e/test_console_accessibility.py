"""Can everybody use the console? axe finds nothing on any page, in both themes, on a wide screen and a phone.

With SILAS_SHOTS=<folder> every page is also written there, in both themes at both widths.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, StorageState, ViewportSize

from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import ApprovalScope, CardKind, Risk, Withdrawal
from apps.approvals.models import ApprovalPolicy, Look, PushSubscription
from apps.approvals.queries import face_hash
from apps.approvals.tokens.services import revoke_token
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.services import record
from apps.autonomy import services as autonomy
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import AutonomousSession, Notification, Trigger
from apps.bus import services as bus
from apps.gates import services as gates
from apps.sessions.models import ChronicleEntry
from apps.tenants import invitations, second_factors
from apps.tenants.enums import Role
from apps.tenants.services import create_api_key, revoke_api_key
from apps.work.models import GoalCycle, WorkItem
from kernel.clock import now
from kernel.tenancy import in_thread, tenant_scope
from tests.approvals.test_passkeys import register
from tests.console.test_insights_conversations import furnished
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.e2e.turns import all_answered
from tests.factories.accounts import add_passkey
from tests.factories.approvals import make_plan, make_token
from tests.factories.autonomy import make_house
from tests.factories.bus import make_message
from tests.factories.cards import make_kind
from tests.factories.console import make_card
from tests.factories.knowledge import ingest_texts
from tests.factories.memories import conversation, remember
from tests.factories.passkeys import SoftPasskey
from tests.factories.safety import DANGER, TO_CONFIRM, started
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member
from tests.factories.work import Desk, make_desk
from tests.gates.test_rows import spec as gate_spec

SHOTS = os.environ.get("SILAS_SHOTS", "")
WIDE, PHONE = ViewportSize(width=1440, height=900), ViewportSize(width=320, height=700)
DRESSES: list[tuple[Literal["light", "dark"], ViewportSize]] = [("light", WIDE), ("dark", PHONE)] + (
    [("dark", WIDE), ("light", PHONE)] if SHOTS else []
)


@dataclass(frozen=True)
class House:
    """A tenant in which something of everything has happened."""

    tenant: Any
    owner: Any
    desk: Desk


class SamePage:
    """One page for all that is only looked at here: a browser profile for each would cost more than the looking.

    Between two visits it waits `nowhere`, at an address of the same site: for an empty page Chromium would start a
    process, and another for what is opened then.
    """

    def __init__(self, page: Page, nowhere: str) -> None:
        self.page, self.nowhere = page, nowhere
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    async def __call__(self, address: str, *, storage_state: StorageState | None = None) -> Page:
        """As whoever these cookies make it, and nobody's else; undressed."""
        await self.leave()
        await self.page.context.add_cookies((storage_state or {}).get("cookies", []))
        await self.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        await self.page.set_viewport_size(WIDE)
        await self.page.goto(address)
        return self.page

    async def leave(self) -> None:
        await self.page.goto(self.nowhere)
        await self.page.context.clear_cookies()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def same_page(browser: Browser, web: str) -> AsyncIterator[SamePage]:
    context = await browser.new_context(service_workers="block")
    yield SamePage(await context.new_page(), f"{web}/health")
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(same_page: SamePage) -> AsyncIterator[SamePage]:
    same_page.errors.clear()
    yield same_page
    await same_page.leave()
    assert same_page.errors == []


@pytest.fixture
def house(tenant: Any, owner: Any, tmp_path: Path) -> House:
    return House(tenant, owner, make_desk(tenant, tmp_path))


async def _found(page: Page, name: str) -> list[str]:
    """What is wrong with the page in each dress: the rule and where, and whether it scrolls sideways."""
    wrong = []
    for theme, size in DRESSES:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await page.set_viewport_size(size)
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/{name}-{theme}-{size['width']}.png", full_page=True)
        for each in await violations(page):
            wrong += [f"{theme} {size['width']}: {each['id']} at {node['target']}" for node in each["nodes"]]
        if await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wrong.append(f"{theme} {size['width']}: scrolls sideways")
    return wrong


def _work(house: House) -> str:
    house.desk.waiting(60)
    house.desk.approved(house.owner, 50)
    house.desk.allow_standing(house.owner)
    return "/console/work/"


def _item(house: House) -> str:
    item = house.desk.approved(house.owner)
    house.desk.work()
    return f"/console/work/{item.pk}/"


def _waiting_item(house: House) -> str:
    return f"/console/work/{house.desk.waiting().pk}/"


def _goal(house: House) -> str:
    with tenant_scope(house.tenant):
        goal = WorkItem.objects.get(pk=house.desk.goal_id)
        for outcome in ("healthy", "asked", "spawned"):
            GoalCycle.objects.create(goal=goal, due_at=now(), outcome=outcome, ran_at=now(), results=[{}])
    return f"/console/work/{house.desk.goal_id}/"


def _queues(house: House) -> str:
    with tenant_scope(house.tenant):
        dead, held = (make_message(house.tenant, scope_id=name, queue="runtime") for name in ("dead", "held"))
        for message in (dead, held):
            lease = bus.lease("runtime", consumer="worker:desk:1", scope_id=message.scope_id)
            if message is dead and lease:
                bus.dead_letter(lease, "tool_failure")
    return "/console/queues/"


def _safety(house: House) -> str:
    for name, hint in (("clerk", DANGER), ("runner", TO_CONFIRM)):
        started(house.tenant, name).report(hint)
    return "/console/safety/"


def _gates(house: House) -> str:
    with tenant_scope(house.tenant):
        gates.save_gate(gate_spec("jailbreak_in"))
        gates.save_gate(gate_spec("cards_out", on="every_agent_response"), deployment_id=house.desk.deployment.pk)
        gates.write_version(gate_spec("medical_out", on="every_agent_response"))
        gates.retire(gates.save_gate(gate_spec("old_words")).pk)
    return "/console/gates/"


def _gate(house: House) -> str:
    deployment = house.desk.deployment
    with tenant_scope(house.tenant):
        gate = gates.save_gate(gate_spec("words"), deployment_id=deployment.pk, note="The first")
        gates.save_gate(gate_spec("words", on_block="polite_redirect"), deployment_id=deployment.pk)
        draft = gate_spec("words", config={"pattern": r"\A(?!.*refund)", "ignore_case": True})
        gates.write_version(draft, deployment_id=deployment.pk, note="Refunds are made by people")
    return f"/console/gates/{gate.pk}/"


def _insights(house: House) -> str:
    for number in range(6):
        card = make_kind(house.tenant, CardKind.GATE)
        with tenant_scope(house.tenant):
            Look.objects.create(card=card, user=house.owner, first_at=now() - timedelta(seconds=4 * number))
            answer_card(card.pk, user=house.owner, choice="decline" if number == 3 else "approve", face=face_hash(card))
    furnished(house.desk.deployment, house.owner)
    return "/console/insights/"


def _alerts(house: House) -> str:
    with tenant_scope(house.tenant):
        fields = {"endpoint": "https://push.example.com/1", "endpoint_hash": "1", "p256dh": "p", "auth": "a"}
        PushSubscription.objects.create(user=house.owner, browser="Firefox, Linux", created_at=now(), **fields)
    return "/console/account/alerts/"


def _keys(house: House) -> str:
    make_token(house.tenant, house.owner, make_plan())
    register(house.tenant, house.owner, SoftPasskey())
    return "/console/account/keys/"


def _standing(house: House) -> str:
    goal = make_plan(type="goal", failure_context="Fix $failed_checks")
    token = make_token(house.tenant, house.owner, goal, scope=ApprovalScope.STANDING, max_executions=20)
    return f"/console/review/{token.decision.card_id}/"


def _taken_back(house: House) -> str:
    token = make_token(house.tenant, house.owner, make_plan())
    with tenant_scope(house.tenant):
        revoke_token(token, user=house.owner, reason="The customer called again.")
    return f"/console/review/{token.decision.card_id}/"


def _withdrawn(house: House) -> str:
    card = make_card(house.tenant)
    with tenant_scope(house.tenant):
        withdraw_card(card.pk, reason=Withdrawal.REQUESTER)
    return f"/console/review/{card.pk}/"


def _quorum(house: House) -> str:
    with tenant_scope(house.tenant):
        ApprovalPolicy.objects.create(people=2)
    cards = [make_card(house.tenant, risk=Risk.HIGH) for _ in range(6)]
    return f"/console/review/{cards[0].pk}/"


def _edit(house: House) -> str:
    return f"/console/review/{house.desk.card(house.desk.waiting()).pk}/edit/"


def _conversation(house: House) -> str:
    session = make_session(house.desk.deployment)
    say(session, "Where is my order H-1?")
    remember(house.tenant, conversation(session.pk), "They ordered a lamp.")
    make_card(house.tenant, session_id=session.pk)
    return f"/console/inbox/{session.pk}/"


def _seen(house: House) -> str:
    """A turn with a document, something left out, and its tools; then its first words are deleted."""
    with TemporaryDirectory() as folder:
        ingest_texts(house.tenant, Path(folder), returns="# Returns\n\nYou can send an order back within 30 days.")
    session = make_session(house.desk.deployment)
    for line in ("Hello there", "thanks", "Can I send my order back within 30 days?"):
        say(session, line)
    asyncio.run(all_answered(session, turns=3))
    with tenant_scope(house.tenant):
        ChronicleEntry.objects.filter(session_id=session.pk, seq=1).delete()
    return f"/console/inbox/{session.pk}/turn/3/"


def _entry(house: House) -> str:
    make_card(house.tenant)
    with tenant_scope(house.tenant):
        return f"/console/activity/{AuditEntry.objects.latest('seq').seq}/"


def _proved(house: House) -> str:
    house.desk.approved(house.owner)
    house.desk.work()
    with tenant_scope(house.tenant):
        return f"/console/activity/{AuditEntry.objects.filter(event='work_moved').latest('seq').seq}/"


def _away(house: House) -> str:
    """Something was done, something was refused, and somebody waits."""
    _proved(house)
    make_card(house.tenant, risk=Risk.HIGH)
    session = make_session(house.desk.deployment)
    say(session, "Where is my order H-1?")
    with tenant_scope(house.tenant):
        for event in (AuditEvent.PERSON_WANTED, AuditEvent.GATE_BLOCKED, AuditEvent.TURN_COMPLETED):
            record(event, subject=f"session:{session.pk}", data={"gate": "words"})
    return "/console/activity/away/"


def _runs(house: House) -> str:
    """One that ended well, one that was stopped, one in line, and a task that failed too often."""
    runs = make_house(house.tenant)
    watched = runs.task(name="Nightly look at what could not be answered", playbook="unanswered", prompt="")
    runs.trigger(watched, TriggerKind.CRON, schedule="0 2 * * *")
    runs.ask("Do you sell gift wrapping for parrots?", times=3)
    runs.through(watched)
    stopped = runs.run_now(runs.task(name="Compare the price lists"))
    runs.do(autonomy.halt_session, stopped.pk, user=house.owner)
    runs.run_now(runs.task(name="Look for what changed in returns, refunds and the exchange of opened parcels"))
    aside = runs.task(name="Read the supplier's letters")
    runs.change(aside, quarantined_at=now(), quarantine_reason="worker_lost")
    return "/console/runs/"


def _run(house: House, *, over: bool = True) -> str:
    _runs(house)
    with tenant_scope(house.tenant):
        rows = AutonomousSession.objects.filter(ended_at__isnull=not over)
        return f"/console/runs/{rows.order_by('queued_at').values_list('pk', flat=True)[0]}/"


def _task(house: House) -> str:
    _runs(house)
    with tenant_scope(house.tenant):
        return f"/console/runs/tasks/{Trigger.objects.values_list('task_id', flat=True)[0]}/"


def _outside(house: House) -> str:
    runs = make_house(house.tenant)
    runs.do(autonomy.save_webhook, "https://hooks.example.com/silas", user=house.owner, events=["task.failed"])
    runs.do(autonomy.save_webhook, "https://desk.example.org/in", user=house.owner)
    runs.run_now(runs.task())
    return "/console/runs/settings/"


def _notices(house: House) -> str:
    runs = make_house(house.tenant)
    session = runs.through(runs.task(name="Nightly look", route={"kind": "notify"}))
    with tenant_scope(house.tenant):
        Notification.objects.create(user=house.owner, session=session, root=session, counts={"findings": 2})
    return "/console/notices/"


def _account(house: House) -> str:
    """Everything that an account can have, and an app that is being set up."""
    add_passkey(house.owner, SoftPasskey())
    second_factors.begin_totp(house.owner)
    return "/console/account/"


def _members(house: House) -> str:
    make_member(house.tenant, "viewer")
    with tenant_scope(house.tenant):
        invitations.invite(
            "somebody.with.a.long.name@a-company-with-a-name.example",
            role=Role.AGENT,
            by=house.owner,
            actor=house.owner.actor,
        )
    return "/console/members/"


def _api_keys(house: House) -> str:
    with tenant_scope(house.tenant):
        create_api_key("Importer")
        revoke_api_key(create_api_key("The importer of before").row)
    return "/console/api-keys/"


def _at(path: str) -> Callable[[House], str]:
    return lambda house: path


PAGES: dict[str, Callable[[House], str]] = {
    "work": _work,
    "work-empty": _at("/console/work/"),
    "item": _item,
    "item-waiting": _waiting_item,
    "goal": _goal,
    "queues": _queues,
    "queues-empty": _at("/console/queues/"),
    "safety": _safety,
    "safety-empty": _at("/console/safety/"),
    "safety-policy": _at("/console/safety/policy/"),
    "gates": _gates,
    "gates-empty": _at("/console/gates/"),
    "gate": _gate,
    "gate-edit": lambda house: f"{_gate(house)}edit/",
    "gate-new-pattern": _at("/console/gates/new/pattern/"),
    "gate-compare": lambda house: f"{_gate(house)}compare/?before=1",
    "insights": _insights,
    "insights-empty": _at("/console/insights/"),
    "alerts": _alerts,
    "keys": _keys,
    "keys-empty": _at("/console/account/keys/"),
    "account": _account,
    "members": _members,
    "member-logins": _at("/console/members/login/"),
    "access-levels": _at("/console/settings/access-levels/"),
    "access-level-new": _at("/console/settings/access-levels/new/"),
    "approval-policies": _at("/console/settings/approval-policies/"),
    "approval-policy-new": _at("/console/settings/approval-policies/new/"),
    "spending-policy": _at("/console/spending/policy/"),
    "card-timings": _at("/console/settings/card-timings/"),
    "api-keys": _api_keys,
    "review-empty": _at("/console/review/"),
    "standing-decided": _standing,
    "taken-back": _taken_back,
    "withdrawn": _withdrawn,
    "quorum": _quorum,
    "edit": _edit,
    "conversation": _conversation,
    "seen": _seen,
    "runs": _runs,
    "runs-empty": _at("/console/runs/"),
    "run": _run,
    "run-live": lambda house: _run(house, over=False),
    "task": _task,
    "task-edit": lambda house: f"{_task(house)}edit/",
    "task-new": lambda house: make_house(house.tenant) and "/console/runs/tasks/new/",
    "autonomy": _outside,
    "notices": _notices,
    "notices-empty": _at("/console/notices/"),
    "inbox-empty": _at("/console/inbox/"),
    "activity": lambda house: _work(house) and "/console/activity/",
    "entry": _entry,
    "entry-proved": _proved,
    "activity-narrowed": lambda house: _work(house) and "/console/activity/?show=everything&who=platform",
    "away": _away,
    "away-empty": _at("/console/activity/away/"),
}


@pytest.mark.parametrize("name", PAGES)
async def test_page_is_for_everybody(web: str, open_page: Any, house: House, name: str) -> None:
    path = await in_thread(PAGES[name], house)
    page = await log_in(open_page, web, house.owner, path)
    assert await _found(page, name) == []


@pytest.mark.parametrize("kind", CardKind)
async def test_card_is_for_everybody(web: str, open_page: Any, tenant: Any, owner: Any, kind: CardKind) -> None:
    card = await in_thread(make_kind, tenant, kind)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    assert await _found(page, f"card-{kind}") == []


async def test_forgetting_is_for_everybody(web: str, open_page: Any, house: House) -> None:
    page = await log_in(open_page, web, house.owner, await in_thread(_conversation, house))
    await page.locator(".forget > summary").first.click()
    assert await _found(page, "forget") == []


async def test_opened_block_of_a_window_is_for_everybody(web: str, open_page: Any, house: House) -> None:
    page = await log_in(open_page, web, house.owner, await in_thread(_seen, house))
    for block in await page.locator(".seen .blocks summary").all():
        await block.click()
    assert await _found(page, "open-seen") == []


async def test_page_for_no_connection_is_for_everybody(web: str, open_page: Any, database: None) -> None:
    assert await _found(await open_page(f"{web}/console/offline/"), "offline") == []


@pytest.mark.parametrize(
    ("said", "shown"), [("", "Pages"), ("address", "Decisions"), ("zzzz", "No results for “zzzz”")]
)
async def test_palette_is_for_everybody(web: str, open_page: Any, house: House, said: str, shown: str) -> None:
    await in_thread(make_card, house.tenant)
    page = await log_in(open_page, web, house.owner, "/console/activity/")
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill(said)
    await page.get_by_text(shown).wait_for()
    assert await _found(page, f"palette-{said or 'open'}") == []


async def test_keys_are_for_everybody(web: str, open_page: Any, house: House) -> None:
    page = await log_in(open_page, web, house.owner, "/console/review/")
    await page.keyboard.press("?")
    assert await _found(page, "help") == []


@pytest.mark.parametrize("name", ["?unanswered=1", "forgotten/", "company/"])
async def test_login_is_for_everybody(web: str, open_page: Any, database: None, name: str) -> None:
    assert await _found(await open_page(f"{web}/console/login/{name}"), f"login-{name.strip('?/=1')}") == []


@pytest.mark.parametrize("opened", ["#account > summary", ".people > summary", ".raw > summary", ".details > summary"])
async def test_what_is_folded_is_for_everybody(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any, opened: str
) -> None:
    card = await in_thread(make_kind, tenant, CardKind.PLAN)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    if opened.startswith(".raw"):
        await page.locator(".details > summary").click()
    await page.locator(opened).first.click()
    assert await _found(page, f"open-{opened.strip('.#').split(' ')[0]}") == []


async def test_dry_run_is_for_everybody(web: str, open_page: Any, house: House) -> None:
    def said() -> None:
        session = make_session(house.desk.deployment)
        for text in ("Where is my order H-1?", "I want a refund for it", "Refund it now"):
            say(session, text)

    await in_thread(said)
    page = await log_in(open_page, web, house.owner, await in_thread(_gate, house))
    await page.get_by_role("button", name="Test on recorded messages").click()
    await page.wait_for_selector("#tried")
    assert await _found(page, "gate-tried") == []


async def test_mistakes_in_a_gate_are_for_everybody(web: str, open_page: Any, house: House) -> None:
    page = await log_in(open_page, web, house.owner, "/console/gates/new/pattern/")
    await page.get_by_label("Name", exact=True).fill("words")
    await page.get_by_label("Regular expression").fill("(")
    await page.get_by_role("button", name="Save draft").click()
    await page.wait_for_selector(".problem")
    open_page.errors.clear()  # the browser reports the 422
    assert await _found(page, "gate-wrong") == []


async def test_taking_back_is_for_everybody(web: str, open_page: Any, house: House) -> None:
    page = await log_in(open_page, web, house.owner, await in_thread(_standing, house))
    await page.locator(".take-back > summary").click()
    assert await _found(page, "take-back") == []
