"""Saved views: filters under a name, one's own or the team's, in the console, the palette and the API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.inbox import saved_views
from apps.inbox.enums import ViewPage
from apps.inbox.models import SavedView
from apps.inbox.staff import ApiClient
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.console import browser
from tests.factories.tenants import make_deployment, make_member, make_tenant

PATH = "/api/v1/saved-views"


def save(tenant: Any, by: Any, **fields: Any) -> SavedView:
    given = {"name": "Urgent", "page": ViewPage.INBOX, "parameters": {"status": "open"}, **fields}
    with tenant_scope(tenant):
        return saved_views.save_view(by, **given)


def test_view_keeps_the_filter_of_the_inbox_and_leads_back_to_it(tenant: Any, agent: Any) -> None:
    client = browser(agent)
    sent = {"page": "inbox", "query": "tab=mine&status=snoozed", "name": "  My  snoozes "}
    answer = client.post(reverse("console-view-new"), sent)
    assert answer.status_code == 302
    assert answer["Location"] == "/console/inbox/?tab=mine&status=snoozed"
    shown = client.get(answer["Location"]).content.decode()
    assert 'href="/console/inbox/?tab=mine&amp;status=snoozed" aria-current="true">My snoozes' in shown
    with tenant_scope(tenant):
        view = SavedView.objects.get()
        entry = AuditEntry.objects.get(event="view_saved")
    assert view.owner_id == agent.pk
    assert view.parameters == {"tab": "mine", "status": "snoozed"}
    assert entry.subject == f"view:{view.pk}"


def test_view_keeps_the_filter_of_review(tenant: Any, owner: Any) -> None:
    client = browser(owner)
    sent = {"page": "review", "query": "risk=high&sort=newest", "name": "High first", "is_shared": "on"}
    answer = client.post(reverse("console-view-new"), sent)
    assert answer["Location"] == "/console/review/?risk=high&sort=newest"
    assert "High first" in client.get("/console/review/").content.decode()
    assert "High first" not in client.get("/console/inbox/").content.decode()


@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        (ViewPage.INBOX, {"next": "https://evil.example"}),
        (ViewPage.INBOX, {"status": "deleted"}),
        (ViewPage.INBOX, {"label": "x"}),
        (ViewPage.INBOX, {"before": "abc"}),
        (ViewPage.INBOX, {"risk": "high"}),
        (ViewPage.REVIEW, {"risk": "none"}),
        (ViewPage.REVIEW, {"query_string": "x"}),
        (ViewPage.REVIEW, {"status": "open"}),
    ],
)
def test_parameters_that_the_page_does_not_know_are_refused(
    tenant: Any, agent: Any, page: ViewPage, parameters: dict[str, str]
) -> None:
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, page=page, parameters=parameters)
    assert refusal.value.code == "bad_view"


@pytest.mark.parametrize(
    ("page", "parameters", "kept"),
    [
        (ViewPage.INBOX, {"status": "active", "tab": "all", "q": ""}, {}),
        (ViewPage.INBOX, {"q": "pipe", "status": "any"}, {"q": "pipe"}),
        (ViewPage.REVIEW, {"sort": "deadline", "risk": ""}, {}),
    ],
)
def test_defaults_are_left_out(
    tenant: Any, agent: Any, page: ViewPage, parameters: dict[str, str], kept: dict[str, str]
) -> None:
    assert save(tenant, agent, page=page, parameters=parameters).parameters == kept


def test_own_view_is_hidden_from_colleagues(tenant: Any, agent: Any, owner: Any) -> None:
    view = save(tenant, agent)
    client = browser(owner)
    assert "Urgent" not in client.get(reverse("console-views")).content.decode()
    assert "Urgent" not in client.get(reverse("console-inbox")).content.decode()
    assert "Urgent" not in client.get(reverse("console-palette"), {"q": "urgent"}).content.decode()
    assert client.post(reverse("console-view-save", args=[view.pk]), {"name": "Taken"}).status_code == 404
    assert client.post(reverse("console-view-delete", args=[view.pk])).status_code == 404
    with tenant_scope(tenant):
        with pytest.raises(NotFound):
            saved_views.view_for(owner, view.pk)
        with pytest.raises(NotFound):
            saved_views.view_for(ApiClient("api_key:1"), view.pk)
        assert SavedView.objects.get().name == "Urgent"


def test_view_of_another_company_is_not_found(tenant: Any, agent: Any) -> None:
    view = save(tenant, agent, is_personal=False)
    elsewhere = make_tenant()
    make_deployment(elsewhere)
    stranger = make_member(elsewhere, "owner")
    client = browser(stranger)
    assert client.post(reverse("console-view-save", args=[view.pk]), {"name": "Taken"}).status_code == 404
    assert client.post(reverse("console-view-delete", args=[view.pk])).status_code == 404


def test_viewer_has_own_views_and_leaves_the_teams_alone(tenant: Any, agent: Any) -> None:
    team, viewer = save(tenant, agent, is_personal=False), make_member(tenant, "viewer")
    client = browser(viewer)
    sent = {"page": "inbox", "query": "tab=mine", "name": "Mine"}
    assert client.post(reverse("console-view-new"), sent).status_code == 302
    assert client.post(reverse("console-view-new"), {**sent, "name": "Ours", "is_shared": "on"}).status_code == 403
    assert client.post(reverse("console-view-save", args=[team.pk]), {"name": "Mine now"}).status_code == 403
    assert client.post(reverse("console-view-delete", args=[team.pk])).status_code == 403
    listed = client.get(reverse("console-views")).content.decode()
    assert "Urgent" in listed
    assert "Delete Urgent" not in listed
    assert "Delete Mine" in listed


def test_view_is_renamed_and_deleted(tenant: Any, agent: Any, owner: Any) -> None:
    view, client = save(tenant, agent, is_personal=False), browser(owner)
    client.post(reverse("console-view-save", args=[view.pk]), {"name": "Very urgent"})
    with tenant_scope(tenant):
        renamed = SavedView.objects.get()
    assert renamed.name == "Very urgent"
    assert renamed.parameters == view.parameters
    assert renamed.owner_id is None
    assert "Very urgent" in client.get(reverse("console-palette"), {"q": "very"}).content.decode()
    client.post(reverse("console-view-delete", args=[view.pk]))
    with tenant_scope(tenant):
        assert not SavedView.objects.exists()
        assert AuditEntry.objects.filter(event="view_deleted").count() == 1


def test_names_are_unique_for_each_member_and_page(tenant: Any, agent: Any, owner: Any) -> None:
    save(tenant, agent)
    save(tenant, owner)
    save(tenant, agent, is_personal=False)
    save(tenant, agent, page=ViewPage.REVIEW, parameters={})
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, name="URGENT")
    assert refusal.value.code == "name_taken"
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, name=" \0 ")
    assert refusal.value.code == "bad_name"


def test_each_member_has_so_many_views(tenant: Any, agent: Any, owner: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    save(tenant, agent)
    save(tenant, owner)
    with pytest.raises(SilasError) as refusal:
        save(tenant, agent, name="Another")
    assert refusal.value.code == "too_many"


def test_api_lists_saves_replaces_and_deletes(tenant: Any, agent: Any, owner: Any) -> None:
    program, member = Api(tenant), Api(tenant, member=agent)
    body = {"name": "Mine", "page": "inbox", "parameters": {"tab": "mine"}, "is_personal": True}
    mine = member.send("post", PATH, body)
    assert mine.status_code == 201, mine.content
    assert mine.json()["owner"] == {"id": str(agent.pk), "name": agent.display_name}
    team = program.send("post", PATH, {"name": "Risky", "page": "review", "parameters": {"risk": "high"}}).json()
    assert team["owner"] is None
    assert [one["name"] for one in program.get(PATH).json()["saved_views"]] == ["Risky"]
    assert [one["name"] for one in member.get(PATH).json()["saved_views"]] == ["Mine", "Risky"]
    assert [one["name"] for one in member.get(f"{PATH}?page=inbox").json()["saved_views"]] == ["Mine"]
    assert Api(tenant, member=owner).get(f"{PATH}/{mine.json()['id']}").status_code == 404
    changed = {"name": "Risky", "page": "review", "parameters": {"risk": "medium"}}
    assert program.send("put", f"{PATH}/{team['id']}", changed).json()["parameters"] == {"risk": "medium"}
    assert program.send("delete", f"{PATH}/{team['id']}", {}).status_code == 204
    assert program.get(f"{PATH}/{team['id']}").status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"page": "settings"}, 400, "invalid"),
        ({"parameters": "tab=mine"}, 400, "invalid"),
        ({"parameters": {"tab": ["mine"]}}, 400, "invalid"),
        ({"parameters": {"url": "//evil.example"}}, 400, "bad_view"),
        ({"is_personal": True}, 403, "forbidden_role"),
    ],
)
def test_api_refuses(tenant: Any, body: dict[str, Any], status: int, code: str) -> None:
    given = {"name": "A", "page": "inbox", "parameters": {}, **body}
    answer = Api(tenant).send("post", PATH, given)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code


def test_unknown_view_and_page_are_refused(tenant: Any) -> None:
    assert Api(tenant).get(f"{PATH}/{uuid4()}").status_code == 404
    assert Api(tenant).get(f"{PATH}?page=settings").status_code == 400
