"""From a proposal to its use: tried, shown, approved for exactly this content, tried again (spec 10.4)."""

import os

import pytest
from django.db import DatabaseError

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind, Queue
from apps.bus.rules import MAX_ATTEMPTS
from apps.bus.services import enqueue, expire_leases
from apps.skills import queries, trials
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.skills import SAY_OK, answer, install, make_folder, plain_folder, propose, try_proposed
from tests.factories.work import Hands
from tests.platform.connecting import connected_as

COUNT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("text")
parser.add_argument("--least", type=int, default=1)
given = parser.parse_args()
print(len([word for word in given.text.split() if len(word) >= given.least]))
"""
ARGS = {
    "text": {"type": "string", "passed": "position", "max_length": 50, "example": "two words"},
    "least": {"type": "integer", "default": 1, "minimum": 1},
}


@pytest.fixture
def proposed(tenant, tmp_path):
    return propose(tenant, plain_folder(tmp_path, COUNT, args=ARGS))


def card_of(tenant, version):
    try_proposed(tenant)
    with tenant_scope(tenant):
        version.refresh_from_db()
        return Card.objects.get(pk=version.card_id)


def test_approved_skill_is_in_use(tenant, approver, proposed):
    answer(tenant, proposed, approver)
    with tenant_scope(tenant):
        assert queries.current_version("word-count") == proposed


def test_approved_skill_is_told_as_installed(tenant, approver, proposed):
    answer(tenant, proposed, approver)
    with tenant_scope(tenant):
        events = set(AuditEntry.objects.values_list("event", flat=True))
    assert {"skill_proposed", "approval_verified", "skill_installed"} <= events


def test_approved_skill_is_not_found_before_it_stood_its_trial(tenant, approver, proposed):
    card = card_of(tenant, proposed)
    with tenant_scope(tenant):
        decide_card(card.pk, user=approver, verdict=ApprovalVerdict.APPROVED)
        assert queries.current_version("word-count") is None


def test_declined_skill_is_withdrawn(tenant, approver, proposed):
    answer(tenant, proposed, approver, ApprovalVerdict.DECLINED)
    assert proposed.status == "withdrawn"
    assert proposed.report["withdrawn"] == "declined"


def test_declined_content_can_be_asked_about_again(tenant, tmp_path, approver, proposed):
    answer(tenant, proposed, approver, ApprovalVerdict.DECLINED)
    propose(tenant, tmp_path / "word-count")
    answer(tenant, proposed, approver)
    assert proposed.status == "active"


def test_card_nobody_answered_withdraws(tenant, proposed, monkeypatch):
    card = card_of(tenant, proposed)
    with tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(expires_at=now())
    expire_cards(tenant)
    with tenant_scope(tenant):
        proposed.refresh_from_db()
    assert proposed.status == "withdrawn"


def test_card_shows_the_instructions_and_the_script(tenant, proposed):
    body = card_of(tenant, proposed).body
    assert "Run `scripts/count.py`" in body["instructions"]
    assert body["files"][0]["text"] == COUNT


def test_card_shows_how_the_dry_run_ended(tenant, proposed):
    assert "Dry run of scripts/count.py: ran to its end" in card_of(tenant, proposed).body["report"]


def test_card_says_honestly_that_nothing_was_run(tenant, tmp_path):
    version = propose(tenant, plain_folder(tmp_path, COUNT, args={"text": {"type": "string"}}))
    assert any("no dry-run input declared" in line for line in card_of(tenant, version).body["report"])


def test_card_of_an_update_shows_what_differs(tenant, tmp_path):
    install(tenant, make_folder(tmp_path))
    version = propose(tenant, make_folder(tmp_path, files={"scripts/look.py": "print('{}')"}))
    diff = card_of(tenant, version).body["diff"]
    assert f"-{SAY_OK}\n+print('{{}}')" in diff


def test_skill_whose_script_fails_is_withdrawn_after_the_approval(tenant, tmp_path, approver):
    folder = plain_folder(tmp_path, "raise SystemExit('broken')", args={})
    version = propose(tenant, folder)
    answer(tenant, version, approver)
    assert version.status == "withdrawn"
    assert version.report["withdrawn"] == "trial_failed"


def test_dry_run_reaches_no_network(tenant, tmp_path):
    source = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    version = propose(tenant, plain_folder(tmp_path, source, args={}))
    card_of(tenant, version)
    assert version.report["dry_run"][0]["ok"] is False


def test_edited_after_the_approval_is_another_version_that_needs_another(tenant, tmp_path, approver, proposed):
    answer(tenant, proposed, approver)
    (tmp_path / "word-count/scripts/count.py").write_text(f"{COUNT}# one byte more")
    edited = propose(tenant, tmp_path / "word-count")
    with tenant_scope(tenant):
        assert edited.status == "proposed"
        assert queries.current_version("word-count") == proposed


def test_approval_of_one_content_activates_no_other(tenant, tmp_path, approver, proposed):
    answer(tenant, proposed, approver)
    (tmp_path / "word-count/scripts/count.py").write_text("print(1)")
    other = propose(tenant, tmp_path / "word-count")
    with tenant_scope(tenant), pytest.raises(DatabaseError, match="spent approval"):
        SkillVersion.objects.filter(pk=other.pk).update(status="active", approval_token=proposed.approval_token)


def test_approval_of_a_report_that_changed_meanwhile_is_not_spent(tenant, approver, proposed):
    card = card_of(tenant, proposed)
    with tenant_scope(tenant):
        SkillVersion.objects.filter(pk=proposed.pk).update(report={"notes": ["all is well"]})
        decide_card(card.pk, user=approver, verdict=ApprovalVerdict.APPROVED)
        proposed.refresh_from_db()
    assert proposed.status == "withdrawn"
    assert proposed.approval_token is None


def test_skill_that_was_asked_about_is_not_tried_again(tenant, proposed):
    card_of(tenant, proposed)
    with tenant_scope(tenant):
        trials.enqueue_trial(proposed)
    try_proposed(tenant)
    with tenant_scope(tenant):
        assert Card.objects.filter(subject_id=proposed.pk).count() == 1


def test_skill_whose_worker_died_is_tried_by_another(tenant, proposed):
    with tenant_scope(tenant):
        assert lease_any(Queue.WORK, consumer="doomed") is not None
    let_leases_run_out(tenant)
    assert card_of(tenant, proposed).status == "open"


def test_skill_whose_trial_kills_its_workers_is_withdrawn(tenant, proposed):
    for _ in range(MAX_ATTEMPTS):
        with tenant_scope(tenant):
            assert lease_any(Queue.WORK, consumer="doomed") is not None
        let_leases_run_out(tenant)
    with tenant_scope(tenant):
        expire_leases()
    try_proposed(tenant)
    with tenant_scope(tenant):
        proposed.refresh_from_db()
    assert proposed.status == "withdrawn"
    assert proposed.report["withdrawn"] == "trial_failed"


def report(tenant, version, trials, *, approved=False):
    """Enqueue a report as a worker does, or as a compromised one might."""
    with tenant_scope(tenant):
        enqueue(Kind.SKILL_TRIED, scope_id=version.pk, payload={"approved": approved, "trials": trials})
    Hands(tenant).work(Queue.TRUSTED)


@pytest.mark.parametrize(
    "trials",
    [
        [],
        [{"script": "scripts/other.py", "ok": True, "said": "ran to its end"}],
        [{"script": "scripts/count.py", "ok": True, "said": "x" * 301}],
        [{"script": "scripts/count.py", "ok": "yes", "said": ""}],
    ],
    ids=["no scripts", "other scripts", "long", "no truth"],
)
def test_report_of_another_shape_or_script_asks_nobody(tenant, proposed, trials):
    report(tenant, proposed, trials)
    with tenant_scope(tenant):
        proposed.refresh_from_db()
    assert proposed.card_id is None
    assert card_of(tenant, proposed).status == "open"


def test_report_activates_nothing_that_nobody_approved(tenant, proposed):
    well = [{"script": "scripts/count.py", "ok": True, "said": "ran to its end"}]
    report(tenant, proposed, well, approved=True)
    card_of(tenant, proposed)
    report(tenant, proposed, well, approved=True)
    with tenant_scope(tenant):
        proposed.refresh_from_db()
    assert proposed.status == "proposed"


def test_workers_role_tries_and_reports(tenant, proposed):
    with connected_as(os.environ["DATABASE_WORK_URL"]), tenant_scope(tenant):
        version, folder = trials._with_folder(proposed.pk)
        ended = trials.dry_runs.dry_run(SkillManifest.model_validate(version.manifest), folder)
        trials._enqueue_report(version, trials.dry_runs.as_report(ended))
    Hands(tenant).work(Queue.TRUSTED)
    with tenant_scope(tenant):
        proposed.refresh_from_db()
    assert proposed.card_id is not None
