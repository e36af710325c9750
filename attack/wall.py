"""Run hostile SQL as the web and worker roles, alone and with objects that shadow what triggers and functions read.

A superuser gives both roles the right to make temporary objects first, as installations of earlier releases have it.
What was believed is found by another hand: a superuser reads all rows of decisions, keys, skills, thresholds and of the
audit log before and after each attempt, and every difference counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from attack.report import Figure

Line = psycopg.Connection[tuple[Any, ...]]
Make = Callable[[Line], None]
ROLES = {"web": "DATABASE_URL", "worker": "DATABASE_WORK_URL"}
WATCHED = re.compile(
    r"approvals_(approverkey|approvaltoken|decision|answer|tokenuse|tokenrevocation|passkey|card)"
    r"|audit_.*|skills_(skillversion|skillfile)|work_thresholdchange|gates_gateversion|django_migrations"
)
_ENTRY = {"event": "tool_call", "actor": "system", "subject": "run:1", "data": "{}"}
_AUDIT_ROW = (
    "INSERT INTO public.audit_auditentry (entry_id, tenant_id, chain, seq, event, actor, subject, data, timestamp,"
    " prev_hash, entry_hash) VALUES (%(new)s, %(tenant)s, %(tenant)s, {}, 'card_decided', 'user:1', '', '{{}}', now(),"
    " 'x', 'x')"
)
_SKILL = (
    "INSERT INTO public.skills_skillversion (id, tenant_id, name, digest, manifest, body, number, status, source,"
    " report, requested_by) VALUES (%(new)s, %(tenant)s, 'forged', 'forged', '{{}}', '', 1, '{}', '{}', '{{}}', '')"
)

# What either role may try; each leaves a row that should not be, takes one away or changes one, if it is believed.
FORGERIES = {
    "delete an approver's key": "DELETE FROM public.approvals_approverkey WHERE tenant_id = %(tenant)s",
    "exchange an approver's key": "UPDATE public.approvals_approverkey SET public_key = repeat('0', 64)",
    "rewrite a decision": "UPDATE public.approvals_decision SET verdict = 'approved', decided_at = now()",
    "lengthen an approval": "UPDATE public.approvals_approvaltoken SET expires_at = 'infinity'",
    "forget a use": "DELETE FROM public.approvals_tokenuse",
    "forget a revocation": "DELETE FROM public.approvals_tokenrevocation",
    "spend what was revoked": "SELECT public.approvals_spend(%(nonce)s, now(), %(new)s, repeat('0', 64), 's', 'b',"
    " now())",
    "activate a skill": "UPDATE public.skills_skillversion SET status = 'active', approval_token_id = %(token)s"
    " WHERE id = %(skill)s",
    "bring a skill in active": _SKILL.format("active", "folder"),
    "bring a skill in as bundled": _SKILL.format("active", "bundled"),
    "propose a bundled skill": _SKILL.format("proposed", "bundled"),
    "widen a threshold": "INSERT INTO public.work_thresholdchange (id, tenant_id, deployment_id, family, number,"
    " direction, usual_size, usual_high, size_before, size_after, high_before, high_after, approval_token_id, user_id)"
    " VALUES (%(new)s, %(tenant)s, %(deployment)s, 'refund', 1, 'widen', 1, 0.5, 1, 5, 0.5, 0.5, %(token)s, %(user)s)",
    "call widening tightening": "INSERT INTO public.work_thresholdchange (id, tenant_id, deployment_id, family, number,"
    " direction, usual_size, usual_high, size_before, size_after, high_before, high_after, user_id)"
    " VALUES (%(new)s, %(tenant)s, %(deployment)s, 'refund', 1, 'tighten', 10, 0.85, 50, 50, 0, 0, %(user)s)",
    "insert an entry": _AUDIT_ROW.format(3),
    "insert the last entry": _AUDIT_ROW.format(9223372036854775807),
    "move a head to the end": "UPDATE public.audit_audithead SET seq = 9223372036854775807",
    "make a head": "INSERT INTO public.audit_audithead (chain, tenant_id, seq, entry_hash)"
    " VALUES (%(new)s, %(tenant)s, 9, 'x')",
    "append to another's chain": "SELECT public.audit_append(%(other)s, %(tenant)s, %(entry)s)",
    "append as another tenant": "SELECT public.audit_append(%(other)s, %(other)s, %(entry)s)",
    "append what nobody reads": "SELECT public.audit_append(%(tenant)s, %(tenant)s, %(junk)s)",
    "disable triggers": "ALTER TABLE public.approvals_decision DISABLE TRIGGER ALL",
    "switch off triggers": "SET session_replication_role = replica; DELETE FROM public.approvals_tokenuse",
    "become the owner": "SET ROLE silas_owner; DELETE FROM public.approvals_approverkey",
    "unpin a function": "ALTER FUNCTION public.approvals_key_stays() RESET search_path",
    "replace a function": "CREATE OR REPLACE FUNCTION public.audit_refuse() RETURNS trigger LANGUAGE plpgsql"
    " AS 'BEGIN RETURN NEW; END'",
    "say that a migration ran": "INSERT INTO public.django_migrations (app, name, applied) VALUES ('x', 'x', now())",
}
# What is forged only as a worker: web's role does it every day.
WORKERS_FORGERIES = {
    "note a person's decision": "SELECT public.audit_append(%(tenant)s, %(tenant)s, %(decided)s)",
    "note in a person's name": "SELECT public.audit_append(%(tenant)s, %(tenant)s, %(person)s)",
    "make an approval": "INSERT INTO public.approvals_approvaltoken SELECT * FROM public.approvals_approvaltoken",
    "use an approval": "INSERT INTO public.approvals_tokenuse (id, tenant_id, token_nonce, ordinal, bound_hash,"
    " subject_id, binding, used_at) VALUES (%(new)s, %(tenant)s, %(nonce)s, 9, 'h', 's', 'b', now())",
    "open a card": "INSERT INTO public.approvals_card SELECT * FROM public.approvals_card",
}


def run(short: bool) -> list[Figure]:
    with psycopg.connect(os.environ["SILAS_TEST_SUPERUSER_DSN"], autocommit=True) as superuser:
        values = _stage()
        superuser.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO PUBLIC").format(sql.Identifier(_name(superuser))))
        read = _relations(superuser)
        shadows: dict[str, Make] = {
            "none": lambda line: None,
            "one's own catalog": _own_catalog,
            "approvals of one's own": lambda line: _own_approvals(line, values),
            "all that is read, empty": lambda line: _empty(line, read),
        }
        if not short:
            shadows |= {f"{name}, empty": lambda line, name=name: _empty(line, [name]) for name in read}
        tried, believed = 0, []
        before = _state(superuser)
        for role, address in ROLES.items():
            forgeries = FORGERIES | (WORKERS_FORGERIES if role == "worker" else {})
            for shadow, make in shadows.items():
                for what, statement in forgeries.items():
                    _try(os.environ[address], make, statement, values)
                    tried += 1
                    after = _state(superuser)
                    if after != before:
                        believed.append(f"{role}: {what} ({shadow})")
                    before = after
    for line in believed:
        print(f"believed: {line}")
    return [Figure("forged or shadowed by SQL, believed", tried, str(len(believed)), "0", not believed)]


def _try(address: str, make: Make, statement: str, values: dict[str, Any]) -> None:
    """One attempt, committed if the database lets it."""
    given = {**values, "new": uuid4()}
    for name, fields in {
        "entry": {},
        "junk": {"data": '{"n":' + "9" * 5000 + "}"},
        "decided": {"event": "card_decided", "actor": "user:1"},
        "person": {"actor": "user:1"},
    }.items():
        given[name] = json.dumps([{**_ENTRY, "entry_id": str(uuid4()), **fields}])
    try:
        with psycopg.connect(address) as line:
            line.execute("SELECT set_config('silas.tenant', %s, false)", [str(values["tenant"])])
            make(line)
            line.execute(statement.encode(), given if "%(" in statement else None)
    except psycopg.Error:
        return


def _state(superuser: Line) -> str:
    """A digest of every row that is watched, and of what guards them."""
    tables = superuser.execute(
        "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        " ORDER BY 1"
    ).fetchall()
    digest = hashlib.sha256()
    for (name,) in tables:
        if WATCHED.fullmatch(name):
            rows = sql.SQL("SELECT md5(string_agg(r::text, '' ORDER BY r::text)) FROM public.{} r")
            digest.update(str(superuser.execute(rows.format(sql.Identifier(name))).fetchone()).encode())
    guards = superuser.execute(
        "SELECT (SELECT md5(string_agg(tgname || tgenabled::text, '' ORDER BY tgname)) FROM pg_catalog.pg_trigger),"
        " (SELECT md5(string_agg(proname || prosrc || coalesce(proconfig::text, ''), '' ORDER BY oid))"
        " FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace)"
    )
    digest.update(str(guards.fetchone()).encode())
    return digest.hexdigest()


def _name(superuser: Line) -> str:
    return superuser.info.dbname


def _relations(superuser: Line) -> list[str]:
    """The tables of ours that some function names."""
    found = superuser.execute(
        "SELECT relname FROM pg_catalog.pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        " AND EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace"
        " AND strpos(prosrc, c.relname) > 0) ORDER BY 1"
    )
    return [name for (name,) in found.fetchall()]


def _empty(line: Line, names: list[str]) -> None:
    for name in names:
        here = sql.Identifier(name)
        try:
            with line.transaction():
                line.execute(sql.SQL("CREATE TEMPORARY TABLE {} (LIKE public.{})").format(here, here))
        except psycopg.errors.InsufficientPrivilege:  # what a role may not read it cannot copy the columns of
            line.execute(sql.SQL("CREATE TEMPORARY TABLE {} (id uuid)").format(here))


def _own_catalog(line: Line) -> None:
    line.execute(
        "CREATE TEMPORARY VIEW pg_class AS SELECT c.oid, c.relname, r.oid AS relowner FROM pg_catalog.pg_class c,"
        " pg_catalog.pg_roles r WHERE r.rolname = current_user"
    )
    line.execute("CREATE TEMPORARY VIEW pg_proc AS SELECT oid, true AS proleakproof FROM pg_catalog.pg_proc")


def _own_approvals(line: Line, values: dict[str, Any]) -> None:
    columns = {
        "approvals_approvaltoken": "%(token)s::uuid AS id, %(tenant)s::uuid AS tenant_id, 'n' AS nonce, %(one)s::uuid"
        " AS decision_id, scope, 'h' AS plan_hash FROM unnest(ARRAY['skill_install', 'autonomy_threshold']) AS scope",
        "approvals_tokenuse": "'n' AS token_nonce, %(tenant)s::uuid AS tenant_id",
        "approvals_tokenrevocation": "''::text AS token_nonce WHERE false",
        "approvals_decision": "%(one)s::uuid AS id, %(one)s::uuid AS card_id",
        "approvals_card": "%(one)s::uuid AS id, 'h' AS payload_hash,"
        " jsonb_build_object('skill', %(name)s::text, 'content_hash', %(digest)s::text) AS payload",
    }
    for name, select in columns.items():
        line.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT {select}".encode(), values)


def _stage() -> dict[str, Any]:
    """A company with a decision, a revoked approval, a proposed skill and an audit log; and another company."""
    from apps.approvals.tokens.services import revoke_token
    from apps.skills import installation
    from apps.skills.enums import SkillSource
    from kernel.tenancy import tenant_scope
    from tests.factories.approvals import make_plan, make_token
    from tests.factories.tenants import make_deployment, make_member, make_tenant

    tenant, other = make_tenant(), make_tenant()
    owner = make_member(tenant, "owner")
    deployment = make_deployment(tenant)
    token, revoked = make_token(tenant, owner, make_plan()), make_token(tenant, owner, make_plan())
    with tenant_scope(tenant):
        revoke_token(revoked, user=owner, reason="No more.")
        text = b"---\nname: own\ndescription: Says how things are done here\n---\n\n# Own\n\nAs always.\n"
        skill = installation.propose({"SKILL.md": text}, source=SkillSource.FOLDER)
    return {
        "tenant": tenant.pk,
        "other": other.pk,
        "user": owner.pk,
        "deployment": deployment.pk,
        "token": token.pk,
        "nonce": revoked.nonce,
        "skill": skill.pk,
        "name": skill.name,
        "digest": skill.digest,
        "one": uuid4(),
    }
