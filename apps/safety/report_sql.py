"""The beginning of a report as one call of the database: every agent makes it before every action.

Under the agent's lock, as `locks.lock_agent`: what holds its principal, the execution that it works in, one step
further, the policy in force (an own one that was taken back is as none), and whether anybody's hold has to be told of.
Each statement sees what was committed while the lock was waited for. The order of locks is that of `locks`.
"""

REPORT = """
CREATE FUNCTION safety_report(p_tenant uuid, p_principal text, p_name text, p_execution uuid, p_moment timestamptz)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_agent uuid;
    v_block uuid;
    v_found uuid;
    v_execution safety_execution;
BEGIN
    SELECT id INTO v_agent FROM safety_safetyagent
        WHERE tenant_id = p_tenant AND principal = p_principal AND name = p_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        INSERT INTO safety_safetyagent (id, tenant_id, principal, name)
            VALUES (gen_random_uuid(), p_tenant, p_principal, p_name) ON CONFLICT DO NOTHING;
        SELECT id INTO v_agent FROM safety_safetyagent
            WHERE tenant_id = p_tenant AND principal = p_principal AND name = p_name FOR NO KEY UPDATE;
    END IF;
    SELECT id INTO v_block FROM safety_hold
        WHERE tenant_id = p_tenant AND principal = p_principal AND kind = 'block' AND state = 'open';
    IF FOUND THEN
        RETURN jsonb_build_object('agent', v_agent, 'block', v_block);
    END IF;
    SELECT id INTO v_found FROM safety_execution
        WHERE tenant_id = p_tenant AND agent_id = v_agent AND status = 'running'
            AND (p_execution IS NULL OR id = p_execution)
        ORDER BY started_at DESC LIMIT 1;
    UPDATE safety_execution SET steps = steps + 1, last_at = p_moment
        WHERE id = v_found AND status = 'running' RETURNING * INTO v_execution;
    IF NOT FOUND THEN
        RETURN jsonb_build_object('agent', v_agent);
    END IF;
    RETURN jsonb_build_object(
        'agent', v_agent,
        'execution', v_execution.id,
        'steps', v_execution.steps,
        'granted_at', v_execution.granted_at,
        'started_at', v_execution.started_at,
        'policy', coalesce(
            (SELECT CASE WHEN NOT taken_back THEN content::text END FROM safety_policyversion
             WHERE tenant_id = p_tenant AND principal = p_principal ORDER BY number DESC LIMIT 1),
            (SELECT content::text FROM safety_policyversion
             WHERE tenant_id = p_tenant AND principal = '' ORDER BY number DESC LIMIT 1)),
        'held', EXISTS (SELECT FROM safety_hold WHERE tenant_id = p_tenant AND execution_id = v_execution.id
                        AND kind <> 'block' AND state = 'open'),
        'told', EXISTS (SELECT FROM safety_hold WHERE tenant_id = p_tenant AND kind = 'block' AND state = 'open')
    );
END $$;
"""
REPORT_REVERSE = "DROP FUNCTION safety_report(uuid, text, text, uuid, timestamptz);"
