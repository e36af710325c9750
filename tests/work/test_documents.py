"""A document is changed by an approved call of the shipped editor, is read back, and can be restored."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connection

from apps.bus import services as bus
from apps.bus.deliveries import deliver
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.guard.schemas import CallContext, call_digest
from apps.knowledge import queries as memory
from apps.knowledge.services import DocumentPlace, revise_document
from apps.skills import bundled
from apps.work import document_tools
from apps.work.enums import EffectState, WorkItemStatus
from apps.work.models import Batch, KnowledgeEffect, WorkItem
from apps.work.services import document_changes
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from tests.factories.batches import answer, card_of, carry_out
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.knowledge import ingest_texts, search
from tests.factories.work import Desk, adopt

GOAL = """---
id: goal
type: goal
title: Keep the documents right
schedule: always_on
skills: [knowledge-editor]
access_levels:
  public: {tools: [list_documents, read_document]}
---
Be exact.
"""
OLD, NEW = "Coats may be returned within 14 days.", "Coats may be returned within 30 days."
PLACE = {"collection": "help", "document": "returns.md"}
CHANGE = PlannedCall("change_document", {**PLACE, "version": 1, "text": NEW})
TAKE_OUT = PlannedCall("take_out_document", {**PLACE, "version": 1})
ADD = PlannedCall("add_document", {"collection": "help", "title": "Opening", "text": "We open at nine."})


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    with tenant_scope(tenant):
        bundled.install("knowledge-editor")
    ingest_texts(tenant, tmp_path, returns=OLD)
    return adopt(tenant, GOAL)


@contextmanager
def trusted_worker(desk: Desk) -> Iterator[None]:
    """A trusted worker in a thread of its own, for the duration of the test."""
    over = threading.Event()

    def serve() -> None:
        try:
            while not over.wait(0.02):
                desk.work(Queue.TRUSTED, consumer="trusted")
        finally:
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def waiting(desk: Desk, call: PlannedCall) -> WorkItem:
    proposal = desk.propose(call, access=frozenset({call.tool}), gates=(), subject="")
    assert proposal.work_item_id is not None, proposal
    return desk.item(proposal.work_item_id)


def carried_out(desk: Desk, call: PlannedCall, user: Any) -> WorkItem:
    item = waiting(desk, call)
    desk.decide(item, user)
    with trusted_worker(desk):
        carry_out(desk)
    return desk.item(item.pk)


def reads(desk: Desk, document: str = "returns.md") -> tuple[int, str] | None:
    with tenant_scope(desk.tenant):
        page = memory.read_document("help", document)
    return (page.version, page.text) if page else None


def found(desk: Desk, question: str) -> list[str]:
    return [passage.quote for passage in search(desk.tenant, question)]


def undone(desk: Desk, item: WorkItem, user: Any) -> None:
    with tenant_scope(desk.tenant):
        batch = Batch.objects.get(undo_of=item.pk)
    answer(desk, card_of(desk, batch.pk), user, "approve")
    with trusted_worker(desk):
        carry_out(desk)


def asked(desk: Desk, item: WorkItem, digest: str) -> KnowledgeEffect:
    """Request a change as a worker, which a compromised one could do for anything."""
    with tenant_scope(desk.tenant):
        return document_tools._request(item.pk, digest)


def became(desk: Desk, effect: KnowledgeEffect) -> str:
    desk.work(Queue.TRUSTED)
    with tenant_scope(desk.tenant):
        effect.refresh_from_db()
    return effect.state


# --- done


def test_document_changes_once_somebody_said_yes(desk: Desk, approver: Any) -> None:
    item = carried_out(desk, CHANGE, approver)
    assert item.status == WorkItemStatus.DONE
    assert reads(desk) == (2, NEW)
    assert found(desk, "return coats") == [NEW]


def test_card_shows_how_the_document_reads_and_how_it_would(desk: Desk) -> None:
    card = desk.card(waiting(desk, CHANGE))
    facts = {fact["label"]: (fact.get("before"), fact.get("after")) for fact in card.facts}
    assert facts["The document"] == (OLD, NEW)


def test_change_is_taken_back_to_the_version_before(desk: Desk, approver: Any) -> None:
    item = carried_out(desk, CHANGE, approver)
    undone(desk, item, approver)
    assert reads(desk) == (3, OLD)
    assert found(desk, "return coats") == [OLD]


def test_document_that_is_taken_out_answers_nobody_and_comes_back(desk: Desk, approver: Any) -> None:
    item = carried_out(desk, TAKE_OUT, approver)
    assert item.status == WorkItemStatus.DONE
    assert reads(desk) == (2, "")
    assert found(desk, "return coats") == []
    undone(desk, item, approver)
    assert reads(desk) == (3, OLD)
    assert found(desk, "return coats") == [OLD]


def test_document_that_is_added_is_found_and_taken_back(desk: Desk, approver: Any) -> None:
    item = carried_out(desk, ADD, approver)
    assert item.status == WorkItemStatus.DONE
    assert reads(desk, "editor/Opening") == (1, "We open at nine.")
    undone(desk, item, approver)
    assert found(desk, "when do you open") == [OLD]
    assert reads(desk, "editor/Opening") == (2, "")


# --- refused


def test_document_that_was_changed_meanwhile_stays(desk: Desk, approver: Any, tmp_path: Path) -> None:
    item = waiting(desk, CHANGE)
    desk.decide(item, approver)
    ingest_texts(desk.tenant, tmp_path, returns="Coats stay where they are.")
    with trusted_worker(desk):
        carry_out(desk)
    assert desk.item(item.pk).status != WorkItemStatus.DONE
    assert reads(desk) == (2, "Coats stay where they are.")


def test_row_without_an_approval_changes_nothing(desk: Desk) -> None:
    item = waiting(desk, CHANGE)
    effect = asked(desk, item, call_digest(CHANGE.tool, CHANGE.args))
    assert became(desk, effect) == EffectState.REFUSED
    assert reads(desk) == (1, OLD)


def test_row_that_the_approved_plan_does_not_say_changes_nothing(desk: Desk, approver: Any) -> None:
    item = waiting(desk, CHANGE)
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.RUNNING)
    effect = asked(desk, item, call_digest(TAKE_OUT.tool, TAKE_OUT.args))
    assert became(desk, effect) == EffectState.REFUSED
    assert reads(desk) == (1, OLD)


def test_change_that_nobody_waits_for_any_longer_is_not_made(desk: Desk, approver: Any, settings: LazySettings) -> None:
    settings.KNOWLEDGE_WAIT_SECONDS = 0
    item = waiting(desk, CHANGE)
    desk.decide(item, approver)
    carry_out(desk)
    desk.work(Queue.TRUSTED)
    assert desk.item(item.pk).status != WorkItemStatus.DONE
    assert reads(desk) == (1, OLD)


def test_change_that_is_asked_for_again_is_owed_again(desk: Desk) -> None:
    item = waiting(desk, CHANGE)
    digest = call_digest(CHANGE.tool, CHANGE.args)
    for _ in range(2):
        asked(desk, item, digest)
    with tenant_scope(desk.tenant):
        assert QueueMessage.objects.filter(kind=Kind.DOCUMENT_CHANGE).count() == 1
    assert became(desk, asked(desk, item, digest)) == EffectState.REFUSED
    asked(desk, item, digest)
    with tenant_scope(desk.tenant):
        assert QueueMessage.objects.filter(kind=Kind.DOCUMENT_CHANGE).count() == 2


def test_forged_message_changes_nothing_and_stops_nothing(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        bus.enqueue(Kind.DOCUMENT_CHANGE, scope_id="no id")
        bus.enqueue(Kind.DOCUMENT_CHANGE, scope_id=uuid4())
    effect = asked(desk, waiting(desk, CHANGE), call_digest(CHANGE.tool, CHANGE.args))
    assert became(desk, effect) == EffectState.REFUSED
    assert reads(desk) == (1, OLD)


def test_change_whose_worker_died_before_the_commit_is_made_once(desk: Desk, approver: Any) -> None:
    """The lost delivery held the lease and had committed nothing; another one makes the change."""
    item = waiting(desk, CHANGE)
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.RUNNING)
    effect = asked(desk, item, call_digest(CHANGE.tool, CHANGE.args))
    with tenant_scope(desk.tenant):
        lost = lease_any(Queue.TRUSTED, consumer="doomed", scope_id=f"document_change:{effect.pk}")
    assert lost is not None
    let_leases_run_out(desk.tenant)
    assert became(desk, effect) == EffectState.DONE
    asyncio.run(deliver(desk.tenant.pk, lost, seconds=60))
    assert reads(desk) == (2, NEW)


def test_change_that_is_withdrawn_while_it_is_made_is_undone(desk: Desk) -> None:
    effect = asked(desk, waiting(desk, CHANGE), call_digest(CHANGE.tool, CHANGE.args))
    with tenant_scope(desk.tenant):
        KnowledgeEffect.objects.update(state=EffectState.WITHDRAWN)
        page = memory.read_document("help", "returns.md")
        assert page is not None
        place = DocumentPlace(page.collection_id, page.reference)
    done = partial(document_changes._record_done, effect.pk, document_tools.Change(place, 1, page.title, NEW))
    with pytest.raises(SilasError, match="withdrawn"):
        revise_document(desk.tenant.pk, place, seen=1, title=page.title, text=NEW, on_stored=done)
    assert reads(desk) == (1, OLD)


# --- seen


@pytest.mark.parametrize(("levels", "seen"), [(("public",), None), (("public", "staff"), OLD), ((), None)])
def test_documents_are_read_at_the_levels_of_the_conversation(
    tenant: Any, tmp_path: Path, levels: tuple[str, ...], seen: str | None
) -> None:
    ingest_texts(tenant, tmp_path, min_level="staff", returns=OLD)
    ctx = CallContext(tenant.pk, tenant.pk, tenant.pk, "read_document", PLACE, "", {"levels": levels})
    files = document_tools.documents_for_script(ctx)
    page, listed = json.loads(files["page.json"]), json.loads(files["documents.json"])
    assert (page and page["text"]) == seen
    assert len(listed) == (1 if seen else 0)
