"""Cards in channels: who gets them, what a press decides, and everything that decides nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.db import connections

from apps.approvals import queries
from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus, PasskeyRule, Risk, Withdrawal
from apps.approvals.models import Answer, Card, DecisionLink
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.inbox.card_questions import ask_customer
from apps.messengers.cards import accounts, notices
from apps.messengers.enums import NoticeState
from apps.messengers.models import ApproverAccount, CardNotice, CardPolicy, Channel
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.cards import make_kind
from tests.factories.console import make_card
from tests.factories.passkeys import enrolled
from tests.factories.sessions import make_session
from tests.factories.sessions import say as say_in
from tests.factories.slack import TEAM, Slack, make_slack_channel, press, say, slack_server
from tests.factories.tenants import make_deployment, make_member

ORIGIN = "https://console.example"


@pytest.fixture
def slack() -> Iterator[Slack]:
    with slack_server() as running:
        yield running


@pytest.fixture
def channel(slack: Slack, deployment: Any) -> Channel:
    return make_slack_channel(deployment)


@pytest.fixture(autouse=True)
def _origin(settings: Any) -> None:
    settings.PASSKEY_ORIGIN = ORIGIN


@pytest.fixture
def linked(tenant: Any, owner: Any, approver: Any, channel: Channel) -> Channel:
    """The policy is on and decides in place; the owner has the account U1, the approver U2."""
    rule(owner, channel)
    link(channel, owner, "U1")
    link(channel, approver, "U2")
    return channel


def rule(owner: Any, channel: Channel, **fields: Any) -> None:
    usual = {"enabled": True, "channels": [str(channel.pk)], "people": [], "decide_in_place": True, "verified_days": 30}
    with tenant_scope(channel.tenant_id):
        accounts.set_policy(owner, **{**usual, **fields})


def link(channel: Channel, member: Any, user: str) -> ApproverAccount | None:
    with tenant_scope(channel.tenant_id):
        code = accounts.create_code(member)
    say(channel, code, user=user)
    with tenant_scope(channel.tenant_id):
        return ApproverAccount.objects.filter(channel=channel, account=f"{TEAM}:{user}").first()


def ask(channel: Channel, **fields: Any) -> Card:
    """A card of low risk that has been sent to its approvers."""
    card = make_kind(channel.tenant, CardKind.GATE, **fields)
    send(channel)
    return card


def send(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CARD_NOTICE)


def notice(card: Card, user: str) -> CardNotice:
    with tenant_scope(card.tenant_id):
        found: CardNotice = CardNotice.objects.get(card=card, account=f"{TEAM}:{user}")
        return found


def press_card(
    slack: Slack, channel: Channel, card: Card, choice: str = "approve", *, of: str = "U1", by: str = ""
) -> str:
    """Press the button in the message of the account `of`; what whoever pressed was told."""
    row = notice(card, of)
    where, _sep, ts = row.external_id.partition(":")
    assert press(slack, channel, f"card:{row.pk.hex}:{choice}", user=by or of, message=(where, ts)).status_code == 200
    return slack.replies[-1]


def status(card: Card) -> str:
    with tenant_scope(card.tenant_id):
        return str(Card.objects.get(pk=card.pk).status)


def answers(card: Card) -> int:
    with tenant_scope(card.tenant_id):
        return int(Answer.objects.filter(card=card).count())


def events(card: Card) -> list[str]:
    with tenant_scope(card.tenant_id):
        return list(AuditEntry.objects.order_by("seq").values_list("event", flat=True))


def approvals_need(tenant: Any, **fields: Any) -> None:
    from tests.approvals.test_answers import policy

    policy(tenant, **fields)


def buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [element for block in message["blocks"] if block["type"] == "actions" for element in block["elements"]]


def texts(message: dict[str, Any]) -> str:
    return str(message["blocks"])


# -- what a press decides ----------------------------------------------------------------------------------------------


def test_press_of_low_risk_decides_as_the_member_does_in_the_console(slack: Slack, linked: Channel, owner: Any) -> None:
    card = ask(linked)
    assert card.risk == Risk.LOW
    sent = [message for message in slack.of("chat.postMessage") if "blocks" in message]
    assert {message["channel"] for message in sent} == {"U1", "U2"}
    assert [button["text"]["text"] for button in buttons(sent[0])] == ["Approve", "Decline"]
    assert "Run this call" in texts(sent[0])
    said = press_card(slack, linked, card)
    assert said.startswith("Approved by ")
    assert status(card) == CardStatus.DECIDED
    with tenant_scope(card.tenant_id):
        answer = Answer.objects.get(card=card)
        entry = AuditEntry.objects.get(event="card_answered_in_channel")
    assert answer.user_id == owner.pk
    assert answer.verdict == ApprovalVerdict.APPROVED
    assert answer.signature
    assert entry.actor == f"user:{owner.pk}"
    assert json.loads(entry.data)["kind"] == "slack"


def test_decline_decides_and_every_message_is_updated(slack: Slack, linked: Channel) -> None:
    card = ask(linked)
    assert press_card(slack, linked, card, "decline", of="U2").startswith("Declined by ")
    send(linked)
    updated = slack.of("chat.update")
    assert {message["channel"] for message in updated} == {"DU1", "DU2"}
    assert all(buttons(message) == [] for message in updated)
    assert all("Declined by " in texts(message) for message in updated)
    send(linked)
    assert len(slack.of("chat.update")) == len(updated)


def test_card_decided_elsewhere_is_updated_and_one_withdrawn_too(slack: Slack, linked: Channel, owner: Any) -> None:
    decided, withdrawn = ask(linked), ask(linked)
    with tenant_scope(linked.tenant_id):
        decide_card(decided.pk, user=owner, verdict=ApprovalVerdict.APPROVED)
        withdraw_card(withdrawn.pk, reason=Withdrawal.REPLACED)
    send(linked)
    told = [texts(message) for message in slack.of("chat.update")]
    assert sum("Approved by " in text for text in told) == 2
    assert sum("Withdrawn" in text for text in told) == 2


def test_quorum_shows_its_progress_and_no_person_counts_twice(slack: Slack, linked: Channel, tenant: Any) -> None:
    approvals_need(tenant, people=2)
    card = ask(linked)
    assert "1 more approval needed" in press_card(slack, linked, card)
    assert status(card) == CardStatus.OPEN
    send(linked)
    assert "1 of 2 approvals given" in texts(slack.of("chat.update")[-1])
    assert "already given" in press_card(slack, linked, card)
    assert answers(card) == 1
    assert press_card(slack, linked, card, of="U2").startswith("Approved by ")
    assert status(card) == CardStatus.DECIDED


# -- what decides nothing ----------------------------------------------------------------------------------------------


def test_forwarded_card_and_another_members_message_decide_nothing(slack: Slack, linked: Channel) -> None:
    card = ask(linked)
    assert "sent to someone else" in press_card(slack, linked, card, of="U1", by="U2")
    row = notice(card, "U1")
    press(slack, linked, f"card:{row.pk.hex}:approve", message=("C-team", "1.1"))
    assert "sent to someone else" in slack.replies[-1]
    for value in ("card:", "card:x:approve", f"card:{card.pk.hex}:approve", f"card:{row.pk.hex}"):
        press(slack, linked, value, message=("DU1", row.external_id.partition(":")[2]))
        assert "sent to someone else" in slack.replies[-1]
    assert answers(card) == 0
    assert events(card).count("card_press_refused") == 6


def test_stranger_decides_nothing(slack: Slack, linked: Channel) -> None:
    card = ask(linked)
    assert "isn't linked" in press_card(slack, linked, card, of="U1", by="U9")
    assert answers(card) == 0


def test_account_that_was_written_into_the_table_is_a_stranger(slack: Slack, linked: Channel) -> None:
    card, another = ask(linked), make_member(linked.tenant, "owner")
    with tenant_scope(linked.tenant_id):
        ApproverAccount.objects.filter(account=f"{TEAM}:U2").update(user=another)
        CardNotice.objects.filter(account=f"{TEAM}:U2").update(user=another)
    assert "isn't linked" in press_card(slack, linked, card, of="U2")
    with tenant_scope(linked.tenant_id):
        ApproverAccount.objects.filter(account=f"{TEAM}:U1").update(last_verified_at=now() + timedelta(days=9))
    assert "isn't linked" in press_card(slack, linked, card, of="U1")
    assert answers(card) == 0


def test_policy_that_was_written_into_the_table_allows_nothing(slack: Slack, linked: Channel, owner: Any) -> None:
    rule(owner, linked, decide_in_place=False)
    card = ask(linked)
    with tenant_scope(linked.tenant_id):
        CardPolicy.objects.update(decide_in_place=True)
    assert "can't be decided here" in press_card(slack, linked, card)
    assert answers(card) == 0


def test_lost_role_and_closed_login_decide_nothing(slack: Slack, linked: Channel, owner: Any, approver: Any) -> None:
    card = ask(linked)
    with tenant_scope(linked.tenant_id):
        Membership.objects.filter(user=approver).update(role=Role.VIEWER)
    press_card(slack, linked, card, of="U2")
    assert answers(card) == 0
    owner.is_active = False
    owner.save()
    press_card(slack, linked, card, of="U1")
    assert answers(card) == 0
    assert status(card) == CardStatus.OPEN


def test_replayed_press_decides_once(slack: Slack, linked: Channel) -> None:
    card = ask(linked)
    press_card(slack, linked, card)
    assert "already decided" in press_card(slack, linked, card)
    assert "already decided" in press_card(slack, linked, card, "decline")
    assert answers(card) == 1


def test_late_press_decides_nothing(slack: Slack, linked: Channel) -> None:
    card = ask(linked)
    with tenant_scope(linked.tenant_id):
        moment = now()
        Card.objects.filter(pk=card.pk).update(created_at=moment - timedelta(hours=2), expires_at=moment)
    assert "expired" in press_card(slack, linked, card)
    assert answers(card) == 0


def test_changed_card_decides_nothing(slack: Slack, linked: Channel) -> None:
    card = ask(linked)
    with tenant_scope(linked.tenant_id):
        CardNotice.objects.filter(card=card).update(face="0" * 64)
    assert "has changed" in press_card(slack, linked, card)
    assert answers(card) == 0


def test_two_presses_at_once_decide_once(slack: Slack, linked: Channel) -> None:
    card = ask(linked)

    def run(of: str) -> None:
        press_card(slack, linked, card, of=of)
        connections.close_all()

    rivals = [threading.Thread(target=run, args=[of]) for of in ("U1", "U2")]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    assert answers(card) == 1
    assert sum(reply.startswith(("Approved", "This was already decided")) for reply in slack.replies) == 2


@pytest.mark.parametrize("what", ["risk", "policy", "old", "passkey"])
def test_what_may_not_be_decided_in_place_opens_a_link(
    slack: Slack, linked: Channel, tenant: Any, owner: Any, what: str
) -> None:
    enrolled(tenant, owner)
    if what == "policy":
        rule(owner, linked, decide_in_place=False)
    if what == "passkey":
        approvals_need(tenant, passkey=PasskeyRule.REQUIRED)
    if what == "old":
        with tenant_scope(linked.tenant_id):
            row = ApproverAccount.objects.get(user=owner)
            row.last_verified_at -= timedelta(days=31)
            row.certificate = accounts.certificate_of(row)
            row.save()
    card = ask(linked, **({"reversible": False} if what == "risk" else {}))
    sent = next(
        message for message in slack.of("chat.postMessage") if message["channel"] == "U1" and "blocks" in message
    )
    link_button, console_button = buttons(sent)
    assert link_button["url"].startswith(f"{ORIGIN}/")
    assert "value" not in link_button
    assert console_button["url"] == f"{ORIGIN}/console/review/{card.pk}/"
    with tenant_scope(card.tenant_id):
        assert DecisionLink.objects.filter(card=card, user=owner).exists()
    assert "can't be decided here" in press_card(slack, linked, card)
    assert answers(card) == 0


# -- who gets a card ---------------------------------------------------------------------------------------------------


def test_nothing_is_sent_without_a_policy_or_an_account(slack: Slack, channel: Channel, owner: Any) -> None:
    ask(channel)
    rule(owner, channel)
    ask(channel)
    assert slack.of("chat.postMessage") == []


def test_nothing_more_is_sent_once_it_is_turned_off_but_what_was_sent_is_updated(
    slack: Slack, linked: Channel, owner: Any
) -> None:
    slack.refusals = [(429, {"Retry-After": "7"})]
    card = ask(linked)
    rule(owner, linked, enabled=False)
    with tenant_scope(linked.tenant_id):
        CardNotice.objects.update(due_at=now())
        decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)
    send(linked)
    ask(linked)
    sent = [message for message in slack.of("chat.postMessage") if "blocks" in message]
    assert len(sent) == 1
    assert [buttons(message) for message in slack.of("chat.update")] == [[]]


def test_card_goes_to_the_next_person_at_half_of_its_time_and_no_further(
    slack: Slack, linked: Channel, owner: Any, approver: Any, agent: Any
) -> None:
    link(linked, make_member(linked.tenant, "approver"), "U3")
    rule(owner, linked, people=[str(approver.pk), str(owner.pk)])
    card = ask(linked, seconds=3600)

    def reached() -> list[str]:
        return [message["channel"] for message in slack.of("chat.postMessage") if "blocks" in message]

    assert reached() == ["U2"]
    send(linked)
    assert reached() == ["U2"]
    for part in (0.5, 0.9):
        with tenant_scope(linked.tenant_id):
            moment = now()
            Card.objects.filter(pk=card.pk).update(
                created_at=moment - timedelta(hours=part), expires_at=moment + timedelta(hours=1 - part)
            )
        send(linked)
        assert reached() == ["U2", "U1"]


def test_question_to_the_customer_stops_the_time_and_passes_nothing_on(
    slack: Slack, linked: Channel, owner: Any, approver: Any
) -> None:
    rule(owner, linked, people=[str(approver.pk), str(owner.pk)])
    session = make_session(linked.deployment)
    card = make_card(linked.tenant, risk=Risk.MEDIUM, session_id=session.pk, seconds=3600)

    def step(after: timedelta) -> int:
        with tenant_scope(linked.tenant_id):
            return notices.step_at(queries.get_card(card.pk), start + after)

    start, minute = card.created_at, timedelta(minutes=1)
    with time_machine.travel(start + 40 * minute, tick=False):
        assert step(40 * minute) == 1
        with tenant_scope(linked.tenant_id):
            ask_customer(card.pk, approver, "Flat 3 or 4?")
        assert step(40 * minute) == 1
    assert step(20 * 60 * minute) == 1
    with time_machine.travel(start + 10 * 60 * minute, tick=False):
        say_in(session, "Number 4")
        assert step(10 * 60 * minute) == 1
        assert step((10 * 60 + 4) * minute) == 1
        assert step((10 * 60 + 6) * minute) == 2
        assert step(23 * 60 * minute) == step((10 * 60 + 20) * minute)


def test_next_person_gets_a_card_as_much_later_as_it_waited(
    slack: Slack, linked: Channel, owner: Any, approver: Any
) -> None:
    rule(owner, linked, people=[str(approver.pk), str(owner.pk)])
    session = make_session(linked.deployment)
    card = make_card(linked.tenant, risk=Risk.MEDIUM, session_id=session.pk, seconds=3600)

    def next_in() -> int:
        """In how many minutes the card is passed on."""
        send(linked)
        with tenant_scope(linked.tenant_id):
            due = QueueMessage.objects.get(kind=Kind.CARD_NOTICE, state="queued").available_at
        return round((due - now()).total_seconds() / 60)

    assert next_in() == 30
    with tenant_scope(linked.tenant_id):
        ask_customer(card.pk, approver, "Flat 3 or 4?")
    assert next_in() == 24 * 60 + 30
    say_in(session, "Number 4")
    assert next_in() == 30


def test_card_goes_by_email_with_a_link_and_never_with_a_decision(
    slack: Slack, linked: Channel, tenant: Any, owner: Any, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example"
    enrolled(tenant, owner)
    rule(owner, linked, channels=["email"], people=[str(owner.pk)])
    ask(linked)
    (letter,) = mail.outbox
    assert letter.to == [owner.email]
    assert f"Decide with your passkey: {ORIGIN}/" in letter.body
    assert "Approve:" not in letter.body


def test_refused_message_is_tried_again_and_a_lasting_refusal_is_kept(
    slack: Slack, linked: Channel, owner: Any
) -> None:
    rule(owner, linked, people=[str(owner.pk)])
    slack.calls.clear()
    slack.refusals = [(429, {"Retry-After": "7"})]
    card = ask(linked)
    assert notice(card, "U1").state == NoticeState.WAITING
    with tenant_scope(linked.tenant_id):
        CardNotice.objects.update(due_at=now())
    send(linked)
    assert notice(card, "U1").state == NoticeState.SENT
    slack.refusals = ["account_inactive"]
    card = ask(linked)
    assert notice(card, "U1").state == NoticeState.FAILED
    assert notice(card, "U1").problem == "account_inactive"


def test_what_a_visitor_wrote_is_plain_text(slack: Slack, linked: Channel) -> None:
    ask(linked, rationale="<!channel> *urgent* <https://evil.example|Approve>")
    sent = next(message for message in slack.of("chat.postMessage") if "blocks" in message)
    (section,) = [block for block in sent["blocks"] if "evil.example" in str(block)]
    assert section["text"]["type"] == "plain_text"


# -- linking -----------------------------------------------------------------------------------------------------------


def test_code_links_once_and_never_becomes_a_message(slack: Slack, channel: Channel, owner: Any) -> None:
    with tenant_scope(channel.tenant_id):
        code = accounts.create_code(owner)
    say(channel, code, user="U1")
    say(channel, code, user="U9")
    with tenant_scope(channel.tenant_id):
        assert [row.account for row in ApproverAccount.objects.all()] == [f"{TEAM}:U1"]
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)
    first, second = slack.of("chat.postMessage")
    assert "is linked" in first["text"]
    assert "isn't valid" in second["text"]


@pytest.mark.parametrize("what", ["old", "replaced", "copied", "role"])
def test_code_that_is_not_valid_links_nothing(channel: Channel, owner: Any, approver: Any, what: str) -> None:
    from apps.messengers.models import AccountCode

    with tenant_scope(channel.tenant_id):
        code = accounts.create_code(owner)
        match what:
            case "old":
                AccountCode.objects.update(expires_at=now())
            case "replaced":
                accounts.create_code(owner)
            case "copied":
                AccountCode.objects.update(user=approver)
            case "role":
                Membership.objects.filter(user=owner).update(role=Role.VIEWER)
    say(channel, code)
    with tenant_scope(channel.tenant_id):
        assert not ApproverAccount.objects.exists()


def test_member_without_the_role_gets_no_code_and_no_one_removes_anothers_account(
    linked: Channel, owner: Any, approver: Any, agent: Any
) -> None:
    with tenant_scope(linked.tenant_id):
        with pytest.raises(SilasError) as refused:
            accounts.create_code(agent)
        assert refused.value.code == "approver_required"
        mine = ApproverAccount.objects.get(user=owner)
        with pytest.raises(NotFound):
            accounts.unlink(mine.pk, user=approver)
        accounts.unlink(mine.pk, user=owner)
        assert not ApproverAccount.objects.filter(user=owner).exists()


def test_account_that_is_linked_to_someone_else_moves(linked: Channel, owner: Any, approver: Any) -> None:
    link(linked, approver, "U1")
    with tenant_scope(linked.tenant_id):
        (row,) = ApproverAccount.objects.all()
    assert row.user_id == approver.pk


@pytest.mark.parametrize(
    ("fields", "problem"),
    [({"channels": ["x"]}, "channels"), ({"people": ["x"]}, "people"), ({"verified_days": 0}, "verified_days")],
)
def test_policy_names_its_problems_and_is_for_owners(
    channel: Channel, owner: Any, approver: Any, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SilasError) as refused:
        rule(owner, channel, **fields)
    assert problem in refused.value.extra["fields"]
    with pytest.raises(SilasError) as forbidden:
        rule(approver, channel)
    assert forbidden.value.code == "forbidden_role"


def test_another_tenants_channel_is_unknown(channel: Channel, other_tenant: Any) -> None:
    foreign = make_slack_channel(make_deployment(other_tenant))
    boss = make_member(channel.tenant, "owner")
    with pytest.raises(SilasError) as refused:
        rule(boss, channel, channels=[str(foreign.pk)])
    assert "channels" in refused.value.extra["fields"]
