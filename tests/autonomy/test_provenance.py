"""Everything that one task, session or skill wrote can be listed, quarantined and purged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.audit.models import AuditEntry
from apps.autonomy.models import AutonomousSession, Checkpoint, Finding, MemoryProposal
from apps.autonomy.services import precedents, proposals, provenance
from apps.autonomy.services.provenance import Origin
from apps.skills import installation
from apps.skills import queries as skills
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.proposals import (
    documents,
    make_finding,
    make_precedent,
    make_proposal,
    make_run,
    make_task,
    recalled_memories,
    reload,
    run_trusted_messages,
)
from tests.factories.skills import install, make_folder

ACTOR = "user:1"
DESK = "desk@0123456789abcdef"


@pytest.fixture
def run(deployment: Any) -> AutonomousSession:
    return make_run(make_task(deployment))


@pytest.fixture
def kept(tenant: Any, run: AutonomousSession, owner: Any) -> MemoryProposal:
    """One memory and one document of this session, and one memory of another session."""
    mine = make_proposal(run)
    other = make_proposal(make_run(run.task), "Shops close at six.", skills=[DESK])
    document = make_proposal(run, "We repair bicycles.", kind="knowledge")
    with tenant_scope(tenant):
        for proposal in (mine, other, document):
            proposals.keep(proposal.pk, user=owner)
    run_trusted_messages(tenant)
    return mine


def apply_to_origin(tenant: Any, verb: Any, kind: Any, ref: Any) -> Any:
    with tenant_scope(tenant):
        return verb(Origin(kind, str(ref)), actor=ACTOR)


def test_all_of_a_session_is_listed(tenant: Any, kept: MemoryProposal, run: AutonomousSession) -> None:
    make_finding(run)
    make_precedent(run)
    with tenant_scope(tenant):
        counts = provenance.rows_of(Origin("session", str(run.pk))).counts
    assert counts == {"findings": 1, "artifacts": 0, "proposals": 2, "precedents": 1, "contexts": 0, "remembered": 2}


def test_set_aside_is_recalled_by_nobody(tenant: Any, kept: MemoryProposal, run: AutonomousSession) -> None:
    apply_to_origin(tenant, provenance.quarantine, "session", run.pk)
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == ["Shops close at six."]
    assert documents(tenant) == []


@pytest.mark.parametrize("kind", ["session", "task"])
def test_purge_takes_the_words_of_a_session_that_left_nothing_else(
    tenant: Any, run: AutonomousSession, kind: str
) -> None:
    with tenant_scope(tenant):
        AutonomousSession.objects.filter(pk=run.pk).update(output="Ada pays late", receipt={"summary": "Ada pays late"})
    apply_to_origin(tenant, provenance.purge, kind, run.pk if kind == "session" else run.task_id)
    with tenant_scope(tenant):
        left = AutonomousSession.objects.get(pk=run.pk)
    assert left.output == ""
    assert left.receipt["summary"] == ""


def test_purge_takes_what_the_next_session_was_told(tenant: Any, run: AutonomousSession) -> None:
    child = make_run(make_task(run.task.deployment))
    with tenant_scope(tenant):
        AutonomousSession.objects.filter(pk=child.pk).update(parent=run, context="Ada pays late")
    apply_to_origin(tenant, provenance.purge, "session", run.pk)
    with tenant_scope(tenant):
        assert AutonomousSession.objects.get(pk=child.pk).context == ""


@pytest.mark.parametrize("kind", ["task", "skill"])
def test_purge_takes_what_a_session_left_to_those_that_continue_it(
    tenant: Any, run: AutonomousSession, kind: str
) -> None:
    again = make_run(run.task, root=run, attempt=2, context="Ada pays late")
    child = make_run(make_task(run.task.deployment), parent=again)
    make_finding(again, skills=[DESK])
    with tenant_scope(tenant):
        for session in (run, again, child):
            Checkpoint.objects.create(session=session, phase="analysis", state={"draft": "Ada pays late"})
    apply_to_origin(tenant, provenance.purge, kind, run.task_id if kind == "task" else "desk")
    with tenant_scope(tenant):
        assert [row.state for row in Checkpoint.objects.all()] == [None, None, None]
    assert [reload(again).status, reload(again).context] == ["cancelled", ""]


def test_set_aside_is_not_kept(tenant: Any, kept: MemoryProposal, run: AutonomousSession, owner: Any) -> None:
    apply_to_origin(tenant, provenance.quarantine, "session", run.pk)
    with tenant_scope(tenant), pytest.raises(SilasError, match="was quarantined"):
        proposals.keep(kept.pk, user=owner)


def test_released_is_recalled_again(tenant: Any, kept: MemoryProposal, run: AutonomousSession) -> None:
    apply_to_origin(tenant, provenance.quarantine, "session", run.pk)
    apply_to_origin(tenant, provenance.release, "session", run.pk)
    run_trusted_messages(tenant)
    assert sorted(recalled_memories(tenant)) == ["Parcels go out on Mondays.", "Shops close at six."]
    assert documents(tenant) == ["We repair bicycles."]


@pytest.mark.parametrize("ref", ["desk", DESK])
def test_skill_s_words_are_purged_and_no_other_s(tenant: Any, kept: MemoryProposal, ref: str) -> None:
    apply_to_origin(tenant, provenance.purge, "skill", ref)
    assert recalled_memories(tenant) == ["Parcels go out on Mondays."]


@pytest.mark.parametrize("ref", ["des", "desk@", "desk@0123456789abcdee", "mydesk", ".*", '"'])
def test_words_of_a_skill_of_almost_this_name_are_left_alone(tenant: Any, kept: MemoryProposal, ref: str) -> None:
    with tenant_scope(tenant):
        assert sum(provenance.rows_of(Origin("skill", ref)).counts.values()) == 0


def test_purged_skill_s_words_are_gone_whichever_version_wrote_them(
    tenant: Any, run: AutonomousSession, tmp_path: Path
) -> None:
    refs = []
    for note in ("first", "second"):
        install(tenant, make_folder(tmp_path, files={"references/note.md": note}))
        with tenant_scope(tenant):
            refs += skills.pin(["test-desk"])
    for ref in (*refs, DESK):
        make_finding(run, ref, skills=[ref])
    with tenant_scope(tenant):
        installation.purge("test-desk")
        assert [each.title for each in Finding.objects.all()] == [DESK]


def test_task_s_words_are_purged_with_what_they_became(tenant: Any, kept: MemoryProposal) -> None:
    apply_to_origin(tenant, provenance.purge, "task", kept.task_id)
    with tenant_scope(tenant):
        assert recalled_memories(tenant) == []
        assert documents(tenant) == []
        assert MemoryProposal.objects.count() == 0


def test_purged_session_keeps_its_figures_and_no_words(tenant: Any, run: AutonomousSession) -> None:
    make_finding(run, "A secret")
    receipt = {"cost_total_usd": "0.10", "findings": [{"title": "A secret"}], "summary": "A secret"}
    with tenant_scope(tenant):
        AutonomousSession.objects.filter(pk=run.pk).update(receipt=receipt, output="A secret")
    apply_to_origin(tenant, provenance.purge, "session", run.pk)
    after = reload(run)
    assert "secret" not in f"{after.receipt}{after.output}"
    assert after.receipt["cost_total_usd"] == "0.10"


def test_pattern_put_forward_is_purged_with_its_rule(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    with tenant_scope(tenant):
        precedents.promote_precedent(make_precedent(run).pk, user=owner)
    assert apply_to_origin(tenant, provenance.purge, "session", run.pk)["contexts"] == 1


def test_purge_is_written_down_in_counts(tenant: Any, kept: MemoryProposal, run: AutonomousSession) -> None:
    apply_to_origin(tenant, provenance.purge, "session", run.pk)
    with tenant_scope(tenant):
        assert '"proposals":2' in AuditEntry.objects.get(event="provenance_purged").data


def test_other_tenant_s_rows_are_left_alone(tenant: Any, other_tenant: Any, run: AutonomousSession) -> None:
    make_finding(run)
    apply_to_origin(other_tenant, provenance.purge, "session", run.pk)
    with tenant_scope(tenant):
        assert Finding.objects.count() == 1


def test_origin_that_is_no_id_is_refused(tenant: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        apply_to_origin(tenant, provenance.purge, "task", "' OR 1=1")
    assert refusal.value.code == "origin_unknown"


def test_command_purges_only_when_told_twice(tenant: Any, run: AutonomousSession) -> None:
    with pytest.raises(CommandError, match="--yes"):
        call_command("provenance", "purge", tenant=tenant.slug, session=str(run.pk))


def test_command_says_what_there_is(tenant: Any, run: AutonomousSession, capsys: Any) -> None:
    make_finding(run)
    call_command("provenance", "list", tenant=tenant.slug, session=str(run.pk))
    assert "findings=1" in capsys.readouterr().out


def test_session_that_ended_is_asked_about_by_a_web_process(tenant: Any, run: AutonomousSession) -> None:
    from apps.autonomy.signals import session_ended

    proposal = make_proposal(run)
    with tenant_scope(tenant):
        ended = AutonomousSession.objects.filter(pk=run.pk)
        ended.update(status="cancelled", terminal_reason="cancelled", ended_at=now())
        session_ended(ended.get())
    run_trusted_messages(tenant)
    assert reload(proposal).card_id is not None
