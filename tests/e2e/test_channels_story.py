"""One customer in three channels, and a refund approved from a phone: a mail server and a mailbox of Debian's, servers
made after Telegram's and Slack's descriptions, running workers, and a browser for what people press."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from email.message import EmailMessage
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import expect

from apps.bus import wakeup
from apps.bus.workers import Worker
from apps.messengers.cards import accounts
from apps.messengers.models import Channel
from apps.messengers.slack.adapter import signature
from apps.messengers.telegram.adapter import webhook_secret
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.skills.models import Record
from apps.tenants.models import Deployment, Tenant, User
from kernel.tenancy import in_scope, in_thread
from tests.e2e.conftest import MAIL_HOME, SLACK_PORT, TELEGRAM_PORT
from tests.e2e.test_console_passkeys import with_passkey
from tests.e2e.test_decision_link import PHONE
from tests.e2e.test_story import MARIA, Story, story  # noqa: F401  (fixtures)
from tests.factories.mail_servers import ADA, MailServers, mail_servers
from tests.factories.messenger_providers import Telegram, serving
from tests.factories.slack import SECRET, TEAM, TOKEN, Slack, slack_server
from tests.factories.tenants import make_member

HARBOR = "harbor-retail"
CHAT = 4242


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServers]:
    shutil.rmtree(MAIL_HOME, ignore_errors=True)
    MAIL_HOME.mkdir()
    try:
        with mail_servers(MAIL_HOME) as running:
            yield running
    finally:
        shutil.rmtree(MAIL_HOME, ignore_errors=True)


@pytest_asyncio.fixture(loop_scope="session")
async def telegram() -> AsyncIterator[Telegram]:
    with serving(Telegram(), TELEGRAM_PORT) as provider:
        assert isinstance(provider, Telegram)
        yield provider


@pytest_asyncio.fixture(loop_scope="session")
async def slack() -> AsyncIterator[Slack]:
    with slack_server(SLACK_PORT) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def beat(worker: None) -> AsyncIterator[None]:
    """Wakes the workers, as beat does."""

    async def wake() -> None:
        while True:
            for kind in Worker:
                await in_thread(wakeup.wake, kind)
            await asyncio.sleep(1)

    task = asyncio.create_task(wake())
    yield
    task.cancel()


async def until(found: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """What `found` finds, once it does."""
    give_up = time.monotonic() + seconds
    while not (result := await in_thread(found)):
        assert time.monotonic() < give_up, what
        await asyncio.sleep(0.2)
    return result


def post(url: str, body: bytes, headers: dict[str, str]) -> None:
    request = Request(url, body, {"Content-Type": "application/json", **headers})
    with urlopen(request, timeout=30) as answer:
        assert answer.status == 200


class Customer:
    """A person who writes mails and has a telephone with Telegram."""

    def __init__(self, web: str, mail: MailServers, telegram: Telegram, channel: Channel) -> None:
        self.web, self.mail, self.telegram, self.channel = web, mail, telegram, channel
        self._updates = 0

    async def writes_mail(self, text: str, *, to: str, about: str) -> None:
        written = EmailMessage()
        written["From"], written["To"], written["Subject"] = ADA, to, about
        written["Message-ID"] = f"<{uuid4().hex}@example.test>"
        written.set_content(text)
        await in_thread(self.mail.write, written)

    async def gets_mail(self, text: str) -> EmailMessage:
        """The newest mail, once its text contains this."""

        def found() -> EmailMessage | None:
            mails = self.mail.mailbox(ADA)
            body = mails[-1].get_body(("plain",)) if mails else None
            return mails[-1] if body and text in body.get_content() else None

        result: EmailMessage = await until(found, f"a mail with {text!r}")
        return result

    async def presses(self, value: str) -> None:
        self._updates += 1
        pressed = {
            "id": str(self._updates),
            "from": {"id": CHAT, "is_bot": False, "first_name": "Maria"},
            "message": {"message_id": 1, "chat": {"id": CHAT, "type": "private"}},
            "data": value,
        }
        await self._update({"update_id": self._updates, "callback_query": pressed})

    async def sends(self, text: str) -> None:
        self._updates += 1
        update = {
            "update_id": self._updates,
            "message": {
                "message_id": self._updates,
                "date": int(time.time()),
                "chat": {"id": CHAT, "type": "private"},
                "from": {"id": CHAT, "is_bot": False, "first_name": "Maria", "language_code": "en"},
                "text": text,
            },
        }
        await self._update(update)

    async def _update(self, update: dict[str, Any]) -> None:
        place = await in_scope(self.channel.tenant_id, _place, self.channel)
        url = f"{self.web}/channels/telegram/{self.channel.public_id}"
        headers = {"X-Telegram-Bot-Api-Secret-Token": webhook_secret(place)}
        await in_thread(post, url, json.dumps(update).encode(), headers)

    async def reads(self, text: str) -> None:
        await until(lambda: any(text in said for said in self.telegram.texts), f"{text!r} in {self.telegram.texts}")


def _place(channel: Channel) -> Any:
    from apps.messengers.delivery import place_of

    return place_of(channel)


async def _add_channel(console: Any, kind: str, fields: dict[str, str]) -> None:
    """By the console's forms, with the connection checked."""
    await console.locator("#rail-settings").click()
    await console.get_by_role("main").get_by_role("link", name="Channels Email").click()
    await console.get_by_role("link", name=kind, exact=True).click()
    await console.locator("#name").fill(kind)
    for name, value in fields.items():
        await console.locator(f"[name={name}]").fill(value)
    await console.get_by_role("button", name="Add channel").click()
    await console.get_by_role("button", name="Check connection").click()
    await expect(console.get_by_text("The connection works.")).to_be_visible()


async def test_one_conversation_in_three_channels_and_a_refund_from_a_phone(
    story: Story,  # noqa: F811  (pytest gives the fixture)
    web: str,
    open_page: Any,
    mail: MailServers,
    telegram: Telegram,
    slack: Slack,
    beat: None,
) -> None:
    # The company sets its channels up in the console.
    console = await story.staff("owner", HARBOR)
    await _add_channel(console, "Email", mail.settings)
    await _add_channel(console, "Telegram", {"token": telegram.token})
    await _add_channel(console, "Slack", {"token": TOKEN, "signing_secret": SECRET})
    tenant = await in_thread(Tenant.objects.get, slug=HARBOR)
    by_kind = await in_scope(tenant.pk, lambda: {row.kind: row for row in Channel.objects.all()})

    # An approver has a phone with a passkey and a Slack account; cards of this company come by Slack.
    approver = await in_thread(make_member, tenant, "approver")
    phone, _, _ = await with_passkey(open_page, web, approver, **PHONE)
    owner = await in_thread(User.objects.get, email=story.logins[f"{HARBOR} owner"].email)

    def bring_cards() -> str:
        accounts.set_policy(
            owner,
            enabled=True,
            channels=[str(by_kind["slack"].pk)],
            people=[str(approver.pk)],
            decide_in_place=False,
            verified_days=30,
        )
        return accounts.create_code(approver)

    await _says_in_slack(web, by_kind["slack"], await in_scope(tenant.pk, bring_cards))
    await until(lambda: slack.of("chat.postMessage"), "the account is linked")

    # A customer begins in the widget and asks for answers by e-mail.
    maria = Customer(web, mail, telegram, by_kind["telegram"])
    widget = await story.visitor(HARBOR)
    await widget.say("Hello")
    await expect(widget.bot.first).to_be_visible()
    await widget.frame.locator("[data-more]").click()
    await widget.frame.locator("#answers-to").fill(ADA)
    await widget.frame.locator("form:has(#answers-to) button").click()
    await expect(widget.frame.get_by_text("Sent.")).to_be_visible()
    confirmation = await maria.gets_mail("/channels/confirm/")
    found = re.search(r"https?://\S+/channels/confirm/\S+", _plain(confirmation))
    assert found is not None
    confirm = await open_page(found[0])
    await confirm.get_by_role("button", name="Confirm").click()
    await expect(confirm.get_by_role("heading", name="Your address is confirmed")).to_be_visible()

    # She goes on by e-mail, from her mailbox into the same conversation.
    welcome = await maria.gets_mail("Your address is confirmed")
    await maria.writes_mail("I want a refund", to=str(welcome["Reply-To"]), about="My order")
    await maria.gets_mail("verify your identity")

    # And then in Telegram, by the widget's link.
    page = widget.page
    followed: list[str] = []

    async def follow(route: Any) -> None:
        followed.append(route.request.url)
        await route.fulfill(body="Telegram", content_type="text/plain")

    await page.context.route("https://t.me/**", follow)
    await widget.frame.get_by_role("button", name="Continue in Telegram").click()
    for _ in range(100):
        if followed:
            break
        await asyncio.sleep(0.1)
    secret = followed[0].partition("start=")[2]
    await maria.sends(f"/start {secret}")
    await maria.reads("Do you want to continue")
    await maria.presses(f"c:{secret}")
    await maria.reads("You can continue your conversation here.")
    await maria.sends(MARIA)
    await maria.reads("Which order")
    await maria.sends("H-90211")
    await maria.reads("pounds")
    await maria.sends("148")
    await maria.reads("reason")
    await maria.sends("damaged")

    # The approver gets the card in Slack, follows its button on the phone, and signs.
    def card_link() -> str:
        posts = [json.dumps(post) for post in slack.of("chat.postMessage")]
        links = [re.search(r"https://console\.example(/approve/[\w-]+/)", post) for post in posts if "H-90211" in post]
        return links[-1][1] if links and links[-1] else ""

    path = await until(card_link, "a card with a link in Slack")
    await phone.context.clear_cookies()
    await phone.goto(f"{web.replace('127.0.0.1', 'localhost')}{path}")
    await expect(phone.get_by_role("button", name="Continue with your passkey")).to_be_visible()
    await phone.get_by_role("button", name="Continue with your passkey").tap()
    await expect(phone.get_by_role("heading", name="Refund £148 for order H-90211")).to_be_visible()
    slide = phone.locator("[data-slide]")
    if await slide.count():
        await slide.focus()
        await phone.keyboard.press("End")
    await phone.get_by_role("button", name=re.compile("^Approve")).tap()
    await expect(phone.locator("#decided")).to_contain_text("Approved")

    # It is carried out, the card in Slack says who approved, and all of it is one conversation.
    def refunded() -> bool:
        return bool(Record.objects.get(key="H-90211").data.get("refunded") == 148)

    await maria.reads("Done")
    assert await in_scope(tenant.pk, refunded)
    await until(lambda: slack.of("chat.update"), "the card in Slack is updated")
    assert approver.display_name in json.dumps(slack.of("chat.update")[-1])

    def conversations() -> list[Any]:
        deployment = Deployment.objects.get(public_key="demo-harbor")
        rows = ChatSession.objects.filter(deployment=deployment).exclude(channel="")
        return [list(ChronicleEntry.objects.filter(session=row, sender="visitor").order_by("seq")) for row in rows]

    (entries,) = await in_scope(tenant.pk, conversations)
    said = [entry.text for entry in entries]
    assert said[0] == "Hello"
    assert said[1:] == ["I want a refund", MARIA, "H-90211", "148", "damaged"]
    open_page.errors.clear()  # the phone's browser reports the cookie that it no longer has


def _plain(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


async def _says_in_slack(web: str, channel: Channel, text: str) -> None:
    told = {
        "type": "message",
        "channel_type": "im",
        "channel": "DU1",
        "user": "U1",
        "ts": f"{time.time():.6f}",
        "text": text,
    }
    body = {"type": "event_callback", "team_id": TEAM, "event_id": f"Ev{uuid4().hex}", "event": told}
    content, moment = json.dumps(body).encode(), str(int(time.time()))
    headers = {"X-Slack-Request-Timestamp": moment, "X-Slack-Signature": signature(SECRET, moment, content)}
    await in_thread(post, f"{web}/channels/slack/{channel.public_id}", content, headers)
