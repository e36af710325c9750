"""Both demo tenants act on a connected calendar: what a customer sees of it, what is proved, and that it is undone."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apps.connections import credentials
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection
from apps.guard.schemas import CallFailed, Done
from apps.skills import queries, rules
from apps.skills.services import install_version
from apps.work.checks import checks_of
from apps.work.verification import run_checks
from kernel.tenancy import tenant_scope
from sandbox import Choice, configure
from silas_platform import demo
from tests.services import calendar
from tests.services.calendar import PASSWORD, CalendarServer
from tests.skills.test_demo_desks import Desk


class Story(NamedTuple):
    skill: str
    folder: Path
    customer: str
    what: str
    about: dict[str, str]


HARBOR = Story("harbor-pickups", demo.FOLDER / "harbor-retail", "K-2001", "pickup", {"order": "H-90340"})
MERIDIAN = Story("meridian-callbacks", demo.FOLDER / "meridian-insurance", "C-1001", "callback", {"claim": "CL-3071"})
START = "2099-12-01T10:30"


@pytest.fixture(scope="module")
def diary() -> Iterator[CalendarServer]:
    with calendar.serving() as server:
        configure(Choice(egress_private=(server.place,)))
        yield server
        configure(Choice())


@pytest.fixture
def opened(diary: CalendarServer, tenant: Any) -> Connection:
    """The calendar is connected, as set-up leaves it."""
    with tenant_scope(tenant):
        version = install_version(demo.SKILLS / "caldav")
        row: Connection = Connection.objects.create(
            name="Appointments",
            skill=rules.reference(version.name, version.digest),
            skill_name="caldav",
            auth_strategy="secure_input",
            permissions_granted=["calendar.read", "calendar.write"],
            settings=diary.settings,
            status=ConnectionStatus.ACTIVE,
        )
        credentials.store(row.pk, {"password": PASSWORD})
    return row


@pytest.fixture(params=[HARBOR, MERIDIAN], ids=lambda story: story.skill)
def story(request: pytest.FixtureRequest) -> Story:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def desk(tenant: Any, story: Story) -> Any:
    return Desk(tenant, story.folder, story.skill)


def booked(desk: Any, story: Story) -> Any:
    return desk.call(f"book_{story.what}", story.customer, **story.about, start=START)


def events(diary: CalendarServer) -> list[bytes]:
    return re.findall(rb"UID:silas-([0-9a-f]{32})", diary.ask("GET"))


def test_booking_stands_in_the_calendar_and_in_the_books(
    desk: Any, story: Story, opened: Connection, diary: Any
) -> None:
    before = len(set(events(diary)))
    outcome = booked(desk, story)
    assert isinstance(outcome, Done)
    assert "Tuesday 1 December at 10:30" in outcome.value["say"]
    assert desk.row(outcome.value[story.what])["status"] == "booked"
    assert len(set(events(diary))) == before + 1


def test_customer_sees_the_booking_and_sees_it_go(desk: Any, story: Story, opened: Connection, diary: Any) -> None:
    number = booked(desk, story).value[story.what]
    seen = desk.call(f"my_{story.what}s", story.customer).value["say"]
    desk.call(f"cancel_{story.what}", story.customer, **{story.what: number})
    gone = desk.call(f"my_{story.what}s", story.customer).value["say"]
    assert number in seen
    assert number not in gone
    assert desk.row(number)["status"] == "cancelled"
    assert desk.row(number)["event"].encode() not in events(diary)


def test_booking_is_proved_from_what_the_calendar_gave_back(desk: Any, story: Story, opened: Connection) -> None:
    outcome = booked(desk, story)
    left = {name: base64.b64decode(content) for name, content in outcome.value["_artifacts"].items()}
    assert proofs(desk, story, left) == [True]
    moved = {name: content.replace(b"T103000", b"T113000") for name, content in left.items()}
    assert proofs(desk, story, moved) == [False]
    assert proofs(desk, story, {}) == [False]


def proofs(desk: Any, story: Story, artifacts: dict[str, bytes]) -> list[bool]:
    tool = desk.tools[f"book_{story.what}"]
    with tenant_scope(desk.tenant):
        mounts = queries.verification_mounts([tool], story.customer, desk.calls)
    return [
        result.passed for result in run_checks(checks_of([tool]), mounts={**mounts, "artifacts": artifacts}).results
    ]


def test_undo_is_the_cancelling_of_the_very_booking(desk: Any, story: Story) -> None:
    undo = desk.tools[f"book_{story.what}"].undo
    assert undo.tool == f"cancel_{story.what}"
    assert undo.args == {story.what: f"$answer.{story.what}"}


def test_only_tools_that_need_the_calendar_get_its_credentials(desk: Any, story: Story, opened: Connection) -> None:
    desk.call(f"my_{story.what}s", story.customer)
    before = last_used(desk, opened)
    booked(desk, story)
    assert before is None
    assert last_used(desk, opened) is not None


def last_used(desk: Any, row: Connection) -> Any:
    with tenant_scope(desk.tenant):
        return Connection.objects.get(pk=row.pk).last_used


def test_without_a_connection_nothing_is_booked(desk: Any, story: Story) -> None:
    assert booked(desk, story).gate == "connection_missing"


def test_calendar_that_is_away_is_a_refusal_and_nothing_is_uncertain(
    desk: Any, story: Story, opened: Connection
) -> None:
    with tenant_scope(desk.tenant):
        away = {"url": "http://127.0.0.1:1/x/", "username": "x"}
        Connection.objects.filter(pk=opened.pk).update(settings=away)
    outcome = booked(desk, story)
    assert outcome.code == "refused_by_tool"
    assert "nothing is booked" in outcome.reason
    assert outcome.uncertain is False


def test_somebody_elses_cannot_be_booked_for(desk: Any, story: Story, opened: Connection) -> None:
    about = {name: value[:-1] + "9" for name, value in story.about.items()}
    outcome = desk.call(f"book_{story.what}", story.customer, **about, start=START)
    assert outcome.code == "refused_by_tool"


def test_run_that_fails_after_it_reached_out_is_uncertain() -> None:
    from types import SimpleNamespace

    from apps.skills.runs import _with_effect

    found: Any = SimpleNamespace(tool=SimpleNamespace(acting=True, connection="caldav", executor=""))
    assert not _with_effect(CallFailed("script_failed", "It ended.", effect_free=True), found).effect_free
    assert _with_effect(CallFailed("refused_by_tool", "No.", effect_free=True), found).effect_free
