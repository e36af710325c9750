"""The database's own part of the chain: the only way in, and the refusal of every other (docs/audit-format.md)."""

APPEND = """
CREATE FUNCTION audit_append(
    p_chain uuid, p_tenant uuid, p_ids uuid[], p_events text[], p_actors text[], p_subjects text[], p_datas text[],
    p_stamps timestamptz[], p_heads text[], p_middles text[], p_tails text[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_seq bigint;
    v_prev text;
    v_hash text;
BEGIN
    SELECT seq, entry_hash INTO v_seq, v_prev FROM audit_audithead WHERE chain = p_chain FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO audit_audithead (chain, tenant_id, seq, entry_hash) VALUES (p_chain, p_tenant, 0, 'genesis')
            ON CONFLICT (chain) DO NOTHING;
        SELECT seq, entry_hash INTO v_seq, v_prev FROM audit_audithead WHERE chain = p_chain FOR UPDATE;
    END IF;
    FOR i IN 1 .. array_length(p_ids, 1) LOOP
        v_seq := v_seq + 1;
        v_hash := encode(sha256(convert_to(p_heads[i] || v_prev || p_middles[i] || v_seq || p_tails[i], 'UTF8')), 'hex');
        INSERT INTO audit_auditentry
            (entry_id, tenant_id, chain, seq, event, actor, subject, data, timestamp, prev_hash, entry_hash)
        VALUES (p_ids[i], p_tenant, p_chain, v_seq, p_events[i], p_actors[i], p_subjects[i], p_datas[i], p_stamps[i],
                v_prev, v_hash);
        v_prev := v_hash;
    END LOOP;
    UPDATE audit_audithead SET seq = v_seq, entry_hash = v_prev WHERE chain = p_chain;
    RETURN v_seq;
END $$;
"""
APPEND_REVERSE = (
    "DROP FUNCTION audit_append(uuid, uuid, uuid[], text[], text[], text[], text[], timestamptz[], text[], text[], text[]);"
)

REFUSE = """
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log cannot be rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_entry_no_rewrite BEFORE UPDATE OR DELETE ON audit_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON audit_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoint_no_rewrite BEFORE UPDATE OR DELETE ON audit_auditcheckpoint
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoint_no_truncate BEFORE TRUNCATE ON audit_auditcheckpoint
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
"""
REFUSE_REVERSE = """
DROP TRIGGER audit_entry_no_rewrite ON audit_auditentry;
DROP TRIGGER audit_entry_no_truncate ON audit_auditentry;
DROP TRIGGER audit_checkpoint_no_rewrite ON audit_auditcheckpoint;
DROP TRIGGER audit_checkpoint_no_truncate ON audit_auditcheckpoint;
DROP FUNCTION audit_refuse();
"""
