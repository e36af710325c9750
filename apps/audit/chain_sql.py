"""The database's own part of the chain: the only way in, and the refusal of every other (docs/audit-format.md)."""

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

# The head is the one row of a chain that changes, and it changes in one direction; keys stay for what they signed.
GROW = """
CREATE FUNCTION audit_head_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.chain <> OLD.chain OR NEW.tenant_id IS DISTINCT FROM OLD.tenant_id OR NEW.seq <= OLD.seq THEN
        RAISE EXCEPTION 'the head of an audit chain only grows' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_head_grows BEFORE UPDATE ON audit_audithead FOR EACH ROW EXECUTE FUNCTION audit_head_grows();
CREATE TRIGGER audit_head_stays BEFORE DELETE ON audit_audithead FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_no_truncate BEFORE TRUNCATE ON audit_audithead
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_key_no_rewrite BEFORE UPDATE OR DELETE ON audit_auditkey
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_key_no_truncate BEFORE TRUNCATE ON audit_auditkey
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
"""
GROW_REVERSE = """
DROP TRIGGER audit_head_grows ON audit_audithead;
DROP TRIGGER audit_head_stays ON audit_audithead;
DROP TRIGGER audit_head_no_truncate ON audit_audithead;
DROP TRIGGER audit_key_no_rewrite ON audit_auditkey;
DROP TRIGGER audit_key_no_truncate ON audit_auditkey;
DROP FUNCTION audit_head_grows();
"""

# Whether a chain grew can be asked by its id, so that asking it of the platform's chain does not make it grow.
FIND = """
CREATE POLICY tenant_lookup ON audit_audithead FOR SELECT
    USING (chain::text = (SELECT nullif(current_setting('silas.lookup', true), '')));
CREATE POLICY tenant_lookup ON audit_auditcheckpoint FOR SELECT
    USING (chain::text = (SELECT nullif(current_setting('silas.lookup', true), '')));
"""
FIND_REVERSE = """
DROP POLICY tenant_lookup ON audit_audithead;
DROP POLICY tenant_lookup ON audit_auditcheckpoint;
"""

# Entries are told in one text: a driver takes longer to quote eleven lists than the database to read one.
APPEND = """
CREATE FUNCTION audit_append(p_chain uuid, p_tenant uuid, p_entries text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_seq bigint;
    v_prev text;
    v_hash text;
    e record;
BEGIN
    SELECT seq, entry_hash INTO v_seq, v_prev FROM audit_audithead WHERE chain = p_chain FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO audit_audithead (chain, tenant_id, seq, entry_hash) VALUES (p_chain, p_tenant, 0, 'genesis')
            ON CONFLICT (chain) DO NOTHING;
        SELECT seq, entry_hash INTO v_seq, v_prev FROM audit_audithead WHERE chain = p_chain FOR UPDATE;
    END IF;
    FOR e IN SELECT * FROM json_to_recordset(p_entries::json)
        AS told(entry_id uuid, event text, actor text, subject text, data text, timestamp timestamptz,
                head text, middle text, tail text)
    LOOP
        v_seq := v_seq + 1;
        v_hash := encode(sha256(convert_to(e.head || v_prev || e.middle || v_seq || e.tail, 'UTF8')), 'hex');
        INSERT INTO audit_auditentry
            (entry_id, tenant_id, chain, seq, event, actor, subject, data, timestamp, prev_hash, entry_hash)
        VALUES (e.entry_id, p_tenant, p_chain, v_seq, e.event, e.actor, e.subject, e.data, e.timestamp, v_prev, v_hash);
        v_prev := v_hash;
    END LOOP;
    UPDATE audit_audithead SET seq = v_seq, entry_hash = v_prev WHERE chain = p_chain;
    RETURN v_seq;
END $$;
"""
APPEND_REVERSE = "DROP FUNCTION audit_append(uuid, uuid, text);"
