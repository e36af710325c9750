"""A report against which nothing speaks, whole, as one call of the database that is a transaction by itself.

The caller has judged the intended action by a policy that it remembers. Under the agent's lock, then its execution's
(the order of `locks`), the database looks whether that still is so: the key stands, the policy is in force, nobody of
the tenant is stopped, nothing holds the execution and its budget of steps is not used up. Only then something is
written. NULL: nothing is, and `record_step` has to be asked; another policy than the remembered one is told.
"""

from kernel.tenancy.migrations import ENTER

# What stands in the audit log's entry for what only the database knows; no word of an entry is like either.
SEQ = 10**20
EXECUTION = "safety_execution:@"

AT_ONCE = f"""
CREATE FUNCTION safety_report_at_once(
    p_tenant uuid, p_key uuid, p_principal text, p_name text, p_execution uuid, p_moment timestamptz,
    p_version uuid, p_most int, p_step text, p_entry text
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_agent uuid;
    v_policy record;
    v_execution safety_execution;
BEGIN
    {ENTER}
    IF p_key IS NOT NULL AND NOT EXISTS (
        SELECT FROM tenants_apikey WHERE tenant_id = p_tenant AND id = p_key AND revoked_at IS NULL
            AND (scopes = '[]' OR scopes ? 'safety:agent')) THEN
        RETURN NULL;
    END IF;
    SELECT id INTO v_agent FROM safety_safetyagent
        WHERE tenant_id = p_tenant AND principal = p_principal AND name = p_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT * INTO v_execution FROM safety_execution
        WHERE status = 'running' AND id = (
            SELECT id FROM safety_execution
            WHERE tenant_id = p_tenant AND agent_id = v_agent AND status = 'running'
                AND (p_execution IS NULL OR id = p_execution)
            ORDER BY started_at DESC LIMIT 1)
        FOR NO KEY UPDATE;
    IF NOT FOUND OR (p_most > 0 AND v_execution.steps + 1 - v_execution.granted_at > p_most) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT FROM safety_hold WHERE tenant_id = p_tenant AND state = 'open'
               AND (kind = 'block' OR execution_id = v_execution.id)) THEN
        RETURN NULL;
    END IF;
    SELECT id, content::text AS content INTO v_policy FROM safety_policyversion
        WHERE tenant_id = p_tenant AND principal = coalesce(
            (SELECT CASE WHEN taken_back THEN '' ELSE principal END FROM safety_policyversion
             WHERE tenant_id = p_tenant AND principal = p_principal ORDER BY number DESC LIMIT 1), '')
        ORDER BY number DESC LIMIT 1;
    IF v_policy.id IS DISTINCT FROM p_version THEN
        RETURN jsonb_build_object('version', v_policy.id, 'content', v_policy.content);
    END IF;
    UPDATE safety_execution SET steps = steps + 1, last_at = p_moment
        WHERE id = v_execution.id RETURNING * INTO v_execution;
    INSERT INTO safety_step (id, tenant_id, execution_id, seq, hint, description, outcome, mode, decision, stage, tier,
                             score, factors, created_at)
        SELECT id, p_tenant, v_execution.id, v_execution.steps, hint, description, outcome, mode, decision, stage, tier,
               score, factors, p_moment
        FROM json_to_record(p_step::json) AS told(id uuid, hint text, description text, outcome text, mode text,
             decision text, stage text, tier text, score smallint, factors jsonb);
    PERFORM audit_append(p_tenant, p_tenant, replace(
        replace(p_entry, '{SEQ}', v_execution.steps::text), '{EXECUTION}', 'safety_execution:' || v_execution.id));
    RETURN jsonb_build_object('execution', v_execution.id, 'steps', v_execution.steps,
                              'granted_at', v_execution.granted_at, 'started_at', v_execution.started_at);
END $$;
"""
AT_ONCE_REVERSE = (
    "DROP FUNCTION safety_report_at_once(uuid, uuid, text, text, uuid, timestamptz, uuid, int, text, text);"
)
