"""A compromised worker speaks SQL as `silas_work`, which can create no approval, login or rule."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from psycopg import sql

from apps.approvals.enums import ApprovalScope
from apps.approvals.keys.services import rotate_key
from apps.approvals.tokens.payloads import plan_hash
from apps.approvals.tokens.services import revoke_token
from apps.guard.enums import Origin, Phase
from apps.work.models import WorkItem
from kernel.tenancy import tenant_scope
from silas_platform import __version__
from silas_platform.checks import refuse_wide_role, refuse_wrong_keys
from silas_platform.models import InstalledVersion
from silas_platform.up.environment import ROOT, for_program
from silas_platform.worker_rights import DECISIVE, ROLE, WORKERS_MAY, excess, rights_of
from tests import nursery
from tests.factories.approvals import make_plan, make_token
from tests.factories.guard import make_run, reread
from tests.factories.work import put_rows

Connection = psycopg.Connection[tuple[Any, ...]]
KINDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
CLOSED = sorted(table for table in WORKERS_MAY if DECISIVE.match(table))


@pytest.fixture
def worker(database: None) -> Iterator[Connection]:
    """SQL of somebody's own, as the workers' role."""
    with psycopg.connect(os.environ["DATABASE_WORK_URL"]) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def insider(database: None, superuser_dsn: str) -> Iterator[Connection]:
    with psycopg.connect(superuser_dsn) as connection:
        yield connection
        connection.rollback()


def tables(connection: Connection) -> set[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    return {name for (name,) in found}


def see(connection: Connection, tenant: Any) -> None:
    connection.execute("SELECT set_config('silas.tenant', %s, true)", [str(tenant.pk)])


def refused(connection: Connection, statement: Any, *values: Any) -> bool:
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement, values)
    except psycopg.errors.InsufficientPrivilege as error:
        return "permission denied" in str(error)
    return False


# -- the list ------------------------------------------------------------------------------------------------------


def test_every_table_is_decided(insider: Connection) -> None:
    """A new table: say in silas_platform/worker_rights.py what workers may do with it; "" is nothing."""
    assert tables(insider) ^ WORKERS_MAY.keys() == set()


def test_table_that_makes_an_approval_a_login_or_a_rule_is_never_written() -> None:
    assert CLOSED
    assert [table for table in CLOSED if {kind for kind, _ in rights_of(WORKERS_MAY[table])} - {"SELECT"}] == []


@pytest.mark.parametrize("table", ["approvals_card", "work_workitem", "guard_guardedrun", "skills_record"])
def test_what_was_asked_promised_or_approved_is_changed_by_columns_only(table: str) -> None:
    assert all(columns for kind, columns in rights_of(WORKERS_MAY[table]) if kind == "UPDATE")


@pytest.mark.parametrize("words", ["SELECT,INSERT", "TRUNCATE", "SELECT; DROP", "UPDATE (a; b)", "select"])
def test_words_that_are_no_rights_are_refused(words: str) -> None:
    with pytest.raises(AssertionError):
        list(rights_of(words))


def test_rights_are_read_with_their_columns() -> None:
    assert list(rights_of("SELECT, UPDATE (a, b)")) == [("SELECT", []), ("UPDATE", ["a", "b"])]


# -- the database --------------------------------------------------------------------------------------------------


def test_role_is_bound_by_row_security_makes_nothing_and_is_member_of_no_other(insider: Connection) -> None:
    asked = "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = %s"
    assert insider.execute(asked, [ROLE]).fetchone() == (False, False, False, False)
    asked = "SELECT count(*) FROM pg_auth_members WHERE member = %s::regrole"
    assert insider.execute(asked, [ROLE]).fetchone() == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_database_grants_what_is_listed_and_no_more(insider: Connection, kind: str) -> None:
    ask = "has_table_privilege" if kind in ("DELETE", "TRUNCATE") else "has_any_column_privilege"
    query = sql.SQL("SELECT {}(%s, %s::regclass, %s)").format(sql.Identifier(ask))
    held = {table for table in WORKERS_MAY if insider.execute(query, [ROLE, table, kind]).fetchone() == (True,)}
    assert held == {table for table, words in WORKERS_MAY.items() if kind in dict(rights_of(words))}


@pytest.mark.parametrize("statement", ["INSERT INTO {} DEFAULT VALUES", "DELETE FROM {}", "TRUNCATE {}"])
def test_worker_cannot_write_what_makes_an_approval_a_login_or_a_rule(worker: Connection, statement: str) -> None:
    asked = {table: sql.SQL(statement).format(sql.Identifier(table)) for table in CLOSED}
    assert [table for table, written in asked.items() if not refused(worker, written)] == []


def test_table_made_later_is_closed(worker: Connection) -> None:
    name = f"later_{uuid4().hex}"
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE TABLE {} (id int)").format(sql.Identifier(name)))
        try:
            assert refused(worker, sql.SQL("SELECT FROM {}").format(sql.Identifier(name)))
        finally:
            owner.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))


# -- forged by SQL -------------------------------------------------------------------------------------------------

FORGED = {
    "key": (
        "INSERT INTO approvals_approverkey (id, tenant_id, user_id, key_id, public_key, sealed_private, created_at)"
        " SELECT gen_random_uuid(), %(tenant)s, %(user)s, 'forged', repeat('0', 64), ''::bytea, now()"
    ),
    "decision": (
        "INSERT INTO approvals_decision (id, tenant_id, card_id, user_id, verdict, approval_strength, conditions,"
        " decided_at) SELECT gen_random_uuid(), %(tenant)s, gen_random_uuid(), %(user)s, 'approved', 'tap', '{}', now()"
    ),
    "token": "INSERT INTO approvals_approvaltoken SELECT * FROM approvals_approvaltoken WHERE tenant_id = %(tenant)s",
    "longer token": "UPDATE approvals_approvaltoken SET expires_at = 'infinity' WHERE tenant_id = %(tenant)s",
    "use": (
        "INSERT INTO approvals_tokenuse (id, tenant_id, token_nonce, ordinal, bound_hash, subject_id, binding, used_at)"
        " SELECT gen_random_uuid(), %(tenant)s, 'n', 1, 'h', 's', 'b', now()"
    ),
    "card": "INSERT INTO approvals_card SELECT * FROM approvals_card WHERE tenant_id = %(tenant)s",
    "card's words": "UPDATE approvals_card SET intent = 'Say hello' WHERE tenant_id = %(tenant)s",
    "card's content": "UPDATE approvals_card SET payload = '{}' WHERE tenant_id = %(tenant)s",
    "card's time": "UPDATE approvals_card SET expires_at = 'infinity' WHERE tenant_id = %(tenant)s",
    "role": "UPDATE tenants_membership SET role = 'owner' WHERE tenant_id = %(tenant)s",
    "password": "UPDATE tenants_user SET password = 'md5$x$y' WHERE id = %(user)s",
    "login": "INSERT INTO django_session (session_key, session_data, expire_date) VALUES ('k', 'd', now())",
    "login's key": "SELECT session_key FROM django_session",
    "password's hash": "SELECT password FROM tenants_user WHERE id = %(user)s",
    "sealed key": "SELECT sealed_private FROM approvals_approverkey WHERE tenant_id = %(tenant)s",
    "plan": "UPDATE work_workitem SET plan = '' WHERE tenant_id = %(tenant)s",
    "approved calls": "UPDATE guard_guardedrun SET approval = '{}' WHERE tenant_id = %(tenant)s",
    "limits": "UPDATE guard_budget SET limit_usd = 1000000 WHERE tenant_id = %(tenant)s",
    "gate": "UPDATE gates_gate SET active = NULL, status = 'retired' WHERE tenant_id = %(tenant)s",
    "what a gate says": "UPDATE gates_gateversion SET content = '{}' WHERE tenant_id = %(tenant)s",
    "pause": "DELETE FROM guard_systemcontrol WHERE tenant_id = %(tenant)s",
    "script": "UPDATE skills_skillfile SET content = ''::bytea WHERE tenant_id = %(tenant)s",
    "knowledge": "UPDATE memory_chunk SET text = 'We refund all' WHERE tenant_id = %(tenant)s",
    "document": (
        "INSERT INTO memory_document (id, tenant_id, collection_id, source_ref, title)"
        " VALUES (gen_random_uuid(), %(tenant)s, gen_random_uuid(), 'a', 'a')"
    ),
    "document's version": (
        "INSERT INTO memory_documentversion (id, tenant_id, document_id, number, sha256, text)"
        " VALUES (gen_random_uuid(), %(tenant)s, gen_random_uuid(), 2, '', 'We refund all')"
    ),
    "document's title": "UPDATE memory_document SET title = 'x' WHERE tenant_id = %(tenant)s",
    "no document": "DELETE FROM memory_document WHERE tenant_id = %(tenant)s",
    "what was handed in": (
        "INSERT INTO memory_intake (id, tenant_id, collection_id, kind, name, reference, by, once)"
        " VALUES (gen_random_uuid(), %(tenant)s, gen_random_uuid(), 'text', 'a', 'a', 'a', gen_random_uuid())"
    ),
    "end of what was handed in": "UPDATE memory_intake SET ended_at = NULL WHERE tenant_id = %(tenant)s",
    "what another worker read": "UPDATE memory_readpart SET found = '{}' WHERE tenant_id = %(tenant)s",
    "what another worker read, gone": "DELETE FROM memory_readpart WHERE tenant_id = %(tenant)s",
    "what another worker read, seen": "SELECT found FROM memory_readpart WHERE tenant_id = %(tenant)s",
    "who handed it in": "SELECT by FROM memory_intake WHERE tenant_id = %(tenant)s",
    "goal": "UPDATE tenants_deployment SET active_goal_id = NULL WHERE tenant_id = %(tenant)s",
    "who a visitor is": "UPDATE silas_sessions_chatsession SET customer = 'C-1' WHERE tenant_id = %(tenant)s",
    "what was said": "UPDATE silas_sessions_chronicleentry SET text = 'Yes' WHERE tenant_id = %(tenant)s",
    "whose record": "UPDATE skills_record SET subject = 'C-1' WHERE tenant_id = %(tenant)s",
    "log": "DELETE FROM audit_auditentry WHERE tenant_id = %(tenant)s",
    "log's key": "UPDATE audit_auditkey SET public_key = ''",
    "trigger": "ALTER TABLE approvals_card DISABLE TRIGGER ALL",
    "wall": "ALTER TABLE approvals_card DISABLE ROW LEVEL SECURITY",
    "other role": "SET ROLE silas_app",
    "own table": "CREATE TABLE mine (id int)",
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_by_sql_is_refused(worker: Connection, tenant: Any, owner: Any, what: str) -> None:
    make_token(tenant, owner, make_plan())
    see(worker, tenant)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"permission denied|must be owner"):
        worker.execute(FORGED[what].encode(), {"tenant": tenant.pk, "user": owner.pk})


def test_worker_sees_no_rows_before_it_names_a_tenant(worker: Connection, tenant: Any, owner: Any) -> None:
    make_token(tenant, owner, make_plan())
    assert worker.execute("SELECT count(*) FROM approvals_approvaltoken").fetchone() == (0,)


def test_worker_reads_public_keys_to_check_what_was_signed(worker: Connection, tenant: Any, owner: Any) -> None:
    make_token(tenant, owner, make_plan())
    see(worker, tenant)
    assert len(worker.execute("SELECT key_id, public_key FROM approvals_approverkey").fetchall()) == 1


# -- the start -----------------------------------------------------------------------------------------------------


def test_workers_role_has_no_more_than_the_list(database: None) -> None:
    assert excess(os.environ["DATABASE_WORK_URL"]) == []


@pytest.mark.parametrize("address", ["DATABASE_URL", "DATABASE_OWNER_URL", "SILAS_TEST_SUPERUSER_DSN"])
def test_role_that_can_make_an_approval_has_more_than_the_list(database: None, address: str) -> None:
    assert "INSERT ON approvals_decision" in excess(os.environ[address])


@pytest.fixture
def widened(insider: Connection) -> Iterator[None]:
    """Workers read contacts and change labels: rights that another version's list may have."""
    rights = ("SELECT ON contacts_contact", "UPDATE (name) ON silas_sessions_label")
    for right in rights:
        insider.execute(f"GRANT {right} TO {ROLE}")
    insider.commit()
    yield
    for right in rights:
        insider.execute(f"REVOKE {right} FROM {ROLE}")
    insider.commit()


def newer() -> str:
    first, *rest = __version__.split(".")
    return ".".join([str(int(first) + 1), *rest])


@pytest.fixture
def migrated_by(database: None) -> Iterator[Callable[[str], None]]:
    """Name the version that migrated the database last."""
    rows: list[Any] = []
    yield lambda version: rows.append(InstalledVersion.objects.using("owner").create(version=version))
    for row in rows:
        row.delete(using="owner")


def test_worker_starts_with_rights_of_a_newer_version_and_says_so(
    widened: None,
    migrated_by: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """During an upgrade, when the newer version has migrated and this one's worker starts again."""
    monkeypatch.setenv("DATABASE_URL", WORKER)
    migrated_by(newer())
    refuse_wide_role()
    assert "SELECT ON contacts_contact, UPDATE ON silas_sessions_label" in caplog.text


@pytest.mark.parametrize("version", [__version__, "0.0.9", f"{__version__}rc1"])
def test_worker_with_more_rights_than_its_own_version_gives_does_not_start(
    widened: None, migrated_by: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", WORKER)
    migrated_by(version)
    with pytest.raises(ImproperlyConfigured, match=r"E_CFG_WORK_ROLE.*SELECT ON contacts_contact"):
        refuse_wide_role()


@pytest.mark.parametrize(
    "right",
    [
        "INSERT ON approvals_decision",
        "INSERT ON messengers_approveraccount",
        "INSERT ON silas_platform_installedversion",
        "UPDATE ON silas_sessions_accesslevel",
        "UPDATE ON guard_spendingpolicy",
        "DELETE ON silas_sessions_label",
    ],
)
def test_no_version_gives_a_worker_what_makes_an_approval_or_deletes(
    insider: Connection, migrated_by: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, right: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", WORKER)
    migrated_by(newer())
    insider.execute(f"GRANT {right} TO {ROLE}")
    insider.commit()
    try:
        with pytest.raises(ImproperlyConfigured, match=right):
            refuse_wide_role()
    finally:
        insider.execute(f"REVOKE {right} FROM {ROLE}")
        insider.commit()


def test_another_role_is_refused_whichever_version_migrated(
    migrated_by: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated_by(newer())
    monkeypatch.setenv("DATABASE_URL", APPLICATION)
    with pytest.raises(ImproperlyConfigured, match=r"E_CFG_WORK_ROLE"):
        refuse_wide_role()


APPLICATION, WORKER = os.environ["DATABASE_URL"], os.environ["DATABASE_WORK_URL"]
UNTRUSTED = {"SILAS_ROOT_KEYS": "0" * 64, "DJANGO_SETTINGS_MODULE": "silas_platform.settings.prod"}


@pytest.mark.parametrize(
    ("queues", "env", "refusal"),
    [
        ("", {"DATABASE_URL": APPLICATION}, "E_CFG_WORK_ROLE"),
        ("", {"SILAS_SIGNING_KEY": "of-somebody"}, "E_CFG_SIGNING_KEY"),
        ("trusted", UNTRUSTED, "E_CFG_SIGNING_KEY"),
        ("trusted,work", {}, "E_CFG_WORKER_QUEUES"),
        ("", {"DATABASE_URL": WORKER.replace(ROLE, "nobody_here")}, "nobody_here"),
    ],
)
def test_worker_with_other_rights_than_its_queues_need_does_not_start(
    database: None, queues: str, env: dict[str, str], refusal: str
) -> None:
    argv = [sys.executable, "-m", "celery", "-A", "silas_platform", "worker", "--pool", "solo"]
    argv += ["-Q", queues] if queues else []
    told = {**for_program(os.environ, "worker"), **env}
    done = nursery.run(argv, cwd=ROOT, env=told, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stderr
    assert refusal in done.stderr


@pytest.mark.parametrize("queues", [["trusted", "work"], ["parse", "trusted"], ["work", "somewhere"]])
def test_queues_that_no_worker_may_have_together_are_refused(queues: list[str]) -> None:
    with pytest.raises(ImproperlyConfigured, match="E_CFG_WORKER_QUEUES"):
        refuse_wrong_keys(queues)


@dataclass(frozen=True)
class Standing:
    """A standing approval of one use, and a child that its goal started."""

    token: Any
    goal: dict[str, Any]
    child: dict[str, Any]


@pytest.fixture
def standing(tenant: Any, owner: Any) -> Standing:
    goal = make_plan(type="goal", failure_context="Fix $failed_checks")
    child = make_plan(parent=goal["id"])
    put_rows(tenant, goal, child)
    return Standing(make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=1), goal, child)


def spend(worker: Connection, given: Standing, **other: Any) -> tuple[Any, ...] | None:
    """Spend by the database's own function for the child, with `other` than what the token and the child say."""
    said = {"issued": given.token.issued_at, "hash": plan_hash(given.child), "subject": given.child["id"], **other}
    return worker.execute(
        "SELECT ordinal, refusal FROM approvals_spend(%s, %s, %s, %s, %s, %s, now())",
        [given.token.nonce, said["issued"], uuid4(), said["hash"], said["subject"], str(uuid4())],
    ).fetchone()


def test_worker_spends_a_standing_approval_no_oftener_than_it_says(
    worker: Connection, tenant: Any, standing: Standing
) -> None:
    see(worker, tenant)
    assert spend(worker, standing) == (1, None)
    assert spend(worker, standing) == (None, "execution_limit_reached")


FOREIGN: dict[str, Any] = {
    "no row": (lambda given: {"subject": str(uuid4())}, "standing_requires_spawned_task"),
    "no id": (lambda given: {"subject": "x"}, "standing_requires_spawned_task"),
    "the goal itself": (
        lambda given: {"subject": given.goal["id"], "hash": plan_hash(given.goal)},
        "standing_parent_mismatch",
    ),
    "other content": (lambda given: {"hash": "0" * 64}, "plan_hash_mismatch"),
    "no content": (lambda given: {"hash": None}, "plan_hash_mismatch"),
    "other time": (lambda given: {"issued": given.token.issued_at - timedelta(days=1)}, "invalid_signature"),
    "no time": (lambda given: {"issued": None}, "invalid_signature"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_worker_burns_no_use_that_it_could_not_use(
    worker: Connection, tenant: Any, standing: Standing, what: str
) -> None:
    other, refusal = FOREIGN[what]
    see(worker, tenant)
    assert spend(worker, standing, **other(standing)) == (None, refusal)
    assert spend(worker, standing) == (1, None)


def test_worker_burns_no_use_for_a_child_of_another_goal(worker: Connection, tenant: Any, standing: Standing) -> None:
    goal = make_plan(type="goal")
    child = make_plan(parent=goal["id"])
    put_rows(tenant, goal, child)
    see(worker, tenant)
    assert spend(worker, replace(standing, child=child)) == (None, "standing_parent_mismatch")
    assert spend(worker, standing) == (1, None)


def test_worker_burns_no_use_for_a_row_that_says_another_plan_than_its_hash(
    worker: Connection, tenant: Any, standing: Standing
) -> None:
    child = make_plan(parent=standing.goal["id"])
    put_rows(tenant, child)
    with tenant_scope(tenant):
        WorkItem.objects.filter(pk=child["id"]).update(plan="{}")
    see(worker, tenant)
    assert spend(worker, replace(standing, child=child)) == (None, "plan_hash_mismatch")
    assert spend(worker, standing) == (1, None)


@pytest.mark.parametrize(
    ("other", "refusal"),
    [
        ({"subject": str(uuid4())}, "subject_mismatch"),
        ({"hash": "0" * 64}, "plan_hash_mismatch"),
        ({"issued": None}, "invalid_signature"),
    ],
)
def test_worker_burns_no_approval_to_one_plan_that_it_could_not_use(
    worker: Connection, tenant: Any, owner: Any, other: dict[str, Any], refusal: str
) -> None:
    plan = make_plan()
    given = Standing(make_token(tenant, owner, plan), plan, plan)
    see(worker, tenant)
    assert spend(worker, given, **other) == (None, refusal)
    assert spend(worker, given) == (1, None)


def test_worker_spends_no_approval_of_another_tenant(worker: Connection, other_tenant: Any, standing: Standing) -> None:
    see(worker, other_tenant)
    assert spend(worker, standing) == (None, "token_unknown")


WITHDRAWN: dict[str, Any] = {
    "token_revoked": lambda given, owner: revoke_token(given.token, user=owner, reason="No more."),
    "key_revoked": lambda given, owner: rotate_key(owner, actor="user:test", compromised=True),
    "spawn_not_allowed": lambda given, owner: WorkItem.objects.filter(pk=given.child["id"]).update(status="blocked"),
}


@pytest.mark.parametrize("refusal", WITHDRAWN)
def test_worker_cannot_spend_what_was_taken_back_or_has_ended_by_asking_the_database_itself(
    worker: Connection, tenant: Any, owner: Any, standing: Standing, refusal: str
) -> None:
    with tenant_scope(tenant):
        WITHDRAWN[refusal](standing, owner)
    see(worker, tenant)
    assert spend(worker, standing) == (None, refusal)


# -- what an unattended run needs ----------------------------------------------------------------------------------

MARKS = """
import sys
from uuid import UUID
import django
django.setup()
from apps.gates.content import DOCUMENT, ContentMark
from apps.guard import services
from apps.guard.schemas import RunRef
from kernel.tenancy import tenant_scope
tenant, run = map(UUID, sys.argv[1:])
with tenant_scope(tenant):
    services.record_mark(RunRef(tenant, run), ContentMark(DOCUMENT, "", "v-1", "content_instructions"))
"""


def test_worker_records_that_a_run_read_instructions(tenant: Any) -> None:
    """Without these rights an unattended run that reads a marked document ends with an error."""
    run = make_run(tenant, origin=Origin.BACKGROUND, phase=Phase.INTAKE)
    argv = [sys.executable, "-c", MARKS, str(tenant.pk), str(run.pk)]
    env = {**for_program(os.environ, "worker"), "DATABASE_URL": os.environ["DATABASE_WORK_URL"]}
    done = nursery.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert reread(run).content_marks == 1
