"""SQL that keeps what a skill version says, and its files, as they were written, and its status to its course; used by
the migrations."""

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

# The course of a version (models.TRANSITIONS): it begins waiting for a yes, or active when it ships with the
# installation; nothing else becomes active without a spent approval of exactly this content.
COURSE = """
DROP TRIGGER skills_skillversion_no_rewrite ON skills_skillversion;
CREATE FUNCTION skills_version_course() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_moving text[] := ARRAY[
        'status', 'source', 'report', 'requested_by', 'card_id', 'approval_token_id', 'activated_at', 'claimed_until'
    ];
BEGIN
    IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving)
    THEN
        RAISE EXCEPTION 'an installed skill cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' AND NEW.status <> 'proposed' AND NOT (NEW.status = 'active' AND NEW.source = 'bundled') THEN
        RAISE EXCEPTION 'a skill begins as a proposal' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' THEN
        RETURN NEW;
    END IF;
    IF NEW.source <> OLD.source AND NOT (OLD.status = 'withdrawn' AND NEW.source <> 'bundled') THEN
        RAISE EXCEPTION 'where a skill came from stays' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.status <> OLD.status AND NOT ROW(OLD.status, NEW.status) IN (
        ROW('proposed', 'active'), ROW('proposed', 'withdrawn'), ROW('active', 'disabled'),
        ROW('disabled', 'active'), ROW('withdrawn', 'proposed'))
    THEN
        RAISE EXCEPTION 'a skill does not go from % to %', OLD.status, NEW.status
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.status = 'active' AND OLD.status <> 'active' AND NEW.source <> 'bundled' AND NOT EXISTS (
        SELECT FROM approvals_approvaltoken token
        JOIN approvals_tokenuse spent ON spent.token_nonce = token.nonce AND spent.tenant_id = token.tenant_id
        JOIN approvals_decision decision ON decision.id = token.decision_id
        JOIN approvals_card card ON card.id = decision.card_id
        WHERE token.id = NEW.approval_token_id AND token.tenant_id = NEW.tenant_id
          AND token.scope = 'skill_install' AND card.payload_hash = token.plan_hash
          AND card.payload->>'skill' = NEW.name AND card.payload->>'content_hash' = NEW.digest)
    THEN
        RAISE EXCEPTION 'no skill is active without a spent approval' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER skills_skillversion_course BEFORE INSERT OR UPDATE OR DELETE ON skills_skillversion
    FOR EACH ROW EXECUTE FUNCTION skills_version_course();
"""
COURSE_REVERSE = """
DROP TRIGGER skills_skillversion_course ON skills_skillversion;
DROP FUNCTION skills_version_course();
CREATE TRIGGER skills_skillversion_no_rewrite BEFORE UPDATE OR DELETE ON skills_skillversion
    FOR EACH ROW EXECUTE FUNCTION skills_refuse();
"""
