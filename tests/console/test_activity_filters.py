"""The filters of the activity feed: actor, chatbot and days; and the evidence of entries."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.approvals.cards.services import decide_card
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.services import record
from apps.console.pages.activity.evidence import evidence_for
from kernel.tenancy import tenant_scope
from tests.factories.audit import make_entries
from tests.factories.autonomy import make_house
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member
from tests.factories.work import make_desk


def _shown(user: Any, **query: str) -> list[Any]:
    page = browser(user).get(reverse("console-activity"), {"show": "everything", **query})
    return [told.entry for _, day in page.context["days"] for told in day]


def _note(tenant: Any, actor: str, subject: str = "") -> None:
    with tenant_scope(tenant):
        record(AuditEvent.PERSON_WANTED, actor=actor, subject=subject)


@pytest.mark.parametrize(
    ("who", "actors"), [("visitors", {"visitor:1", "visitor"}), ("platform", {"system", "deployment:1"})], ids=str
)
def test_those_who_are_no_members_are_told_apart(tenant: Any, owner: Any, who: str, actors: set[str]) -> None:
    for actor in ("visitor:1", "visitor", "system", "deployment:1", f"user:{owner.pk}"):
        _note(tenant, actor)
    assert {one.actor for one in _shown(owner, who=who)} == actors


def test_only_what_a_member_did_is_shown(tenant: Any, owner: Any, agent: Any) -> None:
    _note(tenant, f"user:{owner.pk}")
    _note(tenant, f"user:{agent.pk}")
    assert [one.actor for one in _shown(owner, who=str(agent.pk))] == [f"user:{agent.pk}"]


def test_only_what_is_about_a_chatbot_is_shown(tenant: Any, owner: Any) -> None:
    here, there = make_deployment(tenant), make_deployment(tenant)
    sessions = [make_session(one) for one in (here, there)]
    for session in sessions:
        say(session, "Hello")
    make_card(tenant, deployment_id=here.pk)
    assert {one.subject.split(":")[0] for one in _shown(owner, at=str(here.pk))} == {"session", "card"}


def test_chatbot_of_another_tenant_shows_nothing(tenant: Any, other_tenant: Any, owner: Any) -> None:
    make_entries(tenant, 2)
    assert _shown(owner, at=str(make_deployment(other_tenant).pk)) == []


def test_names_of_another_tenant_are_not_offered(tenant: Any, other_tenant: Any, owner: Any) -> None:
    place, person = make_deployment(other_tenant, title="Secret desk"), make_member(other_tenant, "owner")
    page = browser(owner).get(reverse("console-activity")).content.decode()
    assert place.title not in page
    assert str(person.pk) not in page


def test_days_are_whole_and_both_are_shown(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 2)
    today = str(timezone.localdate())
    assert len(_shown(owner, **{"from": today, "to": today})) == 2


@pytest.mark.parametrize(("name", "days"), [("from", 1), ("to", -1)])
def test_days_beyond_are_left_out(tenant: Any, owner: Any, name: str, days: int) -> None:
    make_entries(tenant, 2)
    assert _shown(owner, **{name: str(timezone.localdate() + timedelta(days=days))}) == []


@pytest.mark.parametrize("name", ["who", "at", "from", "to", "show", "before"])
@pytest.mark.parametrize("value", ["x", "\x00", "9999-99-99", "' OR 1=1", "٣", "0001-01-01", "9999-12-31"])
def test_choice_that_is_none_is_no_error(tenant: Any, owner: Any, name: str, value: str) -> None:
    assert browser(owner).get(reverse("console-activity"), {name: value}).status_code == 200


def test_pages_keep_what_was_chosen(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 60)
    page = browser(owner).get(reverse("console-activity"), {"show": "everything", "who": "visitors"})
    assert "?show=everything&amp;who=visitors&amp;before=11" in page.content.decode()


def test_pages_of_what_was_chosen_have_no_gap(tenant: Any, owner: Any) -> None:
    for _ in range(3):
        make_entries(tenant, 20)
        _note(tenant, "system")
    first = _shown(owner, who="visitors")
    second = _shown(owner, who="visitors", before=str(first[-1].seq))
    assert [one.seq for one in (*first, *second)] == [seq for seq in range(63, 0, -1) if seq not in (21, 42, 63)]


def test_empty_sieve_says_that_nothing_fits(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 1)
    page = browser(owner).get(reverse("console-activity"), {"who": str(uuid4())}).content.decode()
    assert "No results" in page


def _proofs(tenant: Any, event: str, *, owner: bool = False) -> dict[str, str]:
    with tenant_scope(tenant):
        entry = AuditEntry.objects.filter(event=event).latest("seq")
        return {proof.title: proof.text for proof in evidence_for(entry, owner=owner)}


def test_decision_is_proved_by_its_signed_token(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        decide_card(card.pk, user=owner, verdict="approved")  # type: ignore[arg-type]
    proofs = _proofs(tenant, "approval_token_issued")
    assert proofs["Decision"] == f"{card.intent} (decided)"
    assert f"signed by {owner.display_name} with key" in proofs["Approval token"]


def test_work_is_proved_by_the_checks_outside(tenant: Any, owner: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    desk.approved(owner)
    desk.work()
    proofs = _proofs(tenant, "work_attempted")
    assert set(proofs) == {"Decision", "Approval token", "Verification"}
    assert "passed" in proofs["Verification"]


def test_task_is_proved_by_its_receipt(tenant: Any) -> None:
    house = make_house(tenant)
    house.through(house.task(name="Nightly look"))
    assert _proofs(tenant, "autonomous_ended") == {"Receipt": "Nightly look (done)"}


def test_entry_shows_its_proofs_and_the_entry_before(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 1)
    card = make_card(tenant)
    page = browser(owner).get(reverse("console-entry", args=[2])).content.decode()
    assert reverse("console-card", args=[card.pk]) in page
    assert f'href="{reverse("console-entry", args=[1])}"' in page


def test_proof_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any) -> None:
    card = make_card(other_tenant)
    _note(tenant, "system", f"card:{card.pk}")
    assert _proofs(tenant, "person_wanted") == {}


@pytest.mark.parametrize("subject", ["", "card:", "card:x", f"token:{uuid4()}", f"run:{uuid4()}", f"gate:{uuid4()}"])
def test_subject_without_a_proof_has_none(tenant: Any, subject: str) -> None:
    _note(tenant, "system", subject)
    assert _proofs(tenant, "person_wanted") == {}
