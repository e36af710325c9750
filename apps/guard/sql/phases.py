"""SQL trigger that lets an unattended run move only to its next phase, through all five in order (contract autonomy
A2)."""

ORDER = """
CREATE FUNCTION guard_phases_in_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_phases text[] := ARRAY['intake', 'analysis', 'drafting', 'ethics_review', 'delivery'];
BEGIN
    IF OLD.origin <> 'background' OR OLD.status <> 'running'
       OR array_position(v_phases, NEW.phase::text) IS DISTINCT FROM array_position(v_phases, OLD.phase::text) + 1 THEN
        RAISE EXCEPTION 'a run goes from % to no %', OLD.phase, NEW.phase USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_phases_in_order BEFORE UPDATE OF phase ON guard_guardedrun
    FOR EACH ROW WHEN (OLD.phase IS DISTINCT FROM NEW.phase) EXECUTE FUNCTION guard_phases_in_order();
"""
ORDER_REVERSE = """
DROP TRIGGER guard_phases_in_order ON guard_guardedrun;
DROP FUNCTION guard_phases_in_order();
"""
