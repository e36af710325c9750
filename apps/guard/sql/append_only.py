"""SQL triggers that refuse to change or delete entries of the spend ledger."""

APPEND_ONLY = """
CREATE FUNCTION guard_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the spend ledger cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER guard_spend_no_rewrite BEFORE UPDATE OR DELETE ON guard_spendentry
    FOR EACH ROW EXECUTE FUNCTION guard_refuse();
CREATE TRIGGER guard_spend_no_truncate BEFORE TRUNCATE ON guard_spendentry
    FOR EACH STATEMENT EXECUTE FUNCTION guard_refuse();
"""
APPEND_ONLY_REVERSE = """
DROP TRIGGER guard_spend_no_rewrite ON guard_spendentry;
DROP TRIGGER guard_spend_no_truncate ON guard_spendentry;
DROP FUNCTION guard_refuse();
"""
