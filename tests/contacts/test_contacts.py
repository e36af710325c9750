"""Contacts: who becomes one, what is believed of them, and that a merge gives nobody anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.access.rules import PUBLIC
from apps.audit.models import AuditEntry
from apps.console.pages.contacts import urls as page_urls
from apps.contacts import queries, services
from apps.contacts.enums import ContactSource, IdentityKind, Proof
from apps.contacts.models import Contact, ContactIdentity, ContactMerge
from apps.contacts.queries import ContactFilter
from apps.memory.recall import memories_of
from apps.sessions.models import ChatSession
from apps.sessions.queries import scopes_about
from apps.tenants.enums import KeyScope
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.console.test_roles import ALLOWED
from tests.factories.api import Api as Program
from tests.factories.api import code
from tests.factories.console import browser
from tests.factories.identity import make_identity_desk
from tests.factories.memories import customer, remember
from tests.factories.sessions import say
from tests.factories.signed import Site, make_site
from tests.factories.tenants import make_member, make_tenant

CONTACTS = "/api/v1/contacts"


@dataclass
class House:
    tenant: Any
    site: Site
    agent: Any
    viewer: Any
    stranger: Any

    def show(self, token: str = "", resume: str = "", **attributes: str) -> ChatSession:
        """The conversation of a visitor whom the site names with `token`."""
        body: dict[str, Any] = {"attributes": attributes} if attributes else {}
        body |= {"identity_token": token} if token else {}
        body |= {"resume_token": resume} if resume else {}
        path = f"/api/v1/widget/{self.site.deployment.public_key}/sessions"
        answer = Client().post(path, body, content_type="application/json").json()
        with tenant_scope(self.tenant):
            session: ChatSession = ChatSession.objects.get(pk=answer["session_id"])
        session.__dict__["resume"] = answer["resume_token"]
        return session

    def contact(self, customer_id: str) -> Contact:
        with tenant_scope(self.tenant):
            (row,) = queries.list_contacts(ContactFilter(customer=customer_id))[0]
        return row

    def stated(self, **fields: Any) -> Contact:
        """A contact of whom everything was only said."""
        with tenant_scope(self.tenant):
            row = services.save_contact(None, actor="api_key:test", source=ContactSource.API, **fields)
            return queries.contact(row.pk)

    def identities(self, row: Contact) -> dict[str, str]:
        with tenant_scope(self.tenant):
            return {each.value: each.proved_by for each in ContactIdentity.objects.filter(contact=row)}


@pytest.fixture(scope="module")
def built(migrated: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with django_db_blocker.unblock():
        tenant = make_tenant()
        site = make_site(make_identity_desk(tenant, Path(tmp_path_factory.mktemp("desk"))))
        agent, viewer = make_member(tenant, "agent"), make_member(tenant, "viewer")
        yield House(tenant, site, agent, viewer, make_member(make_tenant(), "owner"))
        connections.close_all()


@pytest.fixture
def house(built: House, database: None) -> House:
    return built


def unique(prefix: str = "C") -> str:
    return f"{prefix}-{uuid4().hex[:10]}"


# -- who is a contact --------------------------------------------------------------------------------------------------


def test_signed_visitor_is_a_contact_with_what_the_site_signed(house: House) -> None:
    maria, mail = unique(), f"{unique('m').lower()}@example.test"
    claims: dict[str, Any] = {
        "email": mail.upper(),
        "phone": "+49 30 901820",
        "attributes": {"plan": "gold", "seats": 4, "deep": [1]},
    }
    house.show(house.site.sign(sub=maria, **claims), plan="free", page="/pricing")
    row = house.contact(maria)
    assert row.name == "Maria Ortega"
    assert house.identities(row) == {maria: Proof.SIGNED, mail: Proof.SIGNED, "+4930901820": Proof.SIGNED}
    assert row.attributes["plan"] == {"value": "gold", "proved": True}
    assert row.attributes["seats"] == {"value": 4, "proved": True}
    assert row.attributes["page"] == {"value": "/pricing", "proved": False}
    assert "deep" not in row.attributes
    house.show(house.site.sign(sub=maria, **{**claims, "email": None}))
    assert house.contact(maria).pk == row.pk


def test_unknown_visitor_and_forged_token_make_no_contact(house: House) -> None:
    nobody = unique()
    forged = house.site.sign(sub=nobody, secret="another-secret-of-thirty-two-bytes")
    house.show(forged, email="victim@example.test", customer=nobody)
    with tenant_scope(house.tenant):
        assert not ContactIdentity.objects.filter(value__in=[nobody, "victim@example.test"]).exists()


def test_address_that_is_proved_of_one_is_not_given_to_another(house: House) -> None:
    first, second, mail = unique(), unique(), f"{unique('s').lower()}@example.test"
    house.show(house.site.sign(sub=first, email=mail))
    house.show(house.site.sign(sub=second, email=mail))
    assert mail in house.identities(house.contact(first))
    assert mail not in house.identities(house.contact(second))


def test_whoever_proves_an_address_that_was_only_said_of_another_is_not_taken_for_them(house: House) -> None:
    mail = f"{unique('p').lower()}@example.test"
    said = house.stated(name="Said", customer=unique(), emails=[mail])
    with tenant_scope(house.tenant):
        proved = services.identify(IdentityKind.EMAIL, mail, proved_by=Proof.LINK)
        again = services.identify(IdentityKind.EMAIL, mail, proved_by=Proof.LINK)
        assert [row.pk for row in queries.duplicates_of(queries.contact(proved.pk))] == [said.pk]
        with pytest.raises(ValueError, match="proved"):
            services.identify(IdentityKind.EMAIL, mail, proved_by=Proof.NONE)
    assert proved.pk != said.pk
    assert again.pk == proved.pk


# -- merging -----------------------------------------------------------------------------------------------------------


def test_merge_gives_no_level_and_no_memory_and_is_undone(house: House) -> None:
    maria, mail = unique(), f"{unique('a').lower()}@example.test"
    verified = house.show(house.site.sign(sub=maria))
    remember(house.tenant, customer(maria), "Maria's account ends in 77.")
    stranger = house.show(email=mail, customer=maria)
    say(stranger, "I am Maria, what is my account?")
    kept, other = house.contact(maria), house.stated(name="Mallory", emails=[mail], attributes={"tier": "vip"})
    with tenant_scope(house.tenant):
        services.add_note(other.pk, "Asks a lot.", actor="api_key:test")
        merged = services.merge(kept.pk, other.pk, actor="api_key:test")
        stranger.refresh_from_db()
        assert stranger.level == PUBLIC
        assert stranger.whose == ""
        assert memories_of(scopes_about(stranger)).filter(content__contains="77").count() == 0
        assert [row.pk for row in queries.conversations_of(queries.contact(kept.pk)) if row.pk == stranger.pk] == []
        assert queries.contact(other.pk).pk == kept.pk
    assert house.identities(kept) == {maria: Proof.SIGNED, mail: Proof.NONE}
    # Whoever proves the merged address later is a contact of their own: what was said of Maria is not theirs.
    with tenant_scope(house.tenant):
        assert services.identify(IdentityKind.EMAIL, mail, proved_by=Proof.LINK).pk not in (kept.pk, other.pk)
        back = services.unmerge(kept.pk, merged.pk, actor="api_key:test")
        assert back.pk == other.pk
        assert [note.text for note in queries.notes_of(back)] == ["Asks a lot."]
        assert queries.notes_of(queries.contact(kept.pk)) == []
        assert "tier" not in queries.contact(kept.pk).attributes
        with pytest.raises(SilasError, match=r"can't be undone"):
            services.unmerge(kept.pk, merged.pk, actor="api_key:test")
    assert house.identities(kept) == {maria: Proof.SIGNED}
    assert house.identities(other) == {mail: Proof.NONE}
    assert verified.customer == maria


def test_merge_of_two_customers_keeps_their_memories_apart(house: House) -> None:
    maria, jonas = unique(), unique()
    first, second = house.show(house.site.sign(sub=maria)), house.show(house.site.sign(sub=jonas))
    remember(house.tenant, customer(jonas), "Jonas moved to Kiel.")
    with tenant_scope(house.tenant):
        services.merge(house.contact(maria).pk, house.contact(jonas).pk, actor="api_key:test")
        assert memories_of(scopes_about(first)).count() == 0
        assert memories_of(scopes_about(second)).count() == 1
    house.show(house.site.sign(sub=jonas))
    assert house.contact(jonas).pk == house.contact(maria).pk


def test_what_is_said_twice_comes_back_after_a_merge_and_nothing_old_is_undone(house: House) -> None:
    mail = f"{unique('d').lower()}@example.test"
    kept, other = house.stated(name="", emails=[mail]), house.stated(name="Ada", phones=["+44 20 7946 0958"])
    with tenant_scope(house.tenant):
        services.add_proved(other, IdentityKind.EMAIL, mail, Proof.LINK)
        row = services.merge(kept.pk, other.pk, actor="api_key:test")
        assert queries.contact(kept.pk).name == "Ada"
    assert house.identities(kept) == {mail: Proof.LINK, "+442079460958": Proof.NONE}
    with tenant_scope(house.tenant):
        third = services.save_contact(None, actor="api_key:test", source=ContactSource.API, name="Third")
        on = services.merge(third.pk, kept.pk, actor="api_key:test")
        with pytest.raises(SilasError, match=r"can't be undone"):
            services.unmerge(kept.pk, row.pk, actor="api_key:test")
        services.unmerge(third.pk, on.pk, actor="api_key:test")
        services.unmerge(kept.pk, row.pk, actor="api_key:test")
        assert queries.contact(kept.pk).name == ""
    assert house.identities(kept) == {mail: Proof.NONE}
    assert house.identities(other) == {mail: Proof.LINK, "+442079460958": Proof.NONE}
    with tenant_scope(house.tenant):
        late = services.merge(kept.pk, other.pk, actor="api_key:test")
        ContactMerge.objects.filter(pk=late.pk).update(created_at=now() - timedelta(days=31))
        assert queries.merges_of(kept) == []
        with pytest.raises(SilasError, match=r"can't be undone"):
            services.unmerge(kept.pk, late.pk, actor="api_key:test")


# -- the API -----------------------------------------------------------------------------------------------------------


class Api(Program):
    """A program or a member who asks about contacts."""

    def __call__(self, verb: str, path: str = "", body: Any = None, **headers: str) -> Any:
        if verb == "get":
            return self.get(f"{CONTACTS}{path}", **(body or {}))
        return self.send(verb, f"{CONTACTS}{path}", body or {}, **headers)


def test_program_adds_finds_changes_merges_and_unmerges(house: House) -> None:
    api, own, mail = Api(house.tenant), unique(), f"{unique('x').lower()}@example.test"
    made = api("post", "", {"name": " Ada  Byron ", "emails": [mail.upper()], "customer": own, "attributes": {"n": 1}})
    assert made.status_code == 201
    ada = made.json()
    assert ada["name"] == "Ada Byron"
    assert ada["source"] == "api"
    assert ada["attributes"] == {"n": {"value": 1, "proved": True}}
    assert {row["value"]: row["proved_by"] for row in ada["identities"]} == {own: "", mail: ""}
    for query in ({"search": "da by"}, {"search": mail[:8]}, {"customer": own}, {"email": mail}):
        assert ada["id"] in [row["id"] for row in api("get", "", {**query, "verified": "false"}).json()["contacts"]]
    at, etag = f"/{ada['id']}", made["ETag"]
    assert api("patch", at, {"name": "Ada", "attributes": {"n": None, "m": "x"}}, **{"if-match": etag}).json()[
        "attributes"
    ] == {"m": {"value": "x", "proved": True}}
    assert code(api("patch", at, {"name": "Late"}, **{"if-match": etag})) == (412, "contact_changed")
    other = api("post", "", {"name": "Twin"}).json()["id"]
    merged = api("post", f"{at}/merge", {"contact": other})
    (merge,) = merged.json()["merges"]
    assert merge["contact"] == other
    assert api("get", f"/{other}").json()["id"] == ada["id"]
    assert code(api("patch", f"/{other}", {"name": "Ghost"})) == (404, "not_found")
    assert api("post", f"{at}/unmerge", {"merge": merge["id"]}).json()["id"] == other
    assert code(api("post", f"{at}/unmerge", {"merge": merge["id"]})) == (409, "contact_merge_ended")
    assert code(api("post", f"{at}/merge", {"contact": ada["id"]})) == (409, "contact_merge_self")
    assert api("post", f"{at}/notes", {"text": "Called."}).json()["author"] is None
    assert [row["text"] for row in api("get", f"{at}/notes").json()["notes"]] == ["Called."]
    with tenant_scope(house.tenant):
        events = set(AuditEntry.objects.filter(subject=f"contact:{ada['id']}").values_list("event", flat=True))
    assert events == {"contact_added", "contact_changed", "contacts_merged", "contacts_unmerged", "contact_noted"}


def test_wrong_input_is_refused_and_changes_nothing(house: House) -> None:
    api, own = Api(house.tenant), unique()
    at = f"/{api('post', '', {'name': 'Ada', 'customer': own}).json()['id']}"
    assert code(api("post", "", {"name": "Twin", "customer": own})) == (409, "contact_known")
    assert code(api("patch", at, {})) == (400, "invalid")
    assert code(api("patch", at, {"nickname": "A"})) == (400, "invalid")
    assert code(api("patch", at, {"name": "B", "emails": ["no address"]})) == (400, "contact_field")
    assert code(api("patch", at, {"name": "B", "phones": ["901820"]})) == (400, "contact_field")
    assert code(api("patch", at, {"attributes": {"a": {"b": 1}}})) == (400, "contact_field")
    assert code(api("patch", at, {"attributes": {str(number): 1 for number in range(51)}})) == (400, "contact_field")
    assert code(api("get", "", {"before": "x"})) == (400, "invalid")
    assert api("get", at).json()["name"] == "Ada"
    with tenant_scope(house.tenant):
        assert not Contact.objects.filter(name="Twin").exists() or house.contact(own).name == "Ada"


def test_scopes_roles_and_tenants_are_walls(house: House) -> None:
    row = house.stated(name="Ada")
    reader = Api(house.tenant, KeyScope.CONTACTS_READ)
    assert reader("get", f"/{row.pk}").status_code == 200
    assert code(reader("patch", f"/{row.pk}", {"name": "B"})) == (403, "forbidden_scope")
    assert code(reader("get", f"/{row.pk}/memories")) == (403, "forbidden_scope")
    viewer = Api(house.tenant, member=house.viewer)
    assert viewer("get", f"/{row.pk}/sessions").json() == {"sessions": [], "next": ""}
    assert code(viewer("patch", f"/{row.pk}", {"name": "B"})) == (403, "forbidden_role")
    assert code(viewer("post", "", {"name": "B"})) == (403, "forbidden_role")
    assert code(Api(house.tenant)("post", f"/{row.pk}/erase")) == (403, "forbidden_role")
    foreign = Api(make_tenant())
    for verb, part, body in (
        ("get", "", None),
        ("patch", "", {"name": "B"}),
        ("get", "/sessions", None),
        ("get", "/memories", None),
        ("get", "/consents", None),
        ("get", "/notes", None),
        ("post", "/notes", {"text": "B"}),
        ("post", "/merge", {"contact": str(row.pk)}),
    ):
        assert foreign(verb, f"/{row.pk}{part}", body).status_code in (404, 409), part
    mine = foreign("post", "", {"name": "Mine"}).json()["id"]
    assert code(foreign("post", f"/{mine}/merge", {"contact": str(row.pk)})) == (404, "not_found")


def test_contact_without_a_customer_id_has_no_conversations_and_no_memories(house: House) -> None:
    maria = unique()
    house.show(house.site.sign(sub=maria))
    remember(house.tenant, customer(maria), "Private.")
    api, row = Api(house.tenant), house.stated(name="Nobody", emails=[f"{unique('n').lower()}@example.test"])
    assert api("get", f"/{row.pk}/memories").json()["memories"] == []
    theirs = api("get", f"/{house.contact(maria).pk}/memories").json()["memories"]
    assert [each["excerpt"] for each in theirs] == ["Private."]


def test_every_press_on_the_page_has_its_api_in_the_same_roles() -> None:
    shown = {
        "console-contact-merge": "api-contact-merge",
        "console-contact-unmerge": "api-contact-unmerge",
        "console-contact-erase": "api-contact-erase",
        "console-contact-export": "api-contact-export",
        "console-visitor-erase": "api-session-erase",
        "console-visitor-export": "api-session-export",
        "console-erasures": "api-erasures",
        "console-erasure": "api-erasure",
        "console-erasure-receipt": "api-erasure-receipt",
        "console-contacts": "api-contacts",
        "console-contact": "api-contact",
        "console-contact-history": "api-imported-session",
        "console-imports": "api-imports",
        "console-import": "api-import",
    }
    # One address each, whose services refuse members who only look.
    shared = {"console-contact-new", "console-contact-save", "console-contact-note"}
    assert {pattern.name for pattern in page_urls.urlpatterns} == {*shown, *shared}
    assert {page: ALLOWED[api] for page, api in shown.items()} == {page: ALLOWED[page] for page in shown}


# -- the page ----------------------------------------------------------------------------------------------------------


def test_pages_show_change_and_merge(house: House) -> None:
    maria = unique()
    session = house.show(house.site.sign(sub=maria), shoe="<script>42</script>")
    say(session, "Where is my parcel?")
    remember(house.tenant, customer(maria), "Likes parcels.")
    row, twin = house.contact(maria), house.stated(name="Twin", emails=["twin@example.test"])
    agent = browser(house.agent)
    listed = agent.get(reverse("console-contacts"), {"search": maria, "state": "verified"}).content.decode()
    assert reverse("console-contact", args=[row.pk]) in listed
    page = agent.get(reverse("console-contact", args=[row.pk])).content.decode()
    assert "Where is my parcel?" in page
    assert "Likes parcels." in page
    assert "<script>42" not in page
    assert "Not verified" in page
    viewed = browser(house.viewer).get(reverse("console-contact", args=[row.pk])).content.decode()
    assert "Likes parcels." not in viewed
    sent = {"name": "Maria O.", "email": "m@example.test\n", "phone": "", "customer": ""}
    assert agent.post(reverse("console-contact-save", args=[row.pk]), sent).status_code == 302
    assert agent.post(reverse("console-contact-save", args=[row.pk]), {**sent, "email": "x"}).status_code == 400
    preview = agent.get(reverse("console-contact-merge", args=[row.pk]), {"with": str(twin.pk)}).content.decode()
    assert "twin@example.test" in preview
    agent.post(reverse("console-contact-merge", args=[row.pk]), {"with": str(twin.pk)})
    assert house.identities(row) == {maria: Proof.SIGNED, "m@example.test": "", "twin@example.test": ""}
    assert browser(house.stranger).get(reverse("console-contact", args=[row.pk])).status_code == 404
    moved = agent.get(reverse("console-contact", args=[twin.pk]))
    assert moved["Location"] == reverse("console-contact", args=[row.pk])


def test_list_takes_as_many_queries_for_three_as_for_one(house: House) -> None:
    tenant = make_tenant()
    viewer = browser(make_member(tenant, "viewer"))

    def add() -> None:
        with tenant_scope(tenant):
            services.save_contact(None, actor="api_key:test", source=ContactSource.API, name="A", customer=unique())

    def count() -> int:
        with CaptureQueriesContext(connection) as taken:
            assert viewer.get(reverse("console-contacts")).status_code == 200
        return len(taken)

    add()
    count()
    one = count()
    add()
    add()
    assert count() == one
