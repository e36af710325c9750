"""SQL that lets decisions, tokens and their uses be written once, and keys and cards stay; used by the migrations."""

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

# Who signs, and what was shown, stay as well. Only the tables' owner may take a key away (one whose seal is lost); only
# a card's status and times move, and a settled one is settled.
STAY = """
CREATE FUNCTION approvals_key_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_user = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'an approver''s key cannot be exchanged' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE FUNCTION approvals_card_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_moving text[] := ARRAY['status', 'created_at', 'expires_at'];
BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving THEN
        RAISE EXCEPTION 'what a card says cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF OLD.status <> 'open' AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'a settled card stays settled' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_approverkey_stays BEFORE UPDATE OR DELETE ON approvals_approverkey
    FOR EACH ROW EXECUTE FUNCTION approvals_key_stays();
CREATE TRIGGER approvals_approverkey_no_truncate BEFORE TRUNCATE ON approvals_approverkey
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
CREATE TRIGGER approvals_card_stays BEFORE UPDATE OR DELETE ON approvals_card
    FOR EACH ROW EXECUTE FUNCTION approvals_card_stays();
CREATE TRIGGER approvals_card_no_truncate BEFORE TRUNCATE ON approvals_card
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_refuse();
"""
STAY_REVERSE = """
DROP TRIGGER approvals_approverkey_stays ON approvals_approverkey;
DROP TRIGGER approvals_approverkey_no_truncate ON approvals_approverkey;
DROP TRIGGER approvals_card_stays ON approvals_card;
DROP TRIGGER approvals_card_no_truncate ON approvals_card;
DROP FUNCTION approvals_key_stays();
DROP FUNCTION approvals_card_stays();
"""
