"""What holds of earned thresholds, whoever writes? Used by the migration only: a row stays as it was written, and a
widening one names an approval of that scope which was spent (spec 5.1.6)."""

HOLD = """
CREATE FUNCTION work_thresholds_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'a change of thresholds is not rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.direction = 'widen' AND NOT EXISTS (
        SELECT FROM approvals_approvaltoken token JOIN approvals_tokenuse spent ON spent.token_nonce = token.nonce
        WHERE token.id = NEW.approval_token_id AND token.tenant_id = NEW.tenant_id AND spent.tenant_id = NEW.tenant_id
          AND token.scope = 'autonomy_threshold')
    THEN
        RAISE EXCEPTION 'nothing is widened without a spent approval' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER work_thresholds_are_held BEFORE INSERT OR UPDATE OR DELETE ON work_thresholdchange
    FOR EACH ROW EXECUTE FUNCTION work_thresholds_hold();
"""
HOLD_REVERSE = """
DROP TRIGGER work_thresholds_are_held ON work_thresholdchange;
DROP FUNCTION work_thresholds_hold;
"""
