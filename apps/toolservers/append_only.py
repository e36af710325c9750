"""SQL that makes sets of tools write-once; used by the migration."""

REFUSE = """
CREATE FUNCTION toolservers_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a set of tools cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER toolservers_toolset_no_rewrite BEFORE UPDATE OR DELETE ON toolservers_toolset
    FOR EACH ROW EXECUTE FUNCTION toolservers_refuse();
CREATE TRIGGER toolservers_toolset_no_truncate BEFORE TRUNCATE ON toolservers_toolset
    FOR EACH STATEMENT EXECUTE FUNCTION toolservers_refuse();
"""

REFUSE_REVERSE = """
DROP TRIGGER toolservers_toolset_no_rewrite ON toolservers_toolset;
DROP TRIGGER toolservers_toolset_no_truncate ON toolservers_toolset;
DROP FUNCTION toolservers_refuse();
"""
