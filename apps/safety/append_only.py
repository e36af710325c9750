"""SQL that lets a policy's version and a report be written once; used by the migration only."""

from __future__ import annotations

STAY = """
CREATE FUNCTION safety_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what was written down here stays' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER safety_policy_no_rewrite BEFORE UPDATE OR DELETE ON safety_policyversion
    FOR EACH ROW EXECUTE FUNCTION safety_refuse();
CREATE TRIGGER safety_step_no_rewrite BEFORE UPDATE OR DELETE ON safety_step
    FOR EACH ROW EXECUTE FUNCTION safety_refuse();
"""
STAY_REVERSE = """
DROP TRIGGER safety_step_no_rewrite ON safety_step;
DROP TRIGGER safety_policy_no_rewrite ON safety_policyversion;
DROP FUNCTION safety_refuse();
"""
