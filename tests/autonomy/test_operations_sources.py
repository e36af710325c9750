"""What automations read of daily work: with the rights of a worker, of their own company, and nobody's words."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

import pytest

from apps.autonomy.data_sources import DATA_SOURCES
from apps.autonomy.operations_sources import SOURCES
from apps.autonomy.past_dates import outdated_sentences
from apps.autonomy.promises import promise_due
from kernel.tenancy import tenant_scope
from tests.factories.months import MonthHouse, make_month
from tests.platform.connecting import connected_as

SAID = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.fixture
def month(tenant: Any) -> MonthHouse:
    return make_month(tenant)


def context(house: MonthHouse) -> dict[str, str]:
    session = house.run_now(house.task(name="reads", playbook="unhappy", prompt=""))
    return {"deployment": str(house.deployment.pk), "session": str(session.pk)}


def test_worker_reads_every_source_and_no_word_of_a_visitor(month: MonthHouse) -> None:
    asked = context(month)
    with connected_as(os.environ["DATABASE_WORK_URL"]), tenant_scope(month.tenant):
        read = {name: DATA_SOURCES[name]({}, asked) for name in SOURCES}
    written = json.dumps(read)
    assert len(read["conversations"]["conversations"]) == month.talks
    assert "broken shade" not in written
    assert "nobody answered all day" not in written


def test_other_company_sees_nothing_of_it(month: MonthHouse, other_tenant: Any) -> None:
    other = make_month(other_tenant)
    asked = {**context(other), "deployment": str(month.deployment.pk)}
    with tenant_scope(other_tenant):
        assert SOURCES["conversations"]({}, asked)["conversations"] == []
        assert SOURCES["waiting"]({}, asked)["visitors"] == []


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I will write to you here tomorrow.", 21),
        ("I have asked the carrier and will write to you here tomorrow.", 21),
        ("We'll get back to you within 2 days", 22),
        ("We will answer within three working days.", 25),
        ("I will call you on Monday.", 23),
        ("Ich melde mich morgen bei Ihnen.", 21),
        ("Wir melden uns innerhalb von 2 Tagen.", 22),
        ("I'll send it today.", 20),
    ],
)
def test_promise_with_a_time_is_due(text: str, day: int) -> None:
    due = promise_due(text, SAID)
    assert due is not None
    assert due.day == day


@pytest.mark.parametrize(
    "text", ["", "It takes 2 days.", "I will look into it.", "Come back tomorrow.", "will " * 4000, "I " * 9000 + "\0"]
)
def test_what_promises_no_time_is_no_promise(text: str) -> None:
    assert promise_due(text, SAID) is None


@pytest.mark.parametrize(
    ("text", "many"),
    [
        ("The offer is valid until 24 December 2025.", 1),
        ("Closed from 2026-01-01 until 2026-12-31.", 0),
        ("Founded on 3 May 1990.", 0),
        ("Valid until 31 February 2025.", 0),
        ("until " + "9" * 5000, 0),
    ],
)
def test_sentences_about_a_time_that_is_over(text: str, many: int) -> None:
    assert len(outdated_sentences(text, SAID.date())) == many
