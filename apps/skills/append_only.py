"""SQL that lets a skill version and its files be written once and never changed; used by the migration."""

from __future__ import annotations

_TABLES = ("skills_skillversion", "skills_skillfile")
_TRIGGERS = """
CREATE TRIGGER {table}_no_rewrite BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION skills_refuse();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION skills_refuse();
"""
_DROP = """
DROP TRIGGER {table}_no_rewrite ON {table};
DROP TRIGGER {table}_no_truncate ON {table};
"""

REFUSE = """
CREATE FUNCTION skills_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an installed skill cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
""" + "".join(_TRIGGERS.format(table=table) for table in _TABLES)

REFUSE_REVERSE = "".join(_DROP.format(table=table) for table in _TABLES) + "DROP FUNCTION skills_refuse();"
