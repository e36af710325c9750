"""Macros: what they may do, for whom, and that a preview does nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.inbox import handoff, labels_and_replies, macros, queries, services, steps
from apps.inbox.models import Label, Macro, Note
from apps.inbox.staff import ApiClient
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.console import browser
from tests.factories.tenants import make_member, make_tenant

RESOLVE = {"do": "resolve", "value": ""}


@pytest.fixture
def label(tenant: Any, owner: Any) -> Label:
    with tenant_scope(tenant):
        return labels_and_replies.save_label(owner, name="Refund", colour="red")


def save(tenant: Any, by: Any, *given: dict[str, str], **fields: Any) -> Macro:
    with tenant_scope(tenant):
        return macros.save_macro(by, **{"name": "Refund", "steps": list(given), **fields})


def test_macro_does_its_steps_in_one_go_and_leaves_the_reply_to_the_member(
    tenant: Any, agent: Any, session: ChatSession, label: Label
) -> None:
    macro = save(
        tenant,
        agent,
        {"do": "take_over", "value": ""},
        {"do": "label", "value": str(label.pk)},
        {"do": "assign", "value": "me"},
        {"do": "priority", "value": "high"},
        {"do": "note", "value": "Checked"},
        {"do": "reply", "value": "Hello {visitor name}"},
    )
    with tenant_scope(tenant):
        draft = macros.run_macro(session.pk, agent, macro.pk)
    with tenant_scope(tenant):
        now_is = queries.conversation(session.pk)
        said = list(ChronicleEntry.objects.filter(session=session, sender="human"))
        events = set(AuditEntry.objects.filter(subject=f"session:{session.pk}").values_list("event", flat=True))
        assert Note.objects.get().text == "Checked"
    assert draft == "Hello"  # who they are is not known
    assert said == []
    assert now_is.session.owner_user_id == agent.pk
    assert now_is.standing.assignee == agent
    assert now_is.standing.priority == "high"
    assert [one.name for one in now_is.labels] == ["Refund"]
    assert {"macro_run", "taken_over", "conversation_labelled", "conversation_assigned", "note_written"} <= events


def test_preview_says_what_would_change_and_changes_nothing(
    tenant: Any, agent: Any, session: ChatSession, label: Label
) -> None:
    given = [{"do": "label", "value": str(label.pk)}, RESOLVE, {"do": "priority", "value": ""}]
    with tenant_scope(tenant):
        version = queries.version_of(queries.conversation(session.pk))
        effects = steps.preview(given, session.pk, agent)
        assert queries.version_of(queries.conversation(session.pk)) == version
    assert [effect.words for effect in effects] == [
        "Add the label Refund",
        "Resolve",
        "Set the priority to No priority",
    ]
    assert [effect.changes for effect in effects] == [True, True, False]


def test_refused_step_undoes_the_whole_macro(
    tenant: Any, agent: Any, owner: Any, session: ChatSession, label: Label
) -> None:
    macro = save(tenant, agent, {"do": "label", "value": str(label.pk)}, {"do": "take_over", "value": ""})
    with tenant_scope(tenant):
        handoff.take_over(session.pk, owner)
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        macros.run_macro(session.pk, agent, macro.pk)
    assert refusal.value.code == "owned_by_other"
    with tenant_scope(tenant):
        assert queries.labels_of([session.pk]) == {}


def test_deleted_label_is_left_out(tenant: Any, agent: Any, owner: Any, session: ChatSession, label: Label) -> None:
    macro = save(tenant, agent, {"do": "label", "value": str(label.pk)}, RESOLVE)
    with tenant_scope(tenant):
        labels_and_replies.delete_label(owner, label.pk)
        effects = steps.preview(macro.steps, session.pk, agent)
        macros.run_macro(session.pk, agent, macro.pk)
        assert queries.conversation(session.pk).standing.status == "resolved"
    assert effects[0].words.startswith("Skipped")


@pytest.mark.parametrize(
    "given",
    [
        [],
        [RESOLVE] * 11,
        [{"do": "delete", "value": ""}],
        [{"do": "resolve", "value": "now"}],
        [{"do": "label", "value": str(uuid4())}],
        [{"do": "assign", "value": "owner"}],
        [{"do": "team", "value": "x"}],
        [{"do": "snooze", "value": "for ever"}],
        [{"do": "priority", "value": "panic"}],
        [{"do": "note", "value": "  "}],
        [{"do": "note", "value": 3}],
        [{"do": "resolve", "value": "", "then": "more"}],
    ],
)
def test_steps_that_cannot_be_done_are_refused(tenant: Any, agent: Any, given: list[dict[str, str]]) -> None:
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, *given)
    assert refusal.value.code == "bad_steps"


def test_text_with_a_null_is_refused(tenant: Any, agent: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, {"do": "reply", "value": "a\0b"})
    assert refusal.value.code == "invalid_text"


def test_personal_macro_is_its_owners_alone(tenant: Any, agent: Any, owner: Any, session: ChatSession) -> None:
    mine = save(tenant, agent, RESOLVE, is_personal=True)
    save(tenant, owner, RESOLVE, is_personal=True)  # the same name, of another
    with tenant_scope(tenant):
        assert mine in macros.macros_for(agent)
        assert mine not in macros.macros_for(owner)
        assert macros.macros_for(ApiClient("api_key:x")) == []
        for change in (
            lambda: macros.run_macro(session.pk, owner, mine.pk),
            lambda: macros.delete_macro(owner, mine.pk),
            lambda: macros.save_macro(owner, name="x", steps=[RESOLVE], macro_id=mine.pk),
        ):
            with pytest.raises(NotFound):
                change()


def test_name_is_taken_once_for_everybody(tenant: Any, agent: Any) -> None:
    save(tenant, agent, RESOLVE)
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, RESOLVE, name="REFUND")
    assert refusal.value.code == "name_taken"


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_who_may_not_answer_changes_and_runs_nothing(
    tenant: Any, agent: Any, session: ChatSession, who: str, request: Any
) -> None:
    macro, by = save(tenant, agent, RESOLVE), request.getfixturevalue(who)
    with tenant_scope(tenant):
        for change in (
            lambda: macros.save_macro(by, name="x", steps=[RESOLVE]),
            lambda: macros.delete_macro(by, macro.pk),
            lambda: macros.run_macro(session.pk, by, macro.pk),
        ):
            with pytest.raises(SilasError) as refusal:
                change()
            assert refusal.value.code == "forbidden_role"


def test_another_companys_macro_is_not_found(tenant: Any, agent: Any, session: ChatSession) -> None:
    other = make_tenant()
    foreign = save(other, make_member(other, "owner"), RESOLVE)
    with tenant_scope(tenant), pytest.raises(NotFound):
        macros.run_macro(session.pk, agent, foreign.pk)
    address = reverse("console-macro-run", args=[session.pk, foreign.pk])
    assert browser(agent).get(address).status_code == 404
    assert browser(agent).post(address).status_code == 404


def test_program_runs_a_macro_but_is_nobody_to_assign_to(tenant: Any, owner: Any, session: ChatSession) -> None:
    api = Api(tenant)
    made = api.send("post", "/api/v1/macros", {"name": "Close", "steps": [RESOLVE]})
    assert made.status_code == 201
    address = f"/api/v1/sessions/{session.pk}/macros"
    seen = api.send("post", address, {"macro": made.json()["id"], "preview": True})
    assert seen.json()["effects"] == [{"words": "Resolve", "changes": True, "text": ""}]
    with tenant_scope(tenant):
        assert queries.conversation(session.pk).standing.status == "open"
    assert api.send("post", address, {"macro": made.json()["id"]}).status_code == 200
    with tenant_scope(tenant):
        assert queries.conversation(session.pk).standing.status == "resolved"
    me = api.send("post", "/api/v1/macros", {"name": "Mine", "steps": [{"do": "assign", "value": "me"}]})
    assert api.send("post", address, {"macro": me.json()["id"]}).status_code == 409


def test_pages_make_preview_and_run_a_macro(tenant: Any, agent: Any, session: ChatSession) -> None:
    press = browser(agent)
    posted = {
        "name": "Greet <b>",
        "pick": ["take_over:", "reply:text", "", ""],
        "text": ["", "<i>Hello</i> {visitor name}", "", ""],
    }
    press.post(reverse("console-macro-new"), posted)
    with tenant_scope(tenant):
        macro = Macro.objects.get()
    assert macro.steps == [
        {"do": "take_over", "value": ""},
        {"do": "reply", "value": "<i>Hello</i> {visitor name}"},
    ]
    assert "&lt;i&gt;Hello" in press.get(reverse("console-macro", args=[macro.pk])).content.decode()
    assert "Greet &lt;b&gt;" in press.get(reverse("console-conversation", args=[session.pk])).content.decode()
    address = reverse("console-macro-run", args=[session.pk, macro.pk])
    assert "&lt;i&gt;Hello" in press.get(address).content.decode()
    went = press.post(address, {"steps": steps.hash_of(macro.steps)})
    shown = press.get(went["Location"]).content.decode()
    assert "&lt;i&gt;Hello&lt;/i&gt;</textarea>" in shown
    refused = press.post(reverse("console-macro-new"), {**posted, "pick": ["label:x"], "text": [""]})
    assert refused.status_code == 400
    press.post(reverse("console-macro-delete", args=[macro.pk]))
    assert "No macros yet" in press.get(reverse("console-macros")).content.decode()


def test_unassign_by_a_macro_is_a_change_only_when_someone_is_assigned(
    tenant: Any, agent: Any, session: ChatSession
) -> None:
    given = [{"do": "assign", "value": ""}]
    with tenant_scope(tenant):
        before = steps.preview(given, session.pk, agent)[0].changes
        services.assign(session.pk, agent, to=agent)
        after = steps.preview(given, session.pk, agent)[0].changes
    assert not before
    assert after


def test_deleted_canned_reply_is_left_out(tenant: Any, agent: Any, session: ChatSession) -> None:
    with tenant_scope(tenant):
        reply = labels_and_replies.save_reply(agent, name="hi", text="Hello")
    macro = save(tenant, agent, {"do": "reply", "value": str(reply.pk)}, {"do": "priority", "value": "high"})
    with tenant_scope(tenant):
        labels_and_replies.delete_reply(agent, reply.pk)
    with tenant_scope(tenant):
        assert macros.run_macro(session.pk, agent, macro.pk) == ""


def test_macro_pressed_twice_writes_its_note_once(tenant: Any, agent: Any, session: ChatSession) -> None:
    macro = save(tenant, agent, {"do": "note", "value": "Checked"})
    for _ in range(2):
        with tenant_scope(tenant):
            macros.run_macro(session.pk, agent, macro.pk, nonce="once")
    with tenant_scope(tenant):
        assert Note.objects.count() == 1


def test_shared_macro_is_not_taken_away(tenant: Any, agent: Any, owner: Any) -> None:
    macro = save(tenant, owner, {"do": "priority", "value": "high"})
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        macros.save_macro(agent, name="Mine", steps=macro.steps, is_personal=True, macro_id=macro.pk)
    assert refused.value.code == ErrorCode.FORBIDDEN_ROLE


def test_macro_that_was_changed_after_its_preview_does_nothing(tenant: Any, agent: Any, session: ChatSession) -> None:
    macro = save(tenant, agent, {"do": "priority", "value": "high"})
    page, address = browser(agent), reverse("console-macro-run", args=[session.pk, macro.pk])
    previewed = page.get(address).context_data["steps_hash"]
    with tenant_scope(tenant):
        macros.save_macro(agent, name="Refund", steps=[RESOLVE], macro_id=macro.pk)
    refused = page.post(address, {"steps": previewed})
    assert refused.status_code == 409
    assert "This macro was changed." in refused.content.decode()
    assert page.post(address).status_code == 409
    with tenant_scope(tenant):
        assert queries.conversation(session.pk).standing == queries.Standing()
    assert page.post(address, {"steps": refused.context_data["steps_hash"]}).status_code == 302
    with tenant_scope(tenant):
        assert queries.conversation(session.pk).standing.status == "resolved"


def test_program_runs_the_steps_that_it_previewed(tenant: Any, agent: Any, session: ChatSession) -> None:
    macro = save(tenant, agent, {"do": "priority", "value": "high"})
    api, address = Api(tenant, "sessions:read", "sessions:write"), f"/api/v1/sessions/{session.pk}/macros"
    previewed = api.send("post", address, {"macro": str(macro.pk), "preview": True}).json()["steps_hash"]
    save(tenant, agent, RESOLVE, macro_id=macro.pk)
    body = {"macro": str(macro.pk), "steps_hash": previewed}
    refused = api.send("post", address, body)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "macro_changed"
