"""The one way to spend a use of an approval token: under the token's lock, counted from the ledger, in one round trip.

It runs with its owner's rights and looks at the token and its key itself, so a worker that may write none of this
room's tables can spend what a person allowed, and nothing more. The signature is checked by its only caller
(services/tokens.py); `p_issued` is when it says that it was given, which a retired key must not put later than its end.
"""

SPEND = """
CREATE FUNCTION approvals_spend(
    p_nonce text, p_issued timestamptz, p_id uuid, p_hash text, p_subject text, p_binding text, p_at timestamptz,
    OUT ordinal integer, OUT refusal text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    v_token record;
    v_now record;
BEGIN
    SELECT tenant_id, key_id, verdict, expires_at, max_executions INTO v_token
    FROM approvals_approvaltoken WHERE nonce = p_nonce FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        refusal := 'token_unknown';
        RETURN;
    END IF;
    SELECT key.retired_at, key.revoked_at,
           EXISTS (SELECT FROM approvals_tokenrevocation WHERE token_nonce = p_nonce) AS taken_back,
           (SELECT count(*) FROM approvals_tokenuse WHERE token_nonce = p_nonce) AS used INTO v_now
    FROM approvals_approverkey AS key WHERE key.key_id = v_token.key_id AND key.tenant_id = v_token.tenant_id;
    refusal := CASE
        WHEN NOT FOUND THEN 'invalid_signature'
        WHEN v_now.revoked_at IS NOT NULL THEN 'key_revoked'
        WHEN p_issued >= v_now.retired_at THEN 'key_retired'
        WHEN v_now.taken_back THEN 'token_revoked'
        WHEN v_token.verdict <> 'approved' THEN 'not_approved'
        WHEN v_token.expires_at <= statement_timestamp() THEN 'token_expired'
        WHEN v_now.used >= v_token.max_executions THEN 'execution_limit_reached'
    END;
    IF refusal IS NULL THEN
        ordinal := v_now.used + 1;
        INSERT INTO approvals_tokenuse (id, tenant_id, token_nonce, ordinal, bound_hash, subject_id, binding, used_at)
        VALUES (p_id, v_token.tenant_id, p_nonce, ordinal, p_hash, p_subject, p_binding, p_at);
    END IF;
END $$;
"""
SPEND_REVERSE = "DROP FUNCTION approvals_spend;"
