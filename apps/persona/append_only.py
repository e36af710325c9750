"""SQL that makes the log of a personality append-only; used by the migration."""

REFUSE = """
CREATE FUNCTION persona_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log of a personality is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER persona_personaevent_no_rewrite BEFORE UPDATE OR DELETE ON persona_personaevent
    FOR EACH ROW EXECUTE FUNCTION persona_refuse();
CREATE TRIGGER persona_personaevent_no_truncate BEFORE TRUNCATE ON persona_personaevent
    FOR EACH STATEMENT EXECUTE FUNCTION persona_refuse();
"""

REFUSE_REVERSE = """
DROP TRIGGER persona_personaevent_no_rewrite ON persona_personaevent;
DROP TRIGGER persona_personaevent_no_truncate ON persona_personaevent;
DROP FUNCTION persona_refuse();
"""
