"""Opening a cited passage: whoever may not see it first (contract interfaces, widget)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.access import tokens
from apps.knowledge import services as knowledge
from apps.knowledge.models import DocumentVersion
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.work.services import adopt_goal
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.sessions import make_session, visitor_of
from tests.factories.tenants import make_deployment

TEXT = "# Burst pipes\n\nSudden escape of water is covered up to £50,000.\n\nSlow leaks are not.\n"
QUOTE = "Sudden escape of water is covered up to £50,000."
GOAL = """---
id: goal
type: goal
title: Look after customers
schedule: always_on
access_levels:
  public: {tools: []}
  verified: {tools: [], requires: [identity], expires_after: 900}
---
Be kind.
"""


@dataclass
class Cited:
    """A visitor of a deployment, and a quote in the tenant's knowledge."""

    client: Client
    deployment: Deployment
    session: ChatSession
    version: DocumentVersion

    @property
    def place(self) -> dict[str, Any]:
        start = TEXT.encode().index(QUOTE.encode())
        return {"start": start, "end": start + len(QUOTE.encode())}

    def open(self, *, document: Any = None, token: str | None = None, key: str = "", **asked: Any) -> Any:
        mine = tokens.mint(visitor_of(self.deployment, self.session.pk))
        return self.client.get(
            f"/widget/v1/{key or self.deployment.public_key}/passage/{document or self.version.document_id}/",
            {**self.place, **asked},
            headers={"Authorization": f"Bearer {mine if token is None else token}"},
        )

    def verify(self, *, minutes: int) -> None:
        with tenant_scope(self.deployment.tenant_id):
            until = now() + timedelta(minutes=minutes)
            ChatSession.objects.filter(pk=self.session.pk).update(
                level="verified", level_expires_at=until, customer="C-1", verified_gates={"identity": None}
            )


def _cited(client: Client, tenant: Any, folder: Path, *, min_level: str) -> Cited:
    (folder / "policy.md").write_text(TEXT)
    knowledge.ingest(tenant, collection="policies", paths=[folder / "policy.md"], root=folder, min_level=min_level)
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        deployment.active_goal_id = adopt_goal(GOAL, deployment_id=deployment.pk, requested_by="user:test").pk
        deployment.save(update_fields=["active_goal_id"])
        version = DocumentVersion.objects.select_related("document").get()
    return Cited(client, deployment, make_session(deployment), version)


@pytest.fixture
def cited(client: Client, tenant: Any, tmp_path: Path) -> Cited:
    return _cited(client, tenant, tmp_path, min_level="public")


@pytest.fixture
def guarded(client: Client, tenant: Any, tmp_path: Path) -> Cited:
    """The same, in a collection for verified customers."""
    return _cited(client, tenant, tmp_path, min_level="verified")


@pytest.mark.parametrize("token", ["", "forged", "a.b.c", "\u00e9"])
def test_passage_without_a_good_token_is_401(cited: Cited, token: str) -> None:
    assert code(cited.open(token=token)) == (401, "not_authenticated")


def test_passage_without_any_authorization_is_401(cited: Cited) -> None:
    path = f"/widget/v1/{cited.deployment.public_key}/passage/{cited.version.document_id}/"
    assert code(cited.client.get(path, cited.place)) == (401, "not_authenticated")


def test_passage_with_a_token_of_another_deployment_is_401(cited: Cited, tenant: Any) -> None:
    sister = make_deployment(tenant)
    token = tokens.mint(visitor_of(sister, make_session(sister).pk))
    assert code(cited.open(token=token)) == (401, "not_authenticated")


def test_passage_of_another_tenant_is_404(cited: Cited, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    token = tokens.mint(visitor_of(theirs, make_session(theirs).pk))
    assert code(cited.open(token=token, key=theirs.public_key)) == (404, "not_found")


def test_passage_above_the_visitors_level_is_404(guarded: Cited) -> None:
    assert code(guarded.open()) == (404, "not_found")


def test_passage_after_the_level_has_expired_is_404(guarded: Cited) -> None:
    guarded.verify(minutes=-1)
    assert code(guarded.open()) == (404, "not_found")


def test_passage_of_a_deployment_that_was_disabled_is_404(cited: Cited) -> None:
    with tenant_scope(cited.deployment.tenant_id):
        Deployment.objects.filter(pk=cited.deployment.pk).update(enabled=False)
    assert code(cited.open()) == (404, "not_found")


@pytest.mark.parametrize("document", [uuid4(), "not-an-id", "1", "%00"])
def test_passage_of_an_unknown_document_is_404(cited: Cited, document: Any) -> None:
    assert code(cited.open(document=document)) == (404, "not_found")


@pytest.mark.parametrize(
    "asked", [{"start": 5, "end": 5}, {"end": 10**9}, {"end": 10**30}, {"version": uuid4()}, {"start": 56, "end": 58}]
)
def test_passage_at_a_place_that_is_none_is_404(cited: Cited, asked: dict[str, Any]) -> None:
    assert code(cited.open(**asked)) == (404, "not_found")


@pytest.mark.parametrize("asked", [{"start": -1}, {"start": "x"}, {"end": ""}, {"end": "1.5"}, {"version": "newest"}])
def test_passage_with_a_bad_place_is_400(cited: Cited, asked: dict[str, Any]) -> None:
    assert code(cited.open(**asked)) == (400, "invalid")


def test_passage_is_the_quote_byte_for_byte(cited: Cited) -> None:
    assert cited.open().json()["quote"] == QUOTE


def test_passage_comes_with_the_text_around_it(cited: Cited) -> None:
    found = cited.open().json()
    assert found["before"] + found["quote"] + found["after"] == TEXT


def test_passage_at_the_visitors_level_is_shown(guarded: Cited) -> None:
    guarded.verify(minutes=10)
    assert guarded.open().json()["quote"] == QUOTE
