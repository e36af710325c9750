"""What a deployment offers beside talking: who may change it, and what stands in the audit log of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client

from apps.audit.models import AuditEntry
from apps.tenants.models import Deployment
from apps.visitors import offers
from apps.visitors.models import FormQuestion, VisitorOffers
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_member
from tests.factories.visitors import FILES, ask, offer
from tests.platform.administration import browser_of, page_of

FORM = {"file_megabytes": 5, "files_each": 10}


def _shown(deployment: Deployment, **headers: str) -> Any:
    return Client().get(f"/api/v1/widget/{deployment.public_key}/offers", headers=headers)


def test_nothing_is_offered_where_nobody_said_so(deployment: Deployment) -> None:
    nothing = {"files": None, "consent": None, "form": [], "conversations": False, "transcripts": False, "rating": ""}
    nowhere_else = {"articles": False, "email_answers": False, "continue_in": [], "proactive_messages": []}
    assert _shown(deployment).json() == nothing | nowhere_else


def test_what_is_offered_is_told(deployment: Deployment) -> None:
    offer(deployment, **FILES, rating="stars", conversations=True, consent_text="Yes?", consent_version="v1")
    ask(deployment, {"kind": "choice", "label": "About", "choices": ["A", "B"]})
    told = _shown(deployment).json()
    assert told["files"]["endings"][:2] == [".png", ".jpg"]
    assert told["rating"] == "stars"
    assert told["consent"]["version"] == "v1"
    assert told["form"][0]["choices"] == ["A", "B"]


def test_transcripts_are_not_offered_without_a_mail_server(deployment: Deployment, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    offer(deployment, transcripts=True)
    assert _shown(deployment).json()["transcripts"] is False


def test_foreign_site_is_not_told(deployment: Deployment) -> None:
    assert _shown(deployment, origin="https://evil.test").status_code == 403


@pytest.mark.parametrize(
    "fields",
    [
        {"file_megabytes": 26},
        {"file_megabytes": 0},
        {"files_each": 101},
        {"consent_text": "Yes?"},
        {"consent_version": "v1"},
        {"consent_text": "Yes?", "consent_version": "v 1"},
        {"consent_link": "javascript:alert(1)"},
        {"consent_link": "ftp://a.test/x"},
        {"rating": "hearts"},
        {"slug": "other"},
    ],
)
def test_offer_that_makes_no_sense_is_refused(deployment: Deployment, fields: dict[str, Any]) -> None:
    with pytest.raises(SilasError) as refusal:
        offer(deployment, **fields)
    assert refusal.value.code == "invalid_offers"


def test_database_keeps_the_ceilings(deployment: Deployment) -> None:
    with pytest.raises(IntegrityError), tenant_scope(deployment.tenant_id):
        VisitorOffers.objects.create(deployment=deployment, file_megabytes=26)


def test_change_is_audited_with_before_and_after(deployment: Deployment) -> None:
    offer(deployment, rating="stars", consent_text="We keep it.", consent_version="v1")
    with tenant_scope(deployment.tenant_id):
        changed = json.loads(AuditEntry.objects.get(event="offers_changed").data)["changed"]
    assert changed["rating"] == ["", "stars"]
    assert changed["consent_version"] == ["", "v1"]
    assert "We keep it" not in str(changed)


def test_change_that_changes_nothing_is_not_audited(deployment: Deployment) -> None:
    offer(deployment, rating="stars")
    offer(deployment, rating="stars")
    with tenant_scope(deployment.tenant_id):
        assert AuditEntry.objects.filter(event="offers_changed").count() == 1


def test_owner_sets_offers_in_the_administration(deployment: Deployment, owner: Any) -> None:
    browser_of(owner).post(page_of(VisitorOffers, "add"), {"deployment": deployment.pk, "pictures": "on", **FORM})
    with tenant_scope(deployment.tenant_id):
        assert offers.taken_kinds(offers.offers_of(deployment.pk)) == ["png", "jpeg", "webp", "gif"]


def test_administration_says_what_is_wrong(deployment: Deployment, owner: Any) -> None:
    page = browser_of(owner).post(
        page_of(VisitorOffers, "add"), {"deployment": deployment.pk, "consent_text": "Yes?", **FORM}
    )
    assert "both a text and a version" in page.content.decode()


def test_owner_asks_a_question_in_the_administration(deployment: Deployment, owner: Any) -> None:
    asked = {"deployment": deployment.pk, "order": 1, "kind": "choice", "label": "About", "choices": "A\nB"}
    browser_of(owner).post(page_of(FormQuestion, "add"), asked)
    assert _shown(deployment).json()["form"][0]["choices"] == ["A", "B"]


def test_question_with_no_choices_is_refused_in_the_administration(deployment: Deployment, owner: Any) -> None:
    asked = {"deployment": deployment.pk, "order": 1, "kind": "choice", "label": "About", "choices": ""}
    page = browser_of(owner).post(page_of(FormQuestion, "add"), asked)
    assert page.status_code == 200
    assert _shown(deployment).json()["form"] == []


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_nobody_else_changes_offers(deployment: Deployment, tenant: Any, role: str) -> None:
    body = {"deployment": deployment.pk, **FORM}
    assert browser_of(make_member(tenant, role)).post(page_of(VisitorOffers, "add"), body).status_code == 403


def test_owner_of_another_tenant_offers_nothing_here(deployment: Deployment, other_tenant: Any) -> None:
    stranger = browser_of(make_member(other_tenant, "owner"))
    stranger.post(page_of(VisitorOffers, "add"), {"deployment": deployment.pk, "pictures": "on", **FORM})
    with tenant_scope(deployment.tenant_id):
        assert not VisitorOffers.objects.filter(deployment=deployment).exists()
