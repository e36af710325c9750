"""The trigger that lets proposals be inserted undecided only. Used by a migration.

Workers may insert proposals and update none, so a taken-over worker cannot keep what it proposes.
"""

BEGIN = """
CREATE FUNCTION autonomy_proposals_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'proposed' OR NEW.result_ref <> '' OR NEW.card_id IS NOT NULL
       OR coalesce(NEW.kept_at, NEW.dismissed_at) IS NOT NULL OR NEW.decided_by_id IS NOT NULL THEN
        RAISE EXCEPTION 'nothing is kept before a person keeps it' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER autonomy_proposals_begin BEFORE INSERT ON autonomy_memoryproposal
    FOR EACH ROW EXECUTE FUNCTION autonomy_proposals_begin();
"""
BEGIN_REVERSE = """
DROP TRIGGER autonomy_proposals_begin ON autonomy_memoryproposal;
DROP FUNCTION autonomy_proposals_begin;
"""
