"""SQL that lets decisions, approval tokens and their uses be written once and never changed; used by the migration."""

from __future__ import annotations

_FACTS = ("approvals_decision", "approvals_approvaltoken", "approvals_tokenuse")

_TRIGGERS = """
CREATE TRIGGER {table}_no_rewrite BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
"""
_DROP = """
DROP TRIGGER {table}_no_rewrite ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
"""

REFUSE = """
CREATE FUNCTION approvals_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a decision and its uses cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
""" + "".join(_TRIGGERS.format(table=table) for table in _FACTS)

REFUSE_REVERSE = "".join(_DROP.format(table=table) for table in _FACTS) + "DROP FUNCTION approvals_refuse();"
