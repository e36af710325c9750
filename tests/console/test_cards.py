"""Every kind of card shows what an approval covers, escapes foreign text, and its buttons work."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from apps.approvals.cards import kinds
from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.schemas import Fact
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus, Risk, Withdrawal
from apps.approvals.models import OPEN_STATUSES, ApprovalToken, Card, Look
from apps.approvals.queries import face_hash
from apps.console import viewers
from apps.console.pages.review import presenter
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.cards import EXAMPLES, MAIL, make_kind
from tests.factories.console import HTMX, browser, make_card
from tests.factories.sessions import make_session
from tests.factories.tenants import make_member
from tests.factories.work import make_desk
from tests.rivals import race

NASTY = "<img src=x onerror=alert(1)>"


def page(user: Any, card: Card) -> str:
    return str(browser(user).get(reverse("console-card", args=[card.pk])).content.decode())


def press(user: Any, card: Card, choice: str, name: str = "console-decide", **data: Any) -> Any:
    return browser(user).post(
        reverse(name, args=[card.pk]), {"choice": choice, "face": face_hash(card), **data}, **HTMX
    )


def stored(card: Card) -> Card:
    with tenant_scope(card.tenant_id):
        found: Card = Card.objects.get(pk=card.pk)
    return found


SHOWN = {
    CardKind.PLAN: ["Flat 3, 41 Canal Wharf", "postcode is new", "identity verified"],
    CardKind.STANDING: ["Approve, allow up to 20 times"],
    CardKind.GATE: ["refund limit", "refund_order", "H-90211", "148.00"],
    CardKind.BATCH_REVIEW: ["looks unusual", "Ticket T-4", "55\N{NO-BREAK SPACE}% sure"],
    CardKind.DRAFT_REVIEW: ["your new policy documents", "Could you confirm", "Have it rephrased"],
    CardKind.DECISION: ["Which address is meant?", "Send it to the old one", "Leave it for now"],
    CardKind.SUGGESTION: ["Prepare the letters", "Only remind me on Monday", "Not now"],
    CardKind.AUTONOMY_THRESHOLD: [
        "Executions before it asks again",
        "60 decisions",
        "3\N{NO-BREAK SPACE}% of them corrected",
    ],
    CardKind.POST_EXECUTION: ["Ticket T-3", "Undo, bring 3 tickets back", "3 checks outside the agent"],
    CardKind.SKILL_INSTALL: ["claims-triage", "sort claim", "No network asked for"],
    CardKind.BUDGET: ["6.00", "unchanged"],
    CardKind.CONNECTION: ["Outlook", "Mail.Read"],
    CardKind.PERMISSION_ESCALATION: ["Mail.Send", "Let it send this one letter", "claim C-77"],
    CardKind.CONNECTION_FAILURE: ["not responding", "Use another account", "Skip, do without Outlook"],
}


@pytest.mark.parametrize("kind", CardKind)
def test_card_shows_what_its_kind_has_to_say(tenant: Any, owner: Any, kind: CardKind) -> None:
    found = page(owner, make_kind(tenant, kind))
    assert [words for words in SHOWN[kind] if words not in found] == []


@pytest.mark.parametrize("kind", CardKind)
def test_buttons_stand_in_the_order_of_the_answers(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    values = [each.value for each in kinds.get_kind(kind).all_choices(card.payload)]
    if kind == CardKind.BATCH_REVIEW:  # one of its lines is unusual
        values = ["edit_selection", "approve", "decline"]
    assert [button.value for button in presenter.buttons_of(card)] == values


@pytest.mark.parametrize("part", ["plan", "body"])
def test_quotes_of_a_plan_are_shown_as_they_are(tenant: Any, owner: Any, part: str) -> None:
    card = make_kind(tenant, CardKind.PLAN, details={part: 'Call {"order": "H-1"} & <stop>.'})
    assert "Call {&quot;order&quot;: &quot;H-1&quot;} &amp; &lt;stop&gt;." in page(owner, card)


def test_template_of_a_standing_approval_is_not_called_the_model_s(tenant: Any, owner: Any) -> None:
    found = page(owner, make_kind(tenant, CardKind.STANDING, details={"body": "Note it."}))
    assert "What it may start each time" in found
    assert "as written by the model" not in found


@pytest.mark.parametrize("kind", CardKind)
def test_each_button_with_a_key_names_it(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    form = page(owner, card).partition('id="answer"')[2].partition("</form>")[0]
    hints = re.findall(r"<kbd>(\w)</kbd></button>", form)
    keys = [button.key.upper() for button in presenter.buttons_of(card) if button.key]
    assert sorted(hints) == sorted(keys)


@pytest.mark.parametrize("kind", [CardKind.GATE, CardKind.PLAN])
def test_answer_given_as_a_verdict_alone_is_named(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    with tenant_scope(tenant):
        decide_card(card.pk, user=owner, verdict=ApprovalVerdict.DECLINED)
    assert f"<b>Declined</b> by {owner.display_name}" in page(owner, card)


def test_undoing_has_a_key_of_its_own(tenant: Any, owner: Any) -> None:
    buttons = presenter.buttons_of(make_kind(tenant, CardKind.POST_EXECUTION))
    assert [(button.value, button.key) for button in buttons] == [("decline", "d"), ("approve", "u")]


@pytest.mark.parametrize("kind", [kind for kind in CardKind if not kinds.get_kind(kind).labels_are_complete])
def test_approval_of_medium_risk_or_more_takes_its_gesture(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    press(owner, card, "approve")
    assert (stored(card).status == CardStatus.DECIDED) is (card.risk == Risk.LOW)


@pytest.mark.parametrize("kind", CardKind)
def test_no_of_any_kind_takes_one_press(tenant: Any, owner: Any, kind: CardKind) -> None:
    card = make_kind(tenant, kind)
    press(owner, card, "decline")
    assert stored(card).status == CardStatus.DECIDED


def _soiled(value: Any) -> Any:
    """The value with markup in each of its free texts."""
    if isinstance(value, dict):
        return {name: _soiled(each) if name not in _FIXED else each for name, each in value.items()}
    if isinstance(value, list):
        return [_soiled(each) for each in value]
    return f"{value} {NASTY}" if isinstance(value, str) else value


# What is no free text: ids, hashes, closed words, addresses, keys of options, and what must agree with another place.
_FIXED = {
    *("item_ids", "item_id", "goal_id", "work_item_id", "plan_hash", "content_hash", "report_hash", "value", "action"),
    *("source", "direction", "key", "failure_type", "auth_strategy", "ref_id", "help_url", "verification_url"),
    *("auth_url", "listening_on", "connection_id", "connection_ref", "approval_tier", "risk_level", "occurred_at"),
    *("args", "draft", "id", "parent", "type", "budget", "verify", "gates", "skills", "escalation", "interaction_mode"),
    *("spawned_by", "follow_up_of", "schedule", "on_failure", "on_stuck", "agent", "domain", "tasks", "depends_on"),
    *("input_artifacts_from", "access_levels", "failure_context"),
}


@pytest.mark.parametrize("kind", CardKind)
def test_markup_in_every_text_of_a_card_is_escaped(tenant: Any, owner: Any, kind: CardKind) -> None:
    given = EXAMPLES[kind]()
    soiled = {name: _soiled(given[name]) for name in given if name in ("intent", "rationale", "affected", "body")}
    words = {name: f"{label} {NASTY}" for name, label in given["consequence"].items()}
    payload = {**_soiled(given["payload"])}
    facts = [Fact(NASTY, text=NASTY), Fact("Change", before=NASTY, after=NASTY)]
    details = {
        "plan": NASTY,
        "checks": [{"name": NASTY}],
        "gates": [NASTY],
        "calls": [{"tool": NASTY, "args": {NASTY: NASTY}}],
    }
    card = make_kind(tenant, kind, **soiled, consequence=words, payload=payload, facts=facts, details=details)
    assert "<img" not in page(owner, card)


def test_markup_in_the_arguments_of_a_call_is_escaped(tenant: Any, owner: Any) -> None:
    args = {NASTY: NASTY, "items": [NASTY], "keys": {"a": NASTY}}
    payload = {**EXAMPLES[CardKind.GATE]()["payload"], "holds": {"tool": "act", "args": args}}
    assert "<img" not in page(owner, make_kind(tenant, CardKind.GATE, payload=payload))


def test_markup_in_a_draft_stays_text(tenant: Any, owner: Any) -> None:
    text = f"</textarea>{NASTY}"
    payload = {**EXAMPLES[CardKind.DRAFT_REVIEW]()["payload"], "args": {"to": "a@b.test", "text": text}}
    card = make_kind(tenant, CardKind.DRAFT_REVIEW, payload=payload, body={"draft": text})
    assert "<img" not in page(owner, card)


def test_draft_is_shown_rendered_with_what_it_answers(tenant: Any, owner: Any, viewer: Any) -> None:
    text = f"Your **lamp** is on its way.\n\n- [details](https://elsewhere.test)\n- {NASTY}"
    payload = {**EXAMPLES[CardKind.DRAFT_REVIEW]()["payload"], "args": {"to": "a@b.test", "text": text}}
    body = {"draft": text, "context": "Where is my lamp?"}
    card = make_kind(tenant, CardKind.DRAFT_REVIEW, payload=payload, body=body)
    for user in (owner, viewer):
        found = page(user, card)
        assert "<strong>lamp</strong>" in found
        assert "**lamp**" in found
        assert "Where is my lamp?" in found
        assert 'href="https://elsewhere.test' not in found
        assert "<img" not in found


def test_preview_renders_what_is_typed_for_who_may_decide(tenant: Any, owner: Any, viewer: Any) -> None:
    address = reverse("console-draft-preview")
    typed = {"text": f"**Now**\u202e {NASTY}"}
    found = browser(owner).post(address, typed)
    assert found.status_code == 200
    assert "<strong>Now</strong>\u27e8U+202E\u27e9" in found.content.decode()
    assert "<img" not in found.content.decode()
    assert "<em>Yes</em>" in browser(owner).post(address, {"answer": "*Yes*"}).content.decode()
    assert len(browser(owner).post(address, {"text": "x" * 30_000}).content) < 21_000
    assert browser(viewer).post(address, typed).status_code == 403
    assert browser(owner).get(address).status_code == 405


def test_character_that_cannot_be_seen_is_written_out(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.GATE, rationale="Refund\u202e all")
    assert "Refund⟨U+202E⟩ all" in page(owner, card)


def test_batch_without_ticks_asks_anew_about_the_rest(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    found = press(owner, card, "edit_selection", selected=["T-1", "T-3"]).content.decode()
    assert "Only 2 of 4" in found
    assert "It needs its own approval" in found
    with tenant_scope(tenant):
        assert not ApprovalToken.objects.exists()


def test_reworded_draft_is_asked_anew(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    found = press(owner, card, "edit", text=MAIL.replace("Meridian", "Your Meridian")).content.decode()
    assert "Your Meridian" in found
    assert stored(card).status == CardStatus.DECIDED


def test_emptied_draft_is_not_approved_and_does_not_stop_a_decline(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    refused = press(owner, card, "approve", text="", confirmed="approve")
    assert refused.status_code == 400
    assert "Write what should be sent." in refused.content.decode()
    assert stored(card).is_open is True
    press(owner, card, "decline", text="")
    assert stored(card).is_open is False


@pytest.mark.parametrize("gesture", [{}, {"confirmed": "approve"}])
def test_wording_that_was_not_saved_is_neither_approved_nor_lost(
    tenant: Any, owner: Any, gesture: dict[str, str]
) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    found = press(owner, card, "approve", text="Your Meridian arrives on Friday.", **gesture)
    assert "Your Meridian arrives on Friday." in found.content.decode()
    assert stored(card).is_open is True


def test_selection_of_everything_leaves_the_card_alone(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    response = press(owner, card, "edit_selection", selected=card.payload["item_ids"])
    assert response.status_code == 400
    assert stored(card).is_open is True


def test_look_is_written_down_for_who_may_decide(tenant: Any, owner: Any, viewer: Any) -> None:
    card = make_card(tenant)
    for user in (owner, viewer):
        page(user, card)
    with tenant_scope(tenant):
        assert [look.user for look in Look.objects.all()] == [owner]


def test_card_is_taken_and_given_back(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    taken = press(owner, card, "", "console-assign", to=str(owner.pk)).content.decode()
    given = press(owner, card, "", "console-assign", to="").content.decode()
    assert "Assigned to you" in taken
    assert "Unassigned" in given


@pytest.mark.parametrize("to", ["nonsense", "00000000-0000-0000-0000-000000000000"])
def test_card_is_not_handed_to_nobody_we_know(tenant: Any, owner: Any, to: str) -> None:
    assert press(owner, make_card(tenant), "", "console-assign", to=to).status_code == 409


def test_card_is_not_handed_to_a_viewer(tenant: Any, owner: Any, viewer: Any) -> None:
    card = make_card(tenant)
    assert press(owner, card, "", "console-assign", to=str(viewer.pk)).status_code == 409
    assert stored(card).status == CardStatus.OPEN


def test_colleague_who_looks_is_named_and_i_am_not(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_card(tenant)
    for user in (owner, approver):
        viewers.mark_viewing(tenant.pk, card.pk, user.pk)
    assert f"{approver.display_name} is also viewing this" in page(owner, card)


def test_colleague_who_looked_away_is_not_named(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_card(tenant)
    viewers.mark_viewing(tenant.pk, card.pk, approver.pk)
    viewers.mark_left(tenant.pk, card.pk, approver.pk)
    assert "also viewing this" not in page(owner, card)


def test_looker_of_another_tenant_is_not_named(tenant: Any, other_tenant: Any, owner: Any) -> None:
    card, foreign = make_card(tenant), make_member(other_tenant, "owner")
    viewers.mark_viewing(tenant.pk, card.pk, foreign.pk)
    assert "also viewing this" not in page(owner, card)


def test_news_bring_who_is_here_without_moving_the_card(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_card(tenant)
    viewers.mark_viewing(tenant.pk, card.pk, approver.pk)
    found = browser(owner).get(reverse("console-card-news", args=[card.pk]), **HTMX).content.decode()
    assert 'id="company" hx-swap-oob="true"' in found
    assert 'id="card"' not in found


@pytest.mark.parametrize("name", ["console-decide", "console-assign", "console-ask-anew", "console-card-ask"])
def test_press_about_a_foreign_card_is_not_found(tenant: Any, other_tenant: Any, owner: Any, name: str) -> None:
    card = make_card(other_tenant)
    assert press(owner, card, "approve", name, to="", text="Which?").status_code == 404
    assert stored(card).status == CardStatus.OPEN


def test_press_that_confirms_too_late_says_so(tenant: Any, owner: Any) -> None:
    card = make_card(tenant, risk=Risk.MEDIUM)
    press(owner, card, "approve")
    with tenant_scope(tenant):
        begun = now() - timedelta(hours=1)
        Card.objects.filter(pk=card.pk).update(created_at=begun, expires_at=begun + timedelta(minutes=5))
    response = press(owner, card, "approve", confirmed="approve")
    assert response.status_code == 409
    assert "<b>Expired</b>" in response.content.decode()
    with tenant_scope(tenant):
        assert not ApprovalToken.objects.exists()


def test_press_on_a_card_taken_back_says_why(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        withdraw_card(card.pk, reason=Withdrawal.HANDOFF)
    assert "A teammate took over the conversation" in press(owner, card, "approve").content.decode()


def test_stale_page_of_an_edited_card_leads_to_what_is_asked_now(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    press(approver, card, "edit_selection", selected=["T-1"])
    response = press(owner, card, "approve", confirmed="approve")
    with tenant_scope(tenant):
        fresh = Card.objects.get(supersedes=card)
    assert response.status_code == 409
    assert f'data-card="{fresh.pk}"' in response.content.decode()


def test_rivals_approve_and_edit_a_batch_once(tenant: Any, owner: Any, approver: Any) -> None:
    card = make_kind(tenant, CardKind.BATCH_REVIEW)
    answers = race(
        lambda: press(owner, card, "approve", confirmed="approve").status_code,
        lambda: press(approver, card, "edit_selection", selected=["T-1"]).status_code,
    )
    assert sorted(answers) == [200, 409]


def test_many_grave_cards_are_told_and_hold_nobody_up(tenant: Any, owner: Any) -> None:
    cards = [make_card(tenant, risk=Risk.MEDIUM) for _ in range(8)]
    assert "8 medium" in page(owner, cards[0])
    for card in cards:
        press(owner, card, "approve", confirmed="approve")
    assert {stored(card).status for card in cards} == {CardStatus.DECIDED}


def test_edit_form_has_the_values_of_the_calls(tenant: Any, owner: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    card = desk.card(desk.waiting(50))
    found = browser(owner).get(reverse("console-edit", args=[card.pk])).content.decode()
    assert 'value="50"' in found
    assert 'value="H-1"' in found


def _edited(user: Any, card: Card, **values: str) -> Any:
    return browser(user).post(reverse("console-ask-anew", args=[card.pk]), values, **HTMX)


def test_edited_values_are_asked_anew(tenant: Any, owner: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    item = desk.waiting(50)
    names = list(desk.card(item).details["calls"][0]["args"])
    _edited(owner, desk.card(item), **{f"0.{names.index('note')}": "60"})
    with tenant_scope(tenant):
        assert Card.objects.get(status__in=OPEN_STATUSES).details["calls"][0]["args"]["note"] == 60


@pytest.mark.parametrize("value", ["sixty", "", "{", "5" * 5000])
def test_values_that_fit_no_call_come_back_with_a_reason(tenant: Any, owner: Any, tmp_path: Path, value: str) -> None:
    desk = make_desk(tenant, tmp_path)
    card = desk.card(desk.waiting(50))
    names = list(card.details["calls"][0]["args"])
    response = _edited(owner, card, **{f"0.{names.index('note')}": value})
    assert response.status_code == 409
    assert 'role="alert"' in response.content.decode()
    assert stored(card).is_open


def test_conversation_is_cleared_of_requests_by_who_took_it_over(deployment: Any, tenant: Any, agent: Any) -> None:
    session = make_session(deployment)
    card = make_card(tenant, session_id=session.pk)
    client = browser(agent)
    client.post(reverse("console-take-over", args=[session.pk]))
    client.post(reverse("console-withdraw", args=[session.pk]))
    assert stored(card).status == CardStatus.WITHDRAWN
    assert stored(card).withdrawal == Withdrawal.HANDOFF


def test_conversation_of_the_bot_is_not_cleared_by_passers_by(deployment: Any, tenant: Any, agent: Any) -> None:
    session = make_session(deployment)
    card = make_card(tenant, session_id=session.pk)
    assert browser(agent).post(reverse("console-withdraw", args=[session.pk])).status_code == 409
    assert stored(card).is_open
