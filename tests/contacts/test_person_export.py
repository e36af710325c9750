"""Export of a person's data: complete, without other people's data, notes and secrets, and for owners only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.audit.queries import chain_of, verify_chain
from apps.contacts import queries, services
from apps.contacts.queries import ContactFilter
from apps.sessions import levels
from apps.sessions.locks import lock_session
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from apps.visitors import files
from apps.visitors.models import Rating
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.memories import customer, remember, verified
from tests.factories.personal_data import PDF, PersonalData, make_personal_data, unpacked
from tests.factories.sessions import say
from tests.factories.tenants import make_member, make_tenant
from tests.factories.visitors import offer


@pytest.fixture(scope="module")
def built(migrated: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PersonalData]:
    with django_db_blocker.unblock():
        yield make_personal_data(Path(tmp_path_factory.mktemp("desk")))
        connections.close_all()


@pytest.fixture
def house(built: PersonalData, database: None) -> PersonalData:
    return built


def test_archive_holds_what_is_theirs_and_says_what_it_holds(house: PersonalData) -> None:
    row, session, name = house.customer("Where is my parcel?")
    other, _, _ = house.customer("A secret of somebody else.")
    remember(house.tenant, customer(name), "Likes parcels.")
    with tenant_scope(house.tenant):
        services.add_note(row.pk, "Difficult customer.", actor=house.owner.actor, author=house.owner)
        Rating.objects.create(
            session=session,
            deployment=session.deployment,
            scale="thumbs",
            score=1,
            comment="Fine.",
            created_at=now(),
            changed_at=now(),
        )
    found = house.export(row)
    manifest = json.loads(found["manifest.json"])
    assert manifest["person"] == f"contact:{row.pk}"
    messages = json.loads(found["messages.json"])
    assert "Where is my parcel?" in [each["text"] for each in messages]
    assert {each["session_id"] for each in messages} == {str(session.pk)}
    assert [each["content"] for each in json.loads(found["memories.json"])] == ["Likes parcels."]
    assert [each["comment"] for each in json.loads(found["ratings.json"])] == ["Fine."]
    assert [each["value"] for each in json.loads(found["identities.json"])] == [name]
    assert "contact_added" in [each["event"] for each in json.loads(found["audit_log.json"])]
    everything = b"".join(found.values()).decode()
    assert "A secret of somebody else." not in everything
    assert str(other.pk) not in everything
    assert "Difficult customer." not in everything
    assert session.resume_hash not in everything
    for file, digest in manifest["sha256"].items():
        assert hashlib.sha256(found[file]).hexdigest() == digest, file
    for file, count in manifest["counts"].items():
        assert len(json.loads(found[f"{file}.json"])) == count, file
    assert "contacts.ContactNote" in manifest["left_out"]


def test_export_is_recorded_and_the_audit_log_still_verifies(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    house.export(row)
    with tenant_scope(house.tenant):
        entry = AuditEntry.objects.get(event="person_exported", subject=f"contact:{row.pk}")
        chain = chain_of(house.tenant.pk)
    assert entry.actor == house.owner.actor
    assert json.loads(entry.data)["rows"] > 3
    assert verify_chain(chain).broken is None


def test_files_are_copied_with_their_bytes(house: PersonalData) -> None:
    row, session, _ = house.customer("Here is a file.")
    offer(house.site.deployment, pdfs=True)
    kept = files.keep(session.tenant_id, session.pk, name="../bill.pdf", chunks=[PDF], client_id="a")
    found = house.export(row)
    (place,) = [name for name in found if name.startswith("files/")]
    assert found[place] == PDF
    assert place == f"files/{kept.pk}-{kept.name}"
    assert ".." not in place


def test_of_a_conversation_that_two_customers_had_each_gets_their_own_part(house: PersonalData) -> None:
    first, session, _ = house.customer("Words of the first.")
    second = f"C-{uuid4().hex[:10]}"
    with tenant_scope(house.tenant):
        levels._write(lock_session(session.pk), verified(second), earned=True)
    say(session, "Words of the second.")
    with tenant_scope(house.tenant):
        (other,) = queries.list_contacts(ContactFilter(customer=second))[0]
    theirs, others = house.export(first)["messages.json"].decode(), house.export(other)["messages.json"].decode()
    assert "Words of the first." in theirs
    assert "Words of the second." not in theirs
    assert "Words of the second." in others
    assert "Words of the first." not in others


def test_merged_contacts_are_exported_together(house: PersonalData) -> None:
    kept, _, _ = house.customer("One.")
    merged, _, _ = house.customer("Two.")
    with tenant_scope(house.tenant):
        services.merge(kept.pk, merged.pk, actor=house.owner.actor)
    found = house.export(kept)
    assert {each["text"] for each in json.loads(found["messages.json"])} >= {"One.", "Two."}
    assert len(json.loads(found["contacts.json"])) == 2


def test_only_owners_of_the_company_export(house: PersonalData) -> None:
    row, _, _ = house.customer("Hello.")
    page, api = reverse("console-contact-export", args=[row.pk]), f"/api/v1/contacts/{row.pk}/export"
    assert browser(house.stranger).post(page).status_code == 404
    assert browser(house.stranger).post(api).status_code == 404
    assert "manifest.json" in unpacked(browser(house.owner).post(api).getvalue())
    assert browser(house.owner).get(page).status_code == 405
    assert browser(house.owner).post(f"/api/v1/contacts/{uuid4()}/export").status_code == 404
    for role in ("approver", "agent", "viewer"):
        member = browser(make_member(house.tenant, role))
        assert member.post(page).status_code == 403, role
        assert member.post(api).status_code == 403, role
        assert page not in member.get(reverse("console-contact", args=[row.pk])).content.decode(), role
    with tenant_scope(house.tenant):
        key = create_api_key("Test", scopes=(KeyScope.CONTACTS_WRITE,)).key
    assert Client().post(api, headers={"authorization": f"Bearer {key}"}).status_code == 403
    assert page in browser(house.owner).get(reverse("console-contact", args=[row.pk])).content.decode()


def test_command_exports_a_visitor_without_a_contact(house: PersonalData, tmp_path: Path) -> None:
    session = house.show()
    say(session, "Nobody knows me.")
    file = tmp_path / "visitor.zip"
    call_command("export_person", str(file), tenant=house.tenant.slug, visitor=session.pk)
    found = unpacked(file.read_bytes())
    assert "Nobody knows me." in found["messages.json"].decode()
    assert json.loads(found["manifest.json"])["person"] == f"session:{session.pk}"
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("whose", ["contact", "visitor"])
def test_command_refuses_whom_the_company_does_not_have(house: PersonalData, tmp_path: Path, whose: str) -> None:
    row, session, _ = house.customer("Hello.")
    foreign: UUID = row.pk if whose == "contact" else session.pk
    file = tmp_path / "x.zip"
    with pytest.raises(CommandError, match="has no such"):
        call_command("export_person", str(file), tenant=make_tenant().slug, **{whose: foreign})
    assert list(tmp_path.iterdir()) == []
