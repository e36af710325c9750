"""Websites that are read again: what a run finds, stores and retires, and when it retires nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.urls import reverse

from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.knowledge import sources
from apps.knowledge.models import Collection, Document, DocumentVersion, KnowledgeSource
from apps.knowledge.services import open_collection
from apps.knowledge.sources import NewSource
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.knowledge import read_handed_in, search
from tests.factories.tenants import make_member
from tests.factories.website import Served, Website, serving

PAGES = ("returns", "shipping", "payment", "gifts", "repairs")


@pytest.fixture
def site(settings: LazySettings) -> Iterator[Website]:
    settings.WEBSITES_PRIVATE = True
    with serving() as website:
        write(website, *PAGES)
        yield website


@pytest.fixture
def source(tenant: Any, site: Website) -> KnowledgeSource:
    with tenant_scope(tenant):
        home = open_collection("help")
        made = sources.add_source(home.pk, NewSource("website", f"{site.origin}/", 24), actor="user:1")
    read_handed_in(tenant)
    return current(tenant, made)


def write(site: Website, *names: str) -> None:
    """A start page that links to these pages, each about something else."""
    site.page("/", "<h1>Help</h1><p>Welcome to the help of our shop.</p>" + links(*names))
    for name in names:
        site.page(f"/{name}", f"<h1>{name}</h1><p>What we say of {name} stands here for everybody.</p>")


def links(*names: str) -> str:
    return "".join(f'<a href="/{name}">{name}</a> ' for name in names)


def vanish(site: Website, *names: str) -> None:
    for name in names:
        site.pages[f"/{name}"] = Served(b"Gone", status=404)


def current(tenant: Any, source: KnowledgeSource) -> KnowledgeSource:
    with tenant_scope(tenant):
        found: KnowledgeSource = KnowledgeSource.objects.get(pk=source.pk)
        return found


def run(tenant: Any, source: KnowledgeSource, *, dry_run: bool = False) -> dict[str, Any]:
    with tenant_scope(tenant):
        assert sources.start_run(source.pk, dry_run=dry_run)
    read_handed_in(tenant)
    return current(tenant, source).report


def searchable(tenant: Any) -> set[str]:
    with tenant_scope(tenant):
        found = Document.objects.filter(versions__chunks__isnull=False).distinct()
        return {reference.rpartition("/")[2] for reference in found.values_list("source_ref", flat=True)}


def test_first_run_reads_the_website_and_the_next_is_due_in_a_day(tenant: Any, source: KnowledgeSource) -> None:
    assert searchable(tenant) == {"", *PAGES}
    assert source.report["counts"] == {"added": 6}
    assert source.report["state"] == "done"
    with tenant_scope(tenant):
        due = QueueMessage.objects.get(kind=Kind.SOURCE_SYNC).available_at
    assert due == source.next_at
    assert timedelta(hours=23) < due - now() <= timedelta(hours=24)


def test_run_reports_new_changed_and_gone_pages(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    site.page("/", "<h1>Help</h1><p>Welcome to the help of our shop.</p>" + links("returns", "news"))
    site.page("/returns", "<h1>returns</h1><p>Parcels come back within ninety days.</p>")
    site.page("/news", "<h1>news</h1><p>We have opened a second shop.</p>")
    vanish(site, "gifts")
    report = run(tenant, source)
    assert report["counts"]["added"] == 1
    assert [url.rpartition("/")[2] for url in report["added"]] == ["news"]
    assert f"{site.origin}/returns" in report["updated"]
    assert report["gone"] == [f"{site.origin}/gifts"]
    assert searchable(tenant) == {"", "news", *PAGES} - {"gifts"}


def test_retired_page_keeps_its_versions_and_comes_back(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    vanish(site, "gifts")
    run(tenant, source)
    run(tenant, source)
    with tenant_scope(tenant):
        versions = DocumentVersion.objects.filter(document__source_ref=f"{site.origin}/gifts").order_by("number")
        assert [bool(version.text) for version in versions] == [True, False]
    assert not [found for found in search(tenant, "gifts for everybody") if found.title.startswith("gifts")]
    write(site, *PAGES)
    run(tenant, source)
    assert "gifts" in searchable(tenant)


def test_page_that_nobody_links_to_any_more_stays(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    site.page("/", "<h1>Help</h1><p>Welcome to the help of our shop.</p>")
    assert run(tenant, source).get("gone") == []
    assert searchable(tenant) == {"", *PAGES}


@pytest.mark.parametrize("status", [500, 403, 429])
def test_page_that_fails_for_now_stays(tenant: Any, source: KnowledgeSource, site: Website, status: int) -> None:
    site.pages["/gifts"] = Served(b"Later", status=status)
    run(tenant, source)
    assert "gifts" in searchable(tenant)


def test_nothing_is_retired_when_most_pages_vanish(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    vanish(site, *PAGES[:4])
    assert run(tenant, source)["kept"]
    assert searchable(tenant) == {"", *PAGES}


def test_nothing_is_retired_when_the_start_page_vanishes(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    vanish(site, "", "gifts")
    assert run(tenant, source)["kept"]
    assert searchable(tenant) == {"", *PAGES}


def test_dry_run_reports_and_stores_nothing(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    site.page("/returns", "<h1>returns</h1><p>Parcels come back within ninety days.</p>")
    vanish(site, "gifts")
    report = run(tenant, source, dry_run=True)
    assert report["updated"] == [f"{site.origin}/returns"]
    assert report["gone"] == [f"{site.origin}/gifts"]
    with tenant_scope(tenant):
        assert set(DocumentVersion.objects.values_list("number", flat=True)) == {1}
    assert searchable(tenant) == {"", *PAGES}


def test_second_run_does_not_start_beside_the_first(tenant: Any, source: KnowledgeSource) -> None:
    with tenant_scope(tenant):
        assert sources.start_run(source.pk, dry_run=False)
        assert not sources.start_run(source.pk, dry_run=False)


def test_paused_website_is_not_read(tenant: Any, source: KnowledgeSource, site: Website) -> None:
    with tenant_scope(tenant):
        sources.turn_source(source.pk, enabled=False, actor="user:1")
        QueueMessage.objects.filter(kind=Kind.SOURCE_SYNC).update(available_at=now())
    site.asked.clear()
    read_handed_in(tenant)
    assert site.asked == []


@pytest.mark.parametrize("address", ["", "ftp://example.com/", "http://", "javascript:alert(1)"])
def test_unfit_address_is_refused(tenant: Any, address: str) -> None:
    with tenant_scope(tenant):
        home = open_collection("help")
        with pytest.raises(SilasError) as refusal:
            sources.add_source(home.pk, NewSource("website", address, 24), actor="user:1")
    assert refusal.value.code == "website_address"


def test_website_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, source: KnowledgeSource) -> None:
    with tenant_scope(other_tenant):
        for change in (
            lambda: sources.start_run(source.pk, dry_run=False),
            lambda: sources.turn_source(source.pk, enabled=False, actor="user:1"),
            lambda: sources.remove_source(source.pk, actor="user:1"),
        ):
            with pytest.raises(NotFound):
                change()
    client = browser(make_member(other_tenant, "owner"))
    assert source.location not in client.get(reverse("console-sources")).content.decode()


def test_owner_adds_runs_pauses_and_removes_on_the_page(tenant: Any, owner: Any, site: Website) -> None:
    with tenant_scope(tenant):
        home: Collection = open_collection("help")
    client, page = browser(owner), reverse("console-sources")
    said = {"collection": str(home.pk), "location": f"{site.origin}/", "every_hours": "24"}
    assert client.post(reverse("console-source-new"), said)["Location"] == page
    read_handed_in(tenant)
    assert "6 new" in client.get(page).content.decode()
    with tenant_scope(tenant):
        source = KnowledgeSource.objects.get()
    client.post(reverse("console-source-run", args=[source.pk]), {"what": "test"})
    read_handed_in(tenant)
    assert "nothing was saved" in client.get(page).content.decode()
    client.post(reverse("console-source-turn", args=[source.pk]))
    assert "Paused" in client.get(page).content.decode()
    client.post(reverse("console-source-remove", args=[source.pk]))
    assert "No sources yet" in client.get(page).content.decode()


@pytest.mark.parametrize("hours", ["", "0", "5", "x", "999999"])
def test_interval_that_is_not_offered_is_refused(tenant: Any, owner: Any, hours: str) -> None:
    with tenant_scope(tenant):
        home = open_collection("help")
    said = {"collection": str(home.pk), "location": "https://example.com/", "every_hours": hours}
    assert browser(owner).post(reverse("console-source-new"), said).status_code == 422


def test_source_in_a_foreign_collection_is_not_found(owner: Any) -> None:
    said = {"collection": str(uuid4()), "location": "https://example.com/", "every_hours": "24"}
    assert browser(owner).post(reverse("console-source-new"), said).status_code == 404
