"""A proposed version is never found without a spent approval; one that was in use can be disabled and rolled back to
(spec 10.4)."""

import pytest
from django.db import DatabaseError

from apps.skills import installation, queries, signals
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.models import TRANSITIONS, SkillVersion
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.skills import install, make_folder, propose


@pytest.fixture
def proposed(tenant, tmp_path):
    return propose(tenant, make_folder(tmp_path))


@pytest.fixture
def two_versions(tenant, tmp_path):
    first = install(tenant, make_folder(tmp_path))
    return first, install(tenant, make_folder(tmp_path, files={"references/a.md": "new"}))


def test_proposed_skill_is_not_found(tenant, proposed):
    with tenant_scope(tenant), pytest.raises(SilasError, match="not installed"):
        queries.versions(["test-desk"])


def test_proposed_skill_is_not_found_by_its_content(tenant, proposed):
    with tenant_scope(tenant), pytest.raises(SilasError, match="not installed"):
        queries.versions([f"test-desk@{proposed.digest[:16]}"])


def test_proposed_beside_an_active_one_changes_nothing(tenant, tmp_path):
    first = install(tenant, make_folder(tmp_path))
    propose(tenant, make_folder(tmp_path, tools=[]))
    with tenant_scope(tenant):
        assert queries.current_version("test-desk") == first


def test_proposed_twice_is_one_version(tenant, tmp_path, proposed):
    assert propose(tenant, tmp_path / "test-desk").pk == proposed.pk


def test_proposed_beyond_what_people_can_look_at_is_refused(tenant, tmp_path, proposed, monkeypatch):
    monkeypatch.setattr(installation, "MAX_WAITING", 1)
    with pytest.raises(SilasError) as refused:
        propose(tenant, make_folder(tmp_path, tools=[]))
    assert refused.value.code == "skills_waiting"
    assert propose(tenant, make_folder(tmp_path)).pk == proposed.pk


def test_proposed_invalid_is_refused(tenant, tmp_path):
    with pytest.raises(SilasError, match="cannot be installed"):
        propose(tenant, make_folder(tmp_path, description="short"))


def test_proposed_by_somebody_who_may_not_decide_is_refused(tenant, tmp_path, viewer):
    with pytest.raises(SilasError) as refused:
        propose(tenant, make_folder(tmp_path), by=viewer)
    assert refused.value.code == "forbidden_role"


@pytest.mark.parametrize("change", [{"status": "active"}, {"source": "bundled"}, {"status": "disabled"}, {"body": "x"}])
def test_proposed_skill_goes_nowhere_without_a_spent_approval(tenant, proposed, change):
    with pytest.raises(DatabaseError, match=r"skill"), tenant_scope(tenant):
        SkillVersion.objects.filter(pk=proposed.pk).update(**change)


@pytest.mark.parametrize("source", [each for each in SkillSource if each is not SkillSource.BUNDLED])
def test_nothing_begins_active_but_what_ships(tenant, source):
    with pytest.raises(DatabaseError, match="begins as a proposal"), tenant_scope(tenant):
        SkillVersion.objects.create(
            name="x", digest="d", manifest={}, body="", number=1, status="active", source=source
        )


@pytest.mark.parametrize("old", SkillStatus)
@pytest.mark.parametrize("new", SkillStatus)
def test_database_keeps_the_table_of_transitions(old, new):
    from apps.skills.append_only import COURSE

    assert (f"ROW('{old}', '{new}')" in COURSE) is (new in TRANSITIONS[old])


def test_disabled_skill_is_not_found_even_by_its_content(tenant, two_versions):
    with tenant_scope(tenant):
        installation.disable(two_versions[1])
    with tenant_scope(tenant), pytest.raises(SilasError, match="not installed"):
        queries.versions([f"test-desk@{two_versions[1].digest[:16]}"])


def test_disabled_newest_leaves_the_one_before(tenant, two_versions):
    with tenant_scope(tenant):
        installation.disable(two_versions[1])
        assert queries.current_version("test-desk") == two_versions[0]


def test_disabled_by_name_is_off_altogether(tenant, two_versions):
    with tenant_scope(tenant):
        assert installation.disable("test-desk") == 2
        assert queries.current_version("test-desk") is None


def test_rolled_back_version_is_the_only_one_in_use(tenant, two_versions):
    with tenant_scope(tenant):
        installation.roll_back("test-desk", to=two_versions[0])
        assert list(queries.active_versions()) == [two_versions[0]]


def test_roll_back_takes_up_what_was_switched_off(tenant, two_versions):
    with tenant_scope(tenant):
        installation.disable("test-desk")
        installation.roll_back("test-desk", to=two_versions[1])
        assert queries.current_version("test-desk") == two_versions[1]


def test_roll_back_to_what_nobody_approved_is_refused(tenant, proposed):
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        installation.roll_back("test-desk", to=proposed)
    assert refused.value.code == "skill_not_approved"


def test_roll_back_to_another_skill_is_refused(tenant, two_versions):
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        installation.roll_back("other-desk", to=two_versions[0])
    assert refused.value.code == "not_found"


def test_purged_skill_is_told_to_the_rooms_above(tenant, two_versions):
    heard = []
    signals.skill_purged.connect(lambda name, actor: heard.append((name, actor)))
    with tenant_scope(tenant):
        installation.purge("test-desk")
    signals.skill_purged.disconnect(signals.skill_purged._receivers[-1])
    assert heard == [("test-desk", "system")]


def test_proposed_content_that_was_switched_off_is_refused(tenant, tmp_path, two_versions):
    with tenant_scope(tenant):
        installation.disable(two_versions[1])
    with pytest.raises(SilasError, match="disabled"):
        propose(tenant, tmp_path / "test-desk")
