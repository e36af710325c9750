"""What the model saw: exactly its window, with deleted, omitted and rewritten parts marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.guard.models import GuardedRun, ToolCall
from apps.knowledge.models import Document
from apps.knowledge.services import forget_document
from apps.sessions import turn
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.sessions.window import call_reference
from apps.visitors.forgetting import forget_visitor
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.console import browser
from tests.factories.knowledge import ingest_texts
from tests.factories.memories import conversation, remember, told
from tests.factories.sessions import answered, make_session, say

TERMS = "# Water\n\nA burst pipe is covered up to 50,000 pounds when the house was heated."


def _get(user: Any, session: ChatSession, number: int = 1) -> Any:
    return browser(user).get(reverse("console-seen", args=[session.pk, number]))


async def _page(user: Any, session: ChatSession, number: int = 1) -> str:
    return str((await in_thread(_get, user, session, number)).content.decode())


async def test_messages_stand_among_what_was_said(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "My cat is called Whiskers.", "Are you there?")
    said = (await _page(owner, session, 2)).split('id="zone-chronicle"')[1].split("</section>")[0]
    assert "My cat is called Whiskers." in said
    assert "Are you there?" in said


async def test_what_was_left_out_says_why(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "I moved.", "thanks", "Hello again")
    left = (await _page(owner, session, 3)).split("Left out")[1]
    assert "no content" in left
    assert "thanks" in left


async def test_passages_show_the_words_of_their_version(owner: Any, deployment: Any, tmp_path: Path) -> None:
    await in_thread(ingest_texts, deployment.tenant_id, tmp_path, water=TERMS)
    session = await answered(deployment, "Is a burst pipe covered?")
    looked_up = (await _page(owner, session)).split('id="zone-memory"')[1].split("</section>")[0]
    assert "covered up to 50,000 pounds" in looked_up
    assert "untrusted" in looked_up


async def test_text_of_a_deleted_document_is_said_to_be_gone(owner: Any, deployment: Any, tmp_path: Path) -> None:
    await in_thread(ingest_texts, deployment.tenant_id, tmp_path, water=TERMS)
    session = await answered(deployment, "Is a burst pipe covered?")

    def forget() -> None:
        with tenant_scope(deployment.tenant_id):
            forget_document(Document.objects.get().pk)

    await in_thread(forget)
    looked_up = (await _page(owner, session)).split('id="zone-memory"')[1].split("</section>")[0]
    assert "This text was deleted" in looked_up
    assert "50,000" not in looked_up


async def test_persona_worded_anew_is_not_passed_off_as_the_old_one(owner: Any, deployment: Any) -> None:
    deployment.persona = "You are terse."
    await in_thread(_save, deployment)
    session = await answered(deployment, "Hello")
    assert "You are terse." in await _page(owner, session)
    deployment.persona = "You are warm."
    await in_thread(_save, deployment)
    system = (await _page(owner, session)).split('id="zone-system"')[1].split("</section>")[0]
    assert "You are warm." not in system
    assert "This text was deleted" in system


def _save(deployment: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        deployment.save()


async def test_tools_it_was_told_of_are_named(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "Hello")
    assert "Tool knowledge_search" in await _page(owner, session)


async def test_text_that_a_visitor_wrote_is_escaped(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "<script>alert(1)</script> \u202ehidden")
    page = await _page(owner, session)
    assert "<script>alert(1)" not in page
    assert "\u202e" not in page


async def test_reworded_message_says_so(owner: Any, deployment: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "My card is 4111 1111 1111 1111")
    state = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
    assert state is not None
    state.text = "My card is [card]"
    await turn.run(state)
    page = await _page(owner, session)
    assert "A gate changed the visitor" in page
    assert "[card]" in page
    assert "4111" not in page


async def test_turn_without_a_window_says_that_nothing_was_seen(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "Hello")

    def blank() -> None:
        with tenant_scope(session.tenant_id):
            Turn.objects.update(context=None)

    await in_thread(blank)
    assert "before a model was called" in await _page(owner, session)


@pytest.mark.parametrize("number", [2, 10**30])
async def test_turn_that_never_was_is_not_found(owner: Any, deployment: Any, number: int) -> None:
    session = await answered(deployment, "Hello")
    assert (await in_thread(_get, owner, session, number)).status_code == 404


async def test_what_a_tool_answered_is_shown_as_memory_keeps_it(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "Hello")

    def call() -> str:
        with tenant_scope(session.tenant_id):
            (run,) = GuardedRun.objects.filter(pk=ChatSession.objects.get(pk=session.pk).run_id)
            made = ToolCall.objects.create(
                run=run, seq=99, effect_key=str(uuid4()), intent="run_skill", tool="claim_status", state="executed"
            )
            ToolCall.objects.filter(pk=made.pk).update(created_at=Turn.objects.get().started_at)
        return call_reference(made.pk)

    reference = await in_thread(call)
    assert "not stored" in await _page(owner, session)
    await in_thread(remember, session.tenant_id, conversation(session.pk), "It is open.", reference=reference)
    calls = (await _page(owner, session)).split('id="calls"')[1].split("</section>")[0]
    assert "claim_status" in calls
    assert "It is open." in calls


async def test_recalled_memory_is_shown_until_it_is_forgotten(owner: Any, deployment: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(remember, session.tenant_id, conversation(session.pk), "Their cat is called Whiskers.")
    await told(session, "What is the cat called?")
    assert "Their cat is called Whiskers." in await _page(owner, session)
    await in_scope(session.tenant_id, forget_visitor, session.pk, owner)
    page = await _page(owner, session)
    assert "Whiskers" not in page
    assert "This text was deleted" in page


async def test_viewer_may_look(viewer: Any, deployment: Any) -> None:
    session = await answered(deployment, "Hello")
    assert (await in_thread(_get, viewer, session)).status_code == 200


async def test_stranger_is_let_in_nowhere(stranger: Any, deployment: Any) -> None:
    session = await answered(deployment, "Hello")
    assert (await in_thread(_get, stranger, session)).status_code == 403


async def test_turn_of_another_tenant_is_not_found(owner: Any, other_tenant: Any) -> None:
    from tests.factories.tenants import make_deployment

    session = await answered(await in_thread(make_deployment, other_tenant), "Hello")
    assert (await in_thread(_get, owner, session)).status_code == 404


async def test_unknown_conversation_is_not_found(owner: Any, deployment: Any) -> None:
    session = ChatSession(id=uuid4())
    assert (await in_thread(_get, owner, session)).status_code == 404


async def test_page_keeps_no_text_of_its_own(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "My cat is called Whiskers.")

    def blank() -> None:
        with tenant_scope(session.tenant_id):
            ChronicleEntry.objects.filter(session_id=session.pk).delete()

    await in_thread(blank)
    assert "Whiskers" not in await _page(owner, session)


async def test_bots_message_leads_to_what_it_saw(owner: Any, deployment: Any) -> None:
    session = await answered(deployment, "Hello")

    def thread() -> str:
        return str(browser(owner).get(reverse("console-conversation", args=[session.pk])).content.decode())

    assert (await in_thread(thread)).count(reverse("console-seen", args=[session.pk, 1])) == 1
