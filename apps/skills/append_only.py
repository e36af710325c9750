"""SQL that enforces the status transitions of skill versions, which are otherwise written once. Used by migrations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

# The transitions of a version (models.TRANSITIONS): it starts as proposed, or active when its content ships with the
# installation; nothing else becomes active without a spent approval of exactly this content.
_BEGINS_BUNDLED = """
    IF TG_OP = 'INSERT' AND NEW.source = 'bundled' AND ('{bundled}'::jsonb -> NEW.name ? NEW.digest) IS NOT TRUE
    THEN
        RAISE EXCEPTION 'this skill does not ship with the installation' USING ERRCODE = 'insufficient_privilege';
    END IF;
"""
_COURSE = """
CREATE OR REPLACE FUNCTION skills_version_course() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_moving text[] := ARRAY[
        'status', 'source', 'report', 'requested_by', 'card_id', 'approval_token_id', 'activated_at'
    ];
BEGIN
    IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving)
    THEN
        RAISE EXCEPTION 'an installed skill cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' AND NEW.status <> 'proposed' AND NOT (NEW.status = 'active' AND NEW.source = 'bundled') THEN
        RAISE EXCEPTION 'a skill begins as a proposal' USING ERRCODE = 'insufficient_privilege';
    END IF;
{begins}
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
        SELECT FROM public.approvals_approvaltoken token
        JOIN public.approvals_tokenuse spent ON spent.token_nonce = token.nonce AND spent.tenant_id = token.tenant_id
        JOIN public.approvals_decision decision ON decision.id = token.decision_id
        JOIN public.approvals_card card ON card.id = decision.card_id
        WHERE token.id = NEW.approval_token_id AND token.tenant_id = NEW.tenant_id
          AND token.scope = 'skill_install' AND card.payload_hash = token.plan_hash
          AND card.payload->>'skill' = NEW.name AND card.payload->>'content_hash' = NEW.digest)
    THEN
        RAISE EXCEPTION 'no skill is active without a spent approval' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
"""


def lifecycle_sql(bundled: Mapping[str, Sequence[str]]) -> str:
    """Return the trigger that accepts these contents, by name and hash, as bundled skills; installed by every
    `migrate`.

    The words and files of such a version are compared with its hash when it is loaded (`integrity`).
    """
    return _COURSE.replace("{begins}", _BEGINS_BUNDLED.replace("{bundled}", json.dumps(bundled)))


COURSE = f"""
{lifecycle_sql({})}
CREATE TRIGGER skills_skillversion_course BEFORE INSERT OR UPDATE OR DELETE ON skills_skillversion
    FOR EACH ROW EXECUTE FUNCTION skills_version_course();
CREATE TRIGGER skills_skillversion_no_truncate BEFORE TRUNCATE ON skills_skillversion
    FOR EACH STATEMENT EXECUTE FUNCTION skills_refuse();
"""
COURSE_REVERSE = """
DROP TRIGGER skills_skillversion_no_truncate ON skills_skillversion;
DROP TRIGGER skills_skillversion_course ON skills_skillversion;
DROP FUNCTION skills_version_course();
"""
