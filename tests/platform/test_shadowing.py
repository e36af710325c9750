"""Objects that a role makes beside ours change nothing that a trigger or a function of ours reads.

The names come from the catalogs: every word and operator in the source of every function of ours that names a relation,
type, function or operator. They are shadowed with rights that a superuser gave back, because without them there is
nothing to shadow with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from apps.approvals.enums import ApprovalScope
from apps.skills import installation
from apps.skills.enums import SkillSource
from kernel.tenancy import tenant_scope
from silas_platform import database_rights
from silas_platform.checks import database_role_creates_no_objects, refuse_wide_role
from tests.factories.approvals import make_plan, make_token
from tests.factories.skills import make_folder
from tests.factories.tenants import make_deployment
from tests.platform.connecting import connected_as

Connection = psycopg.Connection[tuple[Any, ...]]
ADDRESSES = {"web": "DATABASE_URL", "worker": "DATABASE_WORK_URL"}
ROLES = {"web": "silas_app", "worker": "silas_work"}
SCHEMA = "beside"


@pytest.fixture
def superuser(database: None, superuser_dsn: str) -> Iterator[Connection]:
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture(params=sorted(ROLES))
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def line(database: None, role: str) -> Iterator[Connection]:
    """SQL of the role's own, in the rights that it has."""
    with psycopg.connect(os.environ[ADDRESSES[role]]) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def rights_of_an_old_installation(superuser: Connection) -> Iterator[None]:
    """What PostgreSQL gave everybody, and a schema of their own to make functions and operators in."""
    name = superuser.info.dbname
    superuser.execute(f"GRANT TEMPORARY ON DATABASE {name} TO PUBLIC")
    superuser.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    superuser.execute(f"CREATE SCHEMA {SCHEMA}")
    superuser.execute(f"GRANT ALL ON SCHEMA {SCHEMA} TO PUBLIC")
    yield
    superuser.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
    superuser.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    superuser.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")


# -- nothing is made -----------------------------------------------------------------------------------------------

MAKES = {
    "temporary table": "CREATE TEMPORARY TABLE pg_class (oid oid)",
    "temporary view": "CREATE TEMPORARY VIEW pg_class AS SELECT 1 AS oid",
    "temporary sequence": "CREATE TEMPORARY SEQUENCE mine",
    "table": "CREATE TABLE public.mine (id int)",
    "function": "CREATE FUNCTION public.length(varchar) RETURNS int LANGUAGE sql AS 'SELECT 0'",
    "temporary function": "CREATE FUNCTION pg_temp.length(text) RETURNS int LANGUAGE sql AS 'SELECT 0'",
    "type": "CREATE DOMAIN public.mine AS text",
    "schema": "CREATE SCHEMA mine",
    "replication role": "SET session_replication_role = replica",
    "program": "COPY (SELECT 1) TO PROGRAM 'true'",
    "file": "SELECT pg_read_file('postgresql.conf')",
    "large object of a file": "SELECT lo_import('/etc/hostname')",
    "trigger": "ALTER TABLE public.audit_auditentry DISABLE TRIGGER ALL",
    "function's setting": "ALTER FUNCTION public.approvals_key_stays() RESET search_path",
    "owner": "SET ROLE silas_owner",
}


@pytest.mark.parametrize("what", MAKES)
def test_role_makes_nothing_beside_ours(line: Connection, what: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        line.execute(MAKES[what].encode())


def test_role_has_no_more_than_it_needs_and_passes_the_check(line: Connection) -> None:
    assert database_rights.excess(line.cursor()) == []
    assert database_role_creates_no_objects(databases=["default"]) == []


def test_migration_takes_back_what_an_old_installation_gave(
    rights_of_an_old_installation: None, superuser: Connection, line: Connection
) -> None:
    superuser.execute("ALTER FUNCTION approvals_key_stays() RESET search_path")
    before = database_rights.excess(line.cursor())
    database_rights.secure("owner")
    after = database_rights.excess(line.cursor())
    assert "TEMPORARY ON DATABASE" in before
    assert "CREATE ON SCHEMA public" in before
    assert "a search_path for approvals_key_stays()" in before
    assert after == [f"CREATE ON SCHEMA {SCHEMA}"]


def test_role_with_more_fails_the_check(rights_of_an_old_installation: None, role: str) -> None:
    with connected_as(os.environ[ADDRESSES[role]]):
        faults = database_role_creates_no_objects(databases=["default"])
    assert [fault.id for fault in faults] == ["silas.E006"]
    assert "TEMPORARY ON DATABASE" in faults[0].msg


def test_role_that_may_become_the_owner_is_found(superuser: Connection, role: str, line: Connection) -> None:
    """Also where it has none of the owner's rights before it says SET ROLE."""
    superuser.execute(f"GRANT silas_owner TO {ROLES[role]} WITH INHERIT FALSE")
    try:
        found = database_rights.excess(line.cursor())
    finally:
        superuser.execute(f"REVOKE silas_owner FROM {ROLES[role]}")
    assert found == ["MEMBER OF silas_owner"]


def test_worker_with_more_is_refused(rights_of_an_old_installation: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", os.environ["DATABASE_WORK_URL"])
    with pytest.raises(Exception, match=r"E_CFG_WORK_ROLE.*CREATE ON SCHEMA"):
        refuse_wide_role()


# -- every function ------------------------------------------------------------------------------------------------

# Every function that is not PostgreSQL's own and not an extension's.
FUNCTIONS = """
    SELECT p.oid::regprocedure::text, p.prosrc, coalesce(p.proconfig, '{}'), p.prosecdef,
           has_function_privilege('public', p.oid, 'EXECUTE')
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""


def functions(superuser: Connection) -> list[tuple[Any, ...]]:
    return superuser.execute(FUNCTIONS).fetchall()


def test_every_function_looks_at_temporary_objects_last_and_none_is_everybodys(superuser: Connection) -> None:
    """A new one is pinned by the `migrate` that makes it (silas_platform/database_rights.py)."""
    found = functions(superuser)
    assert len(found) >= 37
    assert [name for name, _, config, *_ in found if "search_path=pg_catalog, public, pg_temp" not in config] == []
    assert [name for name, *_, is_everybodys in found if is_everybodys] == []


def test_no_string_of_a_function_depends_on_how_the_session_reads_backslashes(superuser: Connection) -> None:
    """`standard_conforming_strings` is anybody's to set."""
    literal = re.compile(r"(?<![eE])'[^']*\\[^']*'")
    found = {name: literal.findall(source) for name, source, *_ in functions(superuser)}
    assert {name for name, texts in found.items() if texts} <= {"sessions_grams(text)"}


OURS = """
    SELECT relname FROM pg_catalog.pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
    UNION SELECT proname FROM pg_catalog.pg_proc p
    WHERE pronamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""


def test_every_function_names_our_tables_and_functions_and_the_catalogs_with_their_schema(
    superuser: Connection,
) -> None:
    """What stands behind such a name with a dot is a column of it."""
    ours = {name for (name,) in superuser.execute(OURS).fetchall()}
    short = re.compile(r"(?<![\w.'])([a-z]\w*)\b(?!\.|')")
    found = {
        (name, word)
        for name, source, *_ in functions(superuser)
        for word in short.findall(re.sub(r"--.*", "", source))
        if word in ours or word in ("pg_class", "pg_proc", "pg_roles", "pg_namespace", "pg_trigger", "pg_settings")
    }
    assert sorted(found) == []


def test_new_function_without_it_is_found_and_pinned(superuser: Connection, line: Connection) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("CREATE FUNCTION made_later() RETURNS int LANGUAGE sql AS 'SELECT 1'")
        try:
            before = database_rights.excess(line.cursor())
            database_rights.secure("owner")
            after = database_rights.excess(line.cursor())
        finally:
            owner.execute("DROP FUNCTION made_later()")
    assert before == ["a search_path for made_later()"]
    assert after == []


# -- every name ----------------------------------------------------------------------------------------------------

RELATIONS = """
    SELECT DISTINCT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('pg_catalog', 'public') AND relname = ANY(%s)
"""
TYPES = """
    SELECT DISTINCT typname FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE n.nspname IN ('pg_catalog', 'public') AND typname = ANY(%s)
"""
# Without those of pseudo-types (`internal`, `anyelement`), most of which SQL cannot make.
CALLS = """
    SELECT p.proname, array_to_string(ARRAY(
        SELECT format('%%I.%%I', n.nspname, t.typname)
        FROM unnest(p.proargtypes) WITH ORDINALITY AS argument(type, place)
        JOIN pg_catalog.pg_type t ON t.oid = argument.type JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
        ORDER BY place), ', ')
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname IN ('pg_catalog', 'public') AND p.proname = ANY(%s) AND p.prokind = 'f'
      AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) AS type
                      JOIN pg_catalog.pg_type t ON t.oid = type WHERE t.typtype = 'p')
"""
OPERATORS = """
    SELECT oprname, format('%%I.%%I', l.nspname, a.typname), format('%%I.%%I', r.nspname, b.typname)
    FROM pg_catalog.pg_operator o
    JOIN pg_catalog.pg_type a ON a.oid = oprleft JOIN pg_catalog.pg_namespace l ON l.oid = a.typnamespace
    JOIN pg_catalog.pg_type b ON b.oid = oprright JOIN pg_catalog.pg_namespace r ON r.oid = b.typnamespace
    WHERE oprname = ANY(%s) AND oprkind = 'b' AND a.typtype <> 'p' AND b.typtype <> 'p'
"""


class Names:
    """What functions of ours read, by the catalogs, and what a session takes it for."""

    def __init__(self, superuser: Connection) -> None:
        found = functions(superuser)
        words = {word for _, source, *_ in found for word in re.findall(r"[a-z_][a-z0-9_]*", source.lower())}
        signs = {sign for _, source, *_ in found for sign in re.findall(r"[-+*/<>=~!@#%^&|`?]+", source)}
        self.paths = {
            next((setting.removeprefix("search_path=") for setting in config if setting.startswith("search_path=")), "")
            for _, _, config, *_ in found
        }
        self.relations = {name for (name,) in superuser.execute(RELATIONS, [list(words)])}
        self.types = {name for (name,) in superuser.execute(TYPES, [list(words)])}
        self.calls = superuser.execute(CALLS, [list(words)]).fetchall()
        self.operators = superuser.execute(OPERATORS, [list(signs)]).fetchall()

    def shadow(self, line: Connection) -> None:
        """Make each of them once more, as this role, where its session looks first."""
        for name, arguments in self.calls:
            statement = sql.SQL("CREATE FUNCTION {}.{}(" + arguments + ") RETURNS int LANGUAGE sql AS 'SELECT 0'")
            line.execute(statement.format(sql.Identifier(SCHEMA), sql.Identifier(name)))
        for number, (sign, left, right) in enumerate(self.operators):
            line.execute(
                f"CREATE FUNCTION {SCHEMA}.op_{number}({left}, {right}) RETURNS bool LANGUAGE sql AS 'SELECT true'"
            )
            line.execute(
                f"CREATE OPERATOR {SCHEMA}.{sign}"
                f" (leftarg = {left}, rightarg = {right}, function = {SCHEMA}.op_{number})"
            )
        for name in sorted(self.relations | self.types):
            line.execute(sql.SQL("CREATE TEMPORARY TABLE {} (mine int)").format(sql.Identifier(name)))
        line.execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp, public, pg_catalog")

    def meanings(self, line: Connection) -> dict[str, Any]:
        """What each name stands for inside of functions of ours, for each search path that they have."""
        usual = line.execute("SHOW search_path").fetchone()
        found: dict[str, Any] = {}
        for path in sorted(self.paths):
            if path:
                line.execute(f"SET LOCAL search_path = {path}")
            for kind, spelled in self._spelled():
                answer = line.execute(f"SELECT pg_catalog.to_reg{kind}(%s)::pg_catalog.oid", [spelled]).fetchone()
                found[f"{kind} {spelled} by {path}"] = answer
            assert usual
            line.execute(f"SET LOCAL search_path = {usual[0]}")
        return found

    def _spelled(self) -> Iterator[tuple[str, str]]:
        yield from (("class", f'"{name}"') for name in sorted(self.relations))
        yield from (("type", f'"{name}"') for name in sorted(self.types))
        yield from (("procedure", f'"{name}"({arguments})') for name, arguments in self.calls)
        yield from (("operator", f"{sign}({left}, {right})") for sign, left, right in self.operators)


def test_every_name_that_a_function_reads_means_the_same_beside_its_shadow(
    rights_of_an_old_installation: None, superuser: Connection, line: Connection
) -> None:
    names = Names(superuser)
    before = names.meanings(line)
    line.rollback()
    names.shadow(line)
    after = names.meanings(line)
    assert {"pg_class", "approvals_approvaltoken", "guard_platformbudget"} <= names.relations
    assert {"uuid", "text", "record"} <= names.types
    assert len(names.calls) > 100
    assert len(names.operators) > 100
    assert {name for name, meaning in before.items() if meaning == (None,)} == set()
    assert {name for name, meaning in after.items() if meaning != before[name]} == set()


def test_shadow_deceives_what_is_not_pinned(
    rights_of_an_old_installation: None, superuser: Connection, line: Connection
) -> None:
    """The test above would see it."""
    names = Names(superuser)
    names.paths = {""}
    names.relations, names.types = {"pg_class"}, {"uuid"}
    names.calls, names.operators = names.calls[:1], names.operators[:1]
    before = names.meanings(line)
    line.rollback()
    names.shadow(line)
    after = names.meanings(line)
    assert [name for name, meaning in after.items() if meaning == before[name]] == []


# -- what was done with it -----------------------------------------------------------------------------------------


@pytest.fixture
def web(rights_of_an_old_installation: None, tenant: Any) -> Iterator[Connection]:
    """Web's role as that of an installation from before, in this company."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("SELECT set_config('silas.tenant', %s, false)", [str(tenant.pk)])
        yield connection
        connection.rollback()


def test_shadowed_catalog_makes_nobody_the_owner_of_a_persons_key(web: Connection, tenant: Any, owner: Any) -> None:
    make_token(tenant, owner, make_plan())
    web.execute(
        "CREATE TEMPORARY VIEW pg_class AS SELECT c.oid, r.oid AS relowner FROM pg_catalog.pg_class c,"
        " pg_catalog.pg_roles r WHERE r.rolname = current_user"
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="key cannot be exchanged"):
        web.execute("DELETE FROM approvals_approverkey WHERE user_id = %s", [owner.pk])


def test_shadowed_approval_activates_no_skill(web: Connection, tenant: Any, owner: Any, tmp_path: Any) -> None:
    token = make_token(tenant, owner, make_plan())
    folder = make_folder(tmp_path / "desk")
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    with tenant_scope(tenant):
        version = installation.propose(files, source=SkillSource.FOLDER)
    shadows = {
        "approvals_approvaltoken": "%(token)s::uuid AS id, %(tenant)s::uuid AS tenant_id, 'n' AS nonce,"
        " %(one)s::uuid AS decision_id, 'skill_install' AS scope, 'h' AS plan_hash",
        "approvals_tokenuse": "'n' AS token_nonce, %(tenant)s::uuid AS tenant_id",
        "approvals_decision": "%(one)s::uuid AS id, %(one)s::uuid AS card_id",
        "approvals_card": "%(one)s::uuid AS id, 'h' AS payload_hash,"
        " jsonb_build_object('skill', %(name)s::text, 'content_hash', %(digest)s::text) AS payload",
    }
    values = {"token": token.pk, "tenant": tenant.pk, "one": uuid4(), "name": version.name, "digest": version.digest}
    for table, columns in shadows.items():
        web.execute(f"CREATE TEMPORARY TABLE {table} AS SELECT {columns}", values)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="without a spent approval"):
        web.execute(
            "UPDATE skills_skillversion SET status = 'active', approval_token_id = %s WHERE id = %s",
            [token.pk, version.pk],
        )


def test_shadowed_approval_widens_no_threshold(web: Connection, tenant: Any, owner: Any) -> None:
    token = make_token(tenant, owner, make_plan(), scope=ApprovalScope.FULL_PLAN)
    values = {"token": token.pk, "tenant": tenant.pk, "deployment": make_deployment(tenant).pk, "user": owner.pk}
    web.execute(
        "CREATE TEMPORARY TABLE approvals_approvaltoken AS SELECT %(token)s::uuid AS id, %(tenant)s::uuid AS tenant_id,"
        " 'n' AS nonce, 'autonomy_threshold' AS scope",
        values,
    )
    web.execute(
        "CREATE TEMPORARY TABLE approvals_tokenuse AS SELECT 'n' AS token_nonce, %(tenant)s::uuid AS tenant_id", values
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="widened without a spent approval"):
        web.execute(
            "INSERT INTO work_thresholdchange (id, tenant_id, deployment_id, family, number, direction, usual_size,"
            " usual_high, size_before, size_after, high_before, high_after, approval_token_id, user_id)"
            " VALUES (gen_random_uuid(), %(tenant)s, %(deployment)s, 'refund', 1, 'widen', 1, 0.5, 1, 5, 0.5, 0.5,"
            " %(token)s, %(user)s)",
            values,
        )
