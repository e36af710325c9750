"""Erasure of a person's data: complete, with a receipt that a stranger can check, once, and for owners only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.urls import reverse

from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card
from apps.audit.bundles import export_chain
from apps.audit.models import AuditEntry
from apps.audit.queries import chain_of, verify_chain
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.contacts import erasure, queries, services
from apps.contacts.enums import ContactSource
from apps.contacts.models import Contact, ContactIdentity, ContactNote, Erasure, ImportedConversation
from apps.contacts.person_export import Person, lock_person, person_of_contact, person_of_visitor
from apps.contacts.personal_data import EXPORTED
from apps.contacts.queries import ContactFilter
from apps.inbox.models import Note
from apps.messengers.models import Channel, ChannelThread
from apps.sessions import levels
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.sessions.retention import FORGOTTEN
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from apps.visitors import file_storage, files
from apps.visitors.models import Consent, FormAnswers, Rating, TranscriptRequest, VisitorFile
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import Course, WorkItem
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from kernel.trust import root_of
from tests import rivals
from tests.factories.approvals import decide_card, make_plan, make_token, open_card
from tests.factories.audit import stranger_verdict
from tests.factories.bus import carry_out_kinds
from tests.factories.console import browser, make_card
from tests.factories.memories import customer, remember, verified
from tests.factories.personal_data import PDF, PersonalData, make_personal_data
from tests.factories.sessions import say
from tests.factories.tenants import make_member, make_tenant
from tests.factories.visitors import offer

SECRET = "My cat is called Mephisto."


@pytest.fixture(scope="module")
def built(migrated: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PersonalData]:
    with django_db_blocker.unblock():
        yield make_personal_data(Path(tmp_path_factory.mktemp("desk")))
        connections.close_all()


@pytest.fixture
def house(built: PersonalData, database: None) -> PersonalData:
    return built


def end_turns(house: PersonalData) -> None:
    """As if every answer had been written."""
    with tenant_scope(house.tenant):
        Turn.objects.update(status="done")


def request(house: PersonalData, row: Contact) -> Erasure:
    answer = browser(house.owner).post(f"/api/v1/contacts/{row.pk}/erase")
    assert answer.status_code == 202, answer.content
    with tenant_scope(house.tenant):
        found: Erasure = Erasure.objects.get(pk=answer.json()["id"])
    return found


def work(house: PersonalData) -> None:
    end_turns(house)
    carry_out_kinds(house.tenant, Kind.PERSON_ERASURE)


def receipt_of(house: PersonalData, row: Erasure) -> dict[str, Any]:
    answer = browser(house.owner).get(f"/api/v1/erasures/{row.pk}/receipt")
    assert answer.status_code == 200, answer.content
    signed: dict[str, Any] = answer.json()
    return signed


def everything(house: PersonalData, session: ChatSession) -> str:
    """All that the tables of a person still say in this company."""
    with tenant_scope(house.tenant):
        rows = [list(apps.get_model(kind.model)._default_manager.values(*kind.fields)) for kind in EXPORTED]
        notes = list(Note.objects.values("text"))
    return str((rows, notes))


def fill(house: PersonalData) -> tuple[Contact, ChatSession, str]:
    """A customer of whom every table holds something."""
    row, session, name = house.customer(SECRET)
    remember(house.tenant, customer(name), f"Memory: {SECRET}")
    offer(house.site.deployment, pdfs=True)
    files.keep(session.tenant_id, session.pk, name="mephisto.pdf", chunks=[PDF], client_id="a")
    moment = now()
    with tenant_scope(house.tenant):
        session = ChatSession.objects.get(pk=session.pk)
        services.save_contact(
            row.pk,
            actor=house.owner.actor,
            source=ContactSource.TEAM,
            name="Mephisto's owner",
            emails=["mephisto@example.test"],
        )
        services.add_note(row.pk, SECRET, actor=house.owner.actor, author=house.owner)
        Rating.objects.create(
            session=session,
            deployment=session.deployment,
            scale="thumbs",
            score=1,
            comment=SECRET,
            created_at=moment,
            changed_at=moment,
        )
        Consent.objects.create(session=session, version="1", digest="0" * 64, given_at=moment)
        FormAnswers.objects.create(session=session, answers=[{"value": SECRET}], created_at=moment)
        TranscriptRequest.objects.create(
            session=session, client_id="t", address="mephisto@example.test", until_seq=1, asked_at=moment
        )
        Note.objects.create(session=session, after=1, text=SECRET, created_at=moment)
        channel = Channel.objects.create(
            deployment=session.deployment, kind="telegram", name="Bot", public_id=uuid4().hex, created_at=moment
        )
        ChannelThread.objects.create(
            channel=channel, session=session, key="1", peer="mephisto-phone", peer_name="Mephisto", created_at=moment
        )
        ImportedConversation.objects.create(
            contact=row,
            system="zendesk",
            external_id=uuid4().hex,
            text=SECRET,
            messages=[{"sender": "customer", "author": "", "text": SECRET, "at": ""}],
            imported_at=moment,
        )
    return row, session, name


def test_everything_is_erased_and_the_receipt_says_so(house: PersonalData, tmp_path: Path) -> None:
    row, session, name = fill(house)
    other, _, other_name = house.customer("Somebody else's words.")
    remember(house.tenant, customer(other_name), "Somebody else's memory.")
    with tenant_scope(house.tenant):
        stored = VisitorFile.objects.get(session=session).stored_name
    assert "Mephisto" in everything(house, session)
    begun = request(house, row)
    work(house)
    left = everything(house, session)
    assert "ephisto" not in left
    assert name not in left
    assert "Somebody else's words." in left
    assert "Somebody else's memory." in left
    assert not file_storage.storage().exists(stored)
    with tenant_scope(house.tenant):
        assert not Contact.objects.filter(pk=row.pk).exists()
        assert not ContactNote.objects.filter(contact_id=row.pk).exists()
        assert Contact.objects.filter(pk=other.pk).exists()
        gone = ChatSession.objects.get(pk=session.pk)
        assert gone.last_customer == gone.customer == gone.customer_name == ""
        assert gone.preview == FORGOTTEN
        assert Rating.objects.get(session=session).score == 1
        assert not ChannelThread.objects.filter(session=session).exists()
        begun.refresh_from_db()
        entry = AuditEntry.objects.get(entry_id=begun.entry_id)
    assert begun.person == {}
    assert entry.event == "person_erased"
    assert entry.actor == house.owner.actor
    signed = receipt_of(house, begun)
    erased = signed["receipt"]["erased"]
    assert erased["contacts"] == 1
    assert erased["conversations"] == 1
    assert erased["memories"] >= 1
    assert erased["files"] == 1
    assert erased["ratings"] == 1
    assert erased["transcripts"] == 1
    assert erased["imported_conversations"] == 1
    assert erased["notes"] == 1
    kept = {each["kind"]: each["count"] for each in signed["receipt"]["kept"]}
    assert kept["consents"] == 1
    assert kept["audit_log"] > 0
    assert all(each["why"] for each in signed["receipt"]["kept"])
    assert "ephisto" not in json.dumps(signed)
    assert verify_chain(chain_of(house.tenant.pk)).broken is None


def test_a_stranger_checks_the_receipt(
    house: PersonalData, tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row, _, _ = house.customer("Hello.")
    begun = request(house, row)
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
    signed, receipt, log = receipt_of(house, begun), tmp_path / "receipt.json", tmp_path / "log.jsonl"
    receipt.write_text(json.dumps(signed, indent=2))
    log.write_bytes(export_chain(chain_of(house.tenant.pk)))
    key = root_of(settings.SILAS_SIGNING_KEY)
    found = stranger_verdict("--receipt", str(receipt), str(log), "--key", key)
    assert found.splitlines()[1].startswith(f"ok receipt erasure={begun.pk} person=contact:{row.pk}")
    assert "exit" not in found
    assert stranger_verdict("--receipt", str(receipt)).startswith("ok receipt")
    assert "no_pinned_key" in capsys.readouterr().err
    for change, reason in (
        ({"receipt": {**signed["receipt"], "erased": {}}}, "signature"),
        ({"entry": {**signed["entry"], "actor": "user:x"}}, "content"),
        ({"signature": "AAAA"}, "signature"),
        ({"format": "x"}, "format"),
        ({"entry": None}, "format"),
    ):
        receipt.write_text(json.dumps({**signed, **change}))
        assert stranger_verdict("--receipt", str(receipt), "--key", key).endswith(f"reason={reason} exit=1"), change
    receipt.write_text("no JSON")
    assert stranger_verdict("--receipt", str(receipt)).endswith("reason=format exit=1")
    receipt.write_text(json.dumps(signed))
    assert stranger_verdict("--receipt", str(receipt), "--key", "0" * 64).endswith("reason=signature exit=1")
    lines = [line for line in log.read_text().splitlines(keepends=True) if str(begun.entry_id) not in line]
    log.write_text("".join(lines))
    assert stranger_verdict("--receipt", str(receipt), str(log), "--key", key).endswith("reason=missing exit=1")


def test_only_owners_of_the_company_erase(house: PersonalData) -> None:
    row, session, _ = house.customer("Hello.")
    posts = (
        reverse("console-contact-erase", args=[row.pk]),
        reverse("console-visitor-erase", args=[session.pk]),
        reverse("console-visitor-export", args=[session.pk]),
        f"/api/v1/contacts/{row.pk}/erase",
        f"/api/v1/sessions/{session.pk}/erase",
        f"/api/v1/sessions/{session.pk}/export",
    )
    for path in posts:
        assert browser(house.stranger).post(path).status_code == 404, path
        assert browser(house.owner).get(path).status_code == 405, path
        for role in ("approver", "agent", "viewer"):
            assert browser(make_member(house.tenant, role)).post(path).status_code == 403, (path, role)
    assert browser(house.owner).post(f"/api/v1/contacts/{uuid4()}/erase").status_code == 404
    with tenant_scope(house.tenant):
        key = create_api_key("Test", scopes=(KeyScope.CONTACTS_WRITE,)).key
        assert not Erasure.objects.filter(reference=f"contact:{row.pk}").exists()
    for path in posts[3:]:
        assert Client().post(path, headers={"authorization": f"Bearer {key}"}).status_code == 403, path
    begun = request(house, row)
    for path in (
        reverse("console-erasure", args=[begun.pk]),
        reverse("console-erasure-receipt", args=[begun.pk]),
        f"/api/v1/erasures/{begun.pk}",
        f"/api/v1/erasures/{begun.pk}/receipt",
    ):
        assert browser(house.stranger).get(path).status_code == 404, path
        assert browser(make_member(house.tenant, "agent")).get(path).status_code == 403, path
    listed = browser(house.stranger).get("/api/v1/erasures").json()
    assert listed == {"erasures": []}
    mine = browser(house.owner).get("/api/v1/erasures").json()["erasures"]
    assert str(begun.pk) in [each["id"] for each in mine]


def test_requested_twice_it_is_one_erasure_with_one_receipt(house: PersonalData) -> None:
    row, session, _ = house.customer("Hello.")
    first = request(house, row)
    assert request(house, row).pk == first.pk
    again = browser(house.owner).post(f"/api/v1/sessions/{session.pk}/erase").json()
    assert again["id"] == str(first.pk)
    with tenant_scope(house.tenant):
        assert QueueMessage.objects.filter(kind=Kind.PERSON_ERASURE, scope_id__contains=str(first.pk)).count() == 1
    work(house)
    with tenant_scope(house.tenant):
        assert erasure.erase_some(first.pk) is erasure.Progress.ENDED
        assert AuditEntry.objects.filter(event="person_erased", subject=f"contact:{row.pk}").count() == 1
    assert browser(house.owner).post(f"/api/v1/contacts/{row.pk}/erase").status_code == 404


def test_requested_again_it_covers_what_became_theirs_since(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    late, session, name = house.customer("Said since.")
    first = request(house, row)
    with tenant_scope(house.tenant):
        Erasure.objects.filter(pk=first.pk).update(state="stopped")
        Contact.objects.filter(pk=late.pk).update(merged_into=row)
    assert request(house, row).pk == first.pk
    work(house)
    with tenant_scope(house.tenant):
        first.refresh_from_db()
        assert first.state == "done"
        assert not Contact.objects.filter(pk=late.pk).exists()
        assert not ContactIdentity.objects.filter(value=name).exists()
        assert not ChronicleEntry.objects.filter(session=session, text="Said since.").exists()
        assert AuditEntry.objects.filter(event="person_erasure_started", subject=f"contact:{row.pk}").count() == 2


def test_what_became_theirs_since_may_not_belong_to_another_erasure(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    late, _, _ = house.customer("Late.")
    begun = [request(house, row), request(house, late)]
    with tenant_scope(house.tenant):
        Contact.objects.filter(pk=late.pk).update(merged_into=row)
    answer = browser(house.owner).post(f"/api/v1/contacts/{row.pk}/erase")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "erasure_running"
    with tenant_scope(house.tenant):
        assert [Person.of(Erasure.objects.get(pk=each.pk).person).contacts for each in begun] == [(row.pk,), (late.pk,)]


def test_the_older_address_begins_the_same_erasure(house: PersonalData) -> None:
    row, _, name = house.customer("Hello.")
    remember(house.tenant, customer(name), "Likes parcels.")
    answer = browser(house.owner).post(f"/api/v1/contacts/{row.pk}/forget")
    assert answer.json() == {"memories": 1}
    assert browser(make_member(house.tenant, "agent")).post(f"/api/v1/contacts/{row.pk}/forget").status_code == 403
    with tenant_scope(house.tenant):
        assert Erasure.objects.filter(reference=f"contact:{row.pk}", ended_at=None).count() == 1


def test_neither_exported_nor_merged_while_it_runs(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    twin, _, _ = house.customer("Twin.")
    begun = request(house, row)
    owner = browser(house.owner)
    assert owner.post(f"/api/v1/contacts/{row.pk}/export").json()["error"]["code"] == "erasure_running"
    for kept, merged in ((row, twin), (twin, row)):
        sent = owner.post(f"/api/v1/contacts/{kept.pk}/merge", {"contact": str(merged.pk)}, "application/json")
        assert sent.status_code == 409
        assert sent.json()["error"]["code"] == "erasure_running"
    assert owner.get(f"/api/v1/erasures/{begun.pk}/receipt").status_code == 409
    page = owner.get(reverse("console-contact", args=[row.pk])).content.decode()
    assert reverse("console-erasure", args=[begun.pk]) in page
    assert reverse("console-contact-export", args=[row.pk]) not in page


def test_it_waits_for_an_export_and_for_an_answer_that_is_being_written(house: PersonalData) -> None:
    row, session, _ = house.customer("Hello.")
    begun = request(house, row)
    with tenant_scope(house.tenant):
        Turn.objects.create(
            session=session, message_seq=1, number=1, epoch=0, step="x", status="running", started_at=now()
        )
    carry_out_kinds(house.tenant, Kind.PERSON_ERASURE)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
        assert begun.ended_at is None
        (message,) = QueueMessage.objects.filter(kind=Kind.PERSON_ERASURE, scope_id__contains=str(begun.pk))
    assert message.state == "queued"
    assert message.attempts == 0
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
    assert begun.ended_at is not None


def test_an_export_holds_the_person(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    begun = request(house, row)
    end_turns(house)

    def step() -> erasure.Progress:
        with tenant_scope(house.tenant):
            return erasure.erase_some(begun.pk)

    with tenant_scope(house.tenant):
        assert lock_person(person_of_contact(row.pk), shared=True)
        assert rivals.race(step) == [erasure.Progress.WAITS]
    assert step() is erasure.Progress.MORE


def test_a_message_that_arrives_meanwhile_is_erased_too(house: PersonalData) -> None:
    row, session, _ = house.customer(SECRET)
    begun = request(house, row)
    end_turns(house)
    steps = 0
    while True:
        with tenant_scope(house.tenant):
            progress = erasure.erase_some(begun.pk)
        if progress is erasure.Progress.ENDED:
            break
        assert progress is erasure.Progress.MORE
        steps += 1
        if steps in (1, 3):
            say(session, f"More of {SECRET} {steps}")
            end_turns(house)
    assert steps > 3
    with tenant_scope(house.tenant):
        texts = list(ChronicleEntry.objects.filter(session=session).values_list("text", flat=True))
    assert not [text for text in texts if "Mephisto" in text]
    say(session, "A new word.")
    with tenant_scope(house.tenant):
        assert ChronicleEntry.objects.filter(session=session, text="A new word.").exists()


def test_a_step_that_is_rolled_back_is_counted_once(house: PersonalData) -> None:
    """A worker that dies in a step leaves nothing of the step."""
    row, session, _ = house.customer("Hello.")
    say(session, "Hello again.")
    begun = request(house, row)
    end_turns(house)

    def die() -> None:
        with tenant_scope(house.tenant):
            erasure.erase_some(begun.pk)
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        die()
    with tenant_scope(house.tenant):
        assert Erasure.objects.get(pk=begun.pk).counts == {}
        visible = ChronicleEntry.objects.filter(session=session).exclude(text__in=("", FORGOTTEN)).count()
    work(house)
    erased = receipt_of(house, begun)["receipt"]["erased"]
    assert erased["messages"] >= visible == 2


def test_one_that_failed_is_shown_and_continues_when_pressed_again(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    begun = request(house, row)
    with tenant_scope(house.tenant):
        message = QueueMessage.objects.get(kind=Kind.PERSON_ERASURE, scope_id__contains=str(begun.pk))
        erasure.stop(message)
        QueueMessage.objects.filter(pk=message.pk).update(state="dead", finished_at=now())
    page = browser(house.owner).get(reverse("console-erasure", args=[begun.pk])).content.decode()
    assert "stopped" in page
    again = reverse("console-contact-erase", args=[row.pk])
    assert again in page
    assert browser(house.owner).post(again)["Location"] == reverse("console-erasure", args=[begun.pk])
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
    assert begun.state == "done"


def test_of_a_conversation_that_two_customers_had_only_their_part_is_erased(house: PersonalData) -> None:
    first, session, _ = house.customer("Words of the first.")
    second = f"C-{uuid4().hex[:10]}"
    with tenant_scope(house.tenant):
        levels._write(lock_session(session.pk), verified(second), earned=True)
    say(session, "Words of the second.")
    request(house, first)
    work(house)
    with tenant_scope(house.tenant):
        texts = list(ChronicleEntry.objects.filter(session=session).values_list("text", flat=True))
        (other,) = queries.list_contacts(ContactFilter(customer=second))[0]
    assert "Words of the first." not in texts
    assert "Words of the second." in texts
    assert "Words of the second." in house.export(other)["messages.json"].decode()


def test_conversation_that_two_customers_had_does_not_remember_the_erased_one(house: PersonalData) -> None:
    _, session, _ = house.customer("Words of the first.")
    name = f"C-{uuid4().hex[:10]}"
    with tenant_scope(house.tenant):
        levels._write(lock_session(session.pk), verified(name), earned=True)
    say(session, SECRET)
    with tenant_scope(house.tenant):
        (second,) = queries.list_contacts(ContactFilter(customer=name))[0]
        assert "Mephisto" in ChatSession.objects.get(pk=session.pk).preview
    request(house, second)
    work(house)
    with tenant_scope(house.tenant):
        left = ChatSession.objects.get(pk=session.pk)
        assert ChronicleEntry.objects.filter(session=session, text="Words of the first.").exists()
    assert left.preview == FORGOTTEN
    assert left.last_customer == ""
    assert left.focus["forgettings"] == 1


def test_contact_that_was_merged_in_beside_the_request_stops_no_erasure(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    late, _, _ = house.customer("Late.")
    begun = request(house, row)
    with tenant_scope(house.tenant):
        Contact.objects.filter(pk=late.pk).update(merged_into=row)
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
        assert begun.state == "done"
        assert not Contact.objects.filter(pk=row.pk).exists()
        assert Contact.objects.get(pk=late.pk).merged_into is None


def test_merged_contacts_and_proved_addresses_go_together(house: PersonalData) -> None:
    kept, _, one = house.customer("One.")
    merged, _, two = house.customer("Two.")
    with tenant_scope(house.tenant):
        services.merge(kept.pk, merged.pk, actor=house.owner.actor)
    request(house, kept)
    work(house)
    with tenant_scope(house.tenant):
        assert not Contact.objects.filter(pk__in=(kept.pk, merged.pk)).exists()
        assert not ContactIdentity.objects.filter(value__in=(one, two)).exists()
        assert not ChronicleEntry.objects.filter(text__in=("One.", "Two.")).exists()


def test_a_visitor_without_a_contact(house: PersonalData) -> None:
    session = house.show()
    say(session, "Nobody knows me.")
    page = browser(house.owner).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert reverse("console-visitor-erase", args=[session.pk]) in page
    answer = browser(house.owner).post(reverse("console-visitor-erase", args=[session.pk]))
    work(house)
    shown = browser(house.owner).get(answer["Location"]).content.decode()
    assert f"session:{session.pk}" in shown
    assert "Download receipt" in shown
    with tenant_scope(house.tenant):
        assert not ChronicleEntry.objects.filter(text="Nobody knows me.").exists()
        row = Erasure.objects.get(reference=f"session:{session.pk}")
    file = browser(house.owner).get(reverse("console-erasure-receipt", args=[row.pk]))
    assert file["Content-Disposition"].startswith("attachment")
    assert json.loads(file.content)["receipt"]["person"] == f"session:{session.pk}"
    listed = browser(house.owner).get(reverse("console-erasures")).content.decode()
    assert reverse("console-erasure", args=[row.pk]) in listed


def test_signed_approvals_stay(house: PersonalData) -> None:
    row, session, _ = house.customer("Hello.")
    card = make_card(house.tenant, session_id=session.pk)
    begun = request(house, row)
    work(house)
    with tenant_scope(house.tenant):
        assert Card.objects.filter(pk=card.pk).exists()
    kept = {each["kind"]: each for each in receipt_of(house, begun)["receipt"]["kept"]}
    assert kept["cards"]["count"] == 1
    assert "signed" in kept["cards"]["why"]


def open_item(house: PersonalData, session: ChatSession, subject: str) -> WorkItem:
    moment = now()
    with tenant_scope(house.tenant):
        item: WorkItem = WorkItem.objects.create(
            type="task",
            title="Refund",
            plan="{}",
            plan_hash=uuid4().hex * 2,
            trace_id="t",
            session_id=session.pk,
            subject=subject,
            requested_by="visitor",
            created_at=moment,
            updated_at=moment,
        )
    return item


def test_open_work_and_cards_of_the_person_cannot_be_approved_afterwards(house: PersonalData) -> None:
    row, session, name = house.customer("Hello.")
    _, other_session, other_name = house.customer("Hello.")
    item = open_item(house, session, name)
    theirs = open_item(house, other_session, other_name)
    about_work = open_card(house.tenant, subject_kind="work_item", subject_id=item.pk)
    of_conversation = make_card(house.tenant, session_id=session.pk)
    of_other = make_card(house.tenant, session_id=other_session.pk)
    begun = request(house, row)
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
        assert begun.state == "done"
        item.refresh_from_db()
        theirs.refresh_from_db()
        assert item.status == WorkItemStatus.FAILED
        assert item.reason == WorkReason.CANCELLED
        assert theirs.status == WorkItemStatus.PENDING
        states = {card.pk: card.status for card in Card.objects.all()}
        entry = AuditEntry.objects.get(event="work_cancelled", subject=f"work:{item.pk}")
        assert entry.actor == house.owner.actor
    assert states[about_work.pk] == "withdrawn"
    assert states[of_conversation.pk] == "withdrawn"
    assert states[of_other.pk] == "open"
    with tenant_scope(house.tenant), pytest.raises(SilasError) as refused:
        decide_card(about_work.pk, user=house.owner, verdict=ApprovalVerdict.APPROVED)
    assert refused.value.code == "card_withdrawn"


def test_it_waits_until_running_work_has_stopped(house: PersonalData) -> None:
    row, session, name = house.customer(SECRET)
    item = open_item(house, session, name)
    token = make_token(house.tenant, house.owner, make_plan())
    with tenant_scope(house.tenant):
        WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.RUNNING, approval_token=token)
    begun = request(house, row)
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
        assert begun.ended_at is None
        assert begun.counts == {}
        assert Course.objects.get(work_item=item).cancelled_by == house.owner.actor
        assert AuditEntry.objects.filter(event="work_cancelled", subject=f"work:{item.pk}").count() == 1
        WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.FAILED, reason=WorkReason.CANCELLED)
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
    assert begun.state == "done"


def test_work_that_was_requested_meanwhile_is_cancelled_too(house: PersonalData) -> None:
    row, session, name = house.customer("Hello.")
    begun = request(house, row)
    end_turns(house)
    with tenant_scope(house.tenant):
        assert erasure.erase_some(begun.pk) is erasure.Progress.MORE
    item = open_item(house, session, name)
    work(house)
    with tenant_scope(house.tenant):
        begun.refresh_from_db()
        item.refresh_from_db()
    assert begun.state == "done"
    assert item.reason == WorkReason.CANCELLED


def without_contact(house: PersonalData) -> tuple[ChatSession, ChatSession]:
    """Two conversations of a verified customer who is no contact."""
    name = f"C-{uuid4().hex[:10]}"
    sessions = house.show(house.site.sign(sub=name)), house.show(house.site.sign(sub=name))
    with tenant_scope(house.tenant):
        ContactIdentity.objects.filter(value=name).delete()
    return sessions


def test_customer_without_a_contact_is_erased_once(house: PersonalData) -> None:
    one, other = without_contact(house)

    def asks(session: ChatSession) -> UUID:
        with tenant_scope(house.tenant):
            return UUID(str(erasure.request_erasure(person_of_visitor(session.pk), actor=house.owner.actor).pk))

    first, second = rivals.race(lambda: asks(one), lambda: asks(other))
    assert first == second
    with tenant_scope(house.tenant):
        running = [Person.of(each.person) for each in Erasure.objects.filter(ended_at=None)]
    assert [one.pk in each.sessions for each in running].count(True) == 1
    for session in (one, other):
        answer = browser(house.owner).post(f"/api/v1/sessions/{session.pk}/export")
        assert answer.json()["error"]["code"] == "erasure_running"
    work(house)
    assert {*receipt_of(house, Erasure(pk=first))["receipt"]["erased"]} >= {"conversations"}


def test_person_who_is_covered_in_part_waits(house: PersonalData) -> None:
    one, _ = without_contact(house)
    with tenant_scope(house.tenant):
        person = person_of_visitor(one.pk)
        erasure.request_erasure(Person(f"session:{uuid4()}", sessions=(one.pk,)), actor=house.owner.actor)
    answer = browser(house.owner).post(f"/api/v1/sessions/{one.pk}/erase")
    assert len(person.sessions) == 2
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "erasure_running"


def test_merge_is_not_undone_while_it_runs(house: PersonalData) -> None:
    kept, _, _ = house.customer("One.")
    merged, _, _ = house.customer("Two.")
    with tenant_scope(house.tenant):
        merge = services.merge(kept.pk, merged.pk, actor=house.owner.actor)
    request(house, kept)
    with tenant_scope(house.tenant), pytest.raises(SilasError) as refused:
        services.unmerge(kept.pk, merge.pk, actor=house.owner.actor)
    assert refused.value.code == "erasure_running"
    work(house)
    with tenant_scope(house.tenant):
        assert not Contact.objects.filter(pk__in=(kept.pk, merged.pk)).exists()


def test_command_erases_and_writes_the_receipt(house: PersonalData, tmp_path: Path) -> None:
    row, session, name = house.customer(SECRET)
    end_turns(house)
    file = tmp_path / "receipt.json"
    call_command("erase_person", str(file), tenant=house.tenant.slug, contact=row.pk, yes=True)
    assert json.loads(file.read_text())["receipt"]["person"] == f"contact:{row.pk}"
    assert file.stat().st_mode & 0o077 == 0
    with tenant_scope(house.tenant):
        assert not ContactIdentity.objects.filter(value=name).exists()
        assert not ChronicleEntry.objects.filter(session=session, text=SECRET).exists()


@pytest.mark.parametrize("whose", ["contact", "visitor"])
def test_command_refuses_whom_the_company_does_not_have(house: PersonalData, tmp_path: Path, whose: str) -> None:
    row, session, _ = house.customer("Hello.")
    foreign: UUID = row.pk if whose == "contact" else session.pk
    with pytest.raises(CommandError, match="has no such"):
        call_command("erase_person", str(tmp_path / "x"), tenant=make_tenant().slug, yes=True, **{whose: foreign})
    assert list(tmp_path.iterdir()) == []
    with tenant_scope(house.tenant):
        assert Contact.objects.filter(pk=row.pk).exists()


def test_person_is_kept_as_json(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    with tenant_scope(house.tenant):
        person = person_of_contact(row.pk)
    span = ((now(), None), (now(), now()))
    shared = Person(person.reference, person.contacts, person.customers, person.sessions, {uuid4(): span})
    for each in (person, shared):
        assert Person.of(json.loads(json.dumps(each.as_kept()))) == each
