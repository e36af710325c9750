"""Articles that a visitor searches beside the conversation: only what an answer to this visitor could quote."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.knowledge import services
from apps.knowledge.enums import GapStatus
from apps.knowledge.models import Collection, Document, GapTopic
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from apps.visitors import articles
from apps.work.services import adopt_goal
from kernel.clock import now
from kernel.tenancy import tenant_scope
from llm.embedding import DIMENSIONS
from tests.factories.knowledge import ingest_texts
from tests.factories.sessions import make_session
from tests.factories.tenants import make_deployment
from tests.factories.visitors import Browser, refused

PIPES = "# Burst pipes\n\nSudden escape of water is covered up to £50,000.\n\nSlow leaks are **not** covered.\n"
PIANOS = "# Pianos\n\nA piano is insured as a musical instrument, also while it travels.\n"
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


def _guard(deployment: Deployment, **fields: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        save_gate(GateSpec(name="out", on="every_agent_response", **fields), deployment_id=deployment.pk)


@pytest.fixture
def visitor(tenant: Any, deployment: Deployment, tmp_path: Path) -> Browser:
    """Of a chatbot with a level for verified customers, in a company with two public articles."""
    ingest_texts(tenant, tmp_path, pipes=PIPES, pianos=PIANOS)
    with tenant_scope(tenant):
        deployment.active_goal_id = adopt_goal(GOAL, deployment_id=deployment.pk, requested_by="user:test").pk
        deployment.save(update_fields=["active_goal_id"])
    return Browser(deployment, make_session(deployment))


def _search(visitor: Browser, query: Any = "escape of water") -> Any:
    return visitor.post("articles/search", {"query": query})


def _titles(visitor: Browser, query: str = "escape of water") -> list[str]:
    answer = _search(visitor, query)
    assert answer.status_code == 200, answer.content
    return [each["title"] for each in answer.json()["articles"]]


def _document(visitor: Browser, title: str = "Burst pipes") -> Document:
    with tenant_scope(visitor.deployment.tenant_id):
        document: Document = Document.objects.get(title=title)
    return document


def _open(visitor: Browser, document: Any = None) -> Any:
    return visitor.get(f"articles/{document or _document(visitor).pk}")


def _raise_level(visitor: Browser, *, minutes: int) -> None:
    with tenant_scope(visitor.deployment.tenant_id):
        until = now() + timedelta(minutes=minutes)
        ChatSession.objects.filter(pk=visitor.session.pk).update(
            level="verified", level_expires_at=until, customer="C-1", verified_gates={"identity": None}
        )


def _require(visitor: Browser, level: str) -> None:
    with tenant_scope(visitor.deployment.tenant_id):
        Collection.objects.update(min_level=level)


def _offers_articles(deployment: Deployment) -> bool:
    with tenant_scope(deployment.tenant_id):
        return articles.is_offered(deployment)


def test_article_is_found_with_the_sentence_that_answers(visitor: Browser) -> None:
    found = _search(visitor).json()["articles"]
    assert found[0]["title"] == "Burst pipes"
    assert found[0]["sentence"] == "Sudden escape of water is covered up to £50,000."
    assert found[0]["document_id"] == str(_document(visitor).pk)


def test_what_no_article_is_about_finds_none(visitor: Browser) -> None:
    assert _titles(visitor, "xyzzy plugh") == []
    assert _titles(visitor, "???") == []


def test_article_is_opened_as_clean_html(visitor: Browser) -> None:
    article = _open(visitor).json()
    assert article["title"] == "Burst pipes"
    assert "Slow leaks are <strong>not</strong> covered." in article["html"]
    assert article["is_whole"] is True
    assert article["url"] == ""


def test_html_and_images_of_an_article_are_not_shown_as_such(visitor: Browser, tenant: Any, tmp_path: Path) -> None:
    text = "# Notes\n\n<script>alert(1)</script> ![x](https://a.test/x.png) [y](javascript:alert(1))\n"
    ingest_texts(tenant, tmp_path, notes=text)
    html = _open(visitor, _document(visitor, "Notes").pk).json()["html"]
    assert "<script" not in html
    assert "<img" not in html
    assert "javascript:" not in html


def test_long_article_is_cut_and_says_so(visitor: Browser, tenant: Any, tmp_path: Path) -> None:
    paragraphs = "\n\n".join(f"Rule {number} is about pianos and pipes." for number in range(900))
    ingest_texts(tenant, tmp_path, rules=f"# Rules\n\n{paragraphs}\n")
    article = _open(visitor, _document(visitor, "Rules").pk).json()
    assert article["is_whole"] is False
    assert "<p>Rule 200 is about pianos and pipes.</p>" in article["html"]
    assert "Rule 899" not in article["html"]


def test_nothing_is_written(visitor: Browser) -> None:
    _guard(visitor.deployment, type="regex", config={"redact": "50,000"})
    with tenant_scope(visitor.deployment.tenant_id):
        before = AuditEntry.objects.count()
        _search(visitor)
        _open(visitor)
        assert AuditEntry.objects.count() == before
        assert not ChronicleEntry.objects.exists()
        assert ChatSession.objects.get(pk=visitor.session.pk).seq == 0


@pytest.mark.parametrize("query", ["", "   ", "x" * 201, "a\0b", None, True, ["pipes"], {"a": 1}, "\ud800"])
def test_query_that_is_no_short_text_is_400(visitor: Browser, query: Any) -> None:
    assert _search(visitor, query).status_code == 400


def test_unknown_field_is_400(visitor: Browser) -> None:
    assert visitor.post("articles/search", {"query": "pipes", "level": "verified"}).status_code == 400


@pytest.mark.parametrize(
    "query", ["pipes\x01\x1b[0m water", "'; DROP TABLE memory_document; --", "%_\\", "\u202ewater"]
)
def test_strange_characters_are_text(visitor: Browser, query: str) -> None:
    assert _search(visitor, query).status_code == 200


def test_visitor_without_a_conversation_reads_what_one_who_is_not_verified_reads(visitor: Browser) -> None:
    document = _document(visitor).pk
    visitor.token = ""
    assert _titles(visitor) == ["Burst pipes"]
    assert _open(visitor, document).json()["title"] == "Burst pipes"
    _require(visitor, "verified")
    assert _titles(visitor) == []
    assert refused(_open(visitor, document)) == (404, "not_found")
    with tenant_scope(visitor.deployment.tenant_id):
        assert ChatSession.objects.count() == 1


def test_foreign_site_reads_no_articles(visitor: Browser) -> None:
    document = _document(visitor).pk
    visitor.token = ""
    visitor.client.defaults["HTTP_ORIGIN"] = "https://elsewhere.test"
    assert refused(_search(visitor)) == (403, "origin_not_allowed")
    assert refused(_open(visitor, document)) == (403, "origin_not_allowed")


def test_visitor_without_a_conversation_finds_none_of_another_company(visitor: Browser, other_tenant: Any) -> None:
    stranger = Browser(make_deployment(other_tenant), visitor.session)
    stranger.token = ""
    assert _titles(stranger) == []
    assert refused(_open(stranger, _document(visitor).pk)) == (404, "not_found")


def test_searches_without_a_conversation_are_limited_by_address(visitor: Browser, tenant: Any) -> None:
    stranger = Browser(visitor.deployment, visitor.session, REMOTE_ADDR="203.0.113.31")
    stranger.token = ""
    assert [_search(stranger, "pianos").status_code for _ in range(61)] == [200] * 60 + [429]
    for other in (
        Browser(make_deployment(tenant), visitor.session, REMOTE_ADDR="203.0.113.31"),
        Browser(visitor.deployment, visitor.session, REMOTE_ADDR="203.0.113.32"),
    ):
        other.token = ""
        assert _search(other, "pianos").status_code == 200


def test_searches_from_a_proxy_on_the_same_machine_are_not_counted_as_one_visitors(visitor: Browser) -> None:
    visitor.token = ""
    assert {_search(visitor, "pianos").status_code for _ in range(61)} == {200}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (PIPES, "<p>Sudden escape"),
        ("\n## burst  pipes ##\n\nAll covered.\n", "<p>All covered."),
        ("# Burst pipes and leaks\n\nAll covered.\n", "<p><strong>Burst pipes and leaks"),
        ("Burst pipes\n\nAll covered.\n", "<p>Burst pipes"),
    ],
)
def test_heading_that_repeats_the_title_is_shown_once(
    visitor: Browser, tenant: Any, tmp_path: Path, text: str, first: str
) -> None:
    document = _document(visitor)
    ingest_texts(tenant, tmp_path, pipes=text)
    with tenant_scope(tenant):
        Document.objects.filter(pk=document.pk).update(title="Burst pipes")
    assert _open(visitor, document.pk).json()["html"].startswith(first)


def test_search_with_a_token_that_is_no_longer_good_is_401(visitor: Browser) -> None:
    document = _document(visitor).pk
    visitor.token = "forged"
    assert refused(_search(visitor)) == (401, "not_authenticated")
    assert refused(_open(visitor, document)) == (401, "not_authenticated")


def test_token_of_another_chatbot_is_401(visitor: Browser, tenant: Any) -> None:
    sister = make_deployment(tenant)
    visitor.token = Browser(sister, make_session(sister)).token
    assert refused(_search(visitor)) == (401, "not_authenticated")
    assert refused(_open(visitor)) == (401, "not_authenticated")


def test_article_of_another_company_is_not_found(visitor: Browser, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    stranger = Browser(theirs, make_session(theirs))
    assert _titles(stranger) == []
    assert refused(_open(stranger, _document(visitor).pk)) == (404, "not_found")


def test_article_above_the_visitors_level_is_not_found(visitor: Browser) -> None:
    _require(visitor, "verified")
    assert _titles(visitor) == []
    assert refused(_open(visitor)) == (404, "not_found")
    assert not _offers_articles(visitor.deployment)


def test_verified_visitor_finds_what_their_level_reaches(visitor: Browser) -> None:
    _require(visitor, "verified")
    _raise_level(visitor, minutes=5)
    assert _titles(visitor) == ["Burst pipes"]
    assert _open(visitor).status_code == 200


def test_level_that_has_expired_reaches_nothing(visitor: Browser) -> None:
    _require(visitor, "verified")
    _raise_level(visitor, minutes=-1)
    assert _titles(visitor) == []
    assert refused(_open(visitor)) == (404, "not_found")


def test_article_for_a_level_of_another_chatbot_is_not_found(visitor: Browser, tenant: Any) -> None:
    _require(visitor, "verified")
    without_levels = make_deployment(tenant)
    other = Browser(without_levels, make_session(without_levels))
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=other.session.pk).update(
            level="verified", customer="C-1", verified_gates={"identity": None}
        )
    assert _titles(other) == []
    assert refused(_open(other, _document(visitor).pk)) == (404, "not_found")


def test_deleted_article_is_not_found(visitor: Browser) -> None:
    document = _document(visitor)
    with tenant_scope(visitor.deployment.tenant_id):
        services.forget_document(document.pk)
    assert _titles(visitor) == []
    assert refused(_open(visitor, document.pk)) == (404, "not_found")


def test_article_that_its_source_has_no_more_is_not_found(visitor: Browser) -> None:
    """Its versions stay, for citations."""
    document = _document(visitor)
    services.retire_document(visitor.deployment.tenant_id, document.collection_id, reference=document.source_ref)
    assert _titles(visitor) == []
    assert refused(_open(visitor, document.pk)) == (404, "not_found")


def test_draft_that_waits_for_approval_is_not_found(visitor: Browser) -> None:
    with tenant_scope(visitor.deployment.tenant_id):
        GapTopic.objects.create(
            question="Are kayaks covered?",
            centroid=[1.0] + [0.0] * (DIMENSIONS - 1),
            status=GapStatus.DRAFTED,
            card_id=uuid4(),
            title="Kayaks",
            answer="Kayaks are covered up to £2,000.",
            first_at=now(),
            last_at=now(),
        )
    assert _titles(visitor, "Are kayaks covered?") == []


def test_article_shows_its_newest_text_only(visitor: Browser, tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, pipes=PIPES.replace("£50,000", "£60,000"))
    assert "£60,000" in _search(visitor).json()["articles"][0]["sentence"]
    assert "£50,000" not in _open(visitor).json()["html"]


@pytest.mark.parametrize("document", [uuid4(), "00000000-0000-0000-0000-000000000000"])
def test_unknown_article_is_404(visitor: Browser, document: Any) -> None:
    assert refused(_open(visitor, document)) == (404, "not_found")


def test_disabled_chatbot_shows_no_article(visitor: Browser) -> None:
    with tenant_scope(visitor.deployment.tenant_id):
        Deployment.objects.filter(pk=visitor.deployment.pk).update(enabled=False)
    assert _search(visitor).status_code == 404
    assert _open(visitor).status_code == 404


def test_article_that_a_response_gate_blocks_is_not_shown(visitor: Browser) -> None:
    _guard(visitor.deployment, type="regex", config={"pattern": r"(?s)\A(?!.*50,000)"})
    assert _titles(visitor) == []
    assert refused(_open(visitor)) == (404, "not_found")
    assert _titles(visitor, "Is my piano insured?") == ["Pianos"]


def test_article_with_a_blocked_part_elsewhere_is_not_listed_either(visitor: Browser) -> None:
    _guard(visitor.deployment, type="regex", config={"pattern": r"(?s)\A(?!.*Slow leaks)"})
    assert _titles(visitor) == []
    assert refused(_open(visitor)) == (404, "not_found")


def test_what_a_response_gate_masks_is_masked(visitor: Browser) -> None:
    _guard(visitor.deployment, type="regex", config={"redact": "50,000"})
    assert "50,000" not in _search(visitor).content.decode()
    html = _open(visitor).json()["html"]
    assert "Sudden escape of water" in html
    assert "50,000" not in html


def test_gate_of_another_chatbot_hides_nothing_here(visitor: Browser, tenant: Any) -> None:
    _guard(make_deployment(tenant), type="regex", config={"pattern": r"(?s)\A(?!.*50,000)"})
    assert _titles(visitor) == ["Burst pipes"]


def test_no_article_is_shown_where_a_person_would_have_to_look(visitor: Browser) -> None:
    _guard(visitor.deployment, type="custom_check", config={"required_keywords": ["fine"]})
    assert not _offers_articles(visitor.deployment)
    assert refused(_search(visitor)) == (404, "not_found")
    assert refused(_open(visitor)) == (404, "not_found")


def test_articles_are_offered_where_a_stranger_can_find_one(visitor: Browser, other_tenant: Any) -> None:
    assert visitor.client.get(f"/api/v1/widget/{visitor.deployment.public_key}/offers").json()["articles"] is True
    assert not _offers_articles(make_deployment(other_tenant))


def test_searches_and_articles_are_limited(visitor: Browser) -> None:
    document = _document(visitor).pk
    assert [_search(visitor, "pianos").status_code for _ in range(61)] == [200] * 60 + [429]
    assert [_open(visitor, document).status_code for _ in range(121)] == [200] * 120 + [429]
