"""Entries enter by one function that computes number, hash and time, for events that the role may note."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry, AuditHead
from apps.audit.rules import PLATFORM_CHAIN
from apps.audit.services import record
from apps.audit.writers import ACTOR_KINDS, ONLY_FOR, WORKERS_WRITE
from kernel.tenancy import tenant_scope
from tests.factories.audit import make_entries, verdict

Connection = psycopg.Connection[tuple[Any, ...]]
ADDRESSES = {"web": "DATABASE_URL", "worker": "DATABASE_WORK_URL"}
PERSONS = {"user", "visitor", "api_key", "oauth_grant", "login_provider", "command"}


@pytest.fixture
def chain(tenant: Any) -> Any:
    make_entries(tenant, 2)
    return tenant


@pytest.fixture(params=sorted(ADDRESSES))
def line(request: pytest.FixtureRequest, chain: Any) -> Iterator[Connection]:
    """SQL of the role's own, in this company."""
    with psycopg.connect(os.environ[ADDRESSES[request.param]], autocommit=True) as connection:
        connection.execute("SELECT set_config('silas.tenant', %s, false)", [str(chain.pk)])
        yield connection


@pytest.fixture
def worker(chain: Any) -> Iterator[Connection]:
    with psycopg.connect(os.environ["DATABASE_WORK_URL"], autocommit=True) as connection:
        connection.execute("SELECT set_config('silas.tenant', %s, false)", [str(chain.pk)])
        yield connection


def append(line: Connection, tenant: UUID | None, *, chain: UUID | None = None, **fields: Any) -> None:
    entry = {"entry_id": str(uuid4()), "event": "tool_call", "actor": "system", "subject": "run:1", "data": "{}"}
    values = [chain or tenant or PLATFORM_CHAIN, tenant, json.dumps([{**entry, **fields}])]
    line.execute("SELECT audit_append(%s, %s, %s)", values)


def verdict_of(tenant: Any) -> str:
    return verdict("--tenant", tenant.slug).split(" head=")[0]


# -- the list ------------------------------------------------------------------------------------------------------


def test_every_event_is_decided() -> None:
    """A new event: say in apps/audit/writers.py for whom workers may note it; "" is nobody."""
    assert set(WORKERS_WRITE) == set(AuditEvent)


def test_worker_notes_for_known_kinds_and_for_no_person() -> None:
    kinds = {kind for words in WORKERS_WRITE.values() for kind in words.split()}
    assert kinds <= set(ACTOR_KINDS)
    assert kinds & PERSONS == set()


# -- no other way in -----------------------------------------------------------------------------------------------

DIRECT = {
    "entry": "INSERT INTO audit_auditentry (entry_id, tenant_id, chain, seq, event, actor, subject, data, timestamp,"
    " prev_hash, entry_hash) VALUES (gen_random_uuid(), %(tenant)s, %(tenant)s, 3, 'card_decided', 'user:1', '', '{}',"
    " now(), 'x', 'x')",
    "entry far ahead": "INSERT INTO audit_auditentry (entry_id, tenant_id, chain, seq, event, actor, subject, data,"
    " timestamp, prev_hash, entry_hash) VALUES (gen_random_uuid(), %(tenant)s, %(tenant)s, 9223372036854775807, 'x',"
    " 'x', '', '{}', now(), 'x', 'x')",
    "head moved to the end": "UPDATE audit_audithead SET seq = 9223372036854775807 WHERE chain = %(tenant)s",
    "head's hash": "UPDATE audit_audithead SET entry_hash = 'x', seq = seq + 1 WHERE chain = %(tenant)s",
    "head of a tenant to come": "INSERT INTO audit_audithead (chain, tenant_id, seq, entry_hash)"
    " VALUES (gen_random_uuid(), %(tenant)s, 9, 'x')",
    "head deleted": "DELETE FROM audit_audithead",
    "entries deleted": "DELETE FROM audit_auditentry",
    "copied in": "COPY audit_auditentry FROM STDIN",
}


def test_direct_write_is_refused(line: Connection, chain: Any) -> None:
    for what, statement in DIRECT.items():
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            line.execute(statement.encode(), {"tenant": chain.pk} if "%(" in statement else None)
        assert verdict_of(chain) == f"ok tenant={chain.slug} entries=2", what


# -- no other scope ------------------------------------------------------------------------------------------------


def test_chain_of_another_tenant_is_refused(line: Connection, chain: Any, other_tenant: Any) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="own tenant"):
        append(line, other_tenant.pk)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="own tenant"):
        append(line, chain.pk, chain=other_tenant.pk)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="own tenant"):
        append(line, None)
    with tenant_scope(other_tenant):
        assert not AuditHead.objects.filter(chain=other_tenant.pk).exists()


def test_without_a_scope_nothing_is_written(line: Connection, chain: Any) -> None:
    line.execute("SELECT set_config('silas.tenant', '', false)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="own tenant"):
        append(line, chain.pk)


# -- no other event ------------------------------------------------------------------------------------------------


def notes(line: Connection, chain: Any, event: str, actor: str) -> bool:
    try:
        append(line, chain.pk, event=event, actor=actor)
    except psycopg.errors.InsufficientPrivilege as refusal:
        return "may not note" not in str(refusal)
    return True


def test_worker_cannot_note_what_only_others_do(worker: Connection, chain: Any) -> None:
    others = [event.value for event, kinds in WORKERS_WRITE.items() if not kinds]
    assert others
    noted = [
        (event, actor) for event, actor in product(others, ("system", "user:1")) if notes(worker, chain, event, actor)
    ]
    assert noted == []
    assert verdict_of(chain) == f"ok tenant={chain.slug} entries=2"


@pytest.mark.parametrize("actor", ["user:1", "visitor", "api_key:1", "user", "command:x", "nobody:1", "system2"])
def test_worker_cannot_note_for_a_person(worker: Connection, chain: Any, actor: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not note"):
        append(worker, chain.pk, actor=actor)


def test_worker_notes_what_workers_do(worker: Connection, chain: Any) -> None:
    for event, kinds in WORKERS_WRITE.items():
        for kind in kinds.split():
            append(worker, chain.pk, event=event.value, actor=f"{kind}:1")
    written = sum(len(kinds.split()) for kinds in WORKERS_WRITE.values())
    assert verdict_of(chain) == f"ok tenant={chain.slug} entries={2 + written}"


def test_event_of_some_kinds_of_actors_is_refused_to_both_roles_for_every_other(line: Connection, chain: Any) -> None:
    believed = [
        (event, other)
        for kinds, events in ONLY_FOR.items()
        for event, other in product(events, sorted({*ACTOR_KINDS} - {*kinds.split()}))
        if notes(line, chain, event.value, f"{other}:1")
    ]
    assert believed == []
    assert verdict_of(chain) == f"ok tenant={chain.slug} entries=2"


def test_web_notes_every_event_for_an_actor_that_it_may_have(chain: Any) -> None:
    fixed = {event: kinds.split()[-1] for kinds, events in ONLY_FOR.items() for event in events}
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as web:
        web.execute("SELECT set_config('silas.tenant', %s, false)", [str(chain.pk)])
        for event in AuditEvent:
            append(web, chain.pk, event=event.value, actor=f"{fixed.get(event, 'user')}:1")
    assert verdict_of(chain) == f"ok tenant={chain.slug} entries={2 + len(AuditEvent)}"


def test_what_workers_note_fits_the_kind_of_actor_that_an_event_has() -> None:
    for kind, events in ONLY_FOR.items():
        for event in events:
            assert WORKERS_WRITE[event] in ("", kind)


@pytest.mark.parametrize(("event", "actor"), [("no_such_event", "system"), ("tool_call", "nobody"), ("", "system")])
def test_unknown_event_or_actor_is_refused_whoever_notes_it(
    line: Connection, chain: Any, event: str, actor: str
) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not note"):
        append(line, chain.pk, event=event, actor=actor)


# -- no other words ------------------------------------------------------------------------------------------------

JUNK = {
    "prose": {"data": '{"said":"two words"}'},
    "no JSON": {"data": "{"},
    "no object": {"data": "[1]"},
    "nothing": {"data": None},
    "a number that no reader reads": {"data": '{"n":' + "9" * 5000 + "}"},
    "deeper than readers go": {"data": '{"a":' * 3000 + "1" + "}" * 3000},
    "more than a page holds": {"data": '{"a":"' + "x" * 30_000 + '"}'},
    "beyond ASCII": {"data": '{"a":"é"}'},
    "line break": {"data": '{"a":1}\n'},
    "a subject that ends the text": {"subject": '","seq":1,"prev_hash":"'},
    "a subject that escapes": {"subject": "x\\"},
    "a subject of two words": {"subject": "two words"},
    "no subject": {"subject": None},
    "an actor that ends the text": {"actor": 'system:","chain":"'},
    "an actor of two words": {"actor": "system:two words"},
    "no id": {"entry_id": None},
    "no UUID": {"entry_id": "x"},
}


def test_junk_is_refused_and_stops_nobody(line: Connection, chain: Any) -> None:
    for number, (what, fields) in enumerate(JUNK.items(), start=3):
        with pytest.raises(psycopg.Error):
            append(line, chain.pk, **fields)
        make_entries(chain, 1)
        assert verdict_of(chain) == f"ok tenant={chain.slug} entries={number}", what


def test_number_hash_and_time_are_the_databases(line: Connection, chain: Any) -> None:
    append(
        line,
        chain.pk,
        seq=9223372036854775807,
        timestamp="1970-01-01T00:00:00+00:00",
        prev_hash="x",
        entry_hash="x",
        head="x",
        middle="x",
        tail="x",
        chain_id="x",
    )
    with tenant_scope(chain):
        newest = AuditEntry.objects.latest("seq")
    assert newest.seq == 3
    assert newest.timestamp.year > 2000
    assert verdict_of(chain) == f"ok tenant={chain.slug} entries=3"


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    subject=st.from_regex(r"\A[\w.:/@+#-]{0,80}\Z"),
    data=st.dictionaries(
        st.from_regex(r"\A[\w.:/@+#-]{1,20}\Z"),
        st.one_of(
            st.from_regex(r"\A[\w.:/@+#-]{0,40}\Z"),
            st.integers(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.none(),
        ),
        max_size=4,
    ),
)
def test_what_the_database_hashes_is_what_a_verifier_hashes(tenant: Any, subject: str, data: dict[str, Any]) -> None:
    with tenant_scope(tenant):
        record(AuditEvent.TOOL_CALL, subject=subject, data={"seq": 10**20, **{f"k{key}": data[key] for key in data}})
    assert verdict_of(tenant).startswith(f"ok tenant={tenant.slug} ")


def test_functions_with_their_owners_rights_are_known(database: None, superuser_dsn: str) -> None:
    """Each looks for itself at what its caller may do; a new one needs the same thought."""
    with psycopg.connect(superuser_dsn) as connection:
        found = connection.execute(
            "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        ).fetchall()
    assert {name for (name,) in found} == {
        "approvals_spend",
        "audit_append",
        "guard_platform_move",
        "guard_platform_room",
        "memory_recall_company",
        "partitions_extend",
        "platform_metrics",
    }
