"""SQL function that spends a use of an approval token: under the token's lock, counted from the ledger of uses.

It runs with its owner's rights and checks the token, its key and what it is spent for itself, so a worker that may
write none of this room's tables can spend what a person approved, and nothing more. A refusal spends no use: a caller
that names other content, another item or another time than the token's, or a task that its goal did not start for that
customer, could not have used it. Its only caller (services/tokens.py) verifies the signature, and with it the content
of a standing approval's child; `p_issued` is the signed time of issue."""

SPEND = """
CREATE FUNCTION approvals_spend(
    p_nonce text, p_issued timestamptz, p_id uuid, p_hash text, p_subject text, p_binding text, p_at timestamptz,
    OUT ordinal integer, OUT refusal text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    v_token record;
    v_now record;
    v_child record;
BEGIN
    SELECT tenant_id, key_id, verdict, scope, plan_hash, work_item_id, issued_at, expires_at, max_executions
    INTO v_token FROM public.approvals_approvaltoken WHERE nonce = p_nonce FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        refusal := 'token_unknown';
        RETURN;
    END IF;
    SELECT key.retired_at, key.revoked_at,
           EXISTS (SELECT FROM public.approvals_tokenrevocation WHERE token_nonce = p_nonce) AS taken_back,
           (SELECT count(*) FROM public.approvals_tokenuse WHERE token_nonce = p_nonce) AS used INTO v_now
    FROM public.approvals_approverkey AS key
    WHERE key.key_id = v_token.key_id AND key.tenant_id = v_token.tenant_id;
    IF NOT FOUND THEN
        refusal := 'invalid_signature';
        RETURN;
    END IF;
    -- Of a standing approval: a task that waits under this very goal, never spent for before, and for the customer of
    -- the conversation that it came from, or for none.
    IF v_token.scope = 'standing' AND pg_input_is_valid(p_subject, 'uuid')
        AND pg_input_is_valid(v_token.work_item_id, 'uuid') THEN
        SELECT child.plan_hash, child.status, child.approval_token_id, child.subject,
               encode(sha256(convert_to(child.plan, 'UTF8')), 'hex') AS content, goal.plan_hash AS goal_hash,
               talk.customer, talk.last_customer,
               EXISTS (SELECT FROM public.approvals_tokenuse
                       WHERE token_nonce = p_nonce AND subject_id = p_subject) AS spent INTO v_child
        FROM public.work_workitem AS child
        LEFT JOIN public.work_workitem AS goal ON goal.tenant_id = child.tenant_id AND goal.id = child.parent_id
            AND goal.id = v_token.work_item_id::uuid
        LEFT JOIN public.silas_sessions_chatsession AS talk
            ON talk.tenant_id = child.tenant_id AND talk.id = child.session_id
        WHERE child.tenant_id = v_token.tenant_id AND child.id = p_subject::uuid;
        refusal := CASE
            WHEN NOT FOUND THEN 'standing_requires_spawned_task'
            WHEN v_child.goal_hash IS DISTINCT FROM v_token.plan_hash THEN 'standing_parent_mismatch'
            WHEN p_hash IS DISTINCT FROM v_child.plan_hash OR p_hash IS DISTINCT FROM v_child.content
                THEN 'plan_hash_mismatch'
            WHEN v_child.spent OR v_child.status <> 'pending' OR v_child.approval_token_id IS NOT NULL
                THEN 'spawn_not_allowed'
            WHEN v_child.subject <> '' AND (v_child.customer IS NULL
                OR v_child.subject NOT IN (v_child.customer, v_child.last_customer)) THEN 'spawn_outside_policy'
        END;
    ELSIF v_token.scope = 'standing' THEN
        refusal := 'standing_requires_spawned_task';
    ELSIF p_subject IS DISTINCT FROM v_token.work_item_id THEN
        refusal := 'subject_mismatch';
    ELSIF p_hash IS DISTINCT FROM v_token.plan_hash THEN
        refusal := 'plan_hash_mismatch';
    END IF;
    refusal := CASE
        WHEN v_now.revoked_at IS NOT NULL THEN 'key_revoked'
        WHEN p_issued >= v_now.retired_at THEN 'key_retired'
        WHEN p_issued IS DISTINCT FROM v_token.issued_at THEN 'invalid_signature'
        WHEN v_now.taken_back THEN 'token_revoked'
        WHEN v_token.verdict <> 'approved' THEN 'not_approved'
        WHEN v_token.expires_at <= statement_timestamp() THEN 'token_expired'
        WHEN v_now.used >= v_token.max_executions THEN 'execution_limit_reached'
        ELSE refusal
    END;
    IF refusal IS NULL THEN
        ordinal := v_now.used + 1;
        INSERT INTO public.approvals_tokenuse
            (id, tenant_id, token_nonce, ordinal, bound_hash, subject_id, binding, used_at)
        VALUES (p_id, v_token.tenant_id, p_nonce, ordinal, p_hash, p_subject, p_binding, p_at);
    END IF;
END $$;
"""
SPEND_REVERSE = "DROP FUNCTION approvals_spend;"
