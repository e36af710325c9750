"""Triggers that keep versions of gates immutable and a gate's name and deployment fixed. Used by the migration only."""

from __future__ import annotations

STAY = """
CREATE FUNCTION gates_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of a gate cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE FUNCTION gates_gate_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_moving text[] := ARRAY['status', 'active', 'newest'];
BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - v_moving IS DISTINCT FROM to_jsonb(OLD) - v_moving
       OR NEW.newest < OLD.newest
    THEN
        RAISE EXCEPTION 'a gate keeps its name and its versions' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER gates_gateversion_no_rewrite BEFORE UPDATE OR DELETE ON gates_gateversion
    FOR EACH ROW EXECUTE FUNCTION gates_refuse();
CREATE TRIGGER gates_gateversion_no_truncate BEFORE TRUNCATE ON gates_gateversion
    FOR EACH STATEMENT EXECUTE FUNCTION gates_refuse();
CREATE TRIGGER gates_gate_stays BEFORE UPDATE OR DELETE ON gates_gate
    FOR EACH ROW EXECUTE FUNCTION gates_gate_stays();
CREATE TRIGGER gates_gate_no_truncate BEFORE TRUNCATE ON gates_gate
    FOR EACH STATEMENT EXECUTE FUNCTION gates_refuse();
"""
STAY_REVERSE = """
DROP TRIGGER gates_gate_no_truncate ON gates_gate;
DROP TRIGGER gates_gate_stays ON gates_gate;
DROP TRIGGER gates_gateversion_no_truncate ON gates_gateversion;
DROP TRIGGER gates_gateversion_no_rewrite ON gates_gateversion;
DROP FUNCTION gates_gate_stays();
DROP FUNCTION gates_refuse();
"""
