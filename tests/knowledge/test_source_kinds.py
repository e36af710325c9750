"""A source with an account, from the form to the search: what its runs store, keep and retire."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.urls import reverse

from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection
from apps.guard.models import ToolCall
from apps.knowledge import source_reading, sources
from apps.knowledge.models import Collection, Document, KnowledgeSource
from apps.knowledge.services import open_collection
from apps.knowledge.sources import NewSource
from apps.skills import rules as skill_rules
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.connections import keep, make_connection
from tests.factories.console import browser
from tests.factories.knowledge import read_handed_in
from tests.factories.skills import install
from tests.factories.source_services import TOKEN, Service, Zendesk, serving
from tests.factories.tenants import make_member

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("101", "102", "103")


@pytest.fixture
def service(settings: LazySettings) -> Iterator[Service]:
    with serving(Zendesk()) as served:
        settings.EGRESS_PRIVATE = [served.origin.removeprefix("http://")]
        for name in NAMES:
            served.write(name, f"What is said about {name} stands here.")
        yield served


@pytest.fixture
def account(tenant: Any, service: Service) -> Connection:
    version = install(tenant, ROOT / "skills" / "generic-api-key")
    row = make_connection(
        tenant,
        name="Help center",
        skill=skill_rules.reference(version.name, version.digest),
        skill_name=version.name,
        settings={"base_url": service.origin},
    )
    keep(row, api_key=TOKEN)
    return row


@pytest.fixture
def collection(tenant: Any) -> Collection:
    with tenant_scope(tenant):
        return open_collection("help")


@pytest.fixture
def source(tenant: Any, account: Connection, collection: Collection) -> KnowledgeSource:
    with tenant_scope(tenant):
        made = sources.add_source(collection.pk, NewSource("zendesk", "en-us", 24, account.pk), actor="user:1")
    read_handed_in(tenant)
    return current(tenant, made)


def current(tenant: Any, source: KnowledgeSource) -> KnowledgeSource:
    with tenant_scope(tenant):
        found: KnowledgeSource = KnowledgeSource.objects.get(pk=source.pk)
        return found


def run(tenant: Any, source: KnowledgeSource) -> dict[str, Any]:
    with tenant_scope(tenant):
        assert sources.start_run(source.pk, dry_run=False)
    read_handed_in(tenant)
    return current(tenant, source).report


def searchable(tenant: Any) -> set[str]:
    with tenant_scope(tenant):
        found = Document.objects.filter(versions__chunks__isnull=False).distinct()
        return {reference.rpartition("/")[2] for reference in found.values_list("source_ref", flat=True)}


def test_owner_tests_a_source_before_it_is_read(
    tenant: Any, owner: Any, account: Connection, collection: Collection, service: Service
) -> None:
    client, page = browser(owner), reverse("console-sources")
    assert "Help center" in client.get(page, {"kind": "zendesk"}).content.decode()
    sent = {"kind": "zendesk", "connection": str(account.pk), "location": "en-us", "every_hours": "24"}
    client.post(reverse("console-source-new"), {**sent, "collection": str(collection.pk), "what": "test"})
    read_handed_in(tenant)
    shown = client.get(page).content.decode()
    assert "3 new" in shown
    assert "nothing was saved" in shown
    assert "About 101" in shown
    assert "Paused" in shown
    assert searchable(tenant) == set()
    with tenant_scope(tenant):
        source = KnowledgeSource.objects.get()
    client.post(reverse("console-source-turn", args=[source.pk]), {"enabled": "on"})
    read_handed_in(tenant)
    assert searchable(tenant) == set(NAMES)


def test_run_reads_what_changed_in_one_guarded_call(tenant: Any, source: KnowledgeSource, service: Service) -> None:
    assert source.report["counts"] == {"added": 3}
    service.write("101", "It reads differently now.")
    service.trash("102")
    service.asked.clear()
    report = run(tenant, source)
    assert report["counts"] == {"updated": 1, "gone": 1, "unchanged": 1}
    assert not report["kept"]
    assert report["state"] == "done"
    assert searchable(tenant) == {"101", "103"}
    assert not any(asked.path.endswith("/103") for asked in service.asked)
    with tenant_scope(tenant):
        document = Document.objects.get(source_ref__endswith="/101")
        calls = list(ToolCall.objects.values_list("tool", "state"))
    assert document.url == "https://help.example.com/articles/101"
    assert document.title == "About 101"
    assert calls == [("source:zendesk", "executed")] * 2


def test_two_languages_of_a_help_center_keep_their_own_documents(
    tenant: Any, account: Connection, collection: Collection, source: KnowledgeSource
) -> None:
    with tenant_scope(tenant):
        other = sources.add_source(collection.pk, NewSource("zendesk", "de", 24, account.pk), actor="user:1")
    read_handed_in(tenant)
    assert current(tenant, other).report["counts"] == {"added": 3}
    assert run(tenant, source)["counts"] == {"unchanged": 3}
    with tenant_scope(tenant):
        assert Document.objects.count() == 6


def test_source_that_takes_too_long_is_read_run_by_run(
    tenant: Any, account: Connection, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reading, "SECONDS", -1.0)
    with tenant_scope(tenant):
        source = sources.add_source(collection.pk, NewSource("zendesk", "en-us", 24, account.pk), actor="user:1")
    read_handed_in(tenant)
    assert searchable(tenant) == {"101"}
    first = current(tenant, source)
    assert first.report["more"]
    assert first.next_at is not None
    assert first.next_at - now() < timedelta(minutes=2)
    assert run(tenant, source)["counts"] == {"added": 1, "unchanged": 1}
    assert "more" not in run(tenant, source)
    assert searchable(tenant) == set(NAMES)


def test_account_that_does_not_work_is_reported_and_retires_nothing(
    tenant: Any, owner: Any, source: KnowledgeSource, account: Connection, service: Service
) -> None:
    service.token = "another"
    assert run(tenant, source)["state"] == "failed"
    assert "refused the account&#x27;s credentials" in browser(owner).get(reverse("console-sources")).content.decode()
    service.asked.clear()
    with tenant_scope(tenant):
        Connection.objects.filter(pk=account.pk).update(status=ConnectionStatus.PAUSED)
    assert "Reconnect it" in run(tenant, source)["error"]
    assert service.asked == []
    assert searchable(tenant) == set(NAMES)
    with tenant_scope(tenant):
        Connection.objects.filter(pk=account.pk).update(status=ConnectionStatus.REMOVED)
        with pytest.raises(SilasError) as refusal:
            sources.start_run(source.pk, dry_run=False)
    assert refusal.value.code == "connection_missing"


def test_empty_listing_retires_nothing_until_a_person_confirms(
    tenant: Any, owner: Any, source: KnowledgeSource, service: Service
) -> None:
    service.documents.clear()
    assert run(tenant, source)["kept"]
    assert searchable(tenant) == set(NAMES)
    client = browser(owner)
    assert "Remove deleted documents" in client.get(reverse("console-sources")).content.decode()
    client.post(reverse("console-source-confirm", args=[source.pk]))
    read_handed_in(tenant)
    assert searchable(tenant) == set()
    assert not current(tenant, source).report["kept"]
    assert client.post(reverse("console-source-confirm", args=[source.pk])).status_code == 409


def test_api_adds_reads_runs_and_removes_a_source(
    tenant: Any, other_tenant: Any, owner: Any, account: Connection, collection: Collection, service: Service
) -> None:
    client, json = browser(owner), "application/json"
    body = {"kind": "zendesk", "location": "en-us", "collection": str(collection.pk), "connection": str(account.pk)}
    added = client.post(reverse("api-sources"), body, content_type=json)
    assert added.status_code == 201
    place = reverse("api-source", args=[added.json()["id"]])
    read_handed_in(tenant)
    shown = client.get(place).json()
    assert shown["report"]["counts"] == {"added": 3}
    assert [change["title"] for change in shown["changes"]] == ["About 101", "About 102", "About 103"]
    assert [change["answers"] for change in shown["changes"]] == [0, 0, 0]
    running = client.post(reverse("api-source-run", args=[added.json()["id"]]), {"dry_run": True}, content_type=json)
    assert running.status_code == 202
    assert running.json() == {"started": True}
    read_handed_in(tenant)
    assert client.get(reverse("api-sources")).json()[0]["report"]["counts"] == {"unchanged": 3}
    assert client.post(reverse("api-source-confirm", args=[added.json()["id"]])).status_code == 409
    assert client.patch(place, {"enabled": False}, content_type=json).json()["enabled"] is False

    stranger = browser(make_member(other_tenant, "owner"))
    assert stranger.get(reverse("api-sources")).json() == []
    assert stranger.get(place).status_code == 404
    theirs = {**body, "collection": str(uuid4())}
    assert stranger.post(reverse("api-sources"), theirs, content_type=json).status_code == 409
    assert stranger.delete(place).status_code == 404
    wrong = {**body, "location": "../users"}
    assert client.post(reverse("api-sources"), wrong, content_type=json).status_code == 422
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404
    assert searchable(tenant) == set(NAMES)
