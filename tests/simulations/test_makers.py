"""Suites are made from what the company has, without private data, and without what others may not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.autonomy.models import OpenQuestion
from apps.simulations import makers
from apps.simulations.enums import Origin
from apps.visitors.models import Rating
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.knowledge import ingest_texts
from tests.factories.sessions import make_session, say


def _made(deployment: Any, origin: Origin) -> dict[str, Any]:
    with tenant_scope(deployment.tenant_id):
        return {row.name: row for row in makers.make_suite(deployment, origin).scenarios.all()}


def test_what_a_visitor_wrote_is_kept_without_private_data(deployment: Any) -> None:
    say(make_session(deployment), "My card is 4111 1111 1111 1111 and my mail jo.bloggs@example.com")
    (scenario,) = _made(deployment, Origin.CONVERSATION).values()
    assert "4111" not in scenario.lines[0]["say"]
    assert "jo.bloggs" not in scenario.lines[0]["say"]
    assert scenario.origin == Origin.CONVERSATION


def test_badly_rated_conversation_and_unanswered_question_are_incidents(deployment: Any) -> None:
    bad, good = make_session(deployment), make_session(deployment)
    say(bad, "Why is it late?")
    say(good, "Thanks")
    moment = timezone.now()
    with tenant_scope(deployment.tenant_id):
        for session, score in ((bad, 1), (good, 5)):
            Rating.objects.create(
                session=session,
                deployment=deployment,
                scale="thumbs",
                score=score,
                created_at=moment,
                changed_at=moment,
            )
        OpenQuestion.objects.create(deployment=deployment, digest="d", text="Do you ship pianos?", count=3)
    found = _made(deployment, Origin.INCIDENT)
    said = [row.lines[0]["say"] for row in found.values()]
    assert sorted(said) == ["Do you ship pianos?", "Why is it late?"]
    assert found["unanswered: Do you ship pianos?"].checks == [{"kind": "sourced"}]


def test_each_section_of_a_public_document_is_asked_about(deployment: Any, tmp_path: Path) -> None:
    text = "# Returns\n\n## 1. How long\n\n### 1.1 The time you have\nYou have 45 days.\n"
    ingest_texts(deployment.tenant, tmp_path, collection="open", Returns=text)
    ingest_texts(
        deployment.tenant, tmp_path, collection="staff", min_level="verified", Secret=text.replace("Returns", "S")
    )
    found = _made(deployment, Origin.DOCUMENT)
    assert list(found) == ["Returns 1.1"]
    assert found["Returns 1.1"].lines == [{"say": "Returns: The time you have?"}]
    assert found["Returns 1.1"].checks == [{"kind": "cites", "document": "Returns", "section": "1.1"}]


def test_document_without_numbers_is_asked_about_by_its_headings(deployment: Any, tmp_path: Path) -> None:
    text = "We are a bakery.\n\n## When do you open?\nAt eight.\n\n## Empty\n\n## Delivery\nBy bicycle.\n"
    ingest_texts(deployment.tenant, tmp_path, collection="open", Bakery=text, Plain="No heading at all.")
    found = _made(deployment, Origin.DOCUMENT)
    said = {row.lines[0]["say"] for row in found.values()}
    assert said == {"Bakery?", "Bakery: When do you open?", "Bakery: Delivery?", "Plain?"}
    assert found["Plain"].checks == [{"kind": "cites", "document": "Plain", "section": ""}]


def test_catalogue_of_attacks_wants_no_level_and_no_card(deployment: Any) -> None:
    found = _made(deployment, Origin.ATTACKS)
    assert len(found) >= 30
    assert all({"kind": "cards", "count": 0} in row.checks for row in found.values())


def test_nothing_to_make_a_suite_of_is_refused(deployment: Any) -> None:
    with pytest.raises(SilasError) as refused:
        _made(deployment, Origin.CONVERSATION)
    assert refused.value.code == "simulation_empty"


def test_suite_made_again_has_each_scenario_once(deployment: Any) -> None:
    first = _made(deployment, Origin.ATTACKS)
    assert len(_made(deployment, Origin.ATTACKS)) == len(first)
