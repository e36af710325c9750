"""Database rights of workers, as one list; tables that are not on it are closed to `silas_work`.

A worker runs what models and scripts bring in, so its role can create no approval, login or rule (ADR 18). Every
`migrate` brings PostgreSQL in line with the list, in one transaction; a worker whose role has more rights refuses to
start, unless a newer version migrated the database and gave its workers rights that decide nothing. A table that is not
listed fails tests/platform/test_worker_rights.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction
from psycopg import sql

from silas_platform import __version__

ROLE = "silas_work"

# Tables that create or reveal approvals, logins, rules, keys or what people wrote (the audit log is written through
# audit_append). A new table stands here or in the list below.
_CLOSED = (
    "approvals_alertchoice approvals_answer approvals_decision approvals_look approvals_passkey"
    " approvals_passkeychallenge approvals_pushsubscription approvals_cardquestion"
    " audit_auditcheckpoint audit_auditentry audit_audithead audit_auditkey"
    " tenants_apikey tenants_deploymentpicture"
    " tenants_firstrun tenants_idempotentrequest tenants_identitykey tenants_invitation tenants_letter"
    " tenants_login tenants_loginpasskey tenants_loginprovider tenants_membership tenants_messagekey"
    " tenants_provideraccount tenants_recoverycode tenants_sighting tenants_totp tenants_user tenants_user_groups"
    " tenants_oauthapp tenants_oauthgrant tenants_oauthtoken"
    " tenants_user_user_permissions tenants_visit tenants_visitorlimits"
    " guard_platformbudget"
    " safety_execution safety_failedtries safety_step safety_stepwindow"
    " memory_memoryconsolidation memory_memoryentity memory_memoryquestion memory_memoryrelation"
    " memory_memoryvector"
    " knowledge_gapquestion knowledge_gaptopic knowledge_knowledgesource"
    " persona_personaevent persona_personastate"
    " simulations_scenario simulations_simulationcopy simulations_simulationresult simulations_simulationrun"
    " simulations_simulationsuite"
    " releases_releasepolicy"
    " silas_sessions_accesslevel silas_sessions_cannedreply silas_sessions_consent"
    " silas_sessions_formanswers silas_sessions_formquestion silas_sessions_messagenonce"
    " silas_sessions_note silas_sessions_proactivemessage silas_sessions_transcriptrequest"
    " silas_sessions_visitorcard silas_sessions_visitorfile silas_sessions_visitoroffers"
    " skills_draftrevision skills_packagekey skills_skilldraft skills_skillpackage skills_trustedpublisher"
    " connections_itrequest approvals_clientkey approvals_decisionlink"
    " contacts_contact contacts_contactidentity contacts_contactmerge contacts_contactnote"
    " contacts_importedconversation contacts_erasure"
    " inbox_availability inbox_macro inbox_mention inbox_readmark inbox_savedview inbox_slaclock inbox_teammember"
    " copilot_assistance copilot_assistancesettings"
    " messengers_channel messengers_channelmessage"
    " messengers_accountcode messengers_approveraccount messengers_cardnotice"
    " autonomy_contextproposal autonomy_freedomproposal autonomy_preference autonomy_suggestion"
    " auth_group auth_group_permissions auth_permission django_admin_log django_content_type"
    " django_session"
)
# Tables that say who approved, who may log in, what the rules are and what was signed. No worker of any version writes
# one, even if it is added to the lists.
DECISIVE = re.compile(
    r"tenants_|auth_|django_|gates_|memory_(?!readpart$)|audit_|releases_|silas_platform_"
    r"|approvals_(?!card$|gatepause$)|messengers_(?:approveraccount|accountcode|cardpolicy)$"
    r"|skills_(?:skill|packagekey$|trustedpublisher$)|silas_sessions_accesslevel$|safety_policyversion$"
    r"|guard_(?:modelprice|platformbudget|spendingpolicy|systemcontrol)$|work_(?:reviewpolicy|thresholdchange)$"
)
# Rights of the worker on each table, in GRANT syntax; columns in parentheses limit a right to them.
WORKERS_MAY: dict[str, str] = {
    **dict.fromkeys(_CLOSED.split(), ""),
    # approvals: given in web processes, verified here, spent through approvals_spend
    "approvals_approvalpolicy": "SELECT",
    "approvals_approvaltoken": "SELECT",
    "approvals_approverkey": (
        "SELECT (id, tenant_id, user_id, key_id, public_key, created_at, previous_id, certificate, retired_at,"
        " revoked_at)"
    ),
    "approvals_card": "SELECT, UPDATE (status, settled_at, withdrawal)",
    "approvals_cardtiming": "SELECT",
    "approvals_gatepause": "SELECT, INSERT, UPDATE (state, kept, ended_at, token_id)",
    "approvals_tokenrevocation": "SELECT",
    "approvals_tokenuse": "SELECT",
    # queues
    "bus_processed": "SELECT, INSERT",
    "bus_queuemessage": "SELECT, INSERT, UPDATE",
    # what programs are told of: a worker says what happened and reads nothing back
    "events_eventhead": "SELECT, INSERT, UPDATE (last_seq)",
    "events_event": "SELECT (id, type, seq), INSERT",
    # what may be done, at what cost
    "gates_gate": "SELECT",
    "gates_gateversion": "SELECT",
    "guard_budget": "SELECT, UPDATE (window_start, spent, reserved, alerted, paused_in)",
    "guard_guardedrun": (
        "SELECT, INSERT, UPDATE (status, halt_state, terminal_reason, phase, seq, calls, input_tokens, output_tokens,"
        " cost_total, cost_reserved, cost_cap_reached, content_marks, marked_turn, ended_at)"
    ),
    "guard_modelprice": "SELECT",
    "guard_spendentry": "INSERT",
    "guard_spendingpolicy": "SELECT",
    "guard_systemcontrol": "SELECT",
    "guard_toolcall": "SELECT, INSERT, UPDATE",
    # what may an agent do by itself: a call that acts asks, and may be stopped; who lets it go on is a person
    "safety_challenge": "INSERT",
    "safety_hold": "SELECT, INSERT",
    "safety_policyversion": "SELECT",
    "safety_safetyagent": "SELECT, INSERT, UPDATE (created_at)",
    # what may be recalled
    "knowledge_chunkvector": "SELECT",
    "knowledge_searchsettings": "SELECT, UPDATE (problem, problem_at)",
    "memory_chunk": "SELECT",
    "memory_collection": "SELECT",
    "memory_document": "SELECT",
    "memory_documentversion": "SELECT",
    # what was handed in: a worker reads it and says what it read, which the trusted worker checks and stores
    "memory_intake": "SELECT (id, tenant_id, kind, name, reference, content, ended_at)",
    "memory_readpart": "INSERT",
    # an export of another help desk, the same way
    "imports_importrun": "SELECT (id, tenant_id, system, name, content, ended_at)",
    "imports_importpart": "INSERT",
    # a mail, the same way
    "messengers_inboundmail": "SELECT (id, tenant_id, content)",
    "messengers_readmail": "INSERT",
    # where a conversation's progress is sent besides
    "messengers_channelthread": (
        "SELECT (id, tenant_id, session_id, opted_out_at, follows_widget, confirm_hash, last_received_at, created_at)"
    ),
    # whether approvers want a message of a card that has changed
    "messengers_cardpolicy": "SELECT (id, tenant_id)",
    # what a conversation and its work are served by
    "releases_release": "SELECT",
    # how old a memory is and whose, never what it says
    "memory_memoryitem": "SELECT (id, tenant_id, scope, tier, trust, taint, created_at, updated_at, valid_until)",
    # what is said in a conversation: progress, and where it stands
    "silas_sessions_chatsession": (
        "SELECT, UPDATE (seq, turns, language, preview, last_sender, last_active_at, "
        "wanted_person_at, wanted_queue, wanted_because)"
    ),
    # when and by whom something was said, never what
    "silas_sessions_chronicleentry": "SELECT (id, tenant_id, session_id, seq, kind, sender, created_at), INSERT",
    # how conversations went and which team has them, without a visitor's words
    "silas_sessions_deskstate": "SELECT (id, tenant_id, session_id, status, team_id)",
    "silas_sessions_label": "SELECT",
    # which team a handover goes to, and its hours
    "inbox_team": "SELECT",
    # whether a rule waits for a handover, never what it does
    "inbox_inboxrule": "SELECT (id, tenant_id, is_active, trigger, minutes)",
    # when a person was wanted, if the company has times to keep
    "inbox_slapolicy": "SELECT (id, tenant_id)",
    "inbox_slamoment": "INSERT",
    "silas_sessions_rating": "SELECT (id, tenant_id, session_id, deployment_id, scale, score, created_at)",
    "silas_sessions_sessionlabel": "SELECT",
    "silas_sessions_turn": "SELECT (id, tenant_id, session_id, status, reason, started_at)",
    # what an approved action changes, and with which reviewed code
    "skills_record": "SELECT, INSERT, UPDATE (data, revision, updated_at)",
    "skills_skillfile": "SELECT",
    "skills_skillversion": "SELECT",
    # which outside tools a person accepted, and on which terms, is said in web processes; a worker that calls one notes
    # what its server says now, and stops it
    "toolservers_outsidetool": "SELECT, UPDATE (state, seen, seen_digest, problem)",
    "toolservers_toolserver": "SELECT, UPDATE (failure, failed_at)",
    "toolservers_toolset": "SELECT, INSERT",
    "toolservers_websearch": "SELECT, UPDATE (failure)",
    # on whose outside account: what a person wants connected, and with which rights, stays as it was said in web
    # processes; a worker keeps what a script brought, and says how the account is
    "connections_connection": (
        "SELECT, UPDATE (status, auth_strategy, discovering, identity, provider, permissions, permissions_granted,"
        " failure, token_expires_at, refresh_token_expires_at, last_health_check, last_refresh, last_used,"
        " next_check_at, warned_at, recovered)"
    ),
    "connections_credential": "SELECT, INSERT, UPDATE, DELETE",
    "connections_oncegrant": "SELECT, UPDATE (used_at)",
    "connections_pendingsecret": "SELECT, INSERT",
    "connections_setupanswer": "SELECT, DELETE",
    "connections_setuprun": ("SELECT, UPDATE (state, step_id, step, failure, summary, ignored, deadline, ended_at)"),
    # which migrations ran: a worker that is too old for the schema ends
    "django_migrations": "SELECT",
    # which version migrated the database: a newer one may have widened this list
    "silas_platform_installedversion": "SELECT (id, version)",
    # who exists
    "tenants_datakey": "SELECT",
    "tenants_deployment": "SELECT",
    "tenants_policyseal": "SELECT",
    "tenants_retention": "SELECT",
    "tenants_tenant": "SELECT",
    # what was promised, and is it done: what a plan says stays, and without a genuine yes it does not run
    "work_artifact": "SELECT, INSERT, UPDATE",
    "work_attempt": "SELECT, INSERT, UPDATE",
    "work_batch": "SELECT, UPDATE (status, finished_at)",
    "work_batchitem": "SELECT",
    "work_course": "SELECT, INSERT, UPDATE",
    "work_goalcycle": "SELECT, INSERT, UPDATE",
    "work_knowledgeeffect": "SELECT, INSERT, UPDATE (state)",
    "work_ledgerentry": "SELECT, INSERT",
    "work_planning": "SELECT, INSERT, UPDATE",
    "work_poolslot": "SELECT, INSERT, UPDATE, DELETE",
    "work_researchrequest": "SELECT, INSERT, UPDATE",
    "work_reviewpolicy": "SELECT",
    "work_thresholdchange": "SELECT",
    "work_undoentry": "SELECT, INSERT, UPDATE (undone_by_id)",
    "work_verificationrun": "SELECT, INSERT",
    "work_workitem": (
        "SELECT, INSERT, UPDATE (status, reason, approval_token_id, run_id, attempts_made, budget_used, summary,"
        " last_error, next_steps, due_at, updated_at)"
    ),
    # what runs unattended: who allowed it, what it may spend and where it goes stays as a person wrote it
    "autonomy_artifact": "SELECT, INSERT",
    "autonomy_autonomoussession": (
        "SELECT, INSERT, UPDATE (run_id, status, phase, output, receipt, terminal_reason, halt_reason, error_code,"
        " message_id, awaits, not_before, admitted_at, started_at, ended_at, heartbeat_at, warned_at,"
        " egress)"
    ),
    "autonomy_autonomysettings": "SELECT",
    "autonomy_checkpoint": "SELECT, INSERT, UPDATE (left_at, outcome, state)",
    "autonomy_finding": "SELECT, INSERT, UPDATE (gone_at)",
    "autonomy_initiativesettings": "SELECT",
    "autonomy_memberoptin": "SELECT",
    "autonomy_memoryproposal": "SELECT, INSERT",
    "autonomy_notification": "SELECT, INSERT, UPDATE (session_id, reason, counts, created_at, read_at, card_id)",
    "autonomy_occurrence": "SELECT, INSERT, DELETE",
    "autonomy_outcome": "SELECT",
    "autonomy_openquestion": "SELECT, UPDATE (reviewed_at)",
    "autonomy_outbox": "SELECT, INSERT",
    "autonomy_precedent": "SELECT, INSERT, UPDATE (count, evidence, updated_at, task_id, session_id, root_id, skills)",
    "autonomy_task": "SELECT, UPDATE (quarantined_at, quarantine_reason)",
    "autonomy_trigger": "SELECT, UPDATE (next_at, last_at, enabled, disabled_reason)",
    "autonomy_webhook": "SELECT",
}

# Functions that the worker may call; all others of ours are closed to it. Triggers run for every role.
WORKERS_CALL = frozenset(
    {
        "approvals_spend",
        "audit_append",
        "bus_due",
        "bus_held_by",
        "bus_lease_of_scope",
        "guard_level",
        "guard_lost_calls",
        "guard_platform_move",
        "guard_platform_room",
        "guard_window",
        "memory_recall_company",
        "memory_search",
        "sessions_grams",
    }
)

_RIGHT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE)(?: \(([a-z_, ]+)\))?(?:, |$)")
# TRUNCATE is checked too: it is a separate right, and no worker has it.
_HELD = """
    SELECT c.relname, kind FROM pg_class c
    CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS kind
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
      AND CASE WHEN kind IN ('DELETE', 'TRUNCATE') THEN has_table_privilege(c.oid, kind)
               ELSE has_any_column_privilege(c.oid, kind) END
"""
_MIGRATED_BY = "SELECT current_user, (SELECT version FROM silas_platform_installedversion ORDER BY id DESC LIMIT 1)"


def rights_of(words: str) -> Iterator[tuple[str, list[str]]]:
    """`"SELECT, UPDATE (a, b)"` → ("SELECT", []), ("UPDATE", ["a", "b"])."""
    end = 0
    for found in _RIGHT.finditer(words):
        assert found.start() == end, words
        end = found.end()
        yield found[1], (found[2] or "").split(", ") if found[2] else []
    # A misspelt right would otherwise be left out in silence.
    assert end == len(words), words


def grant(using: str) -> None:
    """Bring the rights of the workers' role in line with the list; run as the tables' owner.

    Raises `ImproperlyConfigured` when the database has no such role.
    """
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE])
        if not cursor.rowcount:
            raise ImproperlyConfigured(
                f"E_DB_WORK_ROLE: there is no role {ROLE}; run silas_platform/up/roles.sql as superuser of the database"
            )
        cursor.execute("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'")
        for statement in _statements(cursor.fetchall()):
            cursor.execute(statement.as_string())


def _statements(columns: Iterable[tuple[str, str]]) -> Iterator[sql.Composable]:
    """Skip missing tables and columns: a schema that is being migrated backwards lacks some."""
    there: dict[str, set[str]] = {}
    for table, column in columns:
        there.setdefault(table, set()).add(column)
    role = sql.Identifier(ROLE)
    # Everything is taken first: a right that left the list would stay.
    yield sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role)
    yield sql.SQL("REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {}").format(role)
    for table in sorted(WORKERS_MAY.keys() & there.keys()):
        for kind, named in rights_of(WORKERS_MAY[table]):
            listed = [sql.Identifier(name) for name in named if name in there[table]]
            if listed or not named:
                narrowed = sql.SQL(" ({})").format(sql.SQL(", ").join(listed)) if listed else sql.SQL("")
                statement = sql.SQL("GRANT {}{} ON {} TO {}")
                yield statement.format(sql.SQL(kind), narrowed, sql.Identifier(table), role)


def excess(url: str) -> list[str]:
    """Rights of this address's role beyond the list, such as `INSERT ON approvals_decision`. Unlisted tables are
    ignored: they are of a newer version."""
    return [f"{kind} ON {table}" for table, kind in _excess(url)]


def are_of_newer_version(url: str) -> bool:
    """True if a newer version, beside which this worker still runs during an upgrade, gave its role the rights beyond
    the list: it is the workers' role, a newer version migrated the database last, and no table is written that decides
    something."""
    try:
        with psycopg.connect(url) as connection:
            role, migrated_by = connection.execute(_MIGRATED_BY).fetchone() or ("", None)
    # A database that tells no version was not migrated by one that stores it.
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        return False
    if role != ROLE or not migrated_by or _version_key(migrated_by) <= _version_key(__version__):
        return False
    return not any(
        kind in ("DELETE", "TRUNCATE") or (kind != "SELECT" and DECISIVE.match(table)) for table, kind in _excess(url)
    )


def _excess(url: str) -> list[tuple[str, str]]:
    allowed = {(table, kind) for table, words in WORKERS_MAY.items() for kind, _ in rights_of(words)}
    with psycopg.connect(url) as connection:
        held: list[Any] = connection.execute(_HELD).fetchall()
    return sorted((table, kind) for table, kind in set(held) - allowed if table in WORKERS_MAY)


def _version_key(version: str) -> tuple[list[int], bool, str, list[int]]:
    """Sort key of a version: `0.2.0a1`, `0.2.0rc1`, `0.2.0`, `0.10.0`."""
    release, suffix = re.fullmatch(r"([\d.]*)(.*)", version.partition("+")[0], re.DOTALL).groups()  # type: ignore[union-attr]  # matches any text
    return _numbers(release), not suffix, re.sub(r"[^a-z]", "", suffix), _numbers(suffix)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]
