"""Inbox rules: what triggers them, their conditions, what they do, once, and that they never trigger each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.inbox import (
    handoff,
    inbox_rule_preview,
    inbox_rule_runs,
    inbox_rules,
    labels_and_replies,
    queries,
    rules,
    services,
)
from apps.inbox.enums import Priority, RuleMatch
from apps.inbox.inbox_rule_conditions import Subjects
from apps.inbox.inbox_rules import RuleFields
from apps.inbox.models import InboxRule, Label, Note
from apps.inbox.rules import Facts
from apps.inbox.steps import Names
from apps.sessions import person_wanted
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.bus import carry_out_kinds, let_waits_pass
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member, make_tenant

HIGH, URGENT = {"do": "priority", "value": "high"}, {"do": "priority", "value": "urgent"}
RESOLVE = {"do": "resolve", "value": ""}
REFUND = {"field": "text", "operator": "contains", "value": "Refund"}


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return make_session(deployment)


@pytest.fixture
def label(tenant: Any, owner: Any) -> Label:
    with tenant_scope(tenant):
        return labels_and_replies.save_label(owner, name="Refund", colour="red")


def save(tenant: Any, by: Any, *steps: dict[str, str], trigger: str = "message", **fields: Any) -> InboxRule:
    given = {"name": "Refunds", "is_active": True, **fields}
    with tenant_scope(tenant):
        return inbox_rules.save_rule(by, RuleFields(trigger=trigger, steps=list(steps), **given))


def run(tenant: Any) -> None:
    carry_out_kinds(tenant, Kind.INBOX_RULES)


def owed(tenant: Any) -> int:
    with tenant_scope(tenant):
        return QueueMessage.objects.filter(kind=Kind.INBOX_RULES).count()


def listed(session: ChatSession) -> queries.Listed:
    with tenant_scope(session.tenant_id):
        return queries.conversation(session.pk)


def events(session: ChatSession) -> list[tuple[str, str]]:
    with tenant_scope(session.tenant_id):
        rows = AuditEntry.objects.filter(subject=f"session:{session.pk}", actor__startswith="inbox_rule:")
        return list(rows.order_by("seq").values_list("event", "actor"))


def want(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), because=person_wanted.ASKED)


def test_rule_acts_on_a_message_that_meets_its_conditions(
    tenant: Any, owner: Any, session: ChatSession, label: Label
) -> None:
    note = {"do": "note", "value": "Check the order"}
    rule = save(tenant, owner, {"do": "label", "value": str(label.pk)}, HIGH, note, conditions=[REFUND])
    say(session, "Hello")
    run(tenant)
    assert listed(session).labels == ()
    say(session, "I want a  REFUND")
    run(tenant)
    now_is = listed(session)
    assert [one.name for one in now_is.labels] == ["Refund"]
    assert now_is.standing.priority == "high"
    with tenant_scope(tenant):
        assert Note.objects.get().text == "Check the order"
    actor = f"inbox_rule:{rule.pk}"
    assert events(session) == [
        ("inbox_rule_ran", actor),
        ("conversation_labelled", actor),
        ("conversation_prioritised", actor),
        ("note_written", actor),
    ]


def test_rule_runs_once_for_what_triggered_it(tenant: Any, owner: Any, session: ChatSession) -> None:
    rule = save(tenant, owner, {"do": "note", "value": "Once"})
    say(session, "Hello")
    with tenant_scope(tenant):
        message = QueueMessage.objects.get(kind=Kind.INBOX_RULES)
        assert inbox_rule_runs.run_once(rule.pk, message.payload or {}, message.message_id)
    run(tenant)
    with tenant_scope(tenant):
        assert Note.objects.count() == 1


def test_rules_run_in_their_order_and_see_what_earlier_ones_did(
    tenant: Any, owner: Any, session: ChatSession, label: Label
) -> None:
    labelled = {"field": "label", "operator": "is", "value": str(label.pk)}
    save(tenant, owner, URGENT, name="Second", position=2, conditions=[labelled])
    save(tenant, owner, {"do": "label", "value": str(label.pk)}, HIGH, name="First", position=1)
    say(session, "Hello")
    run(tenant)
    assert listed(session).standing.priority == "urgent"


def test_rule_that_is_off_owes_and_does_nothing(tenant: Any, owner: Any, session: ChatSession) -> None:
    save(tenant, owner, HIGH, is_active=False)
    say(session, "Hello")
    assert owed(tenant) == 0


def test_rules_never_trigger_rules(tenant: Any, owner: Any, session: ChatSession) -> None:
    save(tenant, owner, RESOLVE, name="Close")
    save(tenant, owner, HIGH, name="After", trigger="resolved")
    say(session, "Hello")
    run(tenant)
    assert listed(session).standing.status == "resolved"
    assert owed(tenant) == 1
    assert listed(session).standing.priority == ""


@pytest.mark.parametrize("trigger", ["resolved", "reopened"])
def test_state_triggers_rules(tenant: Any, owner: Any, agent: Any, session: ChatSession, trigger: str) -> None:
    say(session, "Hello")
    save(tenant, owner, HIGH, trigger=trigger)
    with tenant_scope(tenant):
        services.resolve(session.pk, agent)
    run(tenant)
    assert (listed(session).standing.priority == "high") == (trigger == "resolved")
    with tenant_scope(tenant):
        services.set_priority(session.pk, agent, Priority.NONE)
        services.reopen(session.pk, agent)
    run(tenant)
    assert (listed(session).standing.priority == "high") == (trigger == "reopened")


def test_visitor_who_writes_again_reopens_and_a_take_over_does(
    tenant: Any, owner: Any, agent: Any, session: ChatSession
) -> None:
    say(session, "Hello")
    save(tenant, owner, {"do": "note", "value": "Again"}, trigger="reopened")
    for reopen in (lambda: say(session, "One more thing"), lambda: take_over(tenant, session, agent)):
        with tenant_scope(tenant):
            services.resolve(session.pk, agent)
        reopen()
    run(tenant)
    with tenant_scope(tenant):
        assert Note.objects.count() == 2


def take_over(tenant: Any, session: ChatSession, agent: Any) -> None:
    with tenant_scope(tenant):
        handoff.take_over(session.pk, agent)


def test_start_is_the_visitors_first_message(tenant: Any, owner: Any, session: ChatSession) -> None:
    save(tenant, owner, {"do": "note", "value": "New"}, trigger="opened")
    say(session, "Hello")
    say(session, "Are you there")
    run(tenant)
    with tenant_scope(tenant):
        assert Note.objects.count() == 1


def test_handover_triggers_rules(tenant: Any, owner: Any, session: ChatSession) -> None:
    save(tenant, owner, HIGH, trigger="handed_over")
    say(session, "A person please")
    want(session)
    run(tenant)
    assert listed(session).standing.priority == "high"


def test_wait_triggers_a_rule_when_it_is_long_enough(tenant: Any, owner: Any, session: ChatSession) -> None:
    save(tenant, owner, URGENT, trigger="waiting", minutes=10)
    say(session, "A person please")
    want(session)
    let_waits_pass(tenant, kind=Kind.INBOX_RULES)
    run(tenant)  # too early
    assert listed(session).standing.priority == ""
    with tenant_scope(tenant):
        QueueMessage.objects.filter(kind=Kind.INBOX_RULES).delete()
        ChatSession.objects.filter(pk=session.pk).update(wanted_person_at=now() - timedelta(minutes=11))
    rule = only_rule(tenant)
    save_again(tenant, owner, rule)
    run(tenant)
    assert listed(session).standing.priority == "urgent"


def test_wait_for_the_answer_of_a_person_triggers_and_an_answer_ends_it(
    tenant: Any, owner: Any, agent: Any, session: ChatSession
) -> None:
    save(tenant, owner, URGENT, trigger="waiting", minutes=10)
    say(session, "Hello")
    take_over(tenant, session, agent)
    say(session, "Are you there")
    assert owed(tenant) == 1
    with tenant_scope(tenant):
        handoff.reply(session.pk, agent, "Yes")
    let_waits_pass(tenant, kind=Kind.INBOX_RULES)
    run(tenant)
    assert listed(session).standing.priority == ""


def only_rule(tenant: Any) -> InboxRule:
    with tenant_scope(tenant):
        return InboxRule.objects.get()


def save_again(tenant: Any, owner: Any, rule: InboxRule) -> None:
    with tenant_scope(tenant):
        inbox_rules.save_rule(owner, inbox_rules.fields_of(rule), rule_id=rule.pk)


def test_reply_is_the_chatbots_until_a_person_answers(
    tenant: Any, owner: Any, agent: Any, session: ChatSession
) -> None:
    save(tenant, owner, {"do": "reply", "value": "Hello {visitor name}, we have your request"})
    say(session, "Hello")
    run(tenant)
    with tenant_scope(tenant):
        said = ChronicleEntry.objects.get(session=session, sender="bot")
    assert said.text == "Hello, we have your request"
    assert ("inbox_rule_replied", f"inbox_rule:{only_rule(tenant).pk}") in events(session)
    take_over(tenant, session, agent)
    say(session, "Thanks")
    run(tenant)
    with tenant_scope(tenant):
        assert ChronicleEntry.objects.filter(session=session, sender="bot").count() == 1


def test_rule_that_names_a_deleted_label_says_so_and_does_nothing(
    tenant: Any, owner: Any, session: ChatSession, label: Label
) -> None:
    rule = save(tenant, owner, {"do": "label", "value": str(label.pk)}, HIGH)
    with tenant_scope(tenant):
        assert inbox_rules.problem_of(rule, Names(), Subjects()) == ""
        labels_and_replies.delete_label(owner, label.pk)
        assert "was deleted" in inbox_rules.problem_of(rule, Names(), Subjects())
    say(session, "Hello")
    run(tenant)
    assert listed(session).standing.priority == ""


def test_test_conversations_are_left_alone(tenant: Any, owner: Any, session: ChatSession) -> None:
    save(tenant, owner, HIGH)
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(is_test=True)
    say(session, "Hello")
    assert owed(tenant) == 0


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("bad_name", {"name": " "}),
        ("bad_name", {"name": "x" * 61}),
        ("bad_rule", {"trigger": "midnight"}),
        ("bad_rule", {"match": "some"}),
        ("bad_rule", {"trigger": "waiting", "minutes": 0}),
        ("bad_rule", {"trigger": "waiting", "minutes": 10081}),
        ("bad_rule", {"position": 0}),
        ("bad_rule", {"conditions": [REFUND] * 11}),
        ("bad_rule", {"conditions": [{**REFUND, "field": "mood"}]}),
        ("bad_rule", {"conditions": [{**REFUND, "operator": "is"}]}),
        ("bad_rule", {"conditions": [{**REFUND, "value": " "}]}),
        ("bad_rule", {"conditions": [{**REFUND, "value": "a\0b"}]}),
        ("bad_rule", {"conditions": [{**REFUND, "value": 3}]}),
        ("bad_rule", {"conditions": [{**REFUND, "then": "more"}]}),
        ("bad_rule", {"conditions": [{"field": "label", "operator": "is", "value": str(uuid4())}]}),
        ("bad_rule", {"conditions": [{"field": "language", "operator": "is", "value": "german"}]}),
        ("bad_rule", {"conditions": [{"field": "hours", "operator": "is", "value": "maybe"}]}),
        ("bad_steps", {"steps": []}),
        ("bad_steps", {"steps": [{"do": "take_over", "value": ""}]}),
        ("bad_steps", {"steps": [{"do": "assign", "value": "me"}]}),
        ("bad_steps", {"steps": [{"do": "reply", "value": "a"}, {"do": "reply", "value": "b"}]}),
    ],
)
def test_unsound_rules_are_refused(tenant: Any, owner: Any, code: str, fields: dict[str, Any]) -> None:
    given = {"name": "Refunds", "trigger": "message", "steps": [RESOLVE], **fields}
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        inbox_rules.save_rule(owner, RuleFields(**given))
    assert refusal.value.code == code


def test_name_is_taken_once_and_versions_count(tenant: Any, owner: Any) -> None:
    rule = save(tenant, owner, RESOLVE)
    with pytest.raises(SilasError) as refusal:
        save(tenant, owner, RESOLVE, name="REFUNDS")
    assert refusal.value.code == "name_taken"
    save_again(tenant, owner, rule)
    assert only_rule(tenant).version == 2


@pytest.mark.parametrize("who", ["agent", "viewer", "stranger"])
def test_who_may_not_administer_changes_nothing(tenant: Any, owner: Any, who: str, request: Any) -> None:
    rule, by = save(tenant, owner, RESOLVE), request.getfixturevalue(who)
    with tenant_scope(tenant):
        for change in (
            lambda: inbox_rules.save_rule(by, RuleFields("x", "message", [RESOLVE])),
            lambda: inbox_rules.delete_rule(by, rule.pk),
        ):
            with pytest.raises(SilasError) as refusal:
                change()
            assert refusal.value.code == "forbidden_role"


def test_another_companys_rule_is_not_found(tenant: Any) -> None:
    other = make_tenant()
    foreign = save(other, make_member(other, "owner"), RESOLVE)
    with tenant_scope(tenant), pytest.raises(NotFound):
        inbox_rules.inbox_rule(foreign.pk)


FACTS = Facts("bot", "email", "de", frozenset({"red"}), "", False, False, True, "About my order")


@pytest.mark.parametrize(
    ("field", "value", "met"),
    [
        ("chatbot", "bot", True),
        ("chatbot", "other", False),
        ("channel", "email", True),
        ("channel", "widget", False),
        ("language", "DE", True),
        ("language", "en", False),
        ("label", "red", True),
        ("label", "blue", False),
        ("team", "", True),
        ("team", "claims", False),
        ("assigned", "no", True),
        ("assigned", "yes", False),
        ("hours", "closed", True),
        ("hours", "open", False),
        ("identified", "yes", True),
        ("identified", "no", False),
    ],
)
def test_conditions(field: str, value: str, met: bool) -> None:
    wanted = {"field": field, "operator": "is", "value": value}
    assert rules.meets(FACTS, [wanted], RuleMatch.ALL) is met
    assert rules.meets(FACTS, [{**wanted, "operator": "is_not"}], RuleMatch.ALL) is not met


def test_all_or_any_condition() -> None:
    met = {"field": "text", "operator": "contains", "value": "ORDER"}
    unmet = {"field": "text", "operator": "contains_not", "value": "order"}
    assert rules.meets(FACTS, [], RuleMatch.ANY)
    assert rules.meets(FACTS, [met, unmet], RuleMatch.ANY)
    assert not rules.meets(FACTS, [met, unmet], RuleMatch.ALL)
    assert not rules.meets(FACTS, [unmet], RuleMatch.ANY)


def test_api_keeps_what_is_not_named_and_says_what_is_wrong(
    tenant: Any, owner: Any, session: ChatSession, label: Label
) -> None:
    api = Api(tenant)
    body = {"name": "Refunds", "trigger": "message", "steps": [{"do": "label", "value": str(label.pk)}]}
    made = api.send("post", "/api/v1/inbox-rules", {**body, "conditions": [REFUND]})
    assert made.status_code == 201
    assert made.json()["is_active"] is False
    one = f"/api/v1/inbox-rules/{made.json()['id']}"
    changed = api.send("patch", one, {"is_active": True}, **{"if-match": made["ETag"]}).json()
    assert changed["conditions"] == [REFUND]
    assert changed["steps"] == body["steps"]
    assert changed["version"] == 2
    refused = api.send("patch", one, {"trigger": "waiting"})
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "bad_rule"
    with tenant_scope(tenant):
        labels_and_replies.delete_label(owner, label.pk)
    (listed_rule,) = api.get("/api/v1/inbox-rules").json()["inbox_rules"]
    assert "was deleted" in listed_rule["problem"]


def test_pages_make_activate_and_delete_a_rule(tenant: Any, owner: Any, label: Label) -> None:
    press = browser(owner)
    posted = {
        "name": "Refunds <b>",
        "trigger": "waiting",
        "minutes": "15",
        "position": "1",
        "match": "any",
        "condition": [f"label:is_not:{label.pk}", "text:contains:text", ""],
        "condition_text": ["", "<i>money</i>", ""],
        "pick": [f"label:{label.pk}", "reply:text", ""],
        "text": ["", "Hello", ""],
    }
    page = press.post(reverse("console-inbox-rule-new"), posted)["Location"]
    made = only_rule(tenant)
    assert made.conditions == [
        {"field": "label", "operator": "is_not", "value": str(label.pk)},
        {"field": "text", "operator": "contains", "value": "<i>money</i>"},
    ]
    assert made.steps == [{"do": "label", "value": str(label.pk)}, {"do": "reply", "value": "Hello"}]
    assert made.minutes == 15
    assert made.match == "any"
    assert made.is_active is False
    shown = press.get(page).content.decode()
    assert 'value="&lt;i&gt;money&lt;/i&gt;"' in shown
    assert f'value="label:is_not:{label.pk}" selected' in shown
    assert 'value="take_over:"' not in shown
    press.post(reverse("console-inbox-rule-activate", args=[made.pk]), {"active": "1"})
    assert only_rule(tenant).is_active
    press.post(page, {**posted, "name": "Money"})
    assert only_rule(tenant).is_active
    refused = press.post(page, {**posted, "minutes": "x"})
    assert refused.status_code == 400
    assert "Enter 1 to 10080 minutes." in refused.content.decode()
    assert "Money" in press.get(reverse("console-inbox-rules")).content.decode()
    press.post(reverse("console-inbox-rule-delete", args=[made.pk]))
    assert "No rules yet" in press.get(reverse("console-inbox-rules")).content.decode()


def test_pages_of_rules_are_for_owners(tenant: Any, owner: Any, agent: Any, other_tenant: Any) -> None:
    made = save(tenant, owner, RESOLVE)
    page = reverse("console-inbox-rule", args=[made.pk])
    assert browser(agent).get(page).status_code == 403
    assert made.name in browser(agent).get(reverse("console-inbox-rules")).content.decode()
    assert browser(make_member(other_tenant, "owner")).get(page).status_code == 404


def matched(tenant: Any, rule: InboxRule) -> list[Any]:
    with tenant_scope(tenant):
        return [one.session.pk for one in inbox_rule_preview.preview(rule).matches]


def test_preview_names_what_would_have_matched_and_changes_nothing(
    tenant: Any, owner: Any, deployment: Any, session: ChatSession
) -> None:
    other, old = make_session(deployment), make_session(deployment)
    say(session, "I want a refund")
    say(session, "Are you there")
    say(other, "Hello")
    say(old, "I want a refund")
    with tenant_scope(tenant):
        ago = now() - timedelta(days=8)
        ChatSession.objects.filter(pk=old.pk).update(last_active_at=ago)
    rule = save(tenant, owner, HIGH, is_active=False, conditions=[REFUND])
    assert matched(tenant, rule) == [session.pk]
    shown = browser(owner).get(reverse("console-inbox-rule", args=[rule.pk])).content.decode()
    assert "would have run on 1 conversation (2 checked)" in shown
    assert reverse("console-conversation", args=[session.pk]) in shown
    assert listed(session).standing.priority == ""
    assert owed(tenant) == 0
    start = save(tenant, owner, HIGH, name="Start", trigger="opened", is_active=False, conditions=[REFUND])
    assert matched(tenant, start) == [session.pk]
    again = {**REFUND, "value": "are you there"}
    start = save(tenant, owner, HIGH, name="Again", trigger="opened", is_active=False, conditions=[again])
    assert matched(tenant, start) == []


def test_preview_of_handovers_waits_and_states(
    tenant: Any, owner: Any, agent: Any, deployment: Any, session: ChatSession
) -> None:
    taken = make_session(deployment)
    for one in (session, taken):
        say(one, "A person please")
        want(one)
    take_over(tenant, taken, agent)
    with tenant_scope(tenant):
        services.resolve(taken.pk, agent)
    handed = save(tenant, owner, HIGH, name="a", trigger="handed_over", is_active=False)
    assert set(matched(tenant, handed)) == {session.pk, taken.pk}
    waits = save(tenant, owner, HIGH, name="b", trigger="waiting", minutes=10, is_active=False)
    assert matched(tenant, waits) == []
    with time_machine.travel(now() + timedelta(minutes=11)):
        assert matched(tenant, waits) == [session.pk]
    resolved = save(tenant, owner, HIGH, name="c", trigger="resolved", is_active=False)
    assert matched(tenant, resolved) == [taken.pk]
    reopened = save(tenant, owner, HIGH, name="d", trigger="reopened", is_active=False)
    assert matched(tenant, reopened) == []
