"""Records over the REST API: cards, work, the audit log, deployments, members and insights. What the console shows of
them a program can read, in the same roles."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from apps.approvals.models import Card, Look
from apps.audit.bundles import verify_bundle
from apps.audit.models import AuditEntry
from apps.audit.rules import Entry, compute_hash
from apps.tenants.enums import KeyScope
from apps.tenants.models import Deployment
from apps.work.models import Attempt, LedgerEntry, VerificationRun, WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.console import browser
from tests.factories.tenants import make_member, make_tenant
from tests.factories.work import Desk, make_desk

CARDS, WORK, AUDIT = "/api/v1/cards", "/api/v1/work-items", "/api/v1/audit"
PLACES, MEMBERS, INSIGHTS = "/api/v1/deployments", "/api/v1/members", "/api/v1/insights"


@dataclass
class House:
    """A company with two waiting tasks, one approved, and another company's program."""

    desk: Desk
    owner: Any
    viewer: Any
    waiting: WorkItem
    approved: WorkItem
    api: Api
    foreign: Api

    def card(self, item: WorkItem) -> Card:
        return self.desk.card(item)


@pytest.fixture(scope="module")
def built(migrated: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with django_db_blocker.unblock():
        tenant = make_tenant()
        owner, viewer = make_member(tenant, "owner"), make_member(tenant, "viewer")
        desk = make_desk(tenant, tmp_path_factory.mktemp("skill"))
        waiting, approved = desk.waiting(), desk.approved(owner, value=40)
        yield House(desk, owner, viewer, waiting, approved, Api(tenant), Api(make_tenant()))
        connections.close_all()


@pytest.fixture
def house(built: House, database: None) -> House:
    return built


def ids(answer: Any, name: str) -> list[str]:
    return [row["id"] for row in answer.json()[name]]


def test_card_shows_what_an_approval_binds_and_who_has_to_give_it(house: House) -> None:
    card = house.card(house.waiting)
    read = house.api.get(f"{CARDS}/{card.pk}").json()
    assert read["payload"] == card.payload
    assert read["payload_hash"] == house.waiting.plan_hash
    assert read["state"] == "open"
    assert read["about"] == {"kind": "work_item", "id": str(house.waiting.pk)}
    assert read["quorum"]["people"] == 1
    assert read["quorum"]["missing"] == 1
    assert [choice["value"] for choice in read["choices"]] == ["approve", "decline"]
    assert read["approval"] is None
    with tenant_scope(house.desk.tenant):
        assert not Look.objects.filter(card=card).exists()


def test_decided_card_shows_who_signed_what(house: House) -> None:
    read = house.api.get(f"{CARDS}/{house.card(house.approved).pk}").json()
    (answer,) = read["answers"]
    assert read["decision"]["by"]["id"] == str(house.owner.pk)
    assert read["decision"]["verdict"] == "approved"
    assert answer["signature"]
    assert read["quorum"] is None
    assert read["approval"]["plan_hash"] == house.approved.plan_hash
    assert read["approval"]["key_id"] == answer["key_id"]


def test_cards_are_filtered_and_paged_newest_first(house: House) -> None:
    both = [str(house.card(item).pk) for item in (house.approved, house.waiting)]
    of_place = {"deployment": str(house.desk.deployment.pk), "kind": "plan"}
    assert ids(house.api.get(CARDS, **of_place), "cards") == both
    first = house.api.get(CARDS, limit=1, **of_place).json()
    second = house.api.get(CARDS, limit=1, before=first["next"], **of_place).json()
    assert [first["cards"][0]["id"], second["cards"][0]["id"]] == both
    assert second["next"] == ""
    assert ids(house.api.get(CARDS, state="open"), "cards") == both[1:]
    assert ids(house.api.get(CARDS, state="decided", risk=first["cards"][0]["risk"]), "cards") == both[:1]
    assert ids(house.api.get(CARDS, assignee=str(house.owner.pk)), "cards") == []


def test_cards_are_paged_by_the_nearest_deadline(house: House) -> None:
    late, soon = house.card(house.approved), house.card(house.waiting)
    place = {"deployment": str(house.desk.deployment.pk), "kind": "plan"}
    with tenant_scope(soon.tenant):
        Card.objects.filter(pk=soon.pk).update(expires_at=now() + timedelta(days=9))
        rest = Card.objects.filter(deployment=house.desk.deployment, kind="plan").exclude(pk=soon.pk)
        wanted = [str(pk) for pk in rest.order_by("expires_at", "pk").values_list("pk", flat=True)] + [str(soon.pk)]
    assert str(late.pk) in wanted
    assert ids(house.api.get(CARDS, sort="deadline", **place), "cards") == wanted
    found, before = list[str](), ""
    for _ in wanted:
        page = house.api.get(CARDS, sort="deadline", limit=1, before=before, **place).json()
        found += [card["id"] for card in page["cards"]]
        before = page["next"]
    assert found == wanted
    assert before == ""


def test_card_whose_time_is_up_is_expired_before_it_is_swept(house: House) -> None:
    card = house.card(house.desk.waiting(value=51))
    with tenant_scope(house.desk.tenant):
        Card.objects.filter(pk=card.pk).update(created_at=now().replace(year=2020), expires_at=now().replace(year=2021))
    assert ids(house.api.get(CARDS, state="expired"), "cards") == [str(card.pk)]
    assert str(card.pk) not in ids(house.api.get(CARDS, state="open"), "cards")
    assert house.api.get(f"{CARDS}/{card.pk}").json()["state"] == "expired"


def test_work_shows_its_attempts_receipts_and_checks(house: House) -> None:
    with tenant_scope(house.desk.tenant):
        attempt = Attempt.objects.create(work_item=house.approved, number=1, status="passed", started_at=now())
        check = {"name": "done", "passed": True, "reason": "It is there.", "output": "private", "exit_code": 0}
        VerificationRun.objects.create(attempt=attempt, all_passed=True, results=[check], ran_at=now())
        LedgerEntry.objects.create(
            attempt=attempt,
            tool="act",
            args_digest="a" * 64,
            success=True,
            value={"secret": "private"},
            created_at=now(),
        )
    answer = house.api.get(f"{WORK}/{house.approved.pk}")
    read = answer.json()
    (shown,) = read["attempts"]
    assert read["plan"] == json.loads(house.approved.plan)
    assert read["card"]["state"] == "decided"
    assert shown["verification"]["passed"] is True
    assert shown["verification"]["checks"] == [{"name": "done", "passed": True, "reason": "It is there."}]
    assert [receipt["tool"] for receipt in shown["receipts"]] == ["act"]
    assert b"private" not in answer.content


def test_program_cancels_work_under_its_own_name_once(house: House) -> None:
    item = house.desk.waiting(value=52)
    path = f"{WORK}/{item.pk}/cancel"
    cancelled = house.api.post(path)
    assert cancelled.json()["reason"] == "cancelled"
    assert cancelled.json()["may_cancel"] is False
    assert code(house.api.post(path)) == (409, "work_settled")
    with tenant_scope(house.desk.tenant):
        (entry,) = AuditEntry.objects.filter(event="work_cancelled", subject=f"work:{item.pk}")
    assert entry.actor == house.api.actor


def test_goal_is_neither_cancelled_nor_resumed_while_it_runs(house: House) -> None:
    goal = f"{WORK}/{house.desk.goal_id}"
    assert ids(house.api.get(WORK, type="goal"), "work_items") == [str(house.desk.goal_id)]
    assert code(house.api.post(f"{goal}/cancel")) == (409, "not_cancellable")
    assert code(house.api.post(f"{goal}/resume")) == (409, "not_parked")


def test_viewer_reads_work_and_stops_none(house: House) -> None:
    api = Api(house.desk.tenant, member=house.viewer)
    assert api.get(f"{WORK}/{house.waiting.pk}").status_code == 200
    assert code(api.post(f"{WORK}/{house.waiting.pk}/cancel")) == (403, "forbidden_role")
    assert code(api.post(f"{WORK}/{house.desk.goal_id}/resume")) == (403, "forbidden_role")


def test_entry_comes_with_its_proof_and_the_log_with_its_export(house: House) -> None:
    exported = house.api.post(f"{AUDIT}/export")
    _name, verified = verify_bundle(io.StringIO(exported.content.decode()))
    (entry, *_) = house.api.get(AUDIT, subject=f"work:{house.approved.pk}").json()["entries"]
    read = house.api.get(f"{AUDIT}/{entry['seq']}").json()
    assert verified.broken is None
    assert compute_hash(Entry(**read["proof"]["line"])) == read["entry_hash"]
    assert read["proof"]["checkpoint"]["seq"] >= read["seq"]
    assert read["proof"]["public_key"]
    assert read["proof"]["broken"] is None
    assert house.api.get(f"{AUDIT}/1").json()["prev_hash"] == "genesis"
    assert house.api.post(f"{AUDIT}/verify").json()["broken"] is None


def test_changed_entry_is_not_proved(house: House, superuser_dsn: str) -> None:
    import psycopg

    seq = house.foreign.get(AUDIT).json()["entries"][0]["seq"]
    with psycopg.connect(superuser_dsn) as hostile:
        hostile.execute("SET session_replication_role = replica")
        hostile.execute(
            "UPDATE audit_auditentry SET actor = 'user:x' WHERE seq = %s AND entry_hash = %s",
            [seq, house.foreign.get(f"{AUDIT}/{seq}").json()["entry_hash"]],
        )
    assert house.foreign.get(f"{AUDIT}/{seq}").json()["proof"]["broken"] == {"seq": seq, "reason": "content"}


def test_audit_is_filtered_by_event_actor_and_time_and_paged(house: House) -> None:
    newest = house.api.get(AUDIT, limit=1).json()
    older = house.api.get(AUDIT, limit=1, before=newest["next"]).json()
    assert newest["entries"][0]["seq"] == newest["head"]["seq"]
    assert older["entries"][0]["seq"] == newest["head"]["seq"] - 1
    decided = house.api.get(AUDIT, event="card_decided", actor=f"user:{house.owner.pk}").json()["entries"]
    assert [entry["event"] for entry in decided] == ["card_decided"]
    assert house.api.get(AUDIT, event="card_decided", until="2020-01-01T00:00:00Z").json()["entries"] == []


def test_deployment_is_read_as_the_studio_shows_it_without_keys(house: House) -> None:
    place = house.desk.deployment
    with tenant_scope(house.desk.tenant):
        Deployment.objects.filter(pk=place.pk).update(sealed_keys={"openai": "sealed-secret"})
    answer = house.api.get(f"{PLACES}/{place.pk}")
    read = answer.json()
    assert ids(house.api.get(PLACES), "deployments") == [str(place.pk)]
    assert read["provider_keys"] == ["openai"]
    assert read["active_goal_id"] == str(house.desk.goal_id)
    assert read["offers"]["pictures"] is False
    assert b"sealed-secret" not in answer.content


def test_members_are_listed_newest_first(house: House) -> None:
    rows = house.api.get(MEMBERS).json()["members"]
    assert [row["role"] for row in rows] == ["viewer", "owner"]
    assert rows[1]["user_id"] == str(house.owner.pk)


def test_insights_are_the_numbers_of_the_page(house: House) -> None:
    file = browser(house.owner).get("/console/insights/file/").getvalue().decode("utf-8-sig")
    page = {(section, name): value for section, name, value in csv.reader(io.StringIO(file))}
    read = house.api.get(INSIGHTS).json()
    assert page["Decisions", "decisions"] == str(read["decisions"]["totals"]["decisions"]) == "1"
    assert page["Messages", "total"] == str(read["conversations"]["turns"]["total"])
    assert len(read["conversations"]["daily"]) == 7
    assert read["decisions"]["daily"][-1]["decided"] == 1
    of_place = house.api.get(INSIGHTS, deployment=str(house.desk.deployment.pk)).json()
    assert of_place["decisions"]["totals"]["decisions"] == 1


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (CARDS, {"state": "lost"}),
        (CARDS, {"deployment": "x"}),
        (CARDS, {"sort": "risk"}),
        (CARDS, {"before": "no-cursor"}),
        (CARDS, {"colour": "red"}),
        (WORK, {"status": "lost"}),
        (WORK, {"before": "é"}),
        (WORK, {"limit": 201}),
        (AUDIT, {"event": "nothing_happened"}),
        (AUDIT, {"before": "-1"}),
        (AUDIT, {"since": "0001-01-01T00:00:00Z"}),
        (AUDIT, {"subject": "a\0b"}),
        (PLACES, {"limit": 0}),
        (MEMBERS, {"before": "AAAA"}),
        (INSIGHTS, {"first": "yesterday"}),
        (INSIGHTS, {"first": "2025-02-01", "last": "2025-01-01"}),
        (INSIGHTS, {"last": "0001-01-01"}),
        (INSIGHTS, {"first": "2020-01-01"}),
    ],
)
def test_wrong_input_is_refused(house: House, path: str, query: dict[str, Any]) -> None:
    assert code(house.api.get(path, **query)) == (400, "invalid")


def test_nothing_of_another_company_is_found(house: House) -> None:
    card = house.card(house.waiting)
    for path in (f"{CARDS}/{card.pk}", f"{WORK}/{house.waiting.pk}", f"{PLACES}/{house.desk.deployment.pk}"):
        assert code(house.foreign.get(path)) == (404, "not_found")
    assert code(house.foreign.get(INSIGHTS, deployment=str(house.desk.deployment.pk))) == (404, "not_found")
    assert code(house.foreign.post(f"{WORK}/{house.waiting.pk}/cancel")) == (404, "not_found")
    assert code(house.foreign.post(f"{WORK}/{house.desk.goal_id}/resume")) == (404, "not_found")
    assert code(house.foreign.get(f"{AUDIT}/99999")) == (404, "not_found")
    assert code(house.api.get(f"{CARDS}/{uuid4()}")) == (404, "not_found")
    assert ids(house.foreign.get(CARDS, deployment=str(house.desk.deployment.pk)), "cards") == []
    assert ids(house.foreign.get(WORK), "work_items") == []
    assert house.foreign.get(MEMBERS).json()["members"] == []


def test_key_with_scopes_reads_no_records(house: House) -> None:
    api = Api(house.desk.tenant, KeyScope.MEMORY_READ)
    for path in (CARDS, WORK, AUDIT, PLACES, MEMBERS, INSIGHTS):
        assert code(api.get(path)) == (403, "forbidden_scope")


@pytest.mark.parametrize("path", [CARDS, WORK, AUDIT])
def test_list_takes_the_same_queries_for_any_number(house: House, path: str) -> None:
    counts = []
    for limit in (1, 3):
        with CaptureQueriesContext(connection) as made:
            assert house.api.get(path, limit=limit).status_code == 200
        counts.append(len(made))
    assert counts[0] == counts[1]
