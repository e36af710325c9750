"""Who sees the skills, what the pages say of them, and how they come in, change hands and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.autonomy.models import Finding
from apps.console.pages.skills.capabilities import permissions_in_words
from apps.guard.enums import CallState, Intent, Origin
from apps.guard.models import ToolCall
from apps.guard.services import open_run
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.maker import services as maker
from apps.skills.models import SkillDraft, SkillPackage, SkillVersion, TrustedPublisher
from apps.skills.packages import archive
from apps.skills.queries import pinned_ref
from apps.skills.schemas import KnowledgeUse
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.proposals import make_finding, make_run, make_task
from tests.factories.skills import acting_tool, answer, bundle_contents, install, make_folder, propose, read_tool

WISH = "Use when a customer asks how many parcels of theirs are on the way."
PASTED = f"---\nname: parcel-count\ndescription: {WISH}\n---\n\n# Parcels\n\n<script>alert(1)</script> Count them.\n"


def shown(user: Any, page: str, *args: Any, **query: Any) -> str:
    return browser(user).get(reverse(page, args=args), query).content.decode()


def press(user: Any, page: str, *args: Any, **said: Any) -> Any:
    return browser(user).post(reverse(page, args=args), said)


@pytest.fixture
def version(tenant: Any, tmp_path: Path) -> SkillVersion:
    tools = [read_tool(), acting_tool()]
    return install(tenant, make_folder(tmp_path, tools=tools))


@pytest.fixture
def draft(tenant: Any, approver: Any) -> SkillDraft:
    return maker.create_draft(tenant.pk, name="parcel-count", wish=WISH, by=approver)


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_skills_are_the_deciders(request: pytest.FixtureRequest, version: SkillVersion, role: str) -> None:
    user = request.getfixturevalue(role)
    pages = [
        ("console-skills", ()),
        ("console-skill", ("test-desk",)),
        ("console-skill-add", ()),
        ("console-draft-new", ()),
    ]
    assert {browser(user).get(reverse(name, args=args)).status_code for name, args in pages} == {403}


def test_catalogue_says_what_a_skill_may_do(approver: Any, version: SkillVersion) -> None:
    page = shown(approver, "console-skills")
    assert all(
        words in page for words in ("Actions: act", "Network: None", "Changes: orders", "Not used yet", "In use")
    )


def test_catalogue_says_every_way_in_which_a_skill_uses_documents() -> None:
    tools = [{"name": use, "acting": use != "read", "knowledge": use} for use in get_args(KnowledgeUse)]
    told = dict(permissions_in_words({"tools": tools}))["Documents"]
    assert told.count(",") == 4
    assert told.startswith("reads documents, adds documents")


def test_host_that_an_account_names_is_said_in_words() -> None:
    told = dict(permissions_in_words({"requirements": {"network": ["{base_url}", "api.example.com"]}}))
    assert told["Network"] == "the base url of the account, api.example.com"


FILES = [
    ([], "reads its own files"),
    ([read_tool()], "reads its own files and those of the task"),
    ([read_tool(), acting_tool()], "reads its own files and those of the task, creates new ones"),
]


@pytest.mark.parametrize(("tools", "words"), FILES)
def test_catalogue_says_what_becomes_of_files(tools: list[dict[str, Any]], words: str) -> None:
    assert dict(permissions_in_words({"tools": tools}))["Files"] == words


@pytest.mark.parametrize(("state", "found"), [("in-use", True), ("waiting", False), ("off", False), ("x", True)])
def test_catalogue_shows_those_of_one_state(approver: Any, version: SkillVersion, state: str, found: bool) -> None:
    assert ("Test desk" in shown(approver, "console-skills", state=state)) is found


def test_skill_page_says_who_proposed_and_who_approved_each_version(
    tenant: Any, owner: Any, approver: Any, version: SkillVersion, tmp_path: Path
) -> None:
    wanted = propose(tenant, make_folder(tmp_path, tools=[read_tool()]), by=approver)
    answer(tenant, wanted, owner)
    page = shown(approver, "console-skill", "test-desk")
    assert f"proposed by {approver.display_name}" in page
    assert f"decided by {owner.display_name}" in page
    assert all(f"Version {number}</a>" in page for number in (1, 2))


def test_catalogue_counts_calls_failures_and_cost(tenant: Any, approver: Any, version: SkillVersion) -> None:
    with tenant_scope(tenant):
        run = open_run(Origin.CHAT, version.pk, deployment_id=None)
        for number, state in enumerate((CallState.EXECUTED, CallState.ERROR, CallState.EXECUTED)):
            ToolCall.objects.create(
                run=run,
                seq=number,
                effect_key=f"{run.pk}:{number}",
                intent=Intent.RUN_SKILL,
                tool="look",
                args_digest="0" * 64,
                state=state,
                charged="0.01",
                settled_at=now(),
            )
    page = shown(approver, "console-skills")
    assert "Used 3 times" in page
    assert "$0.03" in page
    assert "1 failed" in page


@pytest.mark.parametrize(("said", "found"), [("test-d", True), ("look something up", True), ("parcel", False)])
def test_search_finds_by_name_and_purpose(approver: Any, version: SkillVersion, said: str, found: bool) -> None:
    assert ("Test desk" in shown(approver, "console-skills", q=said)) is found


def test_catalogue_asks_as_much_for_a_thousand_skills_as_for_one(
    tenant: Any, approver: Any, version: SkillVersion
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            shown(approver, "console-skills")
        return len(queries)

    asked()
    one = asked()
    manifest = version.manifest
    bundle_contents({f"desk-{number}": f"{number:064d}" for number in range(1000)})
    with tenant_scope(tenant):
        SkillVersion.objects.bulk_create(
            SkillVersion(
                name=f"desk-{number}",
                digest=f"{number:064d}",
                manifest=manifest,
                body="",
                number=1,
                status=SkillStatus.ACTIVE,
                source=SkillSource.BUNDLED,
            )
            for number in range(1000)
        )
    assert asked() == one


def test_skill_page_shows_scripts_as_text(tenant: Any, approver: Any, tmp_path: Path) -> None:
    install(tenant, make_folder(tmp_path, files={"references/a.md": "<script>alert(1)</script>"}))
    page = shown(approver, "console-skill", "test-desk")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


def test_compare_shows_what_a_version_adds(tenant: Any, approver: Any, version: SkillVersion, tmp_path: Path) -> None:
    install(tenant, make_folder(tmp_path, files={"scripts/look.py": "print('{}')\n"}))
    page = shown(approver, "console-skill-compare", "test-desk", before=1, after=2)
    assert "<ins>print(&#x27;{}&#x27;)" in page
    assert "scripts/look.py" in page


@pytest.mark.parametrize("query", [{"before": 1, "after": 9}, {"before": "x", "after": 1}, {}])
def test_compare_of_unknown_versions_is_not_found(approver: Any, version: SkillVersion, query: dict[str, Any]) -> None:
    assert browser(approver).get(reverse("console-skill-compare", args=["test-desk"]), query).status_code == 404


@pytest.mark.parametrize(("sure", "status"), [("disable", SkillStatus.DISABLED), ("", SkillStatus.ACTIVE)])
def test_switching_off_wants_to_be_meant(
    tenant: Any, owner: Any, version: SkillVersion, sure: str, status: SkillStatus
) -> None:
    press(owner, "console-skill-disable", "test-desk", sure=sure)
    with tenant_scope(tenant):
        assert SkillVersion.objects.get().status == status


def test_approver_switches_nothing_off(tenant: Any, approver: Any, version: SkillVersion) -> None:
    assert press(approver, "console-skill-disable", "test-desk", sure="disable").status_code == 403


@pytest.mark.parametrize(("sure", "left"), [("purge", []), ("", ["Two prices"])])
def test_purging_wants_to_be_meant_and_takes_what_was_written(
    tenant: Any, owner: Any, approver: Any, deployment: Any, version: SkillVersion, sure: str, left: list[str]
) -> None:
    make_finding(make_run(make_task(deployment)), skills=[pinned_ref(version)])
    assert press(approver, "console-skill-purge", "test-desk", sure=sure).status_code == 403
    press(owner, "console-skill-purge", "test-desk", sure=sure)
    with tenant_scope(tenant):
        assert list(Finding.objects.values_list("title", flat=True)) == left
        assert SkillVersion.objects.get().status == (SkillStatus.ACTIVE if left else SkillStatus.DISABLED)


def test_rolling_back_uses_the_earlier_version_alone(
    tenant: Any, owner: Any, version: SkillVersion, tmp_path: Path
) -> None:
    press(owner, "console-skill-disable", "test-desk", sure="disable")
    install(tenant, make_folder(tmp_path, files={"references/a.md": "new"}))
    press(owner, "console-skill-roll-back", "test-desk", version=1, sure="version-1")
    with tenant_scope(tenant):
        assert dict(SkillVersion.objects.values_list("number", "status")) == {1: "active", 2: "disabled"}


def test_pasted_skill_is_proposed_and_shown_safely(tenant: Any, approver: Any) -> None:
    answer = press(approver, "console-skill-add", what="paste", text=PASTED)
    assert answer.url == reverse("console-skill", args=["parcel-count"])
    page = shown(approver, "console-skill", "parcel-count")
    assert "Waiting for approval" in page
    assert "<script>alert" not in page


def test_pasted_skill_that_is_none_is_told_why(approver: Any) -> None:
    answer = press(approver, "console-skill-add", what="paste", text="# No front matter")
    assert answer.status_code == 422
    assert "cannot be installed" in answer.content.decode()


@pytest.fixture
def package(other_tenant: Any, tmp_path: Path) -> bytes:
    from apps.skills.packages import services as packages

    version = install(other_tenant, make_folder(tmp_path))
    with tenant_scope(other_tenant):
        return packages.export_version(version.pk, actor="user:test")


def test_package_is_looked_at_pinned_and_proposed(tenant: Any, owner: Any, package: bytes) -> None:
    press(owner, "console-skill-add", what="archive", archive=SimpleUploadedFile("desk.zip", package))
    with tenant_scope(tenant):
        row = SkillPackage.objects.get()
    groups = archive.fingerprint(row.public_key).split()
    assert groups[0] in shown(owner, "console-skill-package", row.pk)
    assert press(owner, "console-skill-package-trust", row.pk, last="zzzz").status_code == 422
    assert press(owner, "console-skill-package-trust", row.pk, last=groups[-1]).status_code == 302
    with tenant_scope(tenant):
        assert SkillVersion.objects.get().status == SkillStatus.PROPOSED
        assert TrustedPublisher.objects.count() == 1


def test_key_is_pinned_by_its_fingerprint_and_taken_away_again(tenant: Any, owner: Any) -> None:
    key = "ab" * 32
    groups = archive.fingerprint(key).split()
    asked = press(owner, "console-publishers", name="Quay Skills", key=key)
    assert asked.status_code == 200
    assert groups[0] in asked.content.decode()
    known = {"name": "Quay Skills", "key": key}
    assert press(owner, "console-publisher-pin", last="zzzz", **known).status_code == 422
    assert press(owner, "console-publisher-pin", last=groups[-1], **known).status_code == 302
    with tenant_scope(tenant):
        row = TrustedPublisher.objects.get(public_key=key)
    assert archive.fingerprint(key) in shown(owner, "console-publishers")
    assert press(owner, "console-publisher-remove", row.pk).status_code == 422
    assert press(owner, "console-publisher-remove", row.pk, sure=str(row.pk)).status_code == 302
    with tenant_scope(tenant):
        assert not TrustedPublisher.objects.exists()
        events = AuditEntry.objects.filter(subject=f"publisher:{row.pk}").order_by("seq")
        assert list(events.values_list("event", flat=True)) == ["publisher_trusted", "publisher_distrusted"]


@pytest.mark.parametrize("key", ["", "ab", "zz" * 32])
def test_what_is_no_key_has_no_fingerprint(owner: Any, key: str) -> None:
    assert press(owner, "console-publishers", name="Quay", key=key).status_code == 422


def test_approver_sees_whose_packages_are_taken_and_pins_none(approver: Any) -> None:
    assert "Trusted publishers" in shown(approver, "console-publishers")
    assert press(approver, "console-publisher-pin", name="Quay", key="ab" * 32, last="abab").status_code == 403


def test_approver_pins_no_key(tenant: Any, approver: Any, package: bytes) -> None:
    press(approver, "console-skill-add", what="archive", archive=SimpleUploadedFile("desk.zip", package))
    with tenant_scope(tenant):
        row = SkillPackage.objects.get()
    last = archive.fingerprint(row.public_key).split()[-1]
    assert press(approver, "console-skill-package-trust", row.pk, last=last).status_code == 403


def test_version_is_handed_on_by_owners(owner: Any, approver: Any, version: SkillVersion) -> None:
    address = reverse("console-skill-export", args=[version.pk])
    assert archive.unpack(browser(owner).get(address).content).manifest.name == "test-desk"
    assert browser(approver).get(address).status_code == 403


def test_what_ships_is_taken_in_once(tenant: Any, owner: Any) -> None:
    assert "Add coding" in shown(owner, "console-skills")
    press(owner, "console-skill-shipped", name="coding")
    assert "Add coding" not in shown(owner, "console-skills")
    assert press(owner, "console-skill-shipped", name="../meridian-desk").status_code == 404


def test_draft_is_begun_tried_changed_and_proposed(tenant: Any, approver: Any) -> None:
    begun = press(approver, "console-draft-new", name="parcel-count", wish=WISH)
    with tenant_scope(tenant):
        draft = SkillDraft.objects.get()
    assert begun.url == reverse("console-draft", args=[draft.pk])
    press(approver, "console-draft-try", draft.pk, seen=1)
    page = shown(approver, "console-draft", draft.pk)
    assert "1 test passed" in page
    assert "not written by a model" in page
    press(approver, "console-draft-rewrite", draft.pk, seen=1, path="references/a.md", text="A")
    assert press(approver, "console-draft-propose", draft.pk, seen=2).status_code == 302


def test_draft_that_somebody_changed_meanwhile_says_so(approver: Any, draft: SkillDraft) -> None:
    press(approver, "console-draft-rewrite", draft.pk, seen=1, path="references/a.md", text="A")
    late = press(approver, "console-draft-rewrite", draft.pk, seen=1, path="references/a.md", text="B")
    assert late.status_code == 422
    assert "changed this draft" in late.content.decode()


def test_card_shows_the_instructions_the_scripts_and_what_changes(
    tenant: Any, approver: Any, version: SkillVersion, tmp_path: Path
) -> None:
    from apps.approvals.enums import ApprovalScope, CardKind
    from apps.skills import installation
    from tests.factories.approvals import open_card

    folder = make_folder(tmp_path, files={"scripts/look.py": 'print(\'{"say": "new"}\')\n'})
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    with tenant_scope(tenant):
        wanted = installation.propose(files, source=SkillSource.ARCHIVE)
    payload = {"skill": "test-desk", "content_hash": wanted.digest, "report_hash": "0" * 64}
    card = open_card(
        tenant,
        kind=CardKind.SKILL_INSTALL,
        scope=ApprovalScope.SKILL_INSTALL,
        payload=payload,
        reversible=True,
        intent="Take in test-desk",
        rationale="Somebody proposed it.",
        consequence={"approve": "Use it", "decline": "Nothing changes"},
    )
    page = shown(approver, "console-card", card.pk)
    assert all(words in page for words in ("Do it.", "scripts/act.py", "What changes from version 1", "<ins>"))
